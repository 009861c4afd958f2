"""Fields that other programs count in another way: weekdays from Sunday as 1, and years."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from functions.domain.errors import InvalidSchedule
from functions.domain.instants import LATEST
from functions.domain.schedules.cron import MONTHS, WEEKDAYS, parse_cron
from functions.domain.schedules.cron_checks import check_new_cron
from functions.domain.schedules.dialects.dialect import Dialect, on_the_clock
from functions.domain.schedules.rules import Fold, Gap
from functions.domain.schedules.zones import zone_of

FIRST_YEAR = 1970
_YEAR = re.compile(r"(\*|[0-9]{4})(?:-([0-9]{4}))?(?:/([0-9]{1,3}))?", re.ASCII)
_OF_MONTH = re.compile(r"([0-7]|[a-z]{3})(l|#[0-9])", re.ASCII)
_ON_WEEKDAYS = re.compile(r"(\*|[0-7]|[a-z]{3})(?:-([0-7]|[a-z]{3}))?(?:/([0-9]{1,2}))?", re.ASCII)


def translated(
    name: str,
    fields: Sequence[str],
    year: str,
    timezone: str,
    *,
    sunday: int,
    gap: Gap | None = None,
    fold: Fold | None = None,
) -> Dialect:
    """Five fields of a program that counts weekdays from `sunday` on, and years."""
    weekdays = _weekdays(fields[4], sunday=sunday)
    if weekdays is None:
        return Dialect(name, {}, f"{fields[4]!r} has no translation: write names such as mon-fri")
    of_month = "*" if fields[2] == "?" else fields[2].upper()
    if weekdays != "*" and of_month != "*":
        return Dialect(name, {}, "it has two day fields, which other programs join in other ways: leave one of them *")
    cron = " ".join([*(with_star(field) for field in (*fields[:2], of_month, fields[3])), weekdays])
    try:
        parse_cron(cron)
        check_new_cron(cron)
    except InvalidSchedule as error:
        return Dialect(name, {}, f"as {cron!r} it is refused: {error}")
    bounds = bounds_of(year, timezone)
    if bounds is None:
        return Dialect(
            name,
            {},
            f"{year!r} are not years that follow each other: put a schedule for each run of them, with `start` and `end`",
        )
    return Dialect(name, {"": {**on_the_clock(cron, timezone, gap=gap, fold=fold), **bounds}})


def with_star(field: str) -> str:
    """A field of items such as /5 in place of */5."""
    return ",".join(f"*{item}" if item.startswith("/") else item for item in field.split(","))


def bounds_of(year: str, timezone: str) -> dict[str, str] | None:
    """`start` and `end` for a field of years; None where there are gaps in them."""
    last_year = LATEST.year - 1
    years: set[int] = set()
    for item in year.split(","):
        match = _YEAR.fullmatch(item)
        if match is None:
            return None
        first = FIRST_YEAR if match[1] == "*" else int(match[1])
        if first < FIRST_YEAR:
            return None
        last = int(match[2]) if match[2] else last_year if match[1] == "*" or match[3] else first
        years.update(range(first, min(last, last_year) + 1, max(1, int(match[3] or 1))))
    if not years or len(years) != max(years) - min(years) + 1:
        return None
    zone = zone_of(timezone)
    bounds: dict[str, str] = {}
    for name, of_year, is_open in (
        ("start", min(years), min(years) <= FIRST_YEAR),
        ("end", max(years) + 1, max(years) >= last_year),
    ):
        if not is_open:
            bounds[name] = datetime(of_year, 1, 1, tzinfo=zone).isoformat().replace("+00:00", "Z")
    return bounds


def _weekdays(field: str, *, sunday: int) -> str | None:
    """A field of weekdays in names; None for what is read in different ways by programs that count like this."""
    items = [_weekday_item(item, sunday=sunday) for item in field.split(",")]
    return None if None in items else ",".join(item for item in items if item is not None)


def _weekday_item(item: str, *, sunday: int) -> str | None:
    if item in {"*", "?"}:
        return "*"
    if item == "l":
        return "sat" if sunday else None
    if match := _OF_MONTH.fullmatch(item):
        name = _weekday_name(match[1], sunday)
        return name and f"{name}{match[2].upper()}"
    match = _ON_WEEKDAYS.fullmatch(with_star(item))
    if match is None:
        return None
    start, end, step = match.groups()
    if step is not None and end is None:
        return _stepped(start, int(step), sunday=sunday)
    names = [_weekday_name(text, sunday) for text in (start, end) if text is not None]
    return None if None in names else "-".join(name for name in names if name) + (f"/{step}" if step else "")


def _stepped(start: str, step: int, *, sunday: int) -> str | None:
    """A step to the end of the week, which is a matter of how it is counted: only Quartz says Saturday."""
    first = 1 if start == "*" else _weekday_number(start)
    if not sunday or first is None or not step:
        return None
    return ",".join(WEEKDAYS[number - 1] for number in range(first, len(WEEKDAYS) + 1, step)) or None


def _weekday_number(text: str) -> int | None:
    """As Quartz counts: Sunday is 1."""
    return WEEKDAYS.index(text) + 1 if text in WEEKDAYS else int(text) if text.isdigit() and int(text) else None


def _weekday_name(text: str, sunday: int) -> str | None:
    if text in WEEKDAYS:
        return text
    if not re.fullmatch("[0-7]", text) or int(text) < sunday:
        return None
    return WEEKDAYS[(int(text) - sunday) % 7]


CRON_FIELD = re.compile(rf"(?:[0-9*?,/#lw-]|h\b|{'|'.join((*MONTHS, *WEEKDAYS))})+", re.ASCII | re.IGNORECASE)
