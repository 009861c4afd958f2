"""Which local dates a calendar excludes, and where a fire of such a date goes instead.

The holidays are those of the package `holidays`, written into a file by scripts/holiday_dates.py: the package itself costs
a process that has just started hundreds of milliseconds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from importlib import resources
from sys import intern
from typing import Any

from functions.domain.errors import InvalidSchedule
from functions.domain.instants import DAY
from functions.domain.schedules.schedule import Calendar, Roll

MAX_ROLL_DAYS = 31
"""A fire is never shifted further: beyond it would stand for something else."""

HOLIDAYS_END = datetime(2101, 1, 1, tzinfo=UTC)
"""Up to which holidays are known: a schedule with a set of them has no fire from then on."""

STEPS_OF_A_SET = 150
"""What it costs to read a set of holidays."""

STEPS_OF_A_YEAR = 25
"""What it costs to work out one year of a set."""

_FILE = resources.files(__package__ or "") / "holidays.jsonl"
_CODES = re.compile(rb'\{"codes":(\[[^]]*\])')
_SATURDAY = 5
_NONE = "-"


def why_excluded(calendar: Calendar, day: date) -> str | None:
    """What a local date is that has no fires, such as `Christmas Day` or `a Saturday`; None for one that has."""
    if day in calendar.excluded:
        return "an excluded date"
    if calendar.weekends and day.weekday() >= _SATURDAY:
        return f"a {day:%A}"
    for name in calendar.holidays:
        holiday = _holidays_of(name, day.year).get(day)
        if holiday is not None:
            return f"a holiday of {name} ({holiday})"
    return None


@lru_cache(maxsize=5_000)
def rolled(calendar: Calendar, day: date) -> date | None:
    """The date itself, or the one that its fires are shifted to; None when there is none near enough."""
    step = {Roll.BEFORE: -DAY, Roll.AFTER: DAY, Roll.SKIP: timedelta(0)}[calendar.roll]
    for _ in range(MAX_ROLL_DAYS + 1):
        if why_excluded(calendar, day) is None:
            return day
        if not step:
            break
        day += step
    return None


def check_calendar(calendar: Calendar) -> None:
    """Raises InvalidSchedule for a set of holidays that is not known, with the names that are like it."""
    for name in calendar.holidays:
        _holidays_of(name, 2027)


@lru_cache(maxsize=2_000)
def _holidays_of(name: str, year: int) -> Mapping[date, str]:
    """The holidays of a year: of a country (`DE`), a part of one (`DE-BY`), or a market (`NYSE`)."""
    code, dash, part = name.partition("-")
    entity = _entity(code)
    if entity is None or (dash and not part):
        raise _unknown(name)
    part = entity["called"].get(part, part)
    if part and part not in entity["parts"]:
        raise _unknown(name)
    added, missing = entity["parts"][part] if part else ((), ())
    names: dict[date, list[str]] = {}
    for place in sorted({*entity["own"], *added} - {*missing}):
        holiday, first, of_years = _years_of(code, place)
        for day in of_years[year - first].split(",") if 0 <= year - first < len(of_years) else ():
            if day != _NONE:
                names.setdefault(date(year, int(day[:2]), int(day[2:])), []).append(holiday)
    return {day: "; ".join(sorted(of_day)) for day, of_day in names.items()}


@lru_cache(maxsize=2_000)
def _years_of(code: str, place: int) -> tuple[str, int, Sequence[str]]:
    """A holiday's name, and its dates in each year from one on, as `scripts/holiday_dates.py` wrote them."""
    entity = _entity(code)
    assert entity is not None  # who asks has looked
    holiday, years = entity["holidays"][place]
    first, *runs = years.split()
    of_years: list[str] = []
    for run in runs:
        if "*" in run:
            dates, _, count = run.partition("*")
            of_years += [intern(dates)] * int(count)
        else:
            of_years.append(intern(run))
    return holiday, int(first), of_years


@lru_cache(maxsize=50)
def _entity(code: str) -> dict[str, Any] | None:
    """A country or market as it is written in the file; None when there is none of that code."""
    place = _places().get(code)
    if place is None:
        return None
    with _FILE.open("rb") as file:
        file.seek(place)
        return json.loads(file.readline())


@lru_cache(maxsize=1)
def _places() -> Mapping[str, int]:
    """Where the line of each code begins."""
    places: dict[str, int] = {}
    with _FILE.open("rb") as file:
        place = len(file.readline())
        for line in file:
            found = _CODES.match(line)
            assert found is not None
            places |= dict.fromkeys(json.loads(found[1]), place)
            place += len(line)
    return places


def _unknown(name: str) -> InvalidSchedule:
    code, dash, part = name.partition("-")
    entity = _entity(code)
    if dash and entity is not None:
        near = [f"{code}-{match}" for match in get_close_matches(part.upper()[:100], entity["main"], n=3, cutoff=0.3)]
        message = f"{code} has no holidays of its own for {part[:100]!r}"
    else:
        near = get_close_matches(name.upper()[:100], sorted(_places()), n=3, cutoff=0.5)
        message = f"no holidays are known for {name[:100]!r}"
    hint = (
        f"did you mean {' or '.join(near)}?"
        if near
        else "use a country such as DE, a part as DE-BY, or a market as NYSE"
    )
    return InvalidSchedule(f"{message}: {hint}", field="calendar.holidays", value=name)
