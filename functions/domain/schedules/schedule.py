"""A schedule: a rule for when, and the job that it repeats. Frozen, and valid from birth."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from enum import IntEnum, StrEnum

from functions.domain import key_lengths
from functions.domain.errors import InvalidSchedule
from functions.domain.instants import MILLISECOND, SECOND, require_aware
from functions.domain.jobs.job import (
    DOT_SEGMENTS,
    Delivery,
    Payload,
    Precision,
    Priority,
    check_new_tenant,
    check_tags,
    check_tenant,
)
from functions.domain.jobs.overlap import Overlap
from functions.domain.jobs.retry import RetryPolicy
from functions.domain.targets.options import USUAL, TargetOptions

SCHEDULE_ID = re.compile(rf"[A-Za-z0-9._-]{{1,{key_lengths.SCHEDULE_ID}}}", re.ASCII)
MAX_WINDOWS = 50
MAX_EXCLUDED = 400
MAX_HOLIDAY_SETS = 10
MAX_SPREAD = timedelta(days=1)
MAX_JITTER = timedelta(days=1)
MAX_INTERVAL = timedelta(days=3_660)
MAX_EVENTS_PER_DAY = 86_400.0
MIN_EVENTS_PER_DAY = 1 / 3_660
MAX_HISTORY = 50
MAX_EXPRESSION = 1_000
MAX_LATENESS = timedelta(days=14)
"""As long as a message lives."""


class Gap(StrEnum):
    """What to do with a local time that a clock change skips: fire at the first valid time after it, or not at all."""

    NEXT_VALID = "next_valid"
    SKIP = "skip"


class Fold(StrEnum):
    """Which occurrence of a local time that a clock change repeats fires."""

    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


class Misfire(StrEnum):
    """What to do with missed fires: run all of them, the last one, or none."""

    FIRE_ALL = "fire_all"
    COALESCE = "coalesce"
    SKIP = "skip"


class Roll(StrEnum):
    """Where to shift a fire on an excluded date: to the last date before, to the first date after, or nowhere (it is skipped)."""

    BEFORE = "before"
    AFTER = "after"
    SKIP = "skip"


class WindowMode(StrEnum):
    """What to do with a fire outside the windows.

    skip: skip it. defer: shift it into the next window. scale (poisson only): place all events of a day inside the windows.
    """

    SKIP = "skip"
    DEFER = "defer"
    SCALE = "scale"


class Weekday(IntEnum):
    """As `date.weekday()` counts."""

    MON = 0
    TUE = 1
    WED = 2
    THU = 3
    FRI = 4
    SAT = 5
    SUN = 6


@dataclass(frozen=True, slots=True)
class At:
    """Once, at an instant."""

    at: datetime

    def __post_init__(self) -> None:
        require_aware(self.at)


@dataclass(frozen=True, slots=True)
class CronRule:
    """Five fields: minute, hour, day of month, month, day of week; or a macro such as `@daily`."""

    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """A fixed interval of elapsed time.

    Start to start: at `start` (or the epoch) + phase + n * interval. from_end: so long after the end of the last run.
    """

    interval: timedelta
    phase: timedelta = timedelta(0)
    from_end: bool = False

    def __post_init__(self) -> None:
        if not SECOND <= self.interval <= MAX_INTERVAL:
            raise InvalidSchedule(
                "must be from 1 second to ten years", field="every.interval", value=self.interval.total_seconds()
            )
        if self.interval % MILLISECOND or self.phase % MILLISECOND:
            raise InvalidSchedule(
                "must be whole milliseconds", field="every.interval", value=self.interval.total_seconds()
            )
        if not timedelta(0) <= self.phase < self.interval:
            raise InvalidSchedule(
                "must be from 0 up to, and not including, the interval",
                field="every.phase",
                value=self.phase.total_seconds(),
            )
        if self.from_end and self.phase:
            raise InvalidSchedule(
                "has no meaning from end to start", field="every.phase", value=self.phase.total_seconds()
            )


@dataclass(frozen=True, slots=True)
class RecurrenceRule:
    """An RFC 5545 RRULE, without DTSTART: `starts_at` is its first occurrence, a naive local time.

    last: the local time at which its COUNT ends, where it has been counted; it follows from the other two.
    """

    rule: str
    starts_at: datetime
    last: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Poisson:
    """Events that come independently of each other, so many a day on average."""

    per_day: float

    def __post_init__(self) -> None:
        if not MIN_EVENTS_PER_DAY <= self.per_day <= MAX_EVENTS_PER_DAY:
            raise InvalidSchedule(
                "must be from one event in ten years to 86400 a day", field="poisson.per_day", value=self.per_day
            )


Rule = At | CronRule | Every | RecurrenceRule | Poisson


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Local times of day, from start up to end, on the weekdays on which it opens; end <= start crosses midnight."""

    start: time
    end: time
    days: frozenset[Weekday] = frozenset(Weekday)

    def __post_init__(self) -> None:
        if not self.days:
            raise InvalidSchedule("names no day", field="windows.days", value=[])
        for name, moment in (("windows.start", self.start), ("windows.end", self.end)):
            if moment.tzinfo is not None or moment.second or moment.microsecond:
                raise InvalidSchedule("must be a local time in whole minutes", field=name, value=moment.isoformat())


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """Local dates without fires.

    holidays: names of sets such as `DE`, `DE-BY`, `US`, or `NYSE`. weekends: Saturday and Sunday count as excluded.
    """

    excluded: frozenset[date] = frozenset()
    holidays: tuple[str, ...] = ()
    weekends: bool = False
    roll: Roll = Roll.SKIP


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTemplate:
    """The job of each fire. payload: with `{{tickwheel.…}}` where it refers to the fire."""

    target: str
    payload: Payload = Payload()  # noqa: RUF009  frozen
    priority: Priority = Priority.NORMAL
    delivery: Delivery = Delivery.EXACTLY_ONCE
    precision: Precision = Precision.DEFAULT
    retry: RetryPolicy = RetryPolicy()  # noqa: RUF009  frozen
    timeout: timedelta = timedelta(seconds=30)
    expires_after: timedelta | None = None
    options: TargetOptions = USUAL
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_tags(self.tags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When, and what.

    timezone: an IANA name; windows, calendar, cron and rrule are local to it. gap, fold: None is Debian cron's way:
    what names a time of day fires right after a gap and once in a fold, what starts with a star in its minute or hour
    follows elapsed time. spread: a constant delay below this, from a hash of the schedule's name. jitter: a delay below
    this, another for each fire. start, end: no fire before, none from then on. misfire: of fires that are more than
    a minute late; max_lateness: later ones are dropped, whatever the policy. history: how many fires are remembered.
    """

    tenant: str
    schedule_id: str
    rule: Rule
    job: JobTemplate
    timezone: str = "UTC"
    gap: Gap | None = None
    fold: Fold | None = None
    windows: tuple[Window, ...] = ()
    window_mode: WindowMode | None = None
    calendar: Calendar | None = None
    spread: timedelta = timedelta(0)
    jitter: timedelta = timedelta(0)
    start: datetime | None = None
    end: datetime | None = None
    max_runs: int | None = None
    misfire: Misfire = Misfire.FIRE_ALL
    max_lateness: timedelta | None = None
    overlap: Overlap = Overlap.ALLOW
    pause_after_failures: int | None = None
    history: int = 10

    def __post_init__(self) -> None:
        check_tenant(self.tenant)
        check_schedule_id(self.schedule_id)
        self._check_bounds()
        self._check_windows()
        self._check_job()

    @property
    def uid(self) -> str:
        """What its pseudo-random choices are made from: the same after every change and deployment."""
        return f"{self.tenant}#{self.schedule_id}"

    @property
    def is_end_to_start(self) -> bool:
        """Whether its next fire depends on when its last run came to its end."""
        return isinstance(self.rule, Every) and self.rule.from_end

    @property
    def mode(self) -> WindowMode:
        """What becomes of a fire outside its windows."""
        return self.window_mode or (WindowMode.SCALE if isinstance(self.rule, Poisson) else WindowMode.SKIP)

    def _check_bounds(self) -> None:
        for name, instant in (("start", self.start), ("end", self.end)):
            if instant is not None and instant.tzinfo is None:
                raise InvalidSchedule("has no offset from UTC", field=name, value=instant.isoformat())
        if self.start is not None and self.end is not None and self.end <= self.start:
            raise InvalidSchedule("must be after start", field="end", value=self.end.isoformat())
        if self.max_runs is not None and self.max_runs < 1:
            raise InvalidSchedule("must be at least 1", field="max_runs", value=self.max_runs)
        if self.max_lateness is not None and not SECOND <= self.max_lateness <= MAX_LATENESS:
            raise InvalidSchedule(
                "must be from 1 second to 14 days", field="max_lateness", value=self.max_lateness.total_seconds()
            )
        if self.pause_after_failures is not None and not 1 <= self.pause_after_failures <= 100:  # noqa: PLR2004
            raise InvalidSchedule(
                "must be from 1 to 100", field="pause_after_failures", value=self.pause_after_failures
            )
        if not 0 <= self.history <= MAX_HISTORY:
            raise InvalidSchedule(f"must be from 0 to {MAX_HISTORY}", field="history", value=self.history)
        if self.spread % SECOND or not timedelta(0) <= self.spread <= MAX_SPREAD:
            raise InvalidSchedule(
                "must be whole seconds, at most a day", field="spread", value=self.spread.total_seconds()
            )
        if not timedelta(0) <= self.jitter <= MAX_JITTER:
            raise InvalidSchedule("must be at most a day", field="jitter", value=self.jitter.total_seconds())

    def _check_windows(self) -> None:
        if len(self.windows) > MAX_WINDOWS:
            raise InvalidSchedule(f"has more than {MAX_WINDOWS} entries", field="windows", value=len(self.windows))
        if self.window_mode is WindowMode.SCALE and not isinstance(self.rule, Poisson):
            raise InvalidSchedule(
                "scale is for poisson only: use skip or defer", field="window_mode", value=self.window_mode
            )
        if self.window_mode is not None and not self.windows:
            raise InvalidSchedule("needs windows", field="window_mode", value=self.window_mode)
        calendar = self.calendar
        if calendar is not None and len(calendar.excluded) > MAX_EXCLUDED:
            raise InvalidSchedule(
                f"has more than {MAX_EXCLUDED} dates", field="calendar.exclude", value=len(calendar.excluded)
            )
        if calendar is not None and len(calendar.holidays) > MAX_HOLIDAY_SETS:
            raise InvalidSchedule(
                f"has more than {MAX_HOLIDAY_SETS} sets", field="calendar.holidays", value=len(calendar.holidays)
            )

    def _check_job(self) -> None:
        is_settled = self.job.delivery is Delivery.EXACTLY_ONCE
        if self.overlap is not Overlap.ALLOW and not is_settled:
            raise InvalidSchedule(
                f"{self.overlap} needs delivery exactly_once: of other jobs nobody knows when they end",
                field="overlap",
                value=self.overlap,
            )
        if self.is_end_to_start and not is_settled:
            raise InvalidSchedule(
                "from end to start needs delivery exactly_once: of other jobs nobody knows when they end",
                field="every.from",
                value="end",
            )
        if self.pause_after_failures is not None and not is_settled:
            raise InvalidSchedule(
                "needs delivery exactly_once: of other jobs nobody knows how they end",
                field="pause_after_failures",
                value=self.pause_after_failures,
            )


@dataclass(frozen=True, slots=True)
class Fire:
    """An instant that a schedule gives.

    at: when it is due. nominal_at: what its rule says, before window, calendar, spread and jitter moved it. moved_by:
    what did. merged_count: of how many other nominal times this is the fire too.
    """

    at: datetime
    nominal_at: datetime
    moved_by: tuple[Shifter, ...] = ()
    merged_count: int = 0


class Shifter(StrEnum):
    """What makes a fire differ from what its rule says."""

    GAP = "gap"
    """Its local time does not exist on that day: it fires at the next that does."""
    FOLD = "fold"
    """Its local time exists twice on that day; this is one of the passes."""
    WINDOW = "window"
    CALENDAR = "calendar"
    SPREAD = "spread"
    JITTER = "jitter"


def check_schedule_id(schedule_id: str) -> str:
    """The schedule's name itself; InvalidSchedule when it could be taken apart wrongly in a key."""
    if not SCHEDULE_ID.fullmatch(schedule_id):
        raise InvalidSchedule(f"must match {SCHEDULE_ID.pattern}", field="id", value=schedule_id)
    return schedule_id


def check_new_schedule(schedule: Schedule) -> Schedule:
    """The schedule itself, which may be new; InvalidSchedule or InvalidJob where its name is none that a URL can hold."""
    check_new_tenant(schedule.tenant)
    if schedule.schedule_id in DOT_SEGMENTS:
        raise InvalidSchedule("must not be . or .., which no URL can hold", field="id", value=schedule.schedule_id)
    return schedule
