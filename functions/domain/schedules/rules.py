"""The rules for when: what a schedule fires by, before windows, calendar, spread and jitter shift a fire."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar

from functions.domain.instants import MILLISECOND, SECOND, require_aware
from functions.domain.schedules.require import require

MAX_INTERVAL = timedelta(days=3_660)
MAX_EVENTS_PER_DAY = 86_400.0
MIN_EVENTS_PER_DAY = 1 / 3_660
MAX_EXPRESSION = 1_000


@dataclass(frozen=True, slots=True)
class At:
    """Once, at an instant."""

    name: ClassVar = "at"
    at: datetime

    def __post_init__(self) -> None:
        require_aware(self.at)


@dataclass(frozen=True, slots=True)
class CronRule:
    """Five fields: minute, hour, day of month, month, day of week; or a macro such as `@daily`."""

    name: ClassVar = "cron"
    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """A fixed interval of elapsed time.

    Start to start: at `start` (or the epoch) + phase + n * interval. from_end: so long after the end of the last run.
    """

    name: ClassVar = "every"
    interval: timedelta
    phase: timedelta = timedelta(0)
    from_end: bool = False

    def __post_init__(self) -> None:
        interval, phase = self.interval, self.phase
        is_whole = not interval % MILLISECOND and not phase % MILLISECOND
        is_inside = timedelta(0) <= phase < interval
        most = "must be from 0 up to, and not including, the interval"
        require(SECOND <= interval <= MAX_INTERVAL, "must be from 1 second to ten years", "every.interval", interval)
        require(is_whole, "must be whole milliseconds", "every.interval", interval)
        require(is_inside, most, "every.phase", phase)
        require(not self.from_end or not phase, "has no meaning from end to start", "every.phase", phase)


@dataclass(frozen=True, slots=True)
class RecurrenceRule:
    """An RFC 5545 RRULE, without DTSTART: `starts_at` is its first occurrence, a naive local time.

    last: the local time at which its COUNT ends, where it has been counted; it follows from the other two.
    """

    name: ClassVar = "rrule"
    rule: str
    starts_at: datetime
    last: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Poisson:
    """Events that come independently of each other, so many a day on average."""

    name: ClassVar = "poisson"
    per_day: float

    def __post_init__(self) -> None:
        is_possible = MIN_EVENTS_PER_DAY <= self.per_day <= MAX_EVENTS_PER_DAY
        require(is_possible, "must be from one event in ten years to 86400 a day", "poisson.per_day", self.per_day)


Rule = At | CronRule | Every | RecurrenceRule | Poisson
"""`name` is the field of a definition in which a rule is given."""


class Gap(StrEnum):
    """What becomes of a local time that a clock change skips: the first valid time after it, or nothing."""

    NEXT_VALID = "next_valid"
    SKIP = "skip"


class Fold(StrEnum):
    """Which pass of a local time that a clock change repeats fires."""

    FIRST = "first"
    SECOND = "second"
    BOTH = "both"
