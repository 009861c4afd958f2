"""Cron expressions: which minutes of a local calendar match.

Five fields, names, ranges, steps, lists, `L` (last day of the month), `#` (nth weekday) and the macros such as `@daily`.
As in Debian's cron a day must match both day fields when one of them starts with a star, and either of them otherwise.

croniter says what a field means, on naive local time: with a zone it fires some hours twice. What a clock change does
to a fire is decided in `zones`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import MAXYEAR, datetime, timedelta
from functools import lru_cache

from croniter import CroniterError, croniter

from functions.domain.errors import InvalidSchedule
from functions.domain.schedule import MAX_EXPRESSION

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

REACH_YEARS = 41
"""29 February is on a given weekday at least once in forty years: what has no match in so many never has one."""

_FIELDS = ("minute", "hour", "day of month", "month", "day of week")
_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NUMBERS = {name: number for number, name in enumerate(_MONTHS, 1)} | {name: n for n, name in enumerate(_WEEKDAYS)}
_RANGE = re.compile(r"([0-9]{1,2}|[a-z]{3})-([0-9]{1,2}|[a-z]{3})(/[0-9]+)?", re.ASCII)
_HASHED = re.compile(r"[hr](?:\(|/|,|$)", re.ASCII)
_MINUTES_OF_A_DAY = tuple(range(1_440))


@dataclass(frozen=True, slots=True)
class Cron:
    """A parsed expression.

    follows_elapsed_time: its minute or hour field starts with a star; otherwise it names times of day. minutes: those of
    a day that match, in order.
    """

    fields: str
    follows_elapsed_time: bool
    minutes: tuple[int, ...] = field(repr=False)

    def matches(self, *, since: datetime) -> Iterator[datetime]:
        """The naive local minutes that match, from `since` (inclusive) on, in order, until the year 9999."""
        year, month = since.year, since.month
        first_day = since.day
        first_minute = since.hour * 60 + since.minute + bool(since.second or since.microsecond)
        while year < MAXYEAR:
            for day in days_of(self.fields, year, month):
                if day < first_day:
                    continue
                start = bisect_left(self.minutes, first_minute) if day == first_day else 0
                midnight = datetime(year, month, day)  # noqa: DTZ001  local time
                for minute in self.minutes[start:]:
                    yield midnight + timedelta(minutes=minute)
            year, month = (year + 1, 1) if month == 12 else (year, month + 1)  # noqa: PLR2004
            first_day = first_minute = 0

    @property
    def shortest_period(self) -> timedelta:
        """The smallest distance between two of its times of day, over midnight too; a day if there is one."""
        following = (*self.minutes[1:], self.minutes[0] + len(_MINUTES_OF_A_DAY))
        return timedelta(minutes=min(b - a for a, b in zip(self.minutes, following, strict=True)))


@lru_cache(maxsize=2_000)
def parse_cron(expression: str) -> Cron:
    """The cron that an expression spells. Raises InvalidSchedule, also for one that never fires."""
    parts = _fields_of(expression)
    for name, bounds, part in zip(_FIELDS, _BOUNDS, parts, strict=True):
        _check_field(expression, name, bounds, part)
    try:
        minutes, hours = croniter.expand(" ".join(parts))[0][:2]
    except (CroniterError, ValueError, KeyError, IndexError, TypeError) as error:
        raise _refused(expression, f"is not a cron expression: {error}") from None
    of_day = tuple(
        minute
        for minute in _MINUTES_OF_A_DAY
        if (minute // 60 in hours or "*" in hours) and (minute % 60 in minutes or "*" in minutes)
    )
    cron = Cron(" ".join(parts), parts[0].startswith("*") or parts[1].startswith("*"), of_day)
    # In the years from 2000 on every kind of year begins on every weekday.
    if not any(days_of(cron.fields, 2000 + year, month) for year in range(REACH_YEARS) for month in range(1, 13)):
        raise _refused(expression, "never fires: there is no such day")
    return cron


def _fields_of(expression: str) -> list[str]:
    text = expression.strip().lower()
    if len(text) > MAX_EXPRESSION:
        raise _refused(expression[:100], f"is longer than {MAX_EXPRESSION} characters")
    if text.startswith("@") and text not in MACROS:
        raise _refused(expression, f"{text} is not supported: the macros are {', '.join(MACROS)}")
    # Not split(): the other white space of Unicode is no separator of croniter's.
    parts = [part for part in re.split(r"[ \t]+", MACROS.get(text, text)) if part]
    if len(parts) != len(_FIELDS):
        more = ": seconds and years are not supported" if len(parts) > len(_FIELDS) else ""
        raise _refused(expression, f"has {len(parts)} fields, but must have {len(_FIELDS)}, {', '.join(_FIELDS)}{more}")
    if not all(part.isascii() and part.isprintable() for part in parts):
        # Where croniter would see another field.
        raise _refused(expression, "is not a cron expression: fields are of plain characters, parted by spaces")
    parts = [",".join(_without_range_of_one(item) for item in part.split(",")) for part in parts]
    return ["*" if part == "?" and index in {2, 4} else part for index, part in enumerate(parts)]


def _without_range_of_one(item: str) -> str:
    """What such a range begins with: croniter would read the 23-23/24 of a real schedule as every hour."""
    match = _RANGE.fullmatch(item)
    return match[1] if match and _number(match[1]) == _number(match[2]) else item


def _number(text: str) -> int:
    return _NUMBERS.get(text, -1) if text.isalpha() else int(text)


def _check_field(expression: str, name: str, bounds: tuple[int, int], part: str) -> None:
    """Refuses what croniter reads in another way than its writer may have meant."""
    for item in part.split(","):
        if _HASHED.match(item):
            raise _refused(
                expression,
                f"{item!r} in the {name} is a choice by hash or chance: write a number, and use spread or jitter",
            )
        if name == _FIELDS[4] and item.startswith("7/"):
            raise _refused(
                expression, f"{item!r} in the {name} could mean Sunday or every day: write 0, or '*{item[1:]}'"
            )
        match = _RANGE.fullmatch(item)
        if match is None:
            continue
        low, high = _number(match[1]), _number(match[2])
        if low > high:
            first, last = bounds
            last = last - 1 if name == _FIELDS[4] and high else last
            parts = [f"{low}-{last}" if low < last else f"{low}"]
            if not (name == _FIELDS[4] and high == 0):
                parts.append(f"{first}-{high}" if first < high else f"{high}")
            raise _refused(expression, f"{item!r} in the {name} runs backwards: write {','.join(parts)}")


@lru_cache(maxsize=20_000)
def days_of(fields: str, year: int, month: int) -> tuple[int, ...]:
    """The days of a month on which an expression matches at all."""
    of_month, months, of_week = fields.split()[2:]
    by_date, by_weekday = _days(f"{of_month} {months} *", year, month), _days(f"* {months} {of_week}", year, month)
    # Asked one by one: given both, croniter joins `13 * 5#2` as "and".
    both = of_month.startswith("*") or of_week.startswith("*")
    return tuple(sorted(by_date & by_weekday if both else by_date | by_weekday))


def _days(day_fields: str, year: int, month: int) -> frozenset[int]:
    of_month, _, of_week = day_fields.split()
    if any(letter in of_month for letter in "lw") or any(letter in of_week for letter in "l#"):
        return _walked(day_fields, year, month)
    dates, months, weekdays = _numbers_of(day_fields)
    if month not in months:
        return frozenset()
    first, length = monthrange(year, month)
    return frozenset(day for day in range(1, length + 1) if day in dates and (first + day) % 7 in weekdays)


@lru_cache(maxsize=5_000)
def _numbers_of(day_fields: str) -> list[frozenset[int]]:
    """The dates, months and weekdays (Sunday is 0) of fields that hold numbers only."""
    fields = zip(croniter.expand(f"0 0 {day_fields}")[0][2:5], _BOUNDS[2:], strict=True)
    return [
        frozenset(range(low, high + 1)) if "*" in numbers else frozenset(map(int, numbers))
        for numbers, (low, high) in fields
    ]


def _walked(day_fields: str, year: int, month: int) -> frozenset[int]:
    """The days as croniter finds them one by one: a hundred times slower, but it knows what `L` is."""
    start = datetime(year, month, 1)  # noqa: DTZ001  local time
    daily = croniter(f"0 0 {day_fields}", start - timedelta(minutes=1), ret_type=datetime, max_years_between_matches=1)
    days: set[int] = set()
    try:
        for match in daily:
            if (match.year, match.month) != (year, month):
                break
            days.add(match.day)
    except CroniterError:
        pass  # no match within a year: none in this month
    return frozenset(days)


def _refused(expression: str, message: str) -> InvalidSchedule:
    return InvalidSchedule(message, field="cron", value=expression)
