"""Instants and durations at the edge: text in, aware UTC and `timedelta` out."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from functions.domain.errors import InvalidInput

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)
"""No caller means an earlier instant: such a one was made up, and near the year 1 there is no room to calculate."""

LATEST = datetime(2200, 1, 1, tzinfo=UTC)
"""Nothing is due later: such an instant was made up, and its rows would never expire."""

MICROSECOND = timedelta(microseconds=1)
MILLISECOND = timedelta(milliseconds=1)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)

# RFC 3339, section 5.6. Bounded repetitions only: the pattern runs in linear time.
_RFC3339 = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})?",
    re.ASCII,
)
# ISO 8601 durations of a fixed length: years and months have none, so they are refused.
_DURATION = re.compile(
    r"P(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?:(\d{1,8})H)?(?:(\d{1,10})M)?(?:(\d{1,12}(?:\.\d{1,6})?)S)?)?",
    re.ASCII,
)


def parse_instant(text: str) -> datetime:
    """An RFC 3339 text with its offset as an aware UTC instant.

    Raises InvalidInput for a naive time, a leap second, or anything else.
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise InvalidInput("must be an RFC 3339 instant such as 2027-01-31T09:00:00+01:00")
    date, time, fraction, offset = match.groups()
    if offset is None:
        raise InvalidInput("has no offset from UTC: append Z or one such as +01:00, a naive time means nothing here")
    # Rounded up to the microsecond: an instant may move later, never earlier.
    microsecond = -(-int(fraction[1:].ljust(9, "0")) // 1000) if fraction else 0
    try:
        instant = datetime.fromisoformat(f"{date}T{time}{'+00:00' if offset in 'Zz' else offset}").astimezone(UTC)
        return instant + timedelta(microseconds=microsecond)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"is not a time that exists: {error}") from None


def parse_duration(value: str | float) -> timedelta:
    """Seconds as a number, or an ISO 8601 duration such as `PT1H30M` (weeks, days, hours, minutes, seconds).

    Raises InvalidInput for a negative, endless or calendar-dependent duration.
    """
    if isinstance(value, str):
        match = _DURATION.fullmatch(value)
        if match is None or not any(match.groups()):
            raise InvalidInput(
                "must be seconds, or an ISO 8601 duration such as PT90S or P1DT2H, without years or months"
            )
        weeks, days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
        total = weeks * 604_800 + days * 86_400 + hours * 3_600 + minutes * 60 + seconds
    else:
        total = value
    try:
        # The comparison is written so that NaN fails it too.
        if not total >= 0:
            raise InvalidInput("must be a number of seconds from 0 up")
        return timedelta(seconds=total)
    except OverflowError:
        raise InvalidInput("must be a number of seconds that a calendar can hold") from None


def format_duration(duration: timedelta) -> str:
    """ISO 8601, to the microsecond: what `parse_duration` reads."""
    seconds, microseconds = divmod(duration // MICROSECOND, 1_000_000)
    days, seconds = divmod(seconds, 86_400)
    hours, seconds = divmod(seconds, 3_600)
    minutes, seconds = divmod(seconds, 60)
    exact = f"{seconds}.{microseconds:06d}".rstrip("0") if microseconds else str(seconds)
    parts = [("H", str(hours)), ("M", str(minutes)), ("S", exact)]
    time = "".join(f"{number}{unit}" for unit, number in parts if number != "0")
    date = f"{days}D" if days else ""
    return f"P{date}T{time}" if time else f"P{date}" if date else "PT0S"


def format_instant(instant: datetime) -> str:
    """RFC 3339 in UTC, to the millisecond."""
    return require_aware(instant).astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def require_aware(instant: datetime) -> datetime:
    """The instant itself; a naive one is refused at birth."""
    if instant.tzinfo is None:
        raise InvalidInput(f"{instant.isoformat()} has no offset from UTC")
    return instant


def to_ms(instant: datetime) -> int:
    """Milliseconds since the epoch, rounded up: a stored instant is never earlier than the one asked for."""
    return -((EPOCH - instant) // MILLISECOND)


def from_ms(milliseconds: int) -> datetime:
    """The instant that `to_ms` wrote."""
    return EPOCH + timedelta(milliseconds=milliseconds)


def to_the_millisecond(instant: datetime) -> datetime:
    """An instant as stores keep it: what is read back is equal to it."""
    return from_ms(to_ms(instant))


def to_seconds(instant: datetime) -> int:
    """Whole seconds since the epoch, rounded down."""
    return (instant - EPOCH) // SECOND


def from_seconds(seconds: int) -> datetime:
    """The instant so many whole seconds after the epoch."""
    return EPOCH + timedelta(seconds=seconds)
