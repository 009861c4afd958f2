"""The bytes of a schedule: its definition, its state row, and its tenant's sum of shares."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from functions.adapters.dynamodb.table import Item, instant_of
from functions.domain.errors import Undecodable
from functions.domain.instants import MILLISECOND, from_ms, to_ms
from functions.domain.schedules.asked_runs import read_asked
from functions.domain.schedules.fire_figures import LAST_BUCKET, FireFigures
from functions.domain.schedules.kept_runs import read_kept
from functions.domain.schedules.load import Load, Share
from functions.domain.schedules.record import decode_schedule
from functions.domain.schedules.state import Cut, Link, ScheduleState, SkipReason, Status
from functions.ports.schedules import StoredSchedule

Read = TypeVar("Read")

SKIP = "x_"
GAP = "G"
WAITS = "wn"
WAITED = "wt"
_AWAITED = "~"
_FIRST_WAY = 1
"""How shares were counted that do not say it."""


def readable(read: Callable[[Item], Read], item: Item) -> Read | None:
    """What an item holds; None for what a newer version has written."""
    try:
        return read(item)
    except Undecodable:
        return None


def write_share(share: Share | None) -> str | None:
    """A share as an attribute; None for none."""
    if share is None:
        return None
    way = f"@{share.counted_by}" if share.counted_by != _FIRST_WAY else ""
    return f"{share.version}@{share.fires}{way}"


def _read_share(text: str) -> Share | None:
    if not text:
        return None
    version, fires, *way = map(int, text.split("@"))
    return Share(version, fires, counted_by=way[0] if way else _FIRST_WAY)


def sum_key(tenant: str) -> Item:
    """The key of a tenant's sum."""
    return {"k": f"{tenant}#"}


def read_sum(item: Item) -> Load:
    """The sum that an item holds."""
    return Load(item.get("c", 0), item.get("e", 0))


def definition_key(key: str) -> Item:
    """The key of a definition, by that of its state."""
    tenant, _, schedule_id = key.partition("#")
    return {"t": tenant, "i": schedule_id}


def read_definition(item: Item) -> StoredSchedule:
    """The definition that an item holds; raises Undecodable."""
    try:
        return StoredSchedule(
            schedule=decode_schedule(item["d"], tenant=item["t"], schedule_id=item["i"]),
            version=item["v"],
            status=Status(item["s"]),
            created_at=from_ms(item["c"]),
            changed_at=from_ms(item["u"]),
            requests=tuple(item["q"].split(" ")) if "q" in item else (),
        )
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise Undecodable(f"not a definition of a schedule: {error!r}") from error


def read_state(item: Item) -> ScheduleState:
    """The state that an item holds; raises Undecodable."""
    try:
        fire_count = item["i"]
        # Those of a newer version have no name here.
        skips = {reason: item[SKIP + reason] for reason in SkipReason if SKIP + reason in item}
        return ScheduleState(
            version=item["v"],
            status=Status(item["s"]),
            changed_at=from_ms(item["u"]),
            born=item["y"],
            note=item["n"],
            cuts=tuple(Cut(version, from_ms(since)) for version, since in json.loads(item["q"])),
            link=_read_link(item, fire_count),
            alarm_at=instant_of(item, "r"),
            fire_count=fire_count,
            recent=tuple(sorted(map(from_ms, item["l"].values()))),
            holder=item.get("h", ""),
            holder_since=instant_of(item, "hs"),
            waiting=item.get("w", ""),
            waiting_since=instant_of(item, "ws"),
            failures=item.get("f", frozenset()),
            misfire_count=item.get("o", 0),
            skips=skips,
            last_skip=_read_skip(item["z"]) if "z" in item else None,
            asides=item.get("a", 0),
            aside_at=instant_of(item, "aa"),
            share=_read_share(item.get("e", "")),
            kept_runs=read_kept(item.get("j", "")),
            asked_runs=read_asked(item.get("t", "")),
            figures=_read_figures(item),
        )
    except (KeyError, ValueError, TypeError) as error:
        raise Undecodable(f"not the state of a schedule: {error!r}") from error


def _read_figures(item: Item) -> FireFigures | None:
    counts = {bucket: item.get(f"{GAP}{bucket}", 0) for bucket in range(LAST_BUCKET + 1)}
    gaps = {bucket: count for bucket, count in counts.items() if count}
    figures = FireFigures(gaps, item.get(WAITS, 0), item.get(WAITED, 0) * MILLISECOND)
    return figures or None


def _read_link(item: Item, fire_count: int) -> Link | None:
    if "p" not in item:
        return None
    position = item["p"]
    is_awaited = position.endswith(_AWAITED)
    at = from_ms(int(position.rstrip(_AWAITED)))
    return Link(
        at=at,
        nominal_at=from_ms(item["m"]) if "m" in item else at,
        index=fire_count - is_awaited,
        previous_at=instant_of(item, "b"),
        is_awaited=is_awaited,
        merged_count=item.get("g", 0),
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
