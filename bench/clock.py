"""Time in the hand of a benchmark."""

from datetime import UTC, datetime, timedelta
from typing import Any

from functions.adapters.system_clock import SystemClock

_START = datetime(2027, 3, 1, 12, 0, 0, tzinfo=UTC)


class SettableClock(SystemClock):
    """Stands still until it is set; sleeping moves it on. It does not compare itself with the stores' clocks."""

    def __init__(self) -> None:
        super().__init__()
        self._now = _START

    def now(self) -> datetime:
        """The instant that was set."""
        return self._now

    def monotonic(self) -> float:
        """Moves with `now`."""
        return (self._now - _START).total_seconds()

    def sleep(self, duration: timedelta) -> None:
        """Moves on at once."""
        self.set(self._now + max(duration, timedelta(0)))

    def set(self, now: datetime) -> None:
        """Time goes forward only."""
        assert now >= self._now
        self._now = now

    def observe_response(self, http_response: Any, **_: Any) -> None:
        """The stores' time means nothing here."""
