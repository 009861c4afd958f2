"""Which local dates a calendar excludes, and where a fire of such a date goes instead."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from difflib import get_close_matches
from functools import lru_cache

from functions.domain.errors import InvalidSchedule
from functions.domain.schedule import Calendar, Roll

MAX_ROLL_DAYS = 31
"""A fire never moves further: beyond it would stand for something else."""

_DAY = timedelta(days=1)
_SATURDAY = 5


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


def rolled(calendar: Calendar, day: date) -> date | None:
    """The date itself, or the one that its fires move to; None when there is none near enough."""
    step = {Roll.BEFORE: -_DAY, Roll.AFTER: _DAY, Roll.SKIP: timedelta(0)}[calendar.roll]
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
    import holidays  # only schedules that name a set pay for it

    entity, dash, part = name.partition("-")
    countries, markets = _codes()
    if (entity not in countries and entity not in markets) or (dash and not part):
        raise _unknown(name)
    holidays_of = holidays.country_holidays if entity in countries else holidays.financial_holidays
    try:
        found = holidays_of(entity, subdiv=part or None, years=year, language="en_US")
    except NotImplementedError:
        raise _unknown(name) from None
    return {day: found[day] for day in found if day.year == year}


@lru_cache(maxsize=1)
def _codes() -> tuple[frozenset[str], frozenset[str]]:
    """ISO 3166 codes of countries, and codes of markets; the package itself would take names of its classes too."""
    from holidays.registry import COUNTRIES, FINANCIAL

    countries = (code for names in COUNTRIES.values() for code in names[1:3])
    return frozenset(countries), frozenset(code for names in FINANCIAL.values() for code in names[1:])


def _unknown(name: str) -> InvalidSchedule:
    import holidays

    entity, dash, part = name.partition("-")
    countries, markets = _codes()
    if dash and entity in countries | markets:
        parts = getattr(holidays, entity).subdivisions
        near = [f"{entity}-{match}" for match in get_close_matches(part.upper()[:100], parts, n=3, cutoff=0.3)]
        message = f"{entity} has no holidays of its own for {part[:100]!r}"
    else:
        near = get_close_matches(name.upper()[:100], sorted(countries | markets), n=3, cutoff=0.5)
        message = f"no holidays are known for {name[:100]!r}"
    hint = (
        f"did you mean {' or '.join(near)}?"
        if near
        else "use a country such as DE, a part as DE-BY, or a market as NYSE"
    )
    return InvalidSchedule(f"{message}: {hint}", field="calendar.holidays", value=name)
