"""How a schedule stands: its next fires, and the last of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from functions.domain.errors import InvalidInput, ScheduleNotFound, TooCostly
from functions.domain.instants import from_ms, to_ms
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.occurrence import UNBOUND
from functions.domain.schedules.asked_runs import AskedRun, Origin
from functions.domain.schedules.changes import placed_ahead
from functions.domain.schedules.due_fires import occurrence_job
from functions.domain.schedules.firing import next_fire
from functions.domain.schedules.kept_runs import KeptRun
from functions.domain.schedules.preview import Page, Preview, preview
from functions.domain.schedules.schedule import Fire, Schedule
from functions.domain.schedules.state import Link, ScheduleState, Status
from functions.domain.schedules.step_budget import Budget
from functions.domain.wheel import Wheel
from functions.ports.schedules import StoredSchedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A fire that has been placed, or a run that was asked for; row: of its ledger, None while there is none (any more)."""

    fire_at: datetime
    job_id: str
    row: LedgerRow | None
    origin: Origin = Origin.SCHEDULED


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A schedule and how it stands. fire_count: of those that have come due.

    runs: the last of them, and of those that were asked for, newest first. kept_runs: those that it keeps beside them, the
    oldest first.
    """

    stored: StoredSchedule
    state: ScheduleState
    next_fire: Fire | None
    fire_count: int
    runs: Sequence[Run] = ()
    kept_runs: Sequence[KeptRun] = ()


class PutKind(StrEnum):
    """What a put has done, or would do."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What a change would do that was not made: the next fires before and after it."""

    kind: PutKind
    before: Sequence[Preview]
    after: Sequence[Preview]


def standing_of(
    stored: StoredSchedule, state: ScheduleState, *, now: datetime, budget: Budget | None = None
) -> Standing:
    """A schedule as it stands, without its runs."""
    try:
        upcoming = _next(stored, state, now=now, budget=budget) if state.status is Status.ACTIVE else None
    except TooCostly:
        # One nearer may have been placed already.
        upcoming = _fire_of(state.link) if state.link is not None else None
    except InvalidInput:
        upcoming = None  # its definition cannot be computed any more: it must be possible to look at it
    fire_count = state.fire_count - placed_ahead(stored.schedule, state, now=now)
    return Standing(stored=stored, state=state, next_fire=upcoming, fire_count=fire_count)


def _next(stored: StoredSchedule, state: ScheduleState, *, now: datetime, budget: Budget | None) -> Fire | None:
    """The next fire, which may have been placed already. From end to start: the earliest it can be."""
    link, schedule = state.link, stored.schedule
    if schedule.is_end_to_start and link is not None and (not link.is_awaited or link.at > now):
        return Fire(link.at, link.nominal_at)
    upcoming = next_fire(schedule, after=now, budget=budget)
    if schedule.is_end_to_start:
        return upcoming if link else None
    if link is None:
        # The last fires have been placed; what its rule says beyond is over max_runs.
        return upcoming if upcoming and placed_ahead(schedule, state, now=now) else None
    is_placed = upcoming is not None and now < upcoming.at < link.at
    return upcoming if is_placed else _fire_of(link)


def upcoming_of(stored: StoredSchedule, state: ScheduleState, *, count: int, now: datetime, budget: Budget) -> Page:
    """The next fires of a schedule that is active, from now on."""
    # Only a schedule with a last run needs to know how many there were.
    has_last = stored.schedule.max_runs is not None
    index = state.fire_count - placed_ahead(stored.schedule, state, now=now) if has_last else 0
    return preview(stored.schedule, after=now, count=count, index=index, budget=budget)


def previews_of(schedule: Schedule, link: Link | None, *, count: int, budget: Budget) -> Sequence[Preview]:
    """The next fires of a chain whose next link this is."""
    if link is None:
        return ()
    return preview(schedule, after=from_ms(to_ms(link.at) - 1), count=count, index=link.index, budget=budget).previews


def run_of(schedule: Schedule, fire_at: datetime, row: LedgerRow | None, wheel: Wheel, *, subshards: int) -> Run:
    """A fire that has been placed, with the id of its job also where its ledger row is gone."""
    if row is not None and row.job_id:
        return Run(fire_at=fire_at, job_id=row.job_id, row=row)
    link = Link(at=fire_at, nominal_at=fire_at)
    job = occurrence_job(schedule, link, version=0, wheel=wheel, subshards=subshards)
    return Run(fire_at=fire_at, job_id=str(job_id_of(job)), row=row)


def asked_run(schedule: Schedule, asked: AskedRun, row: LedgerRow | None, wheel: Wheel) -> Run:
    """A run that was triggered or backfilled, with the id of its job also where its ledger row is gone."""
    fire_at = asked.fire_at or asked.due_at
    if row is not None and row.job_id:
        return Run(fire_at=fire_at, job_id=row.job_id, row=row, origin=asked.origin)
    link = Link(at=fire_at, nominal_at=fire_at)
    job = occurrence_job(schedule, link, version=UNBOUND, wheel=wheel, due_at=asked.due_at)
    job_id = replace(job_id_of(job), identity=asked.identity(schedule.schedule_id))
    return Run(fire_at=fire_at, job_id=str(job_id), row=row, origin=asked.origin)


def _fire_of(link: Link) -> Fire:
    return Fire(link.at, link.nominal_at, merged_count=link.merged_count)


def existing(
    stored: StoredSchedule | None, state: ScheduleState | None, tenant: str, schedule_id: str
) -> tuple[StoredSchedule, ScheduleState]:
    """The schedule that was looked up. Raises ScheduleNotFound where there is none."""
    if stored is None:
        raise ScheduleNotFound(tenant, schedule_id)
    assert state is not None  # a definition has a state
    return stored, state
