"""At which times of a week a rule can fire at all: a rule that is never inside its windows is found without a search."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import product, takewhile
from math import gcd

from functions.domain.instants import DAY, HOUR, MILLISECOND, MINUTE
from functions.domain.schedules.cron import parse_cron
from functions.domain.schedules.recurrence import Frequency
from functions.domain.schedules.rrules import recurrence_of
from functions.domain.schedules.rules import At, CronRule, Every, Poisson, RecurrenceRule, Rule

_WEEK = timedelta(days=7)
_EVERY_WEEKDAY = frozenset(range(7))
_SAMPLE = datetime(2001, 1, 1)  # noqa: DTZ001  a local Monday
_UNITS = {
    Frequency.DAILY: DAY,
    Frequency.HOURLY: HOUR,
    Frequency.MINUTELY: MINUTE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TimesOfWeek:
    """Local times, as milliseconds after a midnight, or after that of a Monday. A rule fires at no other; maybe not at all.

    times: of a day, in order; empty for any. origin, step, width: none but within the width after the origin and
    multiples of the step from it.
    """

    weekdays: frozenset[int] = _EVERY_WEEKDAY
    times: Sequence[int] = ()
    origin: int = 0
    step: int = 1
    width: int = 1

    def meet(self, weekday: int, start: timedelta, end: timedelta) -> bool:
        """Whether one of them may be in [start, end) of a weekday."""
        if weekday not in self.weekdays:
            return False
        first, last = start // MILLISECOND, end // MILLISECOND
        place = bisect_left(self.times, first)
        if self.times and (place == len(self.times) or self.times[place] >= last):
            return False
        begin = weekday * (DAY // MILLISECOND) + first - self.width + 1
        return begin + (self.origin - begin) % self.step < weekday * (DAY // MILLISECOND) + last


def times_of_week(rule: Rule, local: datetime) -> TimesOfWeek | None:
    """When a rule that names this local time can fire, while the clock does not change; None where that is unknown."""
    since_monday = local.weekday() * DAY + (local - datetime.combine(local, datetime.min.time()))
    match rule:
        case Every(interval=interval):
            return TimesOfWeek(
                origin=since_monday // MILLISECOND, step=gcd(interval // MILLISECOND, _WEEK // MILLISECOND)
            )
        case CronRule(expression):
            return _of_cron(expression)
        case RecurrenceRule():
            recurrence = recurrence_of(rule)
            unit = _UNITS.get(recurrence.frequency)
            weekdays, times = _of_recurrence(rule)
            named = TimesOfWeek(weekdays=weekdays, times=times)
            if unit is None:
                return named
            return replace(
                named,
                origin=since_monday // unit * (unit // MILLISECOND),
                step=gcd(recurrence.interval * unit // MILLISECOND, _WEEK // MILLISECOND),
                width=unit // MILLISECOND,
            )
        case At() | Poisson():
            return None


@lru_cache(maxsize=1_000)
def _of_cron(expression: str) -> TimesOfWeek:
    cron = parse_cron(expression)
    _, _, of_month, _, of_week = cron.fields.split()
    weekdays = _EVERY_WEEKDAY
    if of_month.startswith("*") or of_week.startswith("*"):
        # Both must be true of a day; otherwise one of them is enough.
        found = parse_cron(f"0 0 * * {of_week}").matches(since=_SAMPLE)
        weekdays = frozenset(match.weekday() for match in takewhile(lambda match: match < _SAMPLE + 366 * DAY, found))
    return TimesOfWeek(weekdays=weekdays, times=tuple(minute * 60_000 for minute in cron.minutes))


@lru_cache(maxsize=100)
def _of_recurrence(rule: RecurrenceRule) -> tuple[frozenset[int], Sequence[int]]:
    recurrence = recurrence_of(rule)
    days = recurrence.days
    weekdays = days.weekdays | {weekday for _, weekday in days.numbered}
    times = product(recurrence.hours, recurrence.minutes, recurrence.seconds)
    of_day = sorted(((hour * 60 + minute) * 60 + second) * 1_000 for hour, minute, second in times)
    return weekdays or _EVERY_WEEKDAY, of_day
