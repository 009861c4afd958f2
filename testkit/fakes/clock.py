"""Time in the hand of the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from functions.domain.errors import TooCostly
from testkit.builders import NOON


class FakeClock:
    """Time in the hand of the test. Sleeping moves it on."""

    def __init__(self, now: datetime = NOON) -> None:
        self.instant = now
        self.ahead = timedelta(0)
        self.known_offset = timedelta(0)
        self.used = timedelta(0)
        self.limit: timedelta | None = None

    def now(self) -> datetime:
        return self.instant + self.ahead

    def monotonic(self) -> float:
        return (self.instant - NOON).total_seconds()

    def sleep(self, duration: timedelta) -> None:
        self.tick(duration)

    def offset(self) -> timedelta:
        return self.known_offset

    @contextmanager
    def limited(self, share: timedelta) -> Iterator[None]:
        used = self.used
        self.limit = used + share
        try:
            yield
        finally:
            self.limit = None

    def burn(self, duration: timedelta) -> None:
        """Use the processor; time passes with it."""
        left = duration if self.limit is None else min(duration, self.limit - self.used)
        self.used += left
        self.tick(left)
        if left < duration:
            raise TooCostly

    def tick(self, duration: timedelta) -> None:
        self.instant += max(duration, timedelta(0))
