"""What is answered about jobs, as types."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from functions.api.http.shapes import Instant, JobId, JobState, Problem, TenantId, one_of
from functions.api.jobs.bodies import BATCH_LIMIT
from functions.domain.explanation.facts import Reason
from functions.domain.jobs.job import Delivery, Priority
from functions.domain.lifecycle import State
from functions.domain.wheel import Ring

PriorityName = Annotated[str, one_of(priority.name.lower() for priority in Priority)]


class Accepted(TypedDict):
    """A job that was taken in."""

    id: JobId
    tenant: TenantId
    state: JobState
    due_at: Instant
    ring: Annotated[str, one_of(Ring)] | None
    replayed: bool
    """the idempotency key had been used, and this is its first job"""


class Job(TypedDict):
    """What is known of a job."""

    id: JobId
    tenant: TenantId
    state: JobState
    due_at: Instant
    priority: PriorityName
    delivery: Annotated[str, one_of(Delivery)]
    attempt: NotRequired[int]
    fence: NotRequired[int]
    rescues: NotRequired[int]
    cancel_requested: NotRequired[bool]
    result: NotRequired[Any]
    error: NotRequired[str]
    moved_to: NotRequired[str]
    """told of a job that was moved too often to be followed"""
    updated_at: NotRequired[Instant]


class Cancelled(TypedDict):
    """A job that is cancelled, or will be."""

    id: JobId
    state: Annotated[str, one_of(["cancelled", "cancel_requested"])]


class Result(TypedDict):
    """Of one job of a batch: the job, or why it is refused."""

    status: int
    job: NotRequired[Accepted]
    problem: NotRequired[Problem]


class Results(TypedDict):
    """Of a batch."""

    results: Annotated[list[Result], Field(max_length=BATCH_LIMIT)]
    """one a job, in the order of the request"""


class Waiting(TypedDict):
    """A job that waits."""

    id: JobId
    """under which the job goes on"""
    tenant: TenantId
    state: Annotated[str, one_of([State.SCHEDULED, State.RETRYING])]
    due_at: Instant
    moved_from: NotRequired[str]
    """the id that it was asked for by; it goes on answering"""


class Heartbeat(TypedDict):
    """An attempt that goes on."""

    id: JobId
    state: Annotated[str, one_of([State.RUNNING])]
    lease_until: Instant | None
    """send the next heartbeat before this"""
    cancelled: bool
    """stop, and then complete or fail the job"""


class Ended(TypedDict):
    """An attempt that has ended, and what that made of its job."""

    id: JobId
    state: JobState


class Explanation(TypedDict):
    """Why a job has not run yet, or what became of it."""

    id: JobId
    state: JobState
    reason: Annotated[str, one_of(Reason)]
    at: Instant | None
    detail: Annotated[str, Field(examples=["It waits for its time."])]
    """for people"""
    remedy: Annotated[str, Field(examples=["nothing, until it is due"])]
    """what would let the job run, for people"""
    would_change_it: Annotated[str, Field(deprecated=True, examples=["nothing, until it is due"])]
    """the same as remedy"""
