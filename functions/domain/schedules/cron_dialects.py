"""Expressions of other programs: whose they are, and the definition that fires at the same times.

A translation is given only where it is one: our own parser takes it, and it fires when the documentation of the other
program says. Where there is none, it is said what cannot be expressed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from functions.domain.errors import InvalidSchedule
from functions.domain.instants import LATEST, SECOND, format_duration
from functions.domain.schedules.cron import MACROS, MONTHS, WEEKDAYS, as_json, parse_cron
from functions.domain.schedules.cron_checks import check_new_cron
from functions.domain.schedules.schedule import MAX_EXPRESSION, MAX_INTERVAL, Fold, Gap
from functions.domain.schedules.zones import instants_of, zone_of

_HOURS_OF_A_DAY = 24
_MINUTES_OF_AN_HOUR = 60
_FIRST_YEAR = 1970

_CALL = re.compile(r"(cron|rate|at)\s*\((.*)\)", re.ASCII | re.DOTALL | re.IGNORECASE)
_RATE = re.compile(r"([1-9][0-9]{0,6})\s+(minute|hour|day)s?", re.ASCII | re.IGNORECASE)
_ZONED = re.compile(r"(?:CRON_)?TZ=(\S+)\s+(.*)", re.ASCII | re.DOTALL | re.IGNORECASE)
_SETTING = re.compile(r"[A-Z_]+\s*=.*", re.ASCII | re.DOTALL)
_GO_TIME = r"(?:[0-9]+(?:\.[0-9]+)?(?:ns|us|µs|ms|[smhd]))+"
_EVERY = re.compile(rf"@every\s+({_GO_TIME})(?:/({_GO_TIME}))?")
_GO_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|[smhd])")
_GO_UNITS = {"ns": "1e-9", "us": "1e-6", "µs": "1e-6", "ms": "1e-3", "s": "1", "m": "60", "h": "3600", "d": "86400"}
_COMMENT = re.compile(r"(?:^|\s)#.*", re.DOTALL)
_FIELD = re.compile(rf"(?:[0-9*?,/#lw-]|h\b|{'|'.join((*MONTHS, *WEEKDAYS))})+", re.ASCII | re.IGNORECASE)
_HASH = re.compile(r"h(?:\(([0-9]{1,2})-([0-9]{1,2})\))?(?:/([0-9]{1,2}))?", re.ASCII)
_YEAR = re.compile(r"(\*|[0-9]{4})(?:-([0-9]{4}))?(?:/([0-9]{1,3}))?", re.ASCII)
_SECONDS = re.compile(r"(\*|[0-9]{1,2})(?:/([0-9]{1,2}))?", re.ASCII)
_OF_MONTH = re.compile(r"([0-7]|[a-z]{3})(l|#[0-9])", re.ASCII)
_ON_WEEKDAYS = re.compile(r"(\*|[0-7]|[a-z]{3})(?:-([0-7]|[a-z]{3}))?(?:/([0-9]{1,2}))?", re.ASCII)
_SYSTEMD = re.compile(
    r"(?:([a-z]{3}(?:(?:\.\.|,)[a-z]{3})*)\s+)?(?:\*-)?\*-(\*|[0-9]{1,2})\s+([0-9]{1,2}):([0-9]{2})(?::00)?",
    re.ASCII | re.IGNORECASE,
)
_SYSTEMD_WORDS = {
    "minutely": "* * * * *",
    "hourly": "0 * * * *",
    "daily": "0 0 * * *",
    "weekly": "0 0 * * mon",
    "monthly": "0 0 1 * *",
    "yearly": "0 0 1 1 *",
    "annually": "0 0 1 1 *",
}


@dataclass(frozen=True, slots=True)
class Dialect:
    """What an expression is.

    name: whose. meanings: definitions that mean the same, by what tells them apart where there are several. remark:
    what cannot be expressed, or has to be looked at.
    """

    name: str
    meanings: Mapping[str, Mapping[str, Any]]
    remark: str = ""

    def __str__(self) -> str:
        told = ", or ".join(
            f"{as_json(definition)}{meaning and f' {meaning}'}" for meaning, definition in self.meanings.items()
        )
        return "; ".join(part for part in (f"is {self.name}", self.remark, told and f"write {told}") if part)


def check_cron(expression: str, *, timezone: str = "UTC") -> None:
    """Raises InvalidSchedule for what is no cron expression; that of another program is named, and translated.

    timezone: that of the definition that has it.
    """
    try:
        parse_cron(expression)
    except InvalidSchedule:
        dialect = dialect_of(expression, timezone=timezone)
        if dialect is None:
            raise
        raise InvalidSchedule(
            str(dialect), field="cron", value=expression, instead=tuple(dialect.meanings.values())
        ) from None


def dialect_of(expression: str, *, timezone: str = "UTC") -> Dialect | None:
    """What an expression is that `parse_cron` refuses; None where that is not known."""
    text = expression.strip()
    if len(text) > MAX_EXPRESSION:
        return None
    found = (read(text, timezone) for read in _READERS)
    return next((dialect for dialect in found if dialect is not None), None)


def _call(text: str, timezone: str) -> Dialect | None:
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
    return _eventbridge(fields, timezone)


def _rate(argument: str) -> Dialect:
    name = "EventBridge's rate(…)"
    match = _RATE.fullmatch(argument)
    if match is None:
        return Dialect(name, {}, "it must be a number of minutes, hours or days")
    return _interval(name, int(match[1]) * timedelta(**{f"{match[2].lower()}s": 1}))


def _interval(name: str, interval: timedelta) -> Dialect:
    if not SECOND <= interval <= MAX_INTERVAL:
        return Dialect(name, {}, "an interval must be from 1 second to ten years")
    remark = "an interval is counted from `start`, or else from the epoch"
    return Dialect(name, {"": {"every": format_duration(interval)}}, remark)


def _at(argument: str, timezone: str) -> Dialect:
    name = "EventBridge's at(…)"
    try:
        local = datetime.strptime(argument, "%Y-%m-%dT%H:%M:%S")  # noqa: DTZ007  local to the timezone
    except ValueError:
        return Dialect(name, {}, "it must hold a local time such as 2027-01-31T09:00:00")
    if not _FIRST_YEAR <= local.year < LATEST.year:
        return Dialect(name, {}, f"it must be in the years from {_FIRST_YEAR} to {LATEST.year - 1}")
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


def _eventbridge(fields: Sequence[str], timezone: str) -> Dialect:
    *fields, year = fields
    name = "EventBridge's cron(…)"
    if any(digit in fields[4] for digit in "1234567"):
        name = f"{name}, whose weekdays are 1 for Sunday to 7 for Saturday"
    if "?" not in (fields[2], fields[4]):
        return Dialect(name, {}, "there one of the two day fields must be ?")
    # A time that a clock change skips is skipped, one that it repeats runs once:
    # https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#daylist-savings-time
    return _translated(name, fields, year, timezone, sunday=1, gap=Gap.SKIP, fold=Fold.FIRST)


def _translated(
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
    cron = " ".join([*(_with_star(field) for field in (*fields[:2], of_month, fields[3])), weekdays])
    try:
        parse_cron(cron)
        check_new_cron(cron)
    except InvalidSchedule as error:
        return Dialect(name, {}, f"as {cron!r} it is refused: {error}")
    bounds = _bounds(year, timezone)
    if bounds is None:
        return Dialect(
            name,
            {},
            f"{year!r} are not years that follow each other: put a schedule for each run of them, with `start` and `end`",
        )
    return Dialect(name, {"": {**_on_the_clock(cron, timezone, gap=gap, fold=fold), **bounds}})


def _with_star(field: str) -> str:
    return ",".join(f"*{item}" if item.startswith("/") else item for item in field.split(","))


def _on_the_clock(cron: str, timezone: str, *, gap: Gap | None, fold: Fold | None) -> dict[str, Any]:
    """A cron in a zone, with what the other program does on a clock change where Tickwheel would do something else."""
    definition: dict[str, Any] = {"cron": cron}
    if timezone == "UTC":
        return definition
    definition["timezone"] = timezone
    follows = parse_cron(cron).follows_elapsed_time
    if gap is not None and gap is not (Gap.SKIP if follows else Gap.NEXT_VALID):
        definition["gap"] = gap.value
    if fold is not None and fold is not (Fold.BOTH if follows else Fold.FIRST):
        definition["fold"] = fold.value
    return definition


def _bounds(year: str, timezone: str) -> dict[str, str] | None:
    """`start` and `end` for a field of years; None where there are gaps in them."""
    last_year = LATEST.year - 1
    years: set[int] = set()
    for item in year.split(","):
        match = _YEAR.fullmatch(item)
        if match is None:
            return None
        first = _FIRST_YEAR if match[1] == "*" else int(match[1])
        if first < _FIRST_YEAR:
            return None
        last = int(match[2]) if match[2] else last_year if match[1] == "*" or match[3] else first
        years.update(range(first, min(last, last_year) + 1, max(1, int(match[3] or 1))))
    if not years or len(years) != max(years) - min(years) + 1:
        return None
    zone = zone_of(timezone)
    bounds: dict[str, str] = {}
    for name, of_year, is_open in (
        ("start", min(years), min(years) <= _FIRST_YEAR),
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
    match = _ON_WEEKDAYS.fullmatch(_with_star(item))
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


def _zoned(text: str, _: str) -> Dialect | None:
    match = _ZONED.fullmatch(text)
    if match is None:
        return None
    name, rest = "an expression with its time zone before it, as robfig/cron and Jenkins have it", match[2].strip()
    try:
        zone_of(match[1])
    except InvalidSchedule as error:
        return Dialect(name, {}, f"its zone {error}")
    if not _is_read(rest):
        inner = None if _ZONED.fullmatch(rest) else dialect_of(rest, timezone=match[1])
        if inner is None:
            return Dialect(name, {}, f"what follows it is not taken: {rest[:100]!r}")
        meanings = {meaning: {**told, "timezone": match[1]} for meaning, told in inner.meanings.items()}
        return Dialect(f"{name}, and what follows is {inner.name}", meanings, inner.remark)
    # Skipped times do not run, repeated ones run twice: https://pkg.go.dev/github.com/robfig/cron/v3#hdr-Time_zones
    return Dialect(name, {"": {**_on_the_clock(rest, match[1], gap=Gap.SKIP, fold=Fold.BOTH), "timezone": match[1]}})


def _macro(text: str, _: str) -> Dialect | None:
    lowered = text.lower()
    if lowered.startswith("@every "):
        return _at_every(lowered)
    if lowered == "@every_minute":
        return Dialect("a macro of Cronos", {"": {"cron": "* * * * *"}})
    if lowered == "@every_second":
        return Dialect("a macro of Cronos", {"": {"every": "PT1S"}})
    if lowered == "@reboot":
        return Dialect("a macro of crontabs", {}, "there is no machine here whose start it could mean")
    return None


def _crontab(text: str, timezone: str) -> Dialect | None:
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 1:
        return Dialect(f"{len(lines)} lines of a crontab", {}, "put a schedule for each of them")
    if _SETTING.fullmatch(text):
        return Dialect("a setting of a crontab", {}, "it says nothing of times")
    if _COMMENT.search(text):
        before = _COMMENT.sub("", text).strip()
        return (
            _rest_of("a line with a comment", before, "", timezone)
            if before
            else Dialect("a comment", {}, "it says nothing of times")
        )
    fields = text.split()
    count = 1 if fields and fields[0].lower() in MACROS else 5
    if len(fields) > count and not _FIELD.fullmatch(fields[count]):
        remark = "what runs is said in `job`"
        return _rest_of("a line of a crontab, with its command", " ".join(fields[:count]), remark, timezone)
    return None


def _rest_of(name: str, cron: str, remark: str, timezone: str) -> Dialect | None:
    if not _is_read(cron):
        inner = dialect_of(cron, timezone=timezone)
        return inner and Dialect(f"{name}, and the rest of it is {inner.name}", inner.meanings, inner.remark)
    return Dialect(name, {"": {"cron": cron}}, remark)


def _systemd(text: str, timezone: str) -> Dialect | None:
    name = "a calendar event of systemd"
    lowered = text.lower()
    if lowered in _SYSTEMD_WORDS:
        return Dialect(name, {"": {"cron": _SYSTEMD_WORDS[lowered]}})
    match = _SYSTEMD.fullmatch(lowered)
    if match is None:
        return None
    weekdays, day, hour, minute = match.groups()
    if weekdays and day != "*":
        return Dialect(name, {}, "it wants the weekday and the date to match, which a cron cannot say")
    days = "*" if day == "*" else str(int(day))
    cron = f"{int(minute)} {int(hour)} {days} * {(weekdays or '*').replace('..', '-')}"
    return _rest_of(name, cron, "", timezone)


def _at_every(text: str) -> Dialect:
    name = "robfig/cron's @every, or Temporal's"
    match = _EVERY.fullmatch(text)
    if match is None:
        return Dialect(name, {}, 'its interval is none: write {"every": "PT5M"} for five minutes')
    # robfig/cron rounds down to whole seconds, and up to the first: https://pkg.go.dev/github.com/robfig/cron/v3#Every
    interval, phase = (int(_seconds(each)) if each else 0 for each in match.groups())
    if interval > MAX_INTERVAL.total_seconds() or phase >= max(1, interval):
        return Dialect(name, {}, "an interval is at most ten years, and its phase is shorter than it")
    dialect = _interval(name, timedelta(seconds=max(1, interval)))
    if not match[2]:
        return dialect
    # Temporal counts from the epoch: https://docs.temporal.io/schedule#spec
    every = {"interval": dialect.meanings[""]["every"], "phase": format_duration(timedelta(seconds=phase))}
    return Dialect(name, {"": {"every": every}})


def _seconds(text: str) -> Decimal:
    return sum((Decimal(number) * Decimal(_GO_UNITS[unit]) for number, unit in _GO_DURATION.findall(text)), Decimal(0))


def _recurrence(text: str, _: str) -> Dialect | None:
    rule = text.upper().removeprefix("RRULE:")
    if not rule.startswith("FREQ="):
        return None
    return Dialect(
        "an RFC 5545 rule",
        {},
        f"give it as `rrule`, with its first local time: {as_json({'rrule': {'rule': rule, 'starts_at': '…'}})}",
    )


def _jenkins(text: str, timezone: str) -> Dialect | None:
    fields = text.lower().split()
    if len(fields) != 5 or not any(_HASH.fullmatch(item) for field in fields for item in field.split(",")):  # noqa: PLR2004
        return None
    name = "Jenkins' H, a choice by hash"
    unknown = Dialect(
        name, {}, "write a number, or a `spread`, which delays by a constant that is different for each schedule"
    )
    minute = _HASH.fullmatch(fields[0])
    hour = _HASH.fullmatch(fields[1])
    if minute is None or (hour is not None and (hour[3] or minute[1] or minute[3] or timezone != "UTC")):
        return unknown
    spread: timedelta | None
    if hour is not None:
        fields[0] = "0"
        fields[1], spread = _hashed(hour, _HOURS_OF_A_DAY, timedelta(hours=1))
    else:
        fields[0], spread = _hashed(minute, _MINUTES_OF_AN_HOUR, timedelta(minutes=1))
    if spread is None or not _is_read(" ".join(fields)):
        return unknown
    return Dialect(name, {"": {"cron": " ".join(fields), "spread": format_duration(spread)}})


def _hashed(match: re.Match[str], size: int, unit: timedelta) -> tuple[str, timedelta | None]:
    """The first values of a choice, and how far from them it may be; None where the choices are not evenly apart."""
    low, high = (int(match[1]), int(match[2])) if match[1] else (0, size - 1)
    step = int(match[3]) if match[3] else high - low + 1
    if not 0 <= low <= high < size or step < 1 or (high - low + 1) % step:
        return "", None
    if not match[3]:
        return str(low), step * unit
    return ("*" if not match[1] else f"{low}-{high}") + f"/{step}", step * unit


def _more_fields(text: str, timezone: str) -> Dialect | None:
    fields = text.lower().split()
    if not all(_FIELD.fullmatch(field) for field in fields):
        return None
    if len(fields) == 6 and "?" in (fields[2], fields[4]):  # noqa: PLR2004
        return _eventbridge(fields, timezone)
    if len(fields) not in {6, 7}:
        return None
    seconds, *rest = fields
    is_quartz = len(fields) == 7  # noqa: PLR2004
    name = (
        "an expression with seconds and years, as Quartz has it"
        if is_quartz
        else ("an expression with seconds, as Quartz, Spring and robfig/cron have it")
    )
    years = rest.pop() if is_quartz else "*"
    if not is_quartz and not _is_read(" ".join(_with_star(field) for field in rest)) and _is_read(" ".join(fields[:5])):
        return _one_more(fields, timezone)
    if not re.fullmatch("0{1,2}", seconds):
        every = _every_second(seconds) if all(field in {"*", "?"} for field in (*rest, years)) else None
        if every is None:
            return Dialect(name, {}, "only second 0 can be expressed as a cron: it fires on the minute")
        return Dialect(name, {"": {"every": every}})
    as_quartz = _translated(name, rest, years, timezone, sunday=1)
    as_spring = _translated(name, rest, years, timezone, sunday=0)
    if is_quartz or dict(as_quartz.meanings) == dict(as_spring.meanings):
        return as_quartz
    readings = (("where Sunday is 1, as in Quartz", as_quartz), ("where Sunday is 0, as in Spring", as_spring))
    meanings = {meaning: read.meanings[""] for meaning, read in readings if read.meanings}
    return Dialect(name, meanings)


def _one_more(fields: Sequence[str], timezone: str) -> Dialect:
    """A cron with a sixth field after it: croniter's seconds, or the years of an EventBridge that forgot its `?`."""
    cron, last = " ".join(fields[:5]), fields[5]
    definition = _on_the_clock(cron, timezone, gap=None, fold=None)
    name = "a cron with a sixth field after it"
    if re.fullmatch("0{1,2}", last):
        return Dialect(name, {"where that is seconds, as in croniter": definition})
    bounds = _bounds(last, timezone)
    if bounds is None:
        return Dialect(name, {}, "only second 0 can be expressed as a cron: it fires on the minute")
    return Dialect(name, {"where that is the year": {**definition, **bounds}})


def _is_read(cron: str) -> bool:
    try:
        parse_cron(cron)
        check_new_cron(cron)
    except InvalidSchedule:
        return False
    return True


def _every_second(field: str) -> Any:
    """The interval of a field of seconds, all others being stars; None where it is not even."""
    match = _SECONDS.fullmatch(field)
    if match is None:
        return None
    first = 0 if match[1] == "*" else int(match[1])
    step = int(match[2]) if match[2] else 1 if match[1] == "*" else 60
    if not step or 60 % step or first >= step:
        return None
    interval = format_duration(timedelta(seconds=step))
    return {"interval": interval, "phase": format_duration(timedelta(seconds=first))} if first else interval


_READERS: Sequence[Callable[[str, str], Dialect | None]] = (
    _call,
    _zoned,
    _macro,
    _recurrence,
    _crontab,
    _systemd,
    _jenkins,
    _more_fields,
)
