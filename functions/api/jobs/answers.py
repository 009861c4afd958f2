"""What the API answers about a job that was submitted: the shapes of its bodies, and these from what the rules found."""

import json
from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Any, NotRequired, cast

from pydantic import Field
from typing_extensions import TypedDict

from functions.api.http import shapes
from functions.api.http.answers import without_empty
from functions.api.http.requests import is_flat
from functions.api.jobs import submit
from functions.api.jobs.bodies import BATCH_LIMIT
from functions.api.jobs.called_back import PutCallback
from functions.api.jobs.find import JobInWheel
from functions.domain.explanation import facts
from functions.domain.instants import format_duration, format_instant
from functions.domain.jobs import job, past_attempts
from functions.domain.jobs.callbacks import CallbackName
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.description import describe_job
from functions.domain.jobs.job import Delivery
from functions.domain.jobs.job_id import JobId
from functions.domain.lifecycle import UNTRACKED, State
from functions.domain.wheel import Ring
from functions.services.jobs import rescheduler


class Accepted(TypedDict):
    """An accepted job."""

    id: shapes.JobId
    tenant: shapes.TenantId
    state: shapes.JobState
    due_at: shapes.Instant
    ring: Annotated[str, shapes.one_of(Ring)] | None
    replayed: bool
    """Whether the idempotency key had been used before. If so, this is the job that was first submitted with it."""


class PastAttempt(TypedDict):
    """An attempt that has failed."""

    attempt: shapes.Count
    ended_at: shapes.Instant
    error_class: Annotated[str, Field(examples=["http_503", "timeout", "worker_died"])]
    error: str
    """The beginning of the error. `error` of the job has more of the last one."""
    took: NotRequired[shapes.Duration]
    """How long the target was called, where that is known."""


class Callback(TypedDict):
    """A callback of a job that has ended, which is a job itself."""

    on: Annotated[str, shapes.one_of(CallbackName)]
    target: str
    id: shapes.JobId
    state: shapes.JobState


class Job(TypedDict):
    """A job, what it was submitted with, and its attempts."""

    id: shapes.JobId
    tenant: shapes.TenantId
    state: shapes.JobState
    due_at: shapes.Instant
    priority: shapes.PriorityName
    delivery: Annotated[str, shapes.one_of(Delivery)]
    attempt: NotRequired[int]
    fence: NotRequired[int]
    rescues: NotRequired[int]
    cancel_requested: NotRequired[bool]
    result: NotRequired[Any]
    error: NotRequired[str]
    moved_to: NotRequired[str]
    """The next id of a job that was moved too often to be followed."""
    updated_at: NotRequired[shapes.Instant]
    attempts: NotRequired[list[PastAttempt]]
    """The last attempts that failed, the oldest first: as many as fit into the row of the job."""
    job: NotRequired[shapes.DescribedJob]
    """Absent while it is not known: of a job that was due soon, until its first attempt."""
    callbacks: NotRequired[list[Callback]]
    """The callbacks that were called, or are about to be, because the job has ended."""


class JobPayload(TypedDict):
    """The payload of a job."""

    id: shapes.JobId
    payload: Any
    """The payload as its target receives it; `null` if the job has none."""


class Cancelled(TypedDict):
    """A job that is cancelled, or whose cancellation was requested."""

    id: shapes.JobId
    state: Annotated[str, shapes.one_of(["cancelled", "cancel_requested"])]


class Result(TypedDict):
    """The result for one job of a batch: the accepted job, or the problem."""

    status: int
    job: NotRequired[Accepted]
    problem: NotRequired[shapes.Problem]


class Results(TypedDict):
    """The results of a batch."""

    results: Annotated[list[Result], Field(max_length=BATCH_LIMIT)]
    """One result for each job, in the order of the request."""


class Waiting(TypedDict):
    """A waiting job."""

    id: shapes.JobId
    """The id under which the job continues."""
    tenant: shapes.TenantId
    state: Annotated[str, shapes.one_of([State.SCHEDULED, State.RETRYING])]
    due_at: shapes.Instant
    moved_from: NotRequired[str]
    """The id in the request. It stays valid."""


class Heartbeat(TypedDict):
    """An attempt whose lease was renewed."""

    id: shapes.JobId
    state: Annotated[str, shapes.one_of([State.RUNNING])]
    lease_until: shapes.Instant | None
    """When the lease ends. Send the next heartbeat before then."""
    cancelled: bool
    """Whether cancellation was requested. If so, stop the work, then complete or fail the job."""


class Ended(TypedDict):
    """The state of a job after its attempt has ended."""

    id: shapes.JobId
    state: shapes.JobState


class Explanation(TypedDict):
    """Why a job has not run yet, or how it ended."""

    id: shapes.JobId
    state: shapes.JobState
    reason: Annotated[str, shapes.one_of(facts.Reason)]
    at: shapes.Instant | None
    detail: Annotated[str, Field(examples=["It waits for its time."])]
    """The reason in words."""
    remedy: Annotated[str, Field(examples=["nothing, until it is due"])]
    """What would let the job run, in words."""
    would_change_it: Annotated[str, Field(deprecated=True, examples=["nothing, until it is due"])]
    """Use `remedy` instead."""


def cancelled_body(job_id: JobId, *, is_cancelled: bool) -> Cancelled:
    """A job that is cancelled, or will be."""
    return {"id": str(job_id), "state": "cancelled" if is_cancelled else "cancel_requested"}


def results_body(results: Sequence[Result]) -> Results:
    """What became of each job of a batch, in the order of the request."""
    return {"results": list(results)}


def result_body(outcome: submit.Accepted) -> Result:
    """A job of a batch that was taken in."""
    return {"status": int(HTTPStatus.ACCEPTED), "job": accepted_body(outcome)}


def refused_body(problem: shapes.Problem) -> Result:
    """A job of a batch that is refused."""
    return {"status": problem["status"], "problem": problem}


def heartbeat_body(job_id: JobId, row: LedgerRow) -> Heartbeat:
    """An attempt that continues. cancelled: a cancel was requested, so it should stop, and say how it ended."""
    return {
        "id": str(job_id),
        "state": row.state,
        "lease_until": format_instant(row.lease_until) if row.lease_until else None,
        "cancelled": row.cancel_requested,
    }


def ended_body(job_id: JobId, state: State) -> Ended:
    """The state of a job after its attempt has ended."""
    return {"id": str(job_id), "state": state}


def waiting_body(waiting: rescheduler.Waiting, *, asked: JobId) -> Waiting:
    """A job that waits; moved_from: the id that it was asked for by, where that is another one."""
    body: Waiting = {
        "id": str(waiting.job_id),
        "tenant": waiting.job_id.tenant,
        "state": waiting.state,
        "due_at": format_instant(waiting.due_at),
    }
    return body if waiting.job_id == asked else {**body, "moved_from": str(asked)}


def explanation_body(found: JobInWheel, explanation: facts.Explanation) -> Explanation:
    """Why a job has not run yet, or what became of it."""
    return {
        "id": str(found.job_id),
        "state": found.state or UNTRACKED,
        "reason": explanation.reason,
        "at": format_instant(explanation.at) if explanation.at else None,
        "detail": explanation.detail,
        "remedy": explanation.remedy,
        "would_change_it": explanation.remedy,  # deprecated: answered until 1.0
    }


def accepted_body(accepted: submit.Accepted) -> Accepted:
    """A job that is durably in the wheel; replayed: its idempotency key had been used, and this is the first job."""
    return {
        "id": accepted.job_id,
        "tenant": accepted.tenant,
        "state": accepted.state or UNTRACKED,
        "due_at": format_instant(accepted.due_at),
        "ring": accepted.ring,
        "replayed": accepted.is_replay,
    }


def found_body(
    found: JobInWheel, asked: job.Job | None = None, *, called: Sequence[PutCallback] = (), result: str | None = None
) -> Job:
    """What is known of a job. What is not known is left out. asked: what was asked for. called: its callbacks.

    result: what its row has, where it is not said.
    """
    row = found.row
    body: Job = {
        "id": str(found.job_id),
        "tenant": found.job_id.tenant,
        "state": found.state or UNTRACKED,
        "due_at": format_instant(found.due_at),
        "priority": found.job_id.priority.name.lower(),
        "delivery": found.job_id.delivery,
        "attempt": row.attempt,
        "fence": row.fence,
        "rescues": row.rescue_count,
        "cancel_requested": row.cancel_requested,
        "error": row.error,
        "moved_to": row.moved_to,
        "updated_at": format_instant(row.updated_at) if row.updated_at else "",
        "attempts": [_past_body(past) for past in past_attempts.read_attempts(row.tried)],
        "callbacks": [
            {"on": each.name.value, "target": each.target, "id": each.row.job_id, "state": each.row.state}
            for each in called
        ],
    }
    body = without_empty(Job, body)
    if asked is not None:
        body["job"] = cast("shapes.DescribedJob", describe_job(asked))
    # A handler may well answer 0 or false.
    kept = row.result if result is None else result
    if kept:
        body["result"] = _result_of(kept)
    return body


def payload_body(found: JobInWheel, payload: str | None) -> JobPayload:
    """The payload of a job, as JSON; None for none."""
    return {"id": str(found.job_id), "payload": json.loads(payload or "null")}


def _past_body(past: past_attempts.PastAttempt) -> PastAttempt:
    body: PastAttempt = {
        "attempt": past.attempt,
        "ended_at": format_instant(past.ended_at),
        "error_class": past.error_class,
        "error": past.error,
    }
    if past.took is not None:
        body["took"] = format_duration(past.took)
    return body


def _result_of(kept: str) -> Any:
    """A kept result: the JSON that it was, or a text where older releases have cut it, or nobody could read it in an answer."""
    try:
        value = json.loads(kept)
    except (ValueError, RecursionError):
        return kept
    return value if is_flat(value) else kept
