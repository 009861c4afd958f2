"""What a cron expression may not be that somebody asks for today.

`parse_cron` still reads it, since it may be stored, and fires as it always has. Other programs refuse it, or read it
differently, so that whoever writes it may mean something else than what would fire.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from functions.domain.errors import InvalidSchedule
from functions.domain.instants import DAY, HOUR, MINUTE, format_duration
from functions.domain.schedules.cron import (
    FIELDS,
    MONTHS,
    WEEKDAYS,
    as_json,
    parse_cron,
    refused_item,
    with_field,
    written_fields,
)
from functions.domain.schedules.rules import MAX_INTERVAL

_LARGEST_STEPS = (59, 23, 31, 12, 7)
_FIRST = ("0", "0", "1", "1", "0")
_JOINED = {2: 4, 4: 2}
"""A day field, and the other one."""
_UNITS = (MINUTE, HOUR, DAY)
_SHORTEST_MONTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

_LONG_NUMBER = re.compile(r"[0-9]{3,}", re.ASCII)
_RANGE_OF_ONE = re.compile(r"([^-]+)-\1", re.ASCII)
_FROM_WEEKDAY = re.compile(r"([0-6]|[a-z]{3})/([1-7])", re.ASCII)
_OF_ONE_MONTH = re.compile(r".*#.*|l[0-9]+|[a-z]+l", re.ASCII)


def check_new_cron(expression: str) -> None:
    """Raises InvalidSchedule, with what to write instead, for an expression that is only read where it is stored."""
    parts = written_fields(expression)
    for index, part in enumerate(parts):
        for item in part.split(","):
            _check_digits(expression, index, item)
            _check_step(expression, parts, index, item)
    for item in parts[2].split(","):
        _check_nearest(expression, parts, item)
    for item in parts[4].split(","):
        _check_end_of_week(expression, item)
    _check_weekdays(expression, parts)


def _check_digits(expression: str, index: int, item: str) -> None:
    start, slash, step = item.partition("/")
    if _LONG_NUMBER.search(start):
        short = _LONG_NUMBER.sub(lambda number: str(int(number[0])), start) + slash + step
        raise _refused(expression, index, item, "has a number of more than two digits", write=short)


def _check_step(expression: str, parts: Sequence[str], index: int, item: str) -> None:
    start, _, step = item.partition("/")
    # Of a range that names its end, such as the 15-23/24 of real schedules, nobody reads more than its first number.
    if not step.isdigit() or int(step) <= _LARGEST_STEPS[index] or "-" in start:
        return
    first = _FIRST[index] if start == "*" else start
    meanings: dict[str, Mapping[str, Any]] = {}
    every = _every(parts, index, first, int(step)) if parts[index] == item else None
    if every is not None:
        meanings["an interval"] = {"every": every}
    # A star has a say in how the day fields are joined.
    if index not in _JOINED or start != "*" or parts[_JOINED[index]] == "*":
        meanings[f"{FIELDS[index]} {first} alone"] = with_field(expression, index, item, first)
    raise _ambiguous(expression, index, item, f"has a step larger than {_LARGEST_STEPS[index]}", meanings)


def _every(parts: Sequence[str], index: int, first: str, step: int) -> str | dict[str, str] | None:
    """The interval that the writer of a step may have intended; None where the other fields leave none."""
    if index >= len(_UNITS) or step > MAX_INTERVAL / _UNITS[index] or any(part != "*" for part in parts[index + 1 :]):
        return None
    smaller = parts[:index]
    if not all(part.isdigit() for part in (*smaller, first)):
        return None
    interval = step * _UNITS[index]
    started = timedelta(0) if index == 2 else int(first) * _UNITS[index]  # noqa: PLR2004  a date is no distance
    phase = sum((int(part) * unit for part, unit in zip(smaller, _UNITS, strict=False)), started)
    if phase >= interval:
        return None
    return (
        {"interval": format_duration(interval), "phase": format_duration(phase)} if phase else format_duration(interval)
    )


def _check_nearest(expression: str, parts: Sequence[str], item: str) -> None:
    if "w" not in item or item.startswith("l"):
        return
    day = int(item.strip("w"))
    if item.startswith("w"):
        raise _refused(expression, 2, item, "stands the wrong way round", write=f"{day}w")
    months = parse_cron(expression).months
    with_day = [month for month in months if _SHORTEST_MONTHS[month - 1] >= day]
    if len(with_day) == len(months):
        return
    # Quartz and Cronos skip a month without the day, croniter takes its last day.
    meanings: dict[str, Mapping[str, Any]] = {"the last weekday of each month": with_field(expression, 2, item, "lw")}
    if with_day:
        names = ",".join(MONTHS[month - 1] for month in with_day)
        meanings["the months that always have it"] = with_field(" ".join([*parts[:3], names, parts[4]]), 2, item, item)
    raise _ambiguous(expression, 2, item.upper(), "asks for a day that some of the months do not have", meanings)


def _check_end_of_week(expression: str, item: str) -> None:
    match = _FROM_WEEKDAY.fullmatch(item)
    if match is None:
        return
    first = WEEKDAYS.index(match[1]) if match[1] in WEEKDAYS else int(match[1])
    numbers = range(first, len(WEEKDAYS) + 1, int(match[2]))
    if not first or len(WEEKDAYS) not in numbers:
        return
    # Cronos and cronsim count to 7, croniter and robfig/cron to 6.
    to_saturday = ",".join(WEEKDAYS[number] for number in numbers if number < len(WEEKDAYS))
    instead = [
        with_field(expression, 4, item, to_saturday),
        with_field(expression, 4, item, f"{to_saturday},{WEEKDAYS[0]}"),
    ]
    raise InvalidSchedule(
        f"{item!r} in the {FIELDS[4]} could end with Saturday or with Sunday: write {as_json(instead[0])}, or {as_json(instead[1])}",
        field="cron",
        value=expression,
        instead=instead,
    )


def _check_weekdays(expression: str, parts: Sequence[str]) -> None:
    items = parts[4].split(",")
    of_month = [item for item in items if _OF_ONE_MONTH.fullmatch(item)]
    for item in of_month:
        if _RANGE_OF_ONE.fullmatch(item.partition("#")[0]):
            raise _refused(expression, 4, item, "is no range", write=item.partition("-")[2])
    if of_month and len(of_month) < len(items):
        raise _refused(
            expression,
            4,
            parts[4],
            "mixes weekdays of every week with those of a month, and only those of a month would count",
            write=",".join(of_month),
        )


def _refused(expression: str, index: int, item: str, message: str, *, write: str) -> InvalidSchedule:
    return refused_item(expression, index, item, message, instead=[with_field(expression, index, item, write)])


def _ambiguous(
    expression: str, index: int, item: str, message: str, meanings: Mapping[str, Mapping[str, Any]]
) -> InvalidSchedule:
    """The refusal of an item that may have been written for each of these; for none of them where there are none."""
    given = ", or ".join(f"{as_json(definition)} for {meaning}" for meaning, definition in meanings.items())
    return InvalidSchedule(
        f"{item[:100]!r} in the {FIELDS[index]} {message}" + (f": write {given}" if given else ""),
        field="cron",
        value=expression,
        instead=tuple(meanings.values()),
    )
