"""How a rule that a schedule has to keep to is checked."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Any

from functions.domain.errors import InvalidSchedule


def require(holds: bool, message: str, field: str, value: Any) -> None:
    """Raises InvalidSchedule where this does not hold. value: what was given; durations and times are reported as JSON."""
    if holds:
        return
    if isinstance(value, timedelta):
        value = value.total_seconds()
    elif isinstance(value, datetime | time):
        value = value.isoformat()
    raise InvalidSchedule(message, field=field, value=value)
