"""What the rules ask of time."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Wall time for instants, monotonic time for durations in a process."""

    def now(self) -> datetime:
        """The wall clock: aware UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start, never set back."""
        ...

    def sleep(self, duration: timedelta) -> None:
        """Wait."""
        ...

    def offset(self) -> timedelta:
        """How far this clock is ahead of the stores' clocks, according to their answers; 0 until the first."""
        ...

    def limited(self, share: timedelta, /) -> AbstractContextManager[None]:
        """Let what runs inside use so much of the processor. Raises TooCostly, in it or behind it, where it takes more.

        Only for what computes: it may end anywhere.
        """
        ...
