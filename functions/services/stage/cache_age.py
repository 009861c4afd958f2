"""How old is what a process has read: by both clocks, because one of them may have stood still with its process."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from functions.ports.clock import Clock


@dataclass(frozen=True, slots=True)
class ReadAt:
    """The moment of a read, on the monotonic clock (seconds) and on the wall clock."""

    monotonic: float
    wall: datetime

    @classmethod
    def now(cls, clock: Clock) -> ReadAt:
        """This moment."""
        return cls(clock.monotonic(), clock.now())

    def is_older_than(self, age: timedelta, *, clock: Clock) -> bool:
        """Whether so much time has passed by either clock."""
        return max(timedelta(seconds=clock.monotonic() - self.monotonic), clock.now() - self.wall) >= age
