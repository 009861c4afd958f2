"""Alarms that a tick owes: their rows have been passed, by it or by an earlier tick, and nobody has handled them yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from functions.domain.far_ring.cursor import Cursors, Position, furthest
from functions.domain.far_ring.schedule_alarm import ScheduleAlarm
from functions.domain.jobs.job import Priority

MOST_OWED = 20_000
"""Alarms that a tick remembers. Further ones are read again."""


class Owed(NamedTuple):
    """An alarm that has been passed and has not been handled. at: of its row."""

    at: Position
    priority: Priority
    alarm: ScheduleAlarm

    @property
    def behind(self) -> Position:
        """A position behind which it is read again: right before it, or a few rows before that."""
        return Position(self.at.bucket, self.at.key[:-1])


@dataclass(slots=True)
class OwedAlarms:
    """The alarms of one tick.

    left: behind these positions there are more, which are read again, up to `left_until` or as far as the tick has come.
    died_at: the alarm that killed the tick before, until that has been reported. waiting: in the order in which they were
    passed. refused: by the stores. last: beside a chain of their tenant that was set aside.
    """

    left: dict[Priority, Position]
    left_until: dict[Priority, Position]
    died_at: Position | None
    waiting: deque[Owed] = field(default_factory=deque[Owed])
    handling: Sequence[Owed] = ()
    refused: deque[Owed] = field(default_factory=deque[Owed])
    last: deque[Owed] = field(default_factory=deque[Owed])

    @classmethod
    def of_earlier_ticks(cls, cursors: Cursors, *, died_at: Position | None) -> OwedAlarms:
        """What earlier ticks have left, as far as they had come."""
        left = {priority: cursor.unhandled for priority, cursor in cursors.items() if cursor.unhandled is not None}
        return cls(left, {priority: furthest(cursor) for priority, cursor in cursors.items()}, died_at)

    @property
    def is_due(self) -> bool:
        """Whether there is an alarm to handle, or one to accuse."""
        return bool(self.waiting or self.left or self.died_at)

    @property
    def is_full(self) -> bool:
        """Whether no more alarms are remembered."""
        return len(self.waiting) >= MOST_OWED

    def owe(self, alarm: ScheduleAlarm, *, at: Position) -> None:
        """Remember an alarm whose row is passed."""
        owed = Owed(at, alarm.priority, alarm)
        if not self.is_full:
            self.waiting.append(owed)
            return
        self.left[owed.priority] = min(owed.behind, self.left.get(owed.priority, owed.behind))
        self.left_until.pop(owed.priority, None)

    def unhandled(self, priority: Priority) -> Position | None:
        """Behind which position alarms of a class have not been handled; None where all have."""
        remembered = chain(self.handling, self.waiting, self.refused, self.last)
        behind = [owed.behind for owed in remembered if owed.priority is priority]
        return min([*behind, *([self.left[priority]] if priority in self.left else [])], default=None)
