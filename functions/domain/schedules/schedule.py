"""A schedule: a rule for when, and the job that it repeats. Frozen, and valid from birth."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import IntEnum, StrEnum

from functions.domain import key_lengths
from functions.domain.instants import DAY, SECOND
from functions.domain.jobs.callbacks import NO_CALLBACKS, Callbacks
from functions.domain.jobs.collect import Collect
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
from functions.domain.jobs.occurrence import Keeps
from functions.domain.jobs.overlap import Overlap
from functions.domain.jobs.retry import RetryPolicy
from functions.domain.schedules.require import require
from functions.domain.schedules.rules import Every, Fold, Gap, Poisson, Rule
from functions.domain.schedules.spread import SpreadFrom
from functions.domain.targets.flows import NamedFlow, check_flows
from functions.domain.targets.options import USUAL, TargetOptions

SCHEDULE_ID = re.compile(rf"[A-Za-z0-9._-]{{1,{key_lengths.SCHEDULE_ID}}}", re.ASCII)
MAX_WINDOWS = 50
MAX_EXCLUDED = 400
MAX_HOLIDAY_SETS = 10
MAX_SPREAD = DAY
MAX_JITTER = DAY
MAX_HISTORY = 50
MAX_KEPT_RUNS = 10
"""Of each kind: more would make every write of the state row dearer than it need be."""

MAX_FAILURES = 100
MAX_LATENESS = timedelta(days=14)
"""As long as a message lives."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Local times of day, from start up to end, on the weekdays on which it opens; end <= start crosses midnight."""

    start: time
    end: time
    days: frozenset[Weekday] = frozenset(Weekday)

    def __post_init__(self) -> None:
        require(bool(self.days), "names no day", "windows.days", [])
        for name, moment in (("windows.start", self.start), ("windows.end", self.end)):
            is_minute = moment.tzinfo is None and not moment.second and not moment.microsecond
            require(is_minute, "must be a local time in whole minutes", name, moment)


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
    run_deadline: timedelta | None = None
    options: TargetOptions = USUAL
    tags: tuple[str, ...] = ()
    flows: tuple[NamedFlow, ...] = ()
    callbacks: Callbacks = NO_CALLBACKS
    collect: Collect | None = None

    def __post_init__(self) -> None:
        check_tags(self.tags)
        check_flows(self.flows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When, and what.

    timezone: an IANA name; windows, calendar, cron and rrule are local to it. gap, fold: None is Debian cron's way:
    what names a time of day fires right after a gap and once in a fold, what starts with a star in its minute or hour
    follows elapsed time. spread: a constant delay below this, from a hash of the schedule's name; spread_from: where it is
    not what the schedule says itself. jitter: a delay below this, another for each fire. start, end: no fire before, none from then on. misfire: of fires that are more than
    a minute late; max_lateness: later ones are dropped, whatever the policy. history: how many fires are remembered;
    success_history, failure_history: how many of the last successful and failed runs, whatever has fired since.
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
    spread_from: SpreadFrom | None = None
    jitter: timedelta = timedelta(0)
    start: datetime | None = None
    end: datetime | None = None
    max_runs: int | None = None
    misfire: Misfire = Misfire.FIRE_ALL
    max_lateness: timedelta | None = None
    overlap: Overlap = Overlap.ALLOW
    pause_after_failures: int | None = None
    history: int = 10
    success_history: int | None = None
    failure_history: int | None = None

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
    def says_spread(self) -> bool:
        """Whether its spread, which may be none, is what its definition says."""
        return self.spread_from is SpreadFrom.SCHEDULE or (self.spread_from is None and self.spread > timedelta(0))

    @property
    def keeps(self) -> Keeps | None:
        """How many of its last runs it keeps; None for none."""
        keeps = Keeps(self.success_history or 0, self.failure_history or 0)
        return keeps if any(keeps) else None

    @property
    def is_end_to_start(self) -> bool:
        """Whether its next fire depends on when its last run came to its end."""
        return isinstance(self.rule, Every) and self.rule.from_end

    @property
    def mode(self) -> WindowMode:
        """What becomes of a fire outside its windows."""
        return self.window_mode or (WindowMode.SCALE if isinstance(self.rule, Poisson) else WindowMode.SKIP)

    def _check_bounds(self) -> None:
        start, end, late, failures = self.start, self.end, self.max_lateness, self.pause_after_failures
        for name, instant in (("start", start), ("end", end)):
            require(instant is None or instant.tzinfo is not None, "has no offset from UTC", name, instant)
        require(start is None or end is None or start < end, "must be after start", "end", end)
        require(self.max_runs is None or self.max_runs >= 1, "must be at least 1", "max_runs", self.max_runs)
        is_timely = late is None or SECOND <= late <= MAX_LATENESS
        require(is_timely, "must be from 1 second to 14 days", "max_lateness", late)
        is_few = failures is None or 1 <= failures <= MAX_FAILURES
        require(is_few, f"must be from 1 to {MAX_FAILURES}", "pause_after_failures", failures)
        is_kept = 0 <= self.history <= MAX_HISTORY
        require(is_kept, f"must be from 0 to {MAX_HISTORY}", "history", self.history)
        for name, count in (("success_history", self.success_history), ("failure_history", self.failure_history)):
            require(count is None or 0 <= count <= MAX_KEPT_RUNS, f"must be from 0 to {MAX_KEPT_RUNS}", name, count)
        is_whole = not self.spread % SECOND and timedelta(0) <= self.spread <= MAX_SPREAD
        require(is_whole, "must be whole seconds, at most a day", "spread", self.spread)
        require(timedelta(0) <= self.jitter <= MAX_JITTER, "must be at most a day", "jitter", self.jitter)

    def _check_windows(self) -> None:
        count, mode, calendar = len(self.windows), self.window_mode, self.calendar or Calendar()
        excluded, sets = len(calendar.excluded), len(calendar.holidays)
        scales = mode is WindowMode.SCALE and not isinstance(self.rule, Poisson)
        require(count <= MAX_WINDOWS, f"has more than {MAX_WINDOWS} entries", "windows", count)
        require(not scales, "scale is for poisson only: use skip or defer", "window_mode", mode)
        require(mode is None or count > 0, "needs windows", "window_mode", mode)
        require(excluded <= MAX_EXCLUDED, f"has more than {MAX_EXCLUDED} dates", "calendar.exclude", excluded)
        require(sets <= MAX_HOLIDAY_SETS, f"has more than {MAX_HOLIDAY_SETS} sets", "calendar.holidays", sets)

    def _check_job(self) -> None:
        if self.job.collect is not None:
            alone = (
                "excludes job.collect: a run waits for the others of its key, and would stand in the way of the next"
            )
            require(self.overlap is Overlap.ALLOW, f"{self.overlap} {alone}", "overlap", self.overlap)
            late = "excludes job.collect: a run is given when its window closes"
            require(self.max_lateness is None, late, "max_lateness", self.max_lateness)
        if self.job.delivery is Delivery.EXACTLY_ONCE:
            return
        overlap, failures = self.overlap, self.pause_after_failures
        unknown = "needs delivery exactly_once: of other jobs nobody knows when they end"
        unknown_how = "needs delivery exactly_once: of other jobs nobody knows how they end"
        require(overlap is Overlap.ALLOW, f"{overlap} {unknown}", "overlap", overlap)
        require(not self.is_end_to_start, f"from end to start {unknown}", "every.from", "end")
        require(failures is None, unknown_how, "pause_after_failures", failures)
        for name, count in (("success_history", self.success_history), ("failure_history", self.failure_history)):
            require(not count, unknown_how, name, count)


@dataclass(frozen=True, slots=True)
class Fire:
    """An instant that a schedule gives.

    at: when it is due. nominal_at: what its rule says, before window, calendar, spread and jitter shifted it. shifted_by:
    what did. merged_count: of how many other nominal times this is the fire too.
    """

    at: datetime
    nominal_at: datetime
    shifted_by: tuple[Shifter, ...] = ()
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
    require(bool(SCHEDULE_ID.fullmatch(schedule_id)), f"must match {SCHEDULE_ID.pattern}", "id", schedule_id)
    return schedule_id


def check_new_schedule(schedule: Schedule) -> Schedule:
    """The schedule itself, which may be new; InvalidSchedule or InvalidJob where its name is none that a URL can hold."""
    check_new_tenant(schedule.tenant)
    is_usable = schedule.schedule_id not in DOT_SEGMENTS
    require(is_usable, "must not be . or .., which no URL can hold", "id", schedule.schedule_id)
    return schedule
