"""Time in the hand of the test."""

from __future__ import annotations

from datetime import datetime, timedelta

from tests.builders import NOON


class FakeClock:
    """Time in the hand of the test. Sleeping moves it on."""

    def __init__(self, now: datetime = NOON) -> None:
        self.instant = now
        self.ahead = timedelta(0)
        self.known_offset = timedelta(0)

    def now(self) -> datetime:
        return self.instant + self.ahead

    def monotonic(self) -> float:
        return (self.instant - NOON).total_seconds()

    def sleep(self, duration: timedelta) -> None:
        self.tick(duration)

    def offset(self) -> timedelta:
        return self.known_offset

    def tick(self, duration: timedelta) -> None:
        self.instant += max(duration, timedelta(0))
