"""A recurrence rule on naive local time, walked by python-dateutil.

dateutil walks from DTSTART on, and has no end of patience. So a rule is started afresh in the period that is asked for,
with what DTSTART implied written out; and one that finds nothing on so many days never fires.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from functools import lru_cache
from itertools import islice, pairwise, takewhile
from typing import Any, Self

from dateutil.rrule import DAILY, HOURLY, MONTHLY, WEEKLY, YEARLY, rrule

PATIENCE = 50_000
"""Days that are looked at for one result: more than a century of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Recurrence:
    """A parsed rule.

    by: dateutil's arguments, those that DTSTART implies too. until: the last instant that may be (aware), or the last
    local time (naive).
    """

    starts_at: datetime
    freq: int
    interval: int
    wkst: int
    by: Mapping[str, Any]
    count: int | None
    until: datetime | None

    def matches(self, *, since: datetime) -> Iterator[datetime]:
        """The naive local times that match, from `since` (inclusive) on, in order. It ends when patience does.

        A naive `until` is kept, an aware one is left to the caller, who knows the zone.
        """
        found = self._walk(self._period_of(since)) if self.count is None else iter(_all_of(self))
        if self.until is not None and self.until.tzinfo is None:
            last = self.until
            found = takewhile(lambda match: match <= last, found)
        return (match for match in found if match >= since)

    @property
    def shortest_period(self) -> timedelta | None:
        """The smallest distance among its first thousand times; None when there are not two."""
        first = islice(self.matches(since=self.starts_at), 1_000)
        return min((b - a for a, b in pairwise(first)), default=None)

    def _walk(self, start: datetime) -> Iterator[datetime]:
        patience = _Patience()
        try:
            rule: Any = rrule(self.freq, start, self.interval, self.wkst, self.count, **self.by)  # pyright: ignore[reportArgumentType]
            # dateutil looks into one of these for every day; all the days of a week change nothing in what it finds.
            if rule._bymonth:  # noqa: SLF001
                rule._bymonth = _Asked(rule._bymonth, patience)  # noqa: SLF001
            rule._byweekday = _Asked(rule._byweekday or range(7), patience)  # noqa: SLF001
            for match in rule:
                patience.left = PATIENCE
                if match >= self.starts_at:
                    yield match
        except (_PatienceLost, ValueError, OverflowError):
            # ValueError: an interval that never meets its hours or minutes, or the end of the calendar.
            return

    def _period_of(self, since: datetime) -> datetime:
        """Where its period begins that holds `since`, or the last one before it that the interval does not leave out."""
        start, interval = self.starts_at, self.interval
        if since <= start:
            return start
        if self.freq in {YEARLY, MONTHLY}:
            unit = 12 if self.freq == YEARLY else 1
            months = (since.year - start.year) * 12 + (0 if self.freq == YEARLY else since.month - start.month)
            months = months // (interval * unit) * interval * unit
            year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
            begin = datetime(year, 1 if self.freq == YEARLY else month + 1, 1)  # noqa: DTZ001  local time
            return begin if months else start
        midnight = datetime.combine(start, time())
        if self.freq == WEEKLY:
            origin, unit = midnight - timedelta(days=(start.weekday() - self.wkst) % 7), timedelta(days=7)
        elif self.freq == DAILY:
            origin, unit = midnight, timedelta(days=1)
        elif self.freq == HOURLY:
            origin, unit = start.replace(minute=0, second=0), timedelta(hours=1)
        else:
            origin, unit = start.replace(second=0), timedelta(minutes=1)
        step = unit * interval
        skipped = (since - origin) // step
        return origin + skipped * step if skipped else start


class _PatienceLost(Exception):
    pass


@dataclass(slots=True)
class _Patience:
    left: int = PATIENCE


class _Asked(frozenset[int]):
    """Numbers that lose patience when they are asked for too often."""

    __slots__ = ("_patience",)

    def __new__(cls, numbers: Iterable[int], patience: _Patience) -> Self:
        asked = super().__new__(cls, numbers)
        asked._patience = patience
        return asked

    def __contains__(self, number: object) -> bool:
        self._patience.left -= 1
        if self._patience.left < 0:
            raise _PatienceLost
        return super().__contains__(number)


@lru_cache(maxsize=50)
def _all_of(recurrence: Recurrence) -> tuple[datetime, ...]:
    return tuple(recurrence._walk(recurrence.starts_at))  # noqa: SLF001
