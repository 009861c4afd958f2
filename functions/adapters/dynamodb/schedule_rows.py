"""The bytes of a schedule: its definition, its state row, and its tenant's sum of shares."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from functions.domain.errors import Undecodable
from functions.domain.instants import from_ms, to_ms
from functions.domain.schedules.load import Load, Share
from functions.domain.schedules.record import decode_schedule
from functions.domain.schedules.state import Cut, Link, ScheduleState, SkipReason, Status
from functions.ports.schedules import StoredSchedule

Read = TypeVar("Read")

SKIP = "x_"
_AWAITED = "~"
_FIRST_WAY = 1
"""How shares were counted that do not say it."""


def readable(read: Callable[[Mapping[str, Any]], Read], item: Mapping[str, Any]) -> Read | None:
    """What an item holds; None for what a newer version has written."""
    try:
        return read(item)
    except Undecodable:
        return None


def write_share(share: Share | None) -> Any:
    """A share as an attribute; None for none."""
    if share is None:
        return None
    way = f"@{share.counted_by}" if share.counted_by != _FIRST_WAY else ""
    return {"S": f"{share.version}@{share.fires}{way}"}


def _read_share(text: str) -> Share | None:
    if not text:
        return None
    version, fires, *way = map(int, text.split("@"))
    return Share(version, fires, counted_by=way[0] if way else _FIRST_WAY)


def sum_key(tenant: str) -> dict[str, Any]:
    """The key of a tenant's sum."""
    return {"k": {"S": f"{tenant}#"}}


def read_sum(item: Mapping[str, Any]) -> Load:
    """The sum that an item holds."""
    counts = (int(item[name]["N"]) if name in item else 0 for name in ("c", "e"))
    return Load(*counts)


def definition_key(key: str) -> dict[str, Any]:
    """The key of a definition, by that of its state."""
    tenant, _, schedule_id = key.partition("#")
    return {"t": {"S": tenant}, "i": {"S": schedule_id}}


def read_definition(item: Mapping[str, Any]) -> StoredSchedule:
    """The definition that an item holds; raises Undecodable."""
    try:
        return StoredSchedule(
            schedule=decode_schedule(item["d"]["S"], tenant=item["t"]["S"], schedule_id=item["i"]["S"]),
            version=int(item["v"]["N"]),
            status=Status(item["s"]["S"]),
            created_at=_instant(item["c"]),
            changed_at=_instant(item["u"]),
        )
    except (KeyError, ValueError, TypeError) as error:
        raise Undecodable(f"not a definition of a schedule: {error!r}") from error


def read_state(item: Mapping[str, Any]) -> ScheduleState:
    """The state that an item holds; raises Undecodable."""
    try:
        fire_count = int(item["i"]["N"])
        # Those of a newer version have no name here.
        skips = {reason: int(item[SKIP + reason]["N"]) for reason in SkipReason if SKIP + reason in item}
        return ScheduleState(
            version=int(item["v"]["N"]),
            status=Status(item["s"]["S"]),
            changed_at=_instant(item["u"]),
            born=int(item["y"]["N"]),
            note=item["n"]["S"],
            cuts=tuple(Cut(version, from_ms(since)) for version, since in json.loads(item["q"]["S"])),
            link=_read_link(item, fire_count),
            alarm_at=_instant(item["r"]) if "r" in item else None,
            fire_count=fire_count,
            recent=tuple(sorted(_instant(at) for at in item["l"]["M"].values())),
            holder=_text(item, "h"),
            holder_since=_instant(item["hs"]) if "hs" in item else None,
            waiting=_text(item, "w"),
            waiting_since=_instant(item["ws"]) if "ws" in item else None,
            failures=frozenset(item["f"]["SS"]) if "f" in item else frozenset(),
            misfire_count=int(item["o"]["N"]) if "o" in item else 0,
            skips=skips,
            last_skip=_read_skip(item["z"]["S"]) if "z" in item else None,
            asides=int(item["a"]["N"]) if "a" in item else 0,
            aside_at=_instant(item["aa"]) if "aa" in item else None,
            share=_read_share(_text(item, "e")),
        )
    except (KeyError, ValueError, TypeError) as error:
        raise Undecodable(f"not the state of a schedule: {error!r}") from error


def _read_link(item: Mapping[str, Any], fire_count: int) -> Link | None:
    if "p" not in item:
        return None
    position = item["p"]["S"]
    is_awaited = position.endswith(_AWAITED)
    at = from_ms(int(position.rstrip(_AWAITED)))
    return Link(
        at=at,
        nominal_at=_instant(item["m"]) if "m" in item else at,
        index=fire_count - is_awaited,
        previous_at=_instant(item["b"]) if "b" in item else None,
        is_awaited=is_awaited,
        merged_count=int(item["g"]["N"]) if "g" in item else 0,
    )


def write_position(link: Link) -> str:
    """Where a chain stands, and whether it waits there for a run."""
    return f"{to_ms(link.at)}{_AWAITED if link.is_awaited else ''}"


def write_skip(reason: SkipReason, fire_at: datetime) -> str:
    """A fire that was skipped, and why."""
    return f"{reason}@{to_ms(fire_at)}"


def _read_skip(text: str) -> tuple[SkipReason, datetime]:
    reason, _, at = text.partition("@")
    return SkipReason(reason), from_ms(int(at))


def _text(item: Mapping[str, Any], name: str) -> str:
    return item[name]["S"] if name in item else ""


def ms_of(instant: datetime) -> Any:
    """An instant as a number attribute."""
    return {"N": str(to_ms(instant))}


def _instant(value: Any) -> datetime:
    return from_ms(int(value["N"]))
