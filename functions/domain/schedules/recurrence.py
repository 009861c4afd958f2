"""A recurrence rule on naive local time, walked period by period (RFC 5545, section 3.3.10).

The days that a rule names depend only on what kind of year it is: on which weekday it begins, and whether it is a leap
year. So there are a few lists of days, each made once, in which a walk looks up the next day; a rule that names few days
jumps over the years between them, and one with an interval over the periods that it leaves out. Walks end at LATEST.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import IntEnum
from functools import cached_property
from itertools import islice, pairwise, product
from math import gcd, prod

from functions.domain.errors import TooCostly
from functions.domain.instants import LATEST
from functions.domain.schedules.step_budget import STEPS_OF_A_WALK, Budget
from functions.domain.schedules.year_days import (
    WEEK,
    Days,
    counted,
    first_week_of,
    first_weekday_of,
    length_of,
    months_of,
    new_year_of,
)

_LAST_DAY = LATEST.toordinal() + 1
"""The last local date on which anything fires, in whatever zone."""

_MOST_SEEN = 1_000
_STEPS_SEEN = 5_000
_DAY_S = 86_400
_HOURS = 24
_MINUTES = 1_440


class Frequency(IntEnum):
    """The period of a rule."""

    YEARLY = 0
    MONTHLY = 1
    WEEKLY = 2
    DAILY = 3
    HOURLY = 4
    MINUTELY = 5


@dataclass(frozen=True, eq=False, kw_only=True)
class Recurrence:
    """A rule, with what its start implies written out.

    positions: of BYSETPOS. until: the last instant that may be (aware), or the last local time (naive). last: the last
    local time of a rule with a count, where it is known already.
    """

    starts_at: datetime
    frequency: Frequency
    interval: int
    wkst: int
    days: Days
    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    seconds: tuple[int, ...]
    positions: tuple[int, ...] = ()
    count: int | None = None
    until: datetime | None = None
    last: datetime | None = None

    def matches(self, *, since: datetime, budget: Budget | None = None) -> Iterator[datetime]:
        """The naive local times that match, from `since` (inclusive) on, in order, until LATEST.

        A naive `until` is kept, an aware one is left to the caller, who knows the zone. Raises TooCostly where the budget
        is spent: a step is a period or a day that is looked at; what is found is for the caller to count.
        """
        budget = Budget(STEPS_OF_A_WALK) if budget is None else budget
        last = self.last_of(budget)
        for match in self._walker.walk(max(since, self.starts_at), budget):
            if last is not None and match > last:
                return
            yield match

    def last_of(self, budget: Budget) -> datetime | None:
        """The last local time that may be, by its count or a naive `until`; None where there is no such."""
        if self.count is None:
            return self.until if self.until is not None and self.until.tzinfo is None else None
        if self.last is not None:
            return self.last
        if self not in budget.paid:
            steps = self._walker.count_to(self.count, most=budget.affordable)
            # Whether it was counted before makes no difference to what is left, and to what is refused.
            budget.spend_once(self, budget.affordable + 1 if steps is None else steps)
        return self._walker.last

    def shortest_period(self, budget: Budget | None = None) -> timedelta | None:
        """The smallest distance among its first thousand times, as far as can be seen in some steps; None without two.

        budget: pays for them, too. Raises TooCostly where it is spent.
        """
        shortest: timedelta | None = None
        steps = Budget(_STEPS_SEEN, within=budget)
        try:
            for one, following in pairwise(islice(self.matches(since=self.starts_at, budget=steps), _MOST_SEEN)):
                steps.spend()
                shortest = min(shortest or following - one, following - one)
        except TooCostly:
            if budget is not None and budget.left < 0:
                raise
            # So far between each other that nothing which is asked of a period is longer.
        return shortest

    @cached_property
    def _walker(self) -> _Walker:
        kinds: dict[Frequency, type[_Walker]] = {
            Frequency.YEARLY: _Yearly,
            Frequency.MONTHLY: _Monthly,
            Frequency.WEEKLY: _Weekly,
            Frequency.DAILY: _Daily,
        }
        return kinds.get(self.frequency, _ByClock)(self)


class _Walker:
    """The local times of a recurrence, but for its end. It remembers what it has found out.

    last: of a rule with a count, once that has been counted.
    """

    def __init__(self, recurrence: Recurrence) -> None:
        self.last: datetime | None = None
        self._steps_to_last = 0
        self._steps_tried = -1
        self._rule = recurrence
        self._start = recurrence.starts_at.toordinal()
        self._of_kind: dict[tuple[int, ...], Sequence[int]] = {}

    @cached_property
    def _times(self) -> Sequence[int]:
        """The times of a day that is named, in seconds after its midnight."""
        parts = product(self._rule.hours, self._rule.minutes, self._rule.seconds)
        return sorted(hour * 3_600 + minute * 60 + second for hour, minute, second in parts)

    def count_to(self, count: int, *, most: int) -> int | None:
        """Find the last of so many times: in how many steps, None for more than `most`; the same when asked again."""
        if self.last is None and most > self._steps_tried:
            budget, found = Budget(most), self._rule.starts_at
            try:
                for match in islice(self.walk(found, budget), count):
                    budget.spend()
                    found = match
            except TooCostly:
                self._steps_tried = most
                return None
            self.last, self._steps_to_last = found, most - budget.left
        return self._steps_to_last if self.last is not None and self._steps_to_last <= most else None

    def walk(self, floor: datetime, budget: Budget) -> Iterator[datetime]:
        """The times from `floor` on, which is not before the start."""
        first = floor.toordinal()
        if first > _LAST_DAY:
            return
        since = (floor.hour * 60 + floor.minute) * 60 + floor.second + bool(floor.microsecond)
        for day, second in self._from(first, since, budget):
            if day > _LAST_DAY:
                return
            yield datetime.fromordinal(day) + timedelta(seconds=second)

    def _from(self, first: int, since: int, budget: Budget) -> Iterator[tuple[int, int]]:
        """Days, and seconds after their midnight, from that second of that day on."""
        times, positions = self._times, self._rule.positions
        for days in self._periods(first, budget):
            if positions:
                size = len(days) * len(times)
                for place in sorted({*counted(range(size), positions)}):
                    found = days[place // len(times)], times[place % len(times)]
                    if found >= (first, since):
                        yield found
                continue
            for day in days:
                if day >= first:
                    start = bisect_left(times, since) if day == first else 0
                    yield from ((day, times[place]) for place in range(start, len(times)))

    def _periods(self, first: int, budget: Budget) -> Iterator[Sequence[int]]:
        """The days of each period that has any, in order, from the one that holds this day on."""
        raise NotImplementedError

    def _of_year(self, year: int) -> Sequence[int]:
        """The days of a year that the rule names, counted from its first."""
        kind = [first_weekday_of(year), length_of(year)]
        if self._rule.days.weeks:
            kind += [length_of(year - 1), length_of(year + 1)]
        found = self._of_kind.get(tuple(kind))
        if found is None:
            found = self._of_kind[tuple(kind)] = self._rule.days.of(year)
        return found

    def _next_day(self, day: int, budget: Budget) -> int | None:
        """The first day from this one on that the rule names; None behind the last."""
        day = max(day, 1)  # a week may begin before the first day that there is
        while day <= _LAST_DAY:
            budget.spend()
            year = date.fromordinal(day).year
            new_year = new_year_of(year)
            named = self._of_year(year)
            place = bisect_left(named, day - new_year)
            if place < len(named):
                return new_year + named[place]
            day = new_year + length_of(year)
        return None

    def _between(self, start: int, end: int) -> Sequence[int]:
        """The days in [start, end) that the rule names, in order."""
        found: list[int] = []
        for year in range(date.fromordinal(max(start, 1)).year, date.fromordinal(end - 1).year + 1):
            new_year, named = new_year_of(year), self._of_year(year)
            places = range(bisect_left(named, start - new_year), bisect_left(named, end - new_year))
            found += [new_year + named[place] for place in places]
        return found


class _Yearly(_Walker):
    """A rule with weeks has the years to which its weeks belong, which begin up to three days off."""

    def _periods(self, first: int, budget: Budget) -> Iterator[Sequence[int]]:
        origin, interval = self._year_of(self._start), self._rule.interval
        year = self._year_of(first)
        year += (origin - year) % interval
        while year <= LATEST.year:
            budget.spend()
            new_year = new_year_of(year)
            yield [new_year + offset for offset in self._of_year(year)]
            year += interval

    def _year_of(self, day: int) -> int:
        year = date.fromordinal(day).year
        if not self._rule.days.weeks:
            return year
        offset = day - new_year_of(year)
        if offset < first_week_of(year, self._rule.wkst):
            return year - 1
        return year + (offset >= length_of(year) + first_week_of(year + 1, self._rule.wkst))


class _Monthly(_Walker):
    def _periods(self, first: int, budget: Budget) -> Iterator[Sequence[int]]:
        interval = self._rule.interval
        month = _month_of(first)
        month += (_month_of(self._start) - month) % interval
        while (year := month // 12) <= LATEST.year:
            budget.spend()
            named = self._of_year(year)
            if not named:
                month = (year + 1) * 12 + ((month - (year + 1) * 12) % interval)
                continue
            of_month = months_of(year)[month % 12]
            place = bisect_left(named, of_month.start)
            if place < len(named) and named[place] < of_month.stop:
                new_year = new_year_of(year)
                yield [new_year + offset for offset in named[place : bisect_left(named, of_month.stop)]]
            month += interval


class _Weekly(_Walker):
    def _periods(self, first: int, budget: Budget) -> Iterator[Sequence[int]]:
        origin, step = self._week_of(self._start), self._rule.interval * WEEK
        day: int | None = self._week_of(first)
        while (day := self._next_day(day, budget)) is not None:
            week = self._week_of(day)
            left_out = (origin - week) % step
            if left_out:
                day = week + left_out
                continue
            yield self._between(day, week + WEEK)
            day = week + step

    def _week_of(self, day: int) -> int:
        """The first day of its week. The ordinal 1 is a Monday."""
        return day - (day - 1 - self._rule.wkst) % WEEK


class _Daily(_Walker):
    def _periods(self, first: int, budget: Budget) -> Iterator[Sequence[int]]:
        interval = self._rule.interval
        day: int | None = first + (self._start - first) % interval
        while (day := self._next_day(day, budget)) is not None:
            left_out = (self._start - day) % interval
            if not left_out:
                yield (day,)
            day += left_out or interval


class _ByClock(_Walker):
    """Hours or minutes, so many a day: the days that are named meet those on which a period begins."""

    def __init__(self, recurrence: Recurrence) -> None:
        super().__init__(recurrence)
        starts_at = recurrence.starts_at
        is_hourly = recurrence.frequency is Frequency.HOURLY
        self._a_day = _HOURS if is_hourly else _MINUTES
        self._unit_s = _DAY_S // self._a_day
        self._origin = self._start * self._a_day + starts_at.hour * (self._a_day // _HOURS)
        self._origin += 0 if is_hourly else starts_at.minute
        inner = product(recurrence.minutes, recurrence.seconds) if is_hourly else product((0,), recurrence.seconds)
        # The same in every period, so that BYSETPOS chooses the same of them.
        self._inner = _chosen([minute * 60 + second for minute, second in inner], recurrence.positions)
        hours = set(recurrence.hours)
        self._units = (
            hours if is_hourly else {hour * 60 + minute for hour, minute in product(hours, recurrence.minutes)}
        )
        self._of_offset: dict[int, Sequence[int]] = {}

    def _from(self, first: int, since: int, budget: Budget) -> Iterator[tuple[int, int]]:
        interval, a_day = self._rule.interval, self._a_day
        day: int | None = first
        while self._inner and (day := self._next_day(day, budget)) is not None:
            offset = (self._origin - day * a_day) % interval
            if offset >= a_day:
                day += offset // a_day
                continue
            units = self._of_day(offset)
            start = bisect_left(units, since // self._unit_s) if day == first else 0
            for place in range(start, len(units)):
                begin = units[place] * self._unit_s
                for second in self._inner:
                    if day > first or begin + second >= since:
                        yield day, begin + second
            day += 1

    def _of_day(self, offset: int) -> Sequence[int]:
        """The hours, or minutes, of a day whose first period is so far from its midnight."""
        found = self._of_offset.get(offset)
        if found is None:
            every = range(offset, self._a_day, self._rule.interval)
            found = self._of_offset[offset] = array("h", [unit for unit in every if unit in self._units])
        return found


def never_meets(rule: Recurrence) -> bool:
    """Whether it can be seen without a look at a date that a rule names none.

    Its interval leads past the weekdays and times of day that it names, week after week; or its BYSETPOS chooses behind
    the end of what it chooses from.
    """
    starts_at = rule.starts_at
    size = prod(len(part) for part in (rule.seconds, rule.minutes, rule.hours)[: 6 - max(rule.frequency, 3)])
    size *= len(rule.days.weekdays) if rule.frequency is Frequency.WEEKLY else 1
    if rule.positions and rule.frequency >= Frequency.WEEKLY and min(map(abs, rule.positions)) > size:
        return True
    unit = {Frequency.DAILY: _DAY_S, Frequency.HOURLY: 3_600, Frequency.MINUTELY: 60}.get(rule.frequency)
    if unit is None:
        return False
    begin = datetime.combine(starts_at, starts_at.time().replace(second=0))
    if rule.frequency < Frequency.MINUTELY:
        begin = begin.replace(minute=0)
    if rule.frequency < Frequency.HOURLY:
        begin = begin.replace(hour=0)
    origin = begin.weekday() * _DAY_S + begin.hour * 3_600 + begin.minute * 60
    step = gcd(rule.interval * unit, WEEK * _DAY_S)
    hours = rule.hours if rule.frequency > Frequency.DAILY else (0,)
    minutes = rule.minutes if rule.frequency > Frequency.HOURLY else (0,)
    named = product(rule.days.weekdays or range(WEEK), hours, minutes)
    return all((weekday * _DAY_S + hour * 3_600 + minute * 60 - origin) % step for weekday, hour, minute in named)


def _chosen(times: Sequence[int], positions: Sequence[int]) -> Sequence[int]:
    """Those at positions counted from 1, or from the end with -1; all without any."""
    if not positions:
        return times
    return [times[place] for place in sorted({*counted(range(len(times)), positions)})]


def _month_of(day: int) -> int:
    """Months since the year 0."""
    found = date.fromordinal(day)
    return found.year * 12 + found.month - 1
