"""What is answered about schedules, as types."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from functions.api.http.shapes import Count, Instant, JobId, JobState, Problem, ScheduleId, TenantId, one_of
from functions.api.schedules.requests import MOST_SCHEDULES
from functions.domain.schedules.schedule import Mover
from functions.domain.schedules.state import SkipReason, Status

Reason = Annotated[str, one_of(SkipReason)]


class NextFire(TypedDict):
    """The next fire of a schedule."""

    at: Instant
    nominal_at: Instant


class LastSkip(TypedDict):
    """The last fire that became no run."""

    reason: Reason
    at: Instant


class Run(TypedDict):
    """A run of a schedule."""

    fire_at: Instant
    job_id: JobId
    state: JobState
    attempt: Count
    error: NotRequired[str]
    settled_at: NotRequired[Instant]


class Standing(TypedDict):
    """What a schedule has beside its definition."""

    id: ScheduleId
    tenant: TenantId
    version: int
    """grows with every change"""
    status: Annotated[str, one_of(Status)]
    note: str
    """why it was paused or resumed"""
    created_at: Instant
    changed_at: Instant
    next_fire: NotRequired[NextFire]
    last_fire: NotRequired[Instant]
    last_outcome: NotRequired[JobState]
    fires: Count
    """that became runs"""
    misfires: Count
    """that were found more than a minute late"""
    skips: dict[Reason, Count]
    """fires that became no runs, by reason"""
    last_skip: NotRequired[LastSkip]
    failures_in_a_row: Count
    """counted where pause_after_failures is set"""
    runs: list[Run]
    """the last runs, newest first; empty in a list"""


class Schedule(Standing):
    """A schedule: what has its usual value is left out."""

    # The schemas of its definition, a ScheduleBody, are added where the description is made.
    job: Annotated[dict[str, Any], Field(examples=[{"target": "https://example.com/hook"}])]


class Schedules(TypedDict):
    """A page of schedules."""

    schedules: list[Schedule]
    next: str | None
    """`after` of the next page"""


class Mark(TypedDict):
    """What moved a fire, and why."""

    by: Annotated[str, one_of(Mover)]
    reason: Annotated[str, Field(examples=["spread"])]


class Fire(TypedDict):
    """A fire that is to come."""

    at: Instant
    local: Instant
    """the same instant in the schedule's zone"""
    offset: Annotated[str, Field(examples=["+01:00"])]
    marks: list[Mark]
    """what makes the fire differ from what its rule says"""


class Fires(TypedDict):
    """A page of fires."""

    fires: list[Fire]
    next: str | None
    """`after` of the fires that follow"""


class Difference(TypedDict):
    """The next fires before and after a change that was not made."""

    before: list[Fire]
    after: list[Fire]


class Deleted(TypedDict):
    """A schedule that is removed."""

    id: ScheduleId
    tenant: TenantId
    status: Annotated[str, one_of([Status.DELETED])]


class Triggered(TypedDict):
    """A run that was asked for."""

    job: JobId


class Backfill(TypedDict):
    """The runs of a time range."""

    backfill: Annotated[str, Field(examples=["k-5f0c9a1be27d3586"])]
    """its name; the same Idempotency-Key gives the same"""
    count: Count
    first: NotRequired[Instant]
    last: NotRequired[Instant]
    ends_at: NotRequired[Instant]
    """when its last run is due"""
    jobs: list[JobId]
    next: NotRequired[str]
    """to go on with as after, where not all could come in at the tenant's submission_rate or within its max_pending"""


class FireCount(TypedDict):
    """Of a schedule, or of a definition."""

    tenant: NotRequired[str]
    id: NotRequired[str]
    minutes: NotRequired[dict[str, Count]]
    """fires by the minute, counted from start; minutes without fires are left out"""
    problem: NotRequired[Problem]


class FireCounts(TypedDict):
    """The fires of schedules by the minute."""

    start: Instant
    results: Annotated[list[FireCount], Field(max_length=MOST_SCHEDULES)]
    """for definitions: one each, in their order; for a tenant: one for each active schedule"""
    next: str | None
    """`after` of the next page, which has the same definitions"""
