"""When local times come, with what a program does at a clock change."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tickwheel.imports.cron import Expression
from tickwheel.imports.fields import Unreadable

_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)
_MOST_DAYS = 366 * 30


def zone_of(name: str) -> ZoneInfo:
    """The zone of a name. Raises Unreadable."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Unreadable(
            f"{name!r} is no time zone that this machine knows: write an IANA name such as Europe/Berlin"
        ) from None


@dataclass(frozen=True, kw_only=True)
class Clock:
    """A clock on a wall. gap: `skip`, or `next_valid` after the change; fold: `first`, `second` or `both`."""

    zone: ZoneInfo
    gap: str
    fold: str

    def instants_of(self, local: datetime) -> list[datetime]:
        """When a naive local time comes."""
        found = [each for each in (self._instant(local, 0), self._instant(local, 1)) if self._shows(each, local)]
        if not found:
            return [] if self.gap == "skip" else [self._after_gap(local)]
        if len(set(found)) == 1 or self.fold == "both":
            return list(dict.fromkeys(found))
        return [min(found) if self.fold == "first" else max(found)]

    def _after_gap(self, local: datetime) -> datetime:
        while not self._shows(self._instant(local, 0), local):
            local += _MINUTE
        return self._instant(local, 0)

    def _instant(self, local: datetime, fold: int) -> datetime:
        return local.replace(tzinfo=self.zone, fold=fold).astimezone(UTC)

    def _shows(self, instant: datetime, local: datetime) -> bool:
        return instant.astimezone(self.zone).replace(tzinfo=None, fold=0) == local


def fires(expression: Expression, clock: Clock, *, after: datetime, end: datetime | None = None) -> Iterator[datetime]:
    """The instants after one, in order, up to an end, or to what thirty years hold."""
    day = after.astimezone(clock.zone).date() - _DAY
    last = after
    for _ in range(_MOST_DAYS):
        if end is not None and day > end.astimezone(clock.zone).date():
            return
        if expression.is_on(day):
            for instant in _of_day(expression, clock, day):
                if end is not None and instant >= end:
                    return
                if instant > last:
                    last = instant
                    yield instant
        if day >= date(9990, 1, 1):
            return
        day += _DAY


def _of_day(expression: Expression, clock: Clock, day: date) -> list[datetime]:
    found: set[datetime] = set()
    for hour in sorted(expression.hours):
        for minute in sorted(expression.minutes):
            local = datetime(day.year, day.month, day.day, hour, minute)  # noqa: DTZ001  local to the zone
            found.update(clock.instants_of(local))
    return sorted(found)


def clock_changes(zone: ZoneInfo, *, after: datetime, days: int) -> list[date]:
    """The local dates on which the clock of a zone is changed, of so many days from an instant on."""
    start = after.replace(hour=0, minute=0, second=0, microsecond=0)
    offsets = [(start + number * _DAY).astimezone(zone) for number in range(days + 1)]
    return [
        _change(zone, before, later) for before, later in pairwise(offsets) if before.utcoffset() != later.utcoffset()
    ]


def _change(zone: ZoneInfo, before: datetime, later: datetime) -> date:
    low, high = before.astimezone(UTC), later.astimezone(UTC)
    while high - low > _MINUTE:
        middle = low + (high - low) / 2
        if middle.astimezone(zone).utcoffset() == before.utcoffset():
            low = middle
        else:
            high = middle
    return high.astimezone(zone).date()
