"""EventBridge's cron(…), rate(…) and at(…)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from functions.domain.instants import LATEST
from functions.domain.schedules.dialects.dialect import Dialect, of_interval
from functions.domain.schedules.dialects.fields import FIRST_YEAR, translated
from functions.domain.schedules.rules import Fold, Gap
from functions.domain.schedules.zones import instants_of, zone_of

_CALL = re.compile(r"(cron|rate|at)\s*\((.*)\)", re.ASCII | re.DOTALL | re.IGNORECASE)
_RATE = re.compile(r"([1-9][0-9]{0,6})\s+(minute|hour|day)s?", re.ASCII | re.IGNORECASE)


def read_call(text: str, timezone: str) -> Dialect | None:
    """Reads cron(…), rate(…) and at(…); None for what is no call."""
    match = _CALL.fullmatch(text)
    if match is None:
        return None
    name, argument = match[1].lower(), match[2].strip()
    if name == "rate":
        return _rate(argument)
    if name == "at":
        return _at(argument, timezone)
    fields = argument.lower().split()
    if len(fields) != 6:  # noqa: PLR2004
        return Dialect(
            "EventBridge's cron(…)",
            {},
            f"it has {len(fields)} fields, but there it must have 6, the last of them the year",
        )
    return from_eventbridge(fields, timezone)


def _rate(argument: str) -> Dialect:
    name = "EventBridge's rate(…)"
    match = _RATE.fullmatch(argument)
    if match is None:
        return Dialect(name, {}, "it must be a number of minutes, hours or days")
    return of_interval(name, int(match[1]) * timedelta(**{f"{match[2].lower()}s": 1}))


def _at(argument: str, timezone: str) -> Dialect:
    name = "EventBridge's at(…)"
    try:
        local = datetime.strptime(argument, "%Y-%m-%dT%H:%M:%S")  # noqa: DTZ007  local to the timezone
    except ValueError:
        return Dialect(name, {}, "it must hold a local time such as 2027-01-31T09:00:00")
    if not FIRST_YEAR <= local.year < LATEST.year:
        return Dialect(name, {}, f"it must be in the years from {FIRST_YEAR} to {LATEST.year - 1}")
    zone = zone_of(timezone)
    instants = instants_of(local, zone, gap=Gap.SKIP, fold=Fold.BOTH)
    if len(instants) != 1:
        return Dialect(
            name,
            {},
            f"the clock of {timezone} shows its time {'twice' if instants else 'never'}: write an instant with its offset as `at`",
        )
    at = instants[0].at.astimezone(zone).isoformat()
    return Dialect(name, {"": {"at": at.replace("+00:00", "Z")}})


def from_eventbridge(fields: Sequence[str], timezone: str) -> Dialect:
    """Reads the six fields of a cron(…)."""
    *fields, year = fields
    name = "EventBridge's cron(…)"
    if any(digit in fields[4] for digit in "1234567"):
        name = f"{name}, whose weekdays are 1 for Sunday to 7 for Saturday"
    if "?" not in (fields[2], fields[4]):
        return Dialect(name, {}, "there one of the two day fields must be ?")
    # A time that a clock change skips is skipped, one that it repeats runs once:
    # https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#daylist-savings-time
    return translated(name, fields, year, timezone, sunday=1, gap=Gap.SKIP, fold=Fold.FIRST)
