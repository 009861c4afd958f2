"""Changes of a schedule's state row, as the parts of an update expression."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from functions.adapters.dynamodb.schedule_rows import GAP, SKIP, WAITED, WAITS, write_position, write_share
from functions.domain.instants import MILLISECOND, to_ms, to_seconds
from functions.domain.schedules.fire_figures import FireFigures
from functions.domain.schedules.state import Link, ScheduleState, SkipReason, Status

DELETED_LIFE = timedelta(days=30)
"""How long the state of a deleted schedule is kept: longer than any message of it."""


def places_of(history: int) -> int:
    """How many of the last fires a state row keeps: one at least, from which a change knows what has fired."""
    return max(history, 1)


@dataclass
class Update:
    """The parts of an update expression. values: by their names in it, without the colon."""

    names: dict[str, str] = field(default_factory=dict[str, str])
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    _parts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def set(self, path: str, value: Any) -> None:
        """Sets what a path names."""
        self._note("SET", path, f" = :{self._valued(value)}")

    def add(self, name: str, count: int) -> None:
        """Adds to a count, or begins it."""
        self._note("ADD", name, f" :{self._valued(count)}")

    def remove(self, *names: str) -> None:
        """Takes attributes away."""
        for name in names:
            self._note("REMOVE", name, "")

    def add_figures(self, figures: FireFigures) -> None:
        """Counts some fires more."""
        for bucket, count in figures.gaps.items():
            self.add(f"{GAP}{bucket}", count)
        if figures.waits:
            self.add(WAITS, figures.waits)
            self.add(WAITED, figures.waited // MILLISECOND)

    def remove_figures(self, figures: FireFigures) -> None:
        """Begins to count anew."""
        self.remove(*(f"{GAP}{bucket}" for bucket in figures.gaps), *((WAITS, WAITED) if figures.waits else ()))

    def set_or_remove(self, name: str, value: Any) -> None:
        """Takes it away where there is no value."""
        if value is None:
            self.remove(name)
        else:
            self.set(name, value)

    def set_link(self, link: Link | None) -> None:
        """Where the chain continues."""
        self.set_or_remove("p", write_position(link) if link else None)
        self.set_or_remove("m", link.nominal_at if link and link.nominal_at != link.at else None)
        self.set_or_remove("b", link.previous_at if link else None)
        self.set_or_remove("g", link.merged_count or None if link else None)

    @property
    def asked(self) -> dict[str, Any]:
        """What a table is asked for."""
        expression = " ".join(f"{kind} {', '.join(parts)}" for kind, parts in self._parts.items())
        return {"update": expression, "names": self.names, **self.values}

    def _valued(self, value: Any) -> str:
        name = str(len(self.values))
        self.values[name] = value
        return name

    def _note(self, kind: str, path: str, rest: str) -> None:
        # No name stands in an expression as it is: many of them are reserved words.
        self.names |= {f"#{name}": name for name in path.split(".")}
        self._parts.setdefault(kind, []).append("#" + path.replace(".", ".#") + rest)


def share_condition(update: Update, seen: ScheduleState) -> str:
    """That its share is the one that was seen."""
    if seen.share is None:
        return "attribute_not_exists(#e)"
    update.values["share"] = write_share(seen.share)
    return "#e = :share"


def new_version(state: ScheduleState, seen: ScheduleState | None, *, history: int) -> Update:
    """Writes a state over the one that was seen, but for what workers and scanners write meanwhile."""
    update = Update()
    recent = state.recent[-places_of(history) :]
    first = state.fire_count - len(recent)
    always = {
        "v": state.version,
        "s": state.status,
        "u": state.changed_at,
        "n": state.note,
        "q": json.dumps([[cut.version, to_ms(cut.since)] for cut in state.cuts]),
        "i": state.fire_count,
        "l": {str((first + number) % places_of(history)): at for number, at in enumerate(recent)},
        "y": state.born,
    }
    for name, value in always.items():
        update.set(name, value)
    update.set_link(state.link)
    update.set_or_remove("r", state.alarm_at)
    update.remove("f")
    update.set_or_remove("a", state.asides or None)
    update.set_or_remove("aa", state.aside_at)
    update.set_or_remove("e", write_share(state.share))
    if seen is not None and seen.figures is not None:
        # Nobody has counted since: each count moves the link, which this write holds for.
        update.remove_figures(seen.figures)
    if seen is not None and seen.status is Status.DELETED:
        # It begins anew. Of any other schedule, workers and scanners write these meanwhile.
        update.remove("h", "hs", "w", "ws", "o", "z", "j", "t", *(SKIP + reason for reason in SkipReason))
    is_deleted = state.status is Status.DELETED
    update.set_or_remove("x", to_seconds(state.changed_at + DELETED_LIFE) if is_deleted else None)
    return update
