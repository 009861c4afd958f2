"""Changes of a schedule's state row, as the parts of an update expression."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from functions.adapters.dynamodb.schedule_rows import SKIP, ms_of, write_position, write_share
from functions.domain.instants import to_ms, to_seconds
from functions.domain.schedules.state import Link, ScheduleState, SkipReason, Status

DELETED_LIFE = timedelta(days=30)
"""How long the state of a deleted schedule is kept: longer than any message of it."""


def places_of(history: int) -> int:
    """How many of the last fires a state row keeps: one at least, from which a change knows what has fired."""
    return max(history, 1)


class Update:
    """The parts of an update expression."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: dict[str, Any] = {}
        self._parts: dict[str, list[str]] = {}

    def set(self, path: str, value: Any) -> None:
        """Sets what a path names."""
        self.values[f":{len(self.values)}"] = value
        self._note("SET", path, f" = :{len(self.values) - 1}")

    def add(self, name: str, count: int) -> None:
        """Adds to a count, or begins it."""
        self.values[f":{len(self.values)}"] = {"N": str(count)}
        self._note("ADD", name, f" :{len(self.values) - 1}")

    def remove(self, *names: str) -> None:
        """Takes attributes away."""
        for name in names:
            self._note("REMOVE", name, "")

    def set_or_remove(self, name: str, value: Any) -> None:
        """Takes it away where there is no value."""
        if value is None:
            self.remove(name)
        else:
            self.set(name, value)

    def set_link(self, link: Link | None) -> None:
        """Where the chain goes on."""
        self.set_or_remove("p", {"S": write_position(link)} if link else None)
        self.set_or_remove("m", ms_of(link.nominal_at) if link and link.nominal_at != link.at else None)
        self.set_or_remove("b", ms_of(link.previous_at) if link and link.previous_at else None)
        self.set_or_remove("g", {"N": str(link.merged_count)} if link and link.merged_count else None)

    @property
    def expression(self) -> str:
        """The update expression."""
        return " ".join(f"{kind} {', '.join(parts)}" for kind, parts in self._parts.items())

    def _note(self, kind: str, path: str, rest: str) -> None:
        # No name stands in an expression as it is: many of them are reserved words.
        self.names |= {f"#{name}": name for name in path.split(".")}
        self._parts.setdefault(kind, []).append("#" + path.replace(".", ".#") + rest)


def share_condition(update: Update, seen: ScheduleState) -> str:
    """That its share is the one that was seen."""
    if seen.share is None:
        return "attribute_not_exists(#e)"
    update.values[":share"] = write_share(seen.share)
    return "#e = :share"


def new_version(state: ScheduleState, seen: ScheduleState | None, *, history: int) -> Update:
    """Writes a state over the one that was seen, but for what workers and scanners write meanwhile."""
    update = Update()
    update.set("v", {"N": str(state.version)})
    update.set("s", {"S": state.status})
    update.set("u", ms_of(state.changed_at))
    update.set("n", {"S": state.note})
    update.set("q", {"S": json.dumps([[cut.version, to_ms(cut.since)] for cut in state.cuts])})
    update.set("i", {"N": str(state.fire_count)})
    recent = state.recent[-places_of(history) :]
    first = state.fire_count - len(recent)
    places = {str((first + number) % places_of(history)): ms_of(at) for number, at in enumerate(recent)}
    update.set("l", {"M": places})
    update.set("y", {"N": str(state.born)})
    update.set_link(state.link)
    update.set_or_remove("r", ms_of(state.alarm_at) if state.alarm_at else None)
    update.remove("f")
    update.set_or_remove("a", {"N": str(state.asides)} if state.asides else None)
    update.set_or_remove("aa", ms_of(state.aside_at) if state.aside_at else None)
    update.set_or_remove("e", write_share(state.share))
    if seen is not None and seen.status is Status.DELETED:
        # It begins anew. Of any other schedule, workers and scanners write these meanwhile.
        update.remove("h", "hs", "w", "ws", "o", "z", *(SKIP + reason for reason in SkipReason))
    is_deleted = state.status is Status.DELETED
    update.set_or_remove("x", {"N": str(to_seconds(state.changed_at + DELETED_LIFE))} if is_deleted else None)
    return update
