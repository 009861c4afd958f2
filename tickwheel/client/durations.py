"""Durations as people write them, as timedeltas."""

import math
import re
from datetime import timedelta
from typing import Any

_SHORT = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>ms|s|m|h|d)?", re.IGNORECASE)
_PART = r"\d+(?:\.\d+)?"
_PARTS = re.compile(
    rf"(?:(?P<days>{_PART})d\s*)?(?:(?P<hours>{_PART})h\s*)?(?:(?P<minutes>{_PART})m\s*)?(?:(?P<seconds>{_PART})s\s*)?"
    rf"(?:(?P<milliseconds>{_PART})ms)?",
    re.IGNORECASE,
)
_ISO = re.compile(
    r"P(?=.)(?:(?P<weeks>\d+(?:\.\d+)?)W)?(?:(?P<days>\d+(?:\.\d+)?)D)?"
    r"(?:T(?=.)(?:(?P<hours>\d+(?:\.\d+)?)H)?(?:(?P<minutes>\d+(?:\.\d+)?)M)?(?:(?P<seconds>\d+(?:[.,]\d+)?)S)?)?",
    re.IGNORECASE,
)
_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def parse_duration(value: Any) -> timedelta:
    """Reads seconds (`90`, `"90"`, `1.5`), a short form (`90s`, `5m`, `1h30m`, `1d`, `250ms`) or ISO 8601 (`PT1M30S`).

    ISO months and years are refused: their length depends on a date. Raises ValueError with the forms it takes.
    """
    if isinstance(value, bool):
        raise _unreadable(value)
    if isinstance(value, int | float):
        return _within_reach(value, {"seconds": float(value)})
    text = str(value).strip()
    if short := _SHORT.fullmatch(text):
        unit = _UNITS[(short["unit"] or "s").lower()]
        return _within_reach(value, {unit: float(short["number"])})
    if found := (_PARTS.fullmatch(text) if text else None) or _ISO.fullmatch(text):
        parts = {name: float(part.replace(",", ".")) for name, part in found.groupdict().items() if part}
        return _within_reach(value, parts)
    raise _unreadable(value)


def seconds(duration: timedelta) -> int | float:
    """A duration as the API takes it: whole seconds as an integer, anything finer as a number."""
    total = duration.total_seconds()
    return int(total) if total.is_integer() else total


def _within_reach(value: Any, parts: dict[str, float]) -> timedelta:
    if any(math.isnan(part) or part < 0 for part in parts.values()):
        raise _unreadable(value)
    try:
        return timedelta(**parts)
    except OverflowError:
        raise _unreadable(value) from None


def _unreadable(value: Any) -> ValueError:
    return ValueError(f"{value!r} is not a duration: write seconds (90), 90s, 5m, 1h30m, 1d or ISO 8601 (PT1M30S)")
