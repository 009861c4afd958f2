"""Recurrence rules of RFC 5545: which texts are one, and what they say. How one is walked is in `recurrence`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from math import prod
from typing import Any

from dateutil.rrule import DAILY, HOURLY, MINUTELY, MONTHLY, WEEKLY, YEARLY, weekday

from functions.domain.errors import InvalidSchedule
from functions.domain.recurrence import Recurrence
from functions.domain.schedule import MAX_EXPRESSION

MAX_COUNT = 5_000
MAX_INTERVAL = 100_000
MAX_TIMES_A_DAY = 1_440

_FREQUENCIES = {
    "YEARLY": YEARLY,
    "MONTHLY": MONTHLY,
    "WEEKLY": WEEKLY,
    "DAILY": DAILY,
    "HOURLY": HOURLY,
    "MINUTELY": MINUTELY,
}
_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_BY_DAY = re.compile(r"([+-]?[0-9]{1,2})?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
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
# RFC 5545, section 3.3.10: "N/A" in its table. dateutil would take them for filters, other programs for nothing.
_WITHOUT_MEANING = {
    "BYWEEKNO": {MONTHLY, WEEKLY, DAILY, HOURLY, MINUTELY},
    "BYYEARDAY": {MONTHLY, WEEKLY, DAILY},
    "BYMONTHDAY": {WEEKLY},
}


@lru_cache(maxsize=2_000)
def parse_rrule(rule: str, starts_at: datetime) -> Recurrence:
    """The recurrence that a rule spells. Raises InvalidSchedule, also for one that never fires."""
    if starts_at.tzinfo is not None or starts_at.microsecond:
        raise InvalidSchedule(
            "must be a local time in whole seconds, without an offset: its zone is `timezone`",
            field="rrule.starts_at",
            value=starts_at.isoformat(),
        )
    parts = _parts_of(rule)
    freq = _freq_of(rule, parts)
    by = _lists_of(rule, parts, freq)
    recurrence = Recurrence(
        starts_at=starts_at,
        freq=freq,
        interval=_number(rule, parts, "INTERVAL", most=MAX_INTERVAL) or 1,
        wkst=_weekday(rule, parts.get("WKST", "MO")),
        by=_written_out(by, freq, starts_at),
        count=_number(rule, parts, "COUNT", most=MAX_COUNT),
        until=_until_of(rule, parts),
    )
    if next(recurrence.matches(since=starts_at), None) is None:
        raise _refused(rule, f"never fires: nothing matches from {starts_at.isoformat()} on")
    return recurrence


def _parts_of(rule: str) -> dict[str, str]:
    text = rule.strip().upper().removeprefix("RRULE:")
    if len(text) > MAX_EXPRESSION:
        raise _refused(rule[:100], f"is longer than {MAX_EXPRESSION} characters")
    if "DTSTART" in text:
        raise _refused(rule, "has a DTSTART: give that as starts_at")
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


def _freq_of(rule: str, parts: Mapping[str, str]) -> int:
    name = parts.get("FREQ", "")
    if name not in _FREQUENCIES:
        hint = "; for seconds use every" if name == "SECONDLY" else ""
        raise _refused(rule, f"FREQ={name[:100]} is not one of {', '.join(_FREQUENCIES)}{hint}")
    return _FREQUENCIES[name]


def _lists_of(rule: str, parts: Mapping[str, str], freq: int) -> dict[str, list[Any]]:
    lists: dict[str, list[Any]] = {}
    for name in parts.keys() & {*_LISTS, "BYDAY"}:
        if freq in _WITHOUT_MEANING.get(name, ()):
            raise _refused(rule, f"{name} has no meaning with FREQ={parts['FREQ']} (RFC 5545, section 3.3.10)")
        items = parts[name].split(",")
        if name == "BYDAY":
            is_of_months = freq == MONTHLY or "BYMONTH" in parts
            lists["byweekday"] = _weekdays(
                rule, items, freq, has_weeks="BYWEEKNO" in parts, most=5 if is_of_months else 53
            )
            continue
        lowest, highest, from_the_end = _LISTS[name]
        numbers = [int(item) for item in items if _NUMBER.fullmatch(item)]
        if len(numbers) < len(items) or any(
            not lowest <= (abs(number) if from_the_end else number) <= highest for number in numbers
        ):
            also = f", or from -{highest} to -{lowest}" if from_the_end else ""
            raise _refused(rule, f"{name}={parts[name][:100]} must be numbers from {lowest} to {highest}{also}")
        lists[name.lower()] = sorted(set(numbers))
    if "BYSETPOS" in parts and len(lists) == 1:
        raise _refused(rule, "BYSETPOS chooses among what another BY… part names: there is none")
    times = prod(len(lists.get(name, [0])) for name in ("byhour", "byminute", "bysecond"))
    if times > MAX_TIMES_A_DAY:
        raise _refused(rule, f"names {times} times of a day, more than {MAX_TIMES_A_DAY}")
    return lists


def _weekdays(rule: str, items: list[str], freq: int, *, has_weeks: bool, most: int) -> list[weekday]:
    """most: times that a weekday may come in what the rule counts in; dateutil looks behind the year for a later one."""
    matches = [_BY_DAY.fullmatch(item) for item in items]
    found = [(match[2], int(match[1]) if match[1] else None) for match in matches if match]
    if len(found) < len(items) or any(n is not None and not 1 <= abs(n) <= most for _, n in found):
        raise _refused(
            rule, f"BYDAY={','.join(items)[:100]} must be days such as MO, or 2TU and -1FR, numbered up to {most}"
        )
    numbered = [n for _, n in found if n is not None]
    if numbered and (freq not in {YEARLY, MONTHLY} or has_weeks):
        raise _refused(rule, "numbered days, such as 2TU, need FREQ=MONTHLY, or YEARLY without BYWEEKNO")
    if numbered and len(numbered) < len(found):
        # dateutil asks for days that are both, so for none.
        raise _refused(rule, "mixes days with and without a number: make two schedules")
    return [weekday(_WEEKDAYS.index(name), n) for name, n in dict.fromkeys(found)]


def _written_out(by: dict[str, list[Any]], freq: int, starts_at: datetime) -> dict[str, Any]:
    """With what DTSTART implies, so that the rule may start elsewhere (RFC 5545, section 3.3.10; as dateutil has it)."""
    implied: dict[str, Any] = {}
    if not by.keys() & {"bymonthday", "byyearday", "byweekno", "byweekday"}:
        if freq == YEARLY:
            implied = {"bymonth": [starts_at.month], "bymonthday": [starts_at.day]}
        elif freq == MONTHLY:
            implied = {"bymonthday": [starts_at.day]}
        elif freq == WEEKLY:
            implied = {"byweekday": [weekday(starts_at.weekday())]}
    if freq < HOURLY:
        implied["byhour"] = [starts_at.hour]
    if freq < MINUTELY:
        implied["byminute"] = [starts_at.minute]
    implied["bysecond"] = [starts_at.second]
    return {**implied, **by}


def _number(rule: str, parts: Mapping[str, str], name: str, *, most: int) -> int | None:
    if name not in parts:
        return None
    if not _NUMBER.fullmatch(parts[name]) or not 1 <= int(parts[name]) <= most:
        hint = ": use max_runs or UNTIL" if name == "COUNT" else ""
        raise _refused(rule, f"{name}={parts[name][:100]} must be from 1 to {most}{hint}")
    return int(parts[name])


def _weekday(rule: str, name: str) -> int:
    if name not in _WEEKDAYS:
        raise _refused(rule, f"WKST={name[:100]} is not one of {', '.join(_WEEKDAYS)}")
    return _WEEKDAYS.index(name)


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


def _refused(rule: str, message: str) -> InvalidSchedule:
    return InvalidSchedule(message, field="rrule", value=rule)
