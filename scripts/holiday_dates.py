"""Write the holidays of the package `holidays` into functions/domain/schedules/holidays.jsonl: `python -m scripts.holiday_dates`.

Run it after a change of that package's pin; a test compares the two. It takes a minute. The functions read the file, so
that a schedule costs no import of every country's rules.
"""

import json
import warnings
from collections.abc import Iterator
from datetime import date
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

import holidays
from holidays.registry import COUNTRIES, FINANCIAL

FILE = Path(__file__).resolve().parent.parent / "functions" / "domain" / "schedules" / "holidays.jsonl"
YEARS = range(1970, 2101)
"""From the first year in which anything fires to the last one that the package knows."""

JOINT = "; "
"""Between the names of two holidays of one date."""

Dates = dict[date, str]


def main() -> None:
    """Write the file: its first line says what it was made from, each other one is a country or a market."""
    about = {"holidays": version("holidays"), "first": YEARS[0], "last": YEARS[-1]}
    FILE.write_text(
        "\n".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in (about, *entities())) + "\n"
    )


def entities() -> Iterator[dict[str, Any]]:
    """Each country and market, by its codes."""
    for names in sorted(COUNTRIES.values(), key=lambda names: names[1]):
        yield _entity(names[1:3])
    for names in sorted(FINANCIAL.values(), key=lambda names: names[1]):
        yield _entity(names[1:])


def parts_of(code: str) -> list[str]:
    """The names of its parts, with what else they are called."""
    entity = getattr(holidays, code)
    others = (*getattr(entity, "subdivisions_aliases", {}), *getattr(entity, "_deprecated_subdivisions", ()))
    return list(dict.fromkeys((*entity.subdivisions, *others)))


def dates_of(code: str, part: str, years: range = YEARS) -> Dates:
    """The holidays as the package says."""
    find = holidays.country_holidays if code in _countries() else holidays.financial_holidays
    with warnings.catch_warnings():
        # Of years that it does not know, and of parts that it will drop: they are what it has.
        warnings.simplefilter("ignore")
        found = find(code, subdiv=part or None, years=years, language="en_US")
    return {day: found[day] for day in found if day.year in years}


def _countries() -> set[str]:
    return {names[1] for names in COUNTRIES.values()}


def _entity(codes: tuple[str, ...]) -> dict[str, Any]:
    """own: which holidays it has, as places in `holidays`. parts: by name, which are added there, and which are missing.

    called: other names of its parts. main: the names to propose.
    """
    code = codes[0]
    kept: dict[tuple[str, str], int] = {}
    own = _written(dates_of(code, ""), kept)
    parts: dict[str, list[list[int]]] = {}
    called: dict[str, str] = {}
    aliases = getattr(getattr(holidays, code), "subdivisions_aliases", {})
    for part in parts_of(code):
        of_part = _written(dates_of(code, part), kept)
        difference = [sorted(of_part - own), sorted(own - of_part)]
        if parts.get(aliases.get(part, "")) == difference:
            called[part] = aliases[part]
        else:
            parts[part] = difference
    return {
        "codes": list(codes),
        "own": sorted(own),
        "parts": parts,
        "called": called,
        "main": list(getattr(holidays, code).subdivisions),
        "holidays": [list(holiday) for holiday in kept],
    }


def _written(found: Dates, kept: dict[tuple[str, str], int]) -> set[int]:
    """Holidays as places in what is kept, each a name and its dates."""
    by_name: dict[str, list[date]] = {}
    for day in sorted(found):
        for name in found[day].split(JOINT):
            by_name.setdefault(name, []).append(day)
    return {kept.setdefault((name, _years(days)), len(kept)) for name, days in by_name.items()}


def _years(days: list[date]) -> str:
    """A year, and the dates of it and those that follow it: `1990 1003*27 1003,1031 1003*83`, with - for none."""
    of_year = {year: ",".join(f"{day:%m%d}" for day in group) for year, group in groupby(days, lambda day: day.year)}
    first, last = min(of_year), max(of_year)
    runs = groupby(of_year.get(year, "-") for year in range(first, last + 1))
    counted = ((dates, len(list(group))) for dates, group in runs)
    return " ".join([str(first), *(dates if count == 1 else f"{dates}*{count}" for dates, count in counted)])


if __name__ == "__main__":
    main()
