"""Jenkins' H."""

from __future__ import annotations

import re
from datetime import timedelta

from functions.domain.instants import HOUR, MINUTE, format_duration
from functions.domain.schedules.dialects.dialect import Dialect, is_read

_HOURS_OF_A_DAY = 24
_MINUTES_OF_AN_HOUR = 60
_HASH = re.compile(r"h(?:\(([0-9]{1,2})-([0-9]{1,2})\))?(?:/([0-9]{1,2}))?", re.ASCII)


def read_jenkins(text: str, timezone: str) -> Dialect | None:
    """Reads five fields, one of them at least with an H."""
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
        fields[1], spread = _hashed(hour, _HOURS_OF_A_DAY, HOUR)
    else:
        fields[0], spread = _hashed(minute, _MINUTES_OF_AN_HOUR, MINUTE)
    if spread is None or not is_read(" ".join(fields)):
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
