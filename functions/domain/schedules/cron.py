"""Cron expressions: which minutes of a local calendar match.

Five fields, names, ranges, steps, lists, and the macros such as `@daily`; in the day of the month `L` (the last one),
`L-3` (three before it), `15W` (the weekday nearest to it) and `LW`; in the day of the week `fri#2` (the second Friday of a
month) and `friL` or `L5` (its last one). As in Debian's cron a day must match both day fields when one of them starts
with a star, and either of them otherwise.

croniter says what a plain field means. What a clock change does to a fire is decided in `zones`.

An expression that has been stored is read here, whatever `cron_checks` refuses today: it fires as it always has.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from calendar import monthrange
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from croniter import CroniterError, croniter

from functions.domain.errors import InvalidSchedule
from functions.domain.instants import LATEST
from functions.domain.schedules.rules import MAX_EXPRESSION

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

FIELDS = ("minute", "hour", "day of month", "month", "day of week")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
"""As cron counts: Sunday is 0."""

_DAY_OF_MONTH, _DAY_OF_WEEK = 2, 4
_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_NUMBERS = (
    {},
    {},
    {},
    {name: number for number, name in enumerate(MONTHS, 1)},
    {name: number for number, name in enumerate(WEEKDAYS)},
)
_FULL_NAMES = re.compile(
    "january|february|march|april|june|july|august|september|october|november|december"
    "|sunday|monday|tuesday|wednesday|thursday|friday|saturday",
    re.ASCII,
)
_RANGE = re.compile(r"([0-9]{1,2}|[a-z]{3})-([0-9]{1,2}|[a-z]{3})(?:/([0-9]+))?", re.ASCII)
_HASHED = re.compile(r"[hr](?:\(|/|,|$)", re.ASCII)
_FROM_LAST = re.compile(r"l(?:-([0-9]{1,2}))?(w?)", re.ASCII)
_NEAREST = re.compile(r"w?([0-9]+)w?", re.ASCII)
_NTH = re.compile(r"([0-9]+|[a-z]{3}(?:-[a-z]{3})?)#([0-9]+)", re.ASCII)
_LAST_OF_WEEK = re.compile(r"l([0-9]+)|([a-z]{3})l", re.ASCII)
_MOST_BEFORE_LAST = 30
_MINUTES_OF_A_DAY = tuple(range(1_440))

_Days = Mapping[tuple[int, int], tuple[int, ...]]
"""The days of a month that match, by what `monthrange` says of it: its first weekday (Monday is 0), and its length."""
_DaysIn = Callable[[int, int], Collection[int]]
"""The days of a month that one item of a field names; of the same two numbers."""


@dataclass(frozen=True, slots=True)
class Cron:
    """A parsed expression.

    fields: as they were understood. follows_elapsed_time: its minute or hour field starts with a star; otherwise it names
    times of day. minutes: those of a day that match, in order. months: those that match, in order.
    by_month: the days of each kind of month that match.
    """

    fields: str
    follows_elapsed_time: bool
    minutes: tuple[int, ...] = field(repr=False)
    months: tuple[int, ...] = field(repr=False)
    by_month: _Days = field(repr=False, compare=False)

    def matches(self, *, since: datetime) -> Iterator[datetime]:
        """The naive local minutes that match, from `since` (inclusive) on, in order, to the end of the year of LATEST."""
        first_month = (since.year, since.month)
        first_minute = since.hour * 60 + since.minute + bool(since.second or since.microsecond)
        for year in range(since.year, LATEST.year + 1):
            for month in self.months:
                if (year, month) < first_month:
                    continue
                is_first = (year, month) == first_month
                for day in self.days_of(year, month):
                    if is_first and day < since.day:
                        continue
                    start = bisect_left(self.minutes, first_minute) if is_first and day == since.day else 0
                    midnight = datetime(year, month, day)  # noqa: DTZ001  local time
                    for minute in self.minutes[start:]:
                        yield midnight + timedelta(minutes=minute)

    def days_of(self, year: int, month: int) -> tuple[int, ...]:
        """The days of a month on which it matches at all."""
        return self.by_month[monthrange(year, month)] if month in self.months else ()

    @property
    def shortest_period(self) -> timedelta:
        """The smallest distance between two of its times of day, over midnight too; a day if there is one."""
        following = (*self.minutes[1:], self.minutes[0] + len(_MINUTES_OF_A_DAY))
        return timedelta(minutes=min(b - a for a, b in zip(self.minutes, following, strict=True)))


@lru_cache(maxsize=2_000)
def parse_cron(expression: str) -> Cron:
    """The cron that an expression spells. Raises InvalidSchedule, also for one that never fires."""
    parts = [
        ",".join(_understood(expression, index, item) for item in part.split(","))
        for index, part in enumerate(written_fields(expression))
    ]
    minutes, hours, months = (_plain(expression, index, parts[index]) for index in (0, 1, 3))
    cron = Cron(
        fields=" ".join(parts),
        follows_elapsed_time=parts[0].startswith("*") or parts[1].startswith("*"),
        minutes=tuple(minute for minute in _MINUTES_OF_A_DAY if minute // 60 in hours and minute % 60 in minutes),
        months=tuple(sorted(months)),
        by_month=_days_by_month(expression, of_month=parts[2], of_week=parts[4]),
    )
    # In four hundred years, and in the forty that come, a month of each length begins on each weekday.
    lengths = {monthrange(year, month)[1] for month in cron.months for year in (2027, 2028)}
    if not any(cron.by_month[first, length] for first in range(7) for length in lengths):
        raise _refused(expression, "never fires: there is no such day")
    return cron


def written_fields(expression: str) -> list[str]:
    """The five fields as they are written, in lower case and with short names. Raises InvalidSchedule where there are more or less."""
    text = expression.strip().lower()
    if len(text) > MAX_EXPRESSION:
        raise _refused(expression[:100], f"is longer than {MAX_EXPRESSION} characters")
    if text.startswith("@") and text not in MACROS:
        raise _refused(expression, f"{text} is not supported: the macros are {', '.join(MACROS)}")
    # Not split(): the other white space of Unicode is no separator of croniter's.
    parts = [part for part in re.split(r"[ \t]+", MACROS.get(text, text)) if part]
    if len(parts) != len(FIELDS):
        more = ": seconds and years are not supported" if len(parts) > len(FIELDS) else ""
        raise _refused(expression, f"has {len(parts)} fields, but must have {len(FIELDS)}, {', '.join(FIELDS)}{more}")
    if not all(part.isascii() and part.isprintable() for part in parts):
        # Where croniter would see another field.
        raise _refused(expression, "is not a cron expression: fields are of plain characters, parted by spaces")
    parts = [_FULL_NAMES.sub(lambda name: name[0][:3], part) for part in parts]
    return ["*" if part == "?" and index in {_DAY_OF_MONTH, _DAY_OF_WEEK} else part for index, part in enumerate(parts)]


def with_field(expression: str, index: int, item: str, text: str) -> dict[str, str]:
    """A definition's cron with another text in place of an item, or of all items, of a field."""
    parts = written_fields(expression)
    items = parts[index].split(",")
    field = text if parts[index] == item else ",".join(text if each == item else each for each in items)
    written = [*parts[:index], field, *parts[index + 1 :]]
    written[_DAY_OF_MONTH] = written[_DAY_OF_MONTH].upper()
    return {"cron": " ".join(written)}


def as_json(definition: Mapping[str, Any]) -> str:
    """A part of a definition, ready to paste."""
    return json.dumps(definition, ensure_ascii=False)


def _understood(expression: str, index: int, item: str) -> str:
    """An item of a field in such words as croniter reads in one way only."""
    if _HASHED.match(item):
        raise refused_item(
            expression, index, item, "is a choice by hash or chance: write a number, and use spread or jitter"
        )
    if index == _DAY_OF_WEEK and item.startswith("7/"):
        instead = [with_field(expression, index, item, text) for text in ("0", f"*{item[1:]}")]
        raise refused_item(expression, index, item, "could mean Sunday or every day", instead=instead)
    match = _RANGE.fullmatch(item)
    ends = [_number(index, text) for text in match.groups()[:2]] if match else []
    if match is None or None in ends:
        return item
    low, high = (end for end in ends if end is not None)
    if low == high:
        # croniter would read the 23-23/24 of a real schedule as every hour.
        return match[1]
    if low > high and int(match[3] or 1):
        return ",".join(map(str, _around(expression, index, item, low, high, step=int(match[3] or 1))))
    return item


def _around(expression: str, index: int, item: str, low: int, high: int, *, step: int) -> list[int]:
    """The numbers of a range that runs backwards: on over the end of its field, its step too."""
    first, last = _BOUNDS[index]
    if high < first or low > last:
        raise refused_item(expression, index, item, f"is out of range: {first} to {last}")
    if index == _DAY_OF_WEEK:  # Sunday is 7 as well
        low, last = low % 7, 6
    size = last - first + 1
    until = high if low <= high else high + size
    return [first + (number - first) % size for number in range(low, until + 1, step)]


def _number(index: int, text: str) -> int | None:
    return _NUMBERS[index].get(text) if text.isalpha() else int(text)


def _plain(expression: str, index: int, part: str) -> frozenset[int]:
    """What a field of numbers, names, ranges and steps matches, as croniter says; Sunday is 0."""
    fields = ["*"] * len(FIELDS)
    fields[index] = part
    try:
        numbers = croniter.expand(" ".join(fields))[0][index]
    except (CroniterError, ValueError, KeyError, IndexError, TypeError) as error:
        reason = str(error).removeprefix(f"[{' '.join(fields)}]").strip()
        raise _refused(expression, f"is not a cron expression: its {FIELDS[index]}, {part[:100]!r}: {reason}") from None
    low, high = _BOUNDS[index]
    every = range(low, high + 1)
    return frozenset(
        number % 7 if index == _DAY_OF_WEEK else number for number in (every if "*" in numbers else map(int, numbers))
    )


def _days_by_month(expression: str, *, of_month: str, of_week: str) -> _Days:
    by_date, by_weekday = _dates(expression, of_month), _weekdays(expression, of_week)
    needs_both = of_month.startswith("*") or of_week.startswith("*")
    days: dict[tuple[int, int], tuple[int, ...]] = {}
    equal: dict[tuple[int, ...], tuple[int, ...]] = {}
    for first in range(7):
        for length in (28, 29, 30, 31):
            dates = {day for item in by_date for day in item(first, length)}
            weekdays = {day for item in by_weekday for day in item(first, length)}
            found = tuple(sorted(dates & weekdays if needs_both else dates | weekdays))
            days[first, length] = equal.setdefault(found, found)
    return days


def _dates(expression: str, part: str) -> list[_DaysIn]:
    """The items of the day of month."""
    plain: list[str] = []
    items: list[_DaysIn] = []
    for item in part.split(","):
        if match := _FROM_LAST.fullmatch(item):
            before = int(match[1] or 0)
            if before > _MOST_BEFORE_LAST:
                raise refused_item(expression, _DAY_OF_MONTH, item, f"must be from L-1 to L-{_MOST_BEFORE_LAST}")
            items.append(_from_last(before, is_weekday=bool(match[2])))
        elif "w" in item:
            match = _NEAREST.fullmatch(item)
            if match is None or item.count("w") > 1 or not 1 <= int(match[1]) <= 31:  # noqa: PLR2004
                message = "is not the weekday nearest to a day such as 15W"
                raise refused_item(expression, _DAY_OF_MONTH, item, message)
            items.append(_nearest_weekday(int(match[1])))
        else:
            plain.append(item)
    if plain:
        dates = _plain(expression, _DAY_OF_MONTH, ",".join(plain))
        items.append(lambda _, length: [day for day in dates if day <= length])
    return items


def _weekdays(expression: str, part: str) -> list[_DaysIn]:
    """The items of the day of week."""
    plain: list[str] = []
    items: list[_DaysIn] = []
    named: set[int] = set()
    for item in part.split(","):
        if match := _NTH.fullmatch(item):
            weekdays, nth = _week_range(expression, item, match[1]), int(match[2])
            if not 1 <= nth <= 5:  # noqa: PLR2004
                raise refused_item(expression, _DAY_OF_WEEK, item, "must be from #1 to #5")
        elif match := _LAST_OF_WEEK.fullmatch(item):
            weekdays, nth = _week_range(expression, item, match[1] or match[2]), 0
        else:
            _check_unclear(expression, item)
            plain.append(item)
            continue
        named |= weekdays
        items.append(_nth_weekdays(weekdays, nth))
    if not plain:
        return items
    every = _plain(expression, _DAY_OF_WEEK, ",".join(plain))
    if not items:
        return [lambda first, length: [day for day in range(1, length + 1) if (first + day) % 7 in every]]
    if every - named and len(every | named) < len(WEEKDAYS):
        message = "mixes weekdays of every week with those of a month"
        of_every_week = [f"{WEEKDAYS[weekday]}#{nth}" for weekday in sorted(every) for nth in range(1, 6)]
        of_a_month = [item for item in part.split(",") if item not in plain]
        written = written_fields(expression)[_DAY_OF_WEEK]
        instead = with_field(expression, _DAY_OF_WEEK, written, ",".join([*of_every_week, *of_a_month]))
        raise refused_item(expression, _DAY_OF_WEEK, part, message, instead=[instead])
    # As croniter has always read what is stored: only those of a month count.
    return items


def _week_range(expression: str, item: str, text: str) -> frozenset[int]:
    """The weekdays that are named before a `#`: one of them, or all of a range."""
    low, _, high = text.partition("-")
    ends = [_number(_DAY_OF_WEEK, end) for end in (low, high or low)]
    if None in ends or not all(end is not None and end <= 7 for end in ends):  # noqa: PLR2004
        message = f"names no weekday: they are 0 to 7, or {', '.join(WEEKDAYS)}"
        raise refused_item(expression, _DAY_OF_WEEK, item, message)
    first, last = (end % 7 for end in ends if end is not None)
    if high and first == last:
        # As croniter has always read what is stored.
        return frozenset(range(7))
    return frozenset((first + count) % 7 for count in range((last - first) % 7 + 1))


def _check_unclear(expression: str, item: str) -> None:
    """Refuses what Quartz, whose weekdays are 1 to 7 from Sunday on, reads as another day than other programs do."""
    readings: list[str] = []
    if item == "l":
        readings = ["sat"]  # nothing elsewhere
    elif re.fullmatch("[0-7]l", item):
        numbers = [int(item[0]), *([int(item[0]) - 1] if item[0] != "0" else [])]
        readings = [f"{WEEKDAYS[number % len(WEEKDAYS)]}L" for number in numbers]
    elif match := re.fullmatch("([0-7])-([0-7])#([0-9])", item):
        low, high = (WEEKDAYS[int(number) % len(WEEKDAYS)] for number in match.groups()[:2])
        readings = [f"{low}-{high}#{match[3]}"]
    if readings:
        instead = [with_field(expression, _DAY_OF_WEEK, item, reading) for reading in readings]
        message = "depends on how weekdays are counted, in Quartz from 1 for Sunday"
        raise refused_item(expression, _DAY_OF_WEEK, item, message, instead=instead)


def _from_last(before: int, *, is_weekday: bool) -> _DaysIn:
    def days(first: int, length: int) -> Sequence[int]:
        day = length - before
        if day < 1:
            return ()
        return (_nearest(day, first, length),) if is_weekday else (day,)

    return days


def _nearest_weekday(day: int) -> _DaysIn:
    # Of a month without the day, that of its last day: so croniter has always read what is stored.
    return lambda first, length: (_nearest(min(day, length), first, length),)


def _nearest(day: int, first: int, length: int) -> int:
    """The day from Monday to Friday nearest to a day, in the same month."""
    weekday = (first + day - 1) % 7
    if weekday == 5:  # noqa: PLR2004  Saturday
        return day - 1 if day > 1 else day + 2
    if weekday == 6:  # noqa: PLR2004  Sunday
        return day + 1 if day < length else day - 2
    return day


def _nth_weekdays(weekdays: Collection[int], nth: int) -> _DaysIn:
    """The nth of each weekday in a month; 0 is the last."""

    def days(first: int, length: int) -> Sequence[int]:
        firsts = [1 + (weekday - 1 - first) % 7 for weekday in weekdays]
        if nth == 0:
            return [day + (length - day) // 7 * 7 for day in firsts]
        return [day + (nth - 1) * 7 for day in firsts if day + (nth - 1) * 7 <= length]

    return days


def refused_item(
    expression: str, index: int, item: str, message: str, *, instead: Sequence[Mapping[str, Any]] = ()
) -> InvalidSchedule:
    """The refusal of an item of a field. instead: definitions, one of which to write in its place."""
    return _refused(expression, f"{item[:100]!r} in the {FIELDS[index]} {message}", instead=instead)


def _refused(expression: str, message: str, *, instead: Sequence[Mapping[str, Any]] = ()) -> InvalidSchedule:
    given = f": write {' or '.join(map(as_json, instead))}" if instead else ""
    return InvalidSchedule(message + given, field="cron", value=expression, instead=instead)
