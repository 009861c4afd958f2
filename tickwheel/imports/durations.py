"""Intervals as other programs write them."""

import re
from datetime import timedelta

from tickwheel.imports.fields import Unreadable

_GO = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|h|m|s)", re.ASCII)
_GO_UNITS = {"h": "hours", "m": "minutes", "s": "seconds", "ms": "milliseconds"}
_RATE = re.compile(r"([1-9][0-9]{0,6})\s+(minute|hour|day)s?", re.ASCII)


def go_interval(text: str) -> timedelta:
    """`1h30m`, in whole seconds. Raises Unreadable."""
    parts = _GO.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text or len(text) > 40:  # noqa: PLR2004
        raise Unreadable(f"{text[:60]!r} is no duration such as 1h30m")
    return sum((interval(float(number), _GO_UNITS[unit]) for number, unit in parts), timedelta(0))


def rate_interval(text: str) -> timedelta:
    """`5 minutes`, what EventBridge has in its rate(…). Raises Unreadable."""
    match = _RATE.fullmatch(text.strip())
    if match is None:
        raise Unreadable(f"rate({text[:60]}) is not a number of minutes, hours or days")
    return interval(int(match[1]), f"{match[2]}s")


def interval(number: float, unit: str) -> timedelta:
    """So many of a unit. Raises Unreadable where that is no time."""
    try:
        return timedelta(**{unit: number})
    except (OverflowError, TypeError, ValueError):
        raise Unreadable(f"{number} {unit} is no interval") from None
