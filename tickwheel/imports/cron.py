"""A cron of another program: the local minutes that it names there, and the cron of Tickwheel that names the same."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from tickwheel.imports.dialects import TICKWHEEL, WEEKDAYS, Dialect
from tickwheel.imports.fields import Days, Numbers, Unreadable, days_of_month, days_of_week, numbers

FIELDS = 5
MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_NUMBERED = re.compile(r"(?<![#/0-9])[0-9]")
_WEEKS = {frozenset(range(7 * n + 1, min(7 * n + 7, 31) + 1)): n + 1 for n in range(5)}


@dataclass(frozen=True)
class Expression:
    """Five fields as one program reads them. cron: as Tickwheel reads the same. numbers_weekdays: it has numbers for them."""

    dialect: Dialect
    minutes: frozenset[int]
    hours: frozenset[int]
    months: frozenset[int]
    of_month: Days
    of_week: Days
    needs_both: bool
    cron: str
    numbers_weekdays: bool

    @property
    def follows_elapsed_time(self) -> bool:
        """Whether Tickwheel's default for its cron follows elapsed time at a clock change."""
        return any(field.startswith("*") for field in self.cron.split()[:2])

    def is_on(self, day: date) -> bool:
        """Whether it names times of a day."""
        if day.month not in self.months:
            return False
        tests = [any(test(day) for test in field.tests) for field in (self.of_month, self.of_week)]
        return all(tests) if self.needs_both else any(tests)


def parse(text: str, dialect: Dialect) -> Expression:
    """Reads a macro or five fields. Raises Unreadable."""
    fields = MACROS.get(text.strip().lower(), text).split()
    if len(fields) != FIELDS:
        raise Unreadable(f"has {len(fields)} fields, but a cron of {dialect.name} has {FIELDS}")
    return parse_fields(fields, dialect)


def parse_fields(fields: Sequence[str], dialect: Dialect) -> Expression:
    """Reads minute, hour, day of month, month and day of week. Raises Unreadable."""
    minutes = numbers(fields[0], "minute", 0, 59, dialect)
    hours = numbers(fields[1], "hour", 0, 23, dialect)
    months = numbers(fields[3], "month", 1, 12, dialect)
    of_month, of_week = days_of_month(fields[2], dialect), days_of_week(fields[4], dialect)
    needs_both = {
        "star": of_month.has_star or of_week.has_star,
        "bare_star": of_month.is_any or of_week.is_any,
        "both": True,
    }[dialect.join]
    cron = _written(minutes, hours, months, of_month, of_week, needs_both=needs_both)
    return Expression(
        dialect,
        minutes.values,
        hours.values,
        months.values,
        of_month,
        of_week,
        needs_both=needs_both,
        cron=cron,
        numbers_weekdays=_NUMBERED.search(fields[4]) is not None,
    )


def as_tickwheel(expression: Expression) -> Expression:
    """What Tickwheel reads in the cron that is written for it. Raises Unreadable."""
    return parse_fields(expression.cron.split(), TICKWHEEL)


def _written(
    minutes: Numbers, hours: Numbers, months: Numbers, of_month: Days, of_week: Days, *, needs_both: bool
) -> str:
    dates, weekdays = of_month.text, of_week.text
    if needs_both and not (dates.startswith("*") or weekdays.startswith("*")):
        nth = None if of_month.plain is None else _WEEKS.get(of_month.plain)
        if nth is None or of_week.plain is None:
            raise Unreadable(
                "wants the date and the weekday to match, which a cron of Tickwheel cannot say: leave one of them a star, or use an rrule"
            )
        dates, weekdays = "*", ",".join(f"{WEEKDAYS[each]}#{nth}" for each in sorted(of_week.plain))
    return f"{minutes.text} {hours.text} {dates} {months.text} {weekdays}"
