"""Expressions of other programs: whose they are, and the definition that fires at the same times.

A translation is given only where it is one: our own parser takes it, and it fires when the documentation of the other
program says. Where there is none, it is said what cannot be expressed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from functions.domain.errors import InvalidSchedule
from functions.domain.schedules.cron import MACROS, as_json, parse_cron
from functions.domain.schedules.dialects.dialect import Dialect, is_read, on_the_clock
from functions.domain.schedules.dialects.eventbridge import read_call
from functions.domain.schedules.dialects.fields import CRON_FIELD
from functions.domain.schedules.dialects.jenkins import read_jenkins
from functions.domain.schedules.dialects.macros import read_macro
from functions.domain.schedules.dialects.quartz import read_more_fields
from functions.domain.schedules.rules import MAX_EXPRESSION, Fold, Gap
from functions.domain.schedules.zones import zone_of

_ZONED = re.compile(r"(?:CRON_)?TZ=(\S+)\s+(.*)", re.ASCII | re.DOTALL | re.IGNORECASE)
_SETTING = re.compile(r"[A-Z_]+\s*=.*", re.ASCII | re.DOTALL)
_COMMENT = re.compile(r"(?:^|\s)#.*", re.DOTALL)
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


def _read_zoned(text: str, _: str) -> Dialect | None:
    match = _ZONED.fullmatch(text)
    if match is None:
        return None
    name, rest = "an expression with its time zone before it, as robfig/cron and Jenkins have it", match[2].strip()
    try:
        zone_of(match[1])
    except InvalidSchedule as error:
        return Dialect(name, {}, f"its zone {error}")
    if not is_read(rest):
        inner = None if _ZONED.fullmatch(rest) else dialect_of(rest, timezone=match[1])
        if inner is None:
            return Dialect(name, {}, f"what follows it is not taken: {rest[:100]!r}")
        meanings = {meaning: {**rule, "timezone": match[1]} for meaning, rule in inner.meanings.items()}
        return Dialect(f"{name}, and what follows is {inner.name}", meanings, inner.remark)
    # Skipped times do not run, repeated ones run twice: https://pkg.go.dev/github.com/robfig/cron/v3#hdr-Time_zones
    return Dialect(name, {"": {**on_the_clock(rest, match[1], gap=Gap.SKIP, fold=Fold.BOTH), "timezone": match[1]}})


def _read_crontab(text: str, timezone: str) -> Dialect | None:
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
    if len(fields) > count and not CRON_FIELD.fullmatch(fields[count]):
        remark = "what runs is said in `job`"
        return _rest_of("a line of a crontab, with its command", " ".join(fields[:count]), remark, timezone)
    return None


def _rest_of(name: str, cron: str, remark: str, timezone: str) -> Dialect | None:
    if not is_read(cron):
        inner = dialect_of(cron, timezone=timezone)
        return inner and Dialect(f"{name}, and the rest of it is {inner.name}", inner.meanings, inner.remark)
    return Dialect(name, {"": {"cron": cron}}, remark)


def _read_systemd(text: str, timezone: str) -> Dialect | None:
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


def _read_recurrence(text: str, _: str) -> Dialect | None:
    rule = text.upper().removeprefix("RRULE:")
    if not rule.startswith("FREQ="):
        return None
    return Dialect(
        "an RFC 5545 rule",
        {},
        f"give it as `rrule`, with its first local time: {as_json({'rrule': {'rule': rule, 'starts_at': '…'}})}",
    )


_READERS: Sequence[Callable[[str, str], Dialect | None]] = (
    read_call,
    _read_zoned,
    read_macro,
    _read_recurrence,
    _read_crontab,
    _read_systemd,
    read_jenkins,
    read_more_fields,
)
