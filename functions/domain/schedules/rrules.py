"""Recurrence rules of RFC 5545: which texts are one, and what they say. How one is walked is in `recurrence`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from itertools import islice
from math import prod

from functions.domain.errors import InvalidSchedule
from functions.domain.schedules.recurrence import Days, Frequency, Recurrence, never_meets
from functions.domain.schedules.rules import MAX_EXPRESSION, RecurrenceRule
from functions.domain.schedules.step_budget import STEPS_OF_A_TICK, Budget

MAX_COUNT = 5_000
MAX_INTERVAL = 100_000
MAX_TIMES_A_DAY = 1_440

_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_BY_DAY = re.compile(r"([+-]?[0-9]{1,2})?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
_BESIDE = re.compile(r"EXDATE|RDATE|EXRULE", re.ASCII)
_UNTIL = re.compile(r"[0-9]{8}T[0-9]{6}Z?", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9]{1,6}", re.ASCII)
# Lowest and highest, and whether they count from the end too.
_LISTS = {
    "BYMONTH": (1, 12, False),
    "BYMONTHDAY": (1, 31, True),
    "BYYEARDAY": (1, 366, True),
    "BYWEEKNO": (1, 53, True),
    "BYSETPOS": (1, 366, True),
    "BYHOUR": (0, 23, False),
    "BYMINUTE": (0, 59, False),
    "BYSECOND": (0, 59, False),
}
# RFC 5545, section 3.3.10: "N/A" in its table. Some programs take them for filters, others for nothing.
_WITHOUT_MEANING = {
    "BYWEEKNO": {*Frequency} - {Frequency.YEARLY},
    "BYYEARDAY": {Frequency.MONTHLY, Frequency.WEEKLY, Frequency.DAILY},
    "BYMONTHDAY": {Frequency.WEEKLY},
}
_DATE = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})(?:T([0-9]{2})([0-9]{2})([0-9]{2})(Z?))?", re.ASCII)
_MOST_NAMED = 5


def recurrence_of(rule: RecurrenceRule) -> Recurrence:
    """What a rule spells. Raises as `parse_rrule` does."""
    return parse_rrule(rule.rule, rule.starts_at, rule.last)


def check_recurrence(rule: RecurrenceRule, budget: Budget) -> None:
    """Raises InvalidSchedule for a rule that is none, or never fires; TooCostly."""
    if next(recurrence_of(rule).matches(since=rule.starts_at, budget=budget), None) is None:
        raise _never(rule.rule, rule.starts_at)


def last_of(rule: RecurrenceRule) -> datetime | None:
    """The local time at which its COUNT ends; None for a rule without one, and one that cannot be counted to its end."""
    try:
        recurrence = recurrence_of(rule)
        return None if recurrence.count is None else recurrence.last_of(Budget(STEPS_OF_A_TICK))
    except InvalidSchedule:
        return None  # of an older version, which took what is refused today


def counted(rule: RecurrenceRule) -> RecurrenceRule:
    """A rule that was taken before, with the end of its COUNT, so that nobody pays for that again."""
    return rule if rule.last is not None else replace(rule, last=last_of(rule))


@lru_cache(maxsize=2_000)
def parse_rrule(rule: str, starts_at: datetime, last: datetime | None = None) -> Recurrence:
    """The recurrence that a rule spells. last: see Recurrence.

    Raises InvalidSchedule, also where it can be seen without a look at any date that the rule never fires.
    """
    if starts_at.tzinfo is not None or starts_at.microsecond:
        raise InvalidSchedule(
            "must be a local time in whole seconds, without an offset: its zone is `timezone`",
            field="rrule.starts_at",
            value=starts_at.isoformat(),
        )
    parts = _parts_of(rule)
    frequency = _frequency_of(rule, parts)
    numbers, (weekdays, numbered) = _lists_of(rule, parts, frequency), _weekdays(rule, parts, frequency)
    wkst = parts.get("WKST", "MO")
    if wkst not in _WEEKDAYS:
        raise _refused(rule, f"WKST={wkst[:100]} is not one of {', '.join(_WEEKDAYS)}")
    first_weekday = _WEEKDAYS.index(wkst)
    days = Days(
        months=frozenset(numbers["BYMONTH"]),
        month_days=frozenset(numbers["BYMONTHDAY"]),
        year_days=frozenset(numbers["BYYEARDAY"]),
        weeks=frozenset(numbers["BYWEEKNO"]),
        weekdays=weekdays,
        numbered=numbered,
        is_numbered_by_month=frequency is Frequency.MONTHLY or "BYMONTH" in parts,
        wkst=first_weekday,
    )
    recurrence = Recurrence(
        starts_at=starts_at,
        frequency=frequency,
        interval=_number(rule, parts, "INTERVAL", most=MAX_INTERVAL) or 1,
        wkst=first_weekday,
        days=_with_what_the_start_implies(days, frequency, starts_at),
        # Section 3.3.10: what a rule does not say of the time of day, its start does.
        hours=numbers["BYHOUR"] or (tuple(range(24)) if frequency >= Frequency.HOURLY else (starts_at.hour,)),
        minutes=numbers["BYMINUTE"] or (tuple(range(60)) if frequency is Frequency.MINUTELY else (starts_at.minute,)),
        seconds=numbers["BYSECOND"] or (starts_at.second,),
        positions=numbers["BYSETPOS"],
        count=_number(rule, parts, "COUNT", most=MAX_COUNT),
        until=_until_of(rule, parts),
        last=last,
    )
    if never_meets(recurrence):
        raise _never(rule, starts_at)
    return recurrence


def _parts_of(rule: str) -> dict[str, str]:
    text = rule.strip().upper().removeprefix("RRULE:")
    if len(text) > MAX_EXPRESSION:
        raise _refused(rule[:100], f"is longer than {MAX_EXPRESSION} characters")
    if "DTSTART" in text:
        raise _refused(rule, "has a DTSTART: give that as starts_at")
    beside = _BESIDE.search(text)
    if beside is not None:
        raise _refused(
            rule, f"has {beside[0]}, which is no part of a rule: {_instead_of(beside[0], text[beside.end() :])}"
        )
    known = {"FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", *_LISTS}
    parts: dict[str, str] = {}
    for pair in text.rstrip(";").split(";"):
        name, equals, value = pair.partition("=")
        if name not in known or not equals or not value:
            raise _refused(rule, f"{pair[:100]!r} is not a part of a rule: they are {', '.join(sorted(known))}")
        if name in parts:
            raise _refused(rule, f"has {name} twice")
        parts[name] = value
    if "COUNT" in parts and "UNTIL" in parts:
        raise _refused(rule, "has both COUNT and UNTIL: leave one out")
    return parts


def _instead_of(name: str, dates: str) -> str:
    """What to give instead of a line of a calendar that stands beside its rule, with the dates that it names."""
    named: list[str] = []
    for year, month, day, hour, minute, second, zone in islice(_DATE.findall(dates), _MOST_NAMED):
        date = f"{year}-{month}-{day}"
        named.append(date if name == "EXDATE" else f"{date}T{hour or '00'}:{minute or '00'}:{second or '00'}{zone}")
    if name == "EXDATE":
        listed = ", ".join(f'"{date}"' for date in dict.fromkeys(named)) or '"2027-12-24"'
        return f'leave it out, and give the dates as "calendar": {{"exclude": [{listed}]}}'
    if name == "RDATE":
        at = " and ".join(f'"at": "{date}"' for date in named) or '"at": "2027-12-24T09:00:00Z"'
        return f"leave it out, and make a schedule for each of its dates, with {at} and its offset from UTC"
    return "leave it out, and let the rule name only the dates that are left, with BYMONTH, BYDAY and the like"


def _frequency_of(rule: str, parts: Mapping[str, str]) -> Frequency:
    name = parts.get("FREQ", "")
    if name not in Frequency.__members__:
        hint = "; for seconds use every" if name == "SECONDLY" else ""
        raise _refused(rule, f"FREQ={name[:100]} is not one of {', '.join(Frequency.__members__)}{hint}")
    return Frequency[name]


def _lists_of(rule: str, parts: Mapping[str, str], frequency: Frequency) -> dict[str, tuple[int, ...]]:
    """The numbers of each part, in order and once; none for a part that is not there."""
    lists: dict[str, tuple[int, ...]] = dict.fromkeys(_LISTS, ())
    for name in parts.keys() & _LISTS.keys():
        if frequency in _WITHOUT_MEANING.get(name, ()):
            raise _refused(rule, f"{name} has no meaning with FREQ={parts['FREQ']} (RFC 5545, section 3.3.10)")
        items = parts[name].split(",")
        lowest, highest, from_the_end = _LISTS[name]
        numbers = [int(item) for item in items if _NUMBER.fullmatch(item)]
        if len(numbers) < len(items) or any(
            not lowest <= (abs(number) if from_the_end else number) <= highest for number in numbers
        ):
            also = f", or from -{highest} to -{lowest}" if from_the_end else ""
            raise _refused(rule, f"{name}={parts[name][:100]} must be numbers from {lowest} to {highest}{also}")
        lists[name] = tuple(sorted(set(numbers)))
    if "BYSETPOS" in parts and not parts.keys() & ({*_LISTS, "BYDAY"} - {"BYSETPOS"}):
        raise _refused(rule, "BYSETPOS chooses among what another BY… part names: there is none")
    times = prod(len(lists[name]) or 1 for name in ("BYHOUR", "BYMINUTE", "BYSECOND"))
    if times > MAX_TIMES_A_DAY:
        raise _refused(rule, f"names {times} times of a day, more than {MAX_TIMES_A_DAY}")
    return lists


def _weekdays(
    rule: str, parts: Mapping[str, str], frequency: Frequency
) -> tuple[frozenset[int], frozenset[tuple[int, int]]]:
    """The weekdays of BYDAY, and those with a number."""
    if "BYDAY" not in parts:
        return frozenset(), frozenset()
    items = parts["BYDAY"].split(",")
    # How often a weekday may come in what the rule counts in.
    most = 5 if frequency is Frequency.MONTHLY or "BYMONTH" in parts else 53
    matches = [_BY_DAY.fullmatch(item) for item in items]
    found = [(int(match[1]) if match[1] else None, _WEEKDAYS.index(match[2])) for match in matches if match]
    if len(found) < len(items) or any(n is not None and not 1 <= abs(n) <= most for n, _ in found):
        raise _refused(
            rule, f"BYDAY={','.join(items)[:100]} must be days such as MO, or 2TU and -1FR, numbered up to {most}"
        )
    numbered = frozenset((n, weekday) for n, weekday in found if n is not None)
    if numbered and (frequency > Frequency.MONTHLY or "BYWEEKNO" in parts):
        raise _refused(rule, "numbered days, such as 2TU, need FREQ=MONTHLY, or YEARLY without BYWEEKNO")
    return frozenset(weekday for n, weekday in found if n is None), numbered


def _with_what_the_start_implies(days: Days, frequency: Frequency, starts_at: datetime) -> Days:
    """What a rule does not say of its days, its start does (RFC 5545, section 3.3.10)."""
    if days.month_days or days.year_days or days.weekdays or days.numbered:
        return days
    if frequency is Frequency.WEEKLY or days.weeks:
        return replace(days, weekdays=frozenset({starts_at.weekday()}))
    if frequency is Frequency.YEARLY:
        months = days.months or frozenset({starts_at.month})
        return replace(days, months=months, month_days=frozenset({starts_at.day}))
    if frequency is Frequency.MONTHLY:
        return replace(days, month_days=frozenset({starts_at.day}))
    return days


def _number(rule: str, parts: Mapping[str, str], name: str, *, most: int) -> int | None:
    if name not in parts:
        return None
    if not _NUMBER.fullmatch(parts[name]) or not 1 <= int(parts[name]) <= most:
        hint = ": use max_runs or UNTIL" if name == "COUNT" else ""
        raise _refused(rule, f"{name}={parts[name][:100]} must be from 1 to {most}{hint}")
    return int(parts[name])


def _until_of(rule: str, parts: Mapping[str, str]) -> datetime | None:
    if "UNTIL" not in parts:
        return None
    text = parts["UNTIL"]
    try:
        if _UNTIL.fullmatch(text):
            return datetime.fromisoformat(text)
    except ValueError:
        pass  # no such day or time
    raise _refused(
        rule, f"UNTIL={text[:100]} must be a local time such as 20271231T235959, or one in UTC with a Z after it"
    )


def _never(rule: str, starts_at: datetime) -> InvalidSchedule:
    return _refused(rule, f"never fires: nothing matches from {starts_at.isoformat()} on")


def _refused(rule: str, message: str) -> InvalidSchedule:
    return InvalidSchedule(message, field="rrule", value=rule)
