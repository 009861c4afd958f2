"""What is submitted, and the job that it becomes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from functions.domain.instants import MILLISECOND, MINUTE, from_ms, to_ms
from functions.domain.jobs.callbacks import NO_CALLBACKS, Callbacks
from functions.domain.jobs.collect import Collect, write_collect
from functions.domain.jobs.collection import member_identity
from functions.domain.jobs.id_check import check_of
from functions.domain.jobs.job import Delivery, Job, Payload, Precision, Priority
from functions.domain.jobs.job_id import MOVED, job_id_of
from functions.domain.jobs.retry import RetryPolicy
from functions.domain.targets.flows import NamedFlow, write_flow
from functions.domain.targets.options import USUAL, TargetOptions
from functions.domain.trace import Trace
from functions.domain.wheel import Wheel

KEYED = "k"
"""The first letter of an identity that was made from an idempotency key."""

PAST_GRACE = MINUTE
"""How far in the past a job may be due: clocks differ, and a request takes time. It runs at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A job as its tenant asked for it: checked, not yet placed. payload: compact JSON, None for none.

    asked_at: when the request came in; None where that does not matter.
    """

    tenant: str
    target: str
    payload: str | None
    due_at: datetime
    idempotency_key: str | None
    priority: Priority
    delivery: Delivery
    precision: Precision
    retry: RetryPolicy
    timeout: timedelta
    expires_after: timedelta | None
    options: TargetOptions = USUAL
    tags: tuple[str, ...] = ()
    trace: Trace | None = None
    asked_at: datetime | None = None
    run_deadline: timedelta | None = None
    flows: tuple[NamedFlow, ...] = ()
    callbacks: Callbacks = NO_CALLBACKS
    collect: Collect | None = None


def job_of(
    submission: Submission, *, identity: str, wheel: Wheel, subshards: int = 1, id_secret: bytes | None = None
) -> Job:
    """The job that is submitted, under an identity. subshards: over how many shards its tenant is spread.

    id_secret: what the check behind its identity is made with; None for an identity that is the same whenever it is asked
    for, and so has none.
    """
    due_at = from_ms(to_ms(submission.due_at))
    bucket, shard = wheel.bucket_of(due_at), wheel.shard_of(submission.tenant, identity, subshards=subshards)
    job = Job(
        tenant=submission.tenant,
        identity=identity,
        bucket=bucket,
        shard=shard,
        target=submission.target,
        payload=Payload(text=submission.payload),
        scheduled_at=due_at,
        priority=submission.priority,
        delivery=submission.delivery,
        precision=submission.precision,
        retry=submission.retry,
        timeout=submission.timeout,
        expires_at=due_at + submission.expires_after if submission.expires_after else None,
        run_deadline=submission.run_deadline,
        options=submission.options,
        tags=submission.tags,
        trace=submission.trace,
        flows=submission.flows,
        callbacks=submission.callbacks,
        collect=submission.collect,
        submitted_at=from_ms(to_ms(submission.asked_at)) if submission.asked_at is not None else None,
    )
    if id_secret is None:
        return job
    if job.collect is not None and MOVED not in identity:
        job = replace(job, identity=member_identity(job, unique=identity))
    return replace(job, identity=job.identity + check_of(job_id_of(job), secret=id_secret))


def submission_of(job: Job, *, due_at: datetime) -> Submission:
    """The submission of a job as it is, without its payload, for another time."""
    return Submission(
        tenant=job.tenant,
        target=job.target,
        payload=None,
        due_at=due_at,
        idempotency_key=None,
        priority=job.priority,
        delivery=job.delivery,
        precision=job.precision,
        retry=job.retry,
        timeout=job.timeout,
        expires_after=job.expires_at - job.scheduled_at if job.expires_at else None,
        run_deadline=job.run_deadline,
        options=job.options,
        tags=job.tags,
        flows=job.flows,
        callbacks=job.callbacks,
        collect=job.collect,
    )


def as_of(submission: Submission, *, sent_at: datetime, now: datetime) -> Submission:
    """A submission that was sent then, and comes in now: one that came due on its way is due now, and not refused."""
    was_ahead = submission.due_at >= sent_at - PAST_GRACE
    return replace(submission, due_at=now) if was_ahead and submission.due_at < now else submission


def keyed_identity(tenant: str, key: str) -> str:
    """The identity that an idempotency key stands for: 128 bits, so that two keys of a tenant do not collide."""
    return KEYED + hashlib.blake2b(f"{tenant}#{key}".encode(), digest_size=16).hexdigest()


def fingerprint_of(submission: Submission) -> str:
    """What makes two submissions the same job, but for the time they ask for."""
    parts = [
        submission.target,
        submission.payload,
        submission.priority,
        submission.delivery,
        submission.precision,
        submission.retry.strategy,
        submission.retry.attempts,
        submission.retry.base // MILLISECOND,
        submission.retry.cap // MILLISECOND,
        submission.timeout // MILLISECOND,
        submission.expires_after // MILLISECOND if submission.expires_after else None,
        *_unusual_parts(submission),
    ]
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=8).hexdigest()


def _unusual_parts(submission: Submission) -> list[object]:
    """What came after the first fingerprints were stored: a job that says nothing of it has the one that it always had."""
    options, retry = submission.options, submission.retry
    parts = {
        "max_age": retry.max_age and retry.max_age // MILLISECOND,
        "intervals": [interval // MILLISECOND for interval in retry.intervals],
        "retry_jitter": retry.jitter,
        "method": options.method if options.method is not USUAL.method else None,
        "headers": options.headers,
        "success": options.success_codes,
        "retry_on": options.retry_codes,
        "asynchronous": options.is_async,
        "tags": submission.tags,
        "run_deadline": submission.run_deadline and submission.run_deadline // MILLISECOND,
        "flow": [write_flow(flow) for flow in submission.flows],
        "callbacks": submission.callbacks.body(),
        "collect": write_collect(submission.collect) if submission.collect is not None else None,
    }
    given = {name: value for name, value in parts.items() if value}
    return [given] if given else []
