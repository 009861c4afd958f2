"""The spread that schedules have which say none: how long it may be, and whose default it is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from functions.domain.instants import HOUR

MAX_DEFAULT_SPREAD = HOUR
"""Enough for what falls on full hours. What moves a daily job into another part of its day only its owner can want."""


class SpreadFrom(StrEnum):
    """Whose default the spread of a schedule is that says none. schedule: it says that it has none, and takes no default."""

    SCHEDULE = "schedule"
    TENANT = "tenant"
    PLAN = "plan"
    STAGE = "stage"


@dataclass(frozen=True, slots=True)
class DefaultSpread:
    """A spread, and whose default it is."""

    spread: timedelta
    source: SpreadFrom
