"""What a target is given: the payload of its job, and what it is told about the attempt."""

from __future__ import annotations

from functions.domain.errors import Undecodable
from functions.domain.far_ring.timer_record import unpack
from functions.domain.jobs.claims import LEASE_MARGIN
from functions.domain.jobs.job import Job, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.occurrence import fill_references
from functions.domain.trace import attempt_trace
from functions.ports.payloads import PayloadStore
from functions.ports.targets import Invocation
from functions.services.jobs.settler import Claim

GONE = "\x00"
"""In place of a payload that is no more. It is no JSON."""

UNREADABLE = "\x01"
"""In place of one that is there and is none: to receive it again would change nothing. It is no JSON either."""


def payload_of(job: Job, payloads: PayloadStore) -> str | None:
    """The payload as JSON text, with what it says about its fire filled in; or GONE, or UNREADABLE."""
    try:
        text = unpack(job.payload) if job.payload.pointer is None else payloads.get(job.payload.pointer)
    except Undecodable:
        return UNREADABLE
    if text is None:
        return None if job.payload.pointer is None else GONE
    return fill_references(text, job.occurrence) if job.occurrence else text


def invocation_of(timer: Timer, claim: Claim) -> Invocation:
    """What the target is told."""
    job = timer.job
    return Invocation(
        job_id=str(job_id_of(job)),
        tenant=job.tenant,
        idempotency_key=job.key,
        attempt=timer.attempt,
        fence=claim.fence,
        scheduled_at=job.scheduled_at,
        deadline=claim.lease_until - LEASE_MARGIN,
        traceparent=str(attempt_trace(job.trace, key=job.key, attempt=timer.attempt, fence=claim.fence)),
    )
