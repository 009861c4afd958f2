"""The call of a target: the payload of its job, what the target is given with it, and the reasons not to call."""

from __future__ import annotations

from dataclasses import dataclass, replace

from functions.domain.errors import Undecodable
from functions.domain.far_ring.timer_record import unpack
from functions.domain.jobs.claims import LEASE_MARGIN
from functions.domain.jobs.job import Delivery, Job, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.occurrence import fill_references
from functions.domain.lifecycle import Event
from functions.domain.targets.error_classes import NOT_CALLED, SILENT
from functions.domain.trace import attempt_trace
from functions.domain.wheel import Ring
from functions.ports.clock import Clock
from functions.ports.payloads import PayloadStore
from functions.ports.targets import Failed, Invocation, Outcome, Targets
from functions.services.jobs.settler import TOOK_TOO_LONG, Claim, Settler
from functions.worker.message import Returned
from functions.worker.preconditions import Permission
from functions.worker.start import Starts

_GONE = Failed("its payload is gone", "payload_gone", is_permanent=True)
_UNREADABLE = Failed("its payload cannot be read", "payload_unreadable", is_permanent=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoker:
    """Calls targets."""

    clock: Clock
    payloads: PayloadStore
    targets: Targets
    settler: Settler
    starts: Starts

    def payload_of(self, job: Job) -> str | Failed | None:
        """The payload as JSON text, with what it says about its fire filled in; None where the job has none.

        Or why it cannot be had: to receive the message again would change nothing.
        """
        try:
            text = unpack(job.payload) if job.payload.pointer is None else self.payloads.get(job.payload.pointer)
        except Undecodable:
            return _UNREADABLE
        if text is None:
            return None if job.payload.pointer is None else _GONE
        return fill_references(text, job.occurrence) if job.occurrence else text

    def invoke(
        self, timer: Timer, payload: str | Failed | None, claim: Claim, permission: Permission, *, ring: Ring
    ) -> tuple[Outcome | Returned | None, Claim]:
        """Call the target; None when there was no reason to. And the claim, which has begun where the target was called."""
        job = timer.job
        started_at = self.clock.now()
        if timer.is_over_at(started_at):
            return TOOK_TOO_LONG, claim
        if not timer.is_granted:
            return Failed(
                "its target answered 202, and then sent no heartbeat in time", SILENT, is_permanent=True
            ), claim
        if job.expires_at is not None and started_at >= job.expires_at:
            self.settler.end(timer, claim, Event.EXPIRE)
            return None, claim
        timeout = job.timeout if timer.ends_by is None else min(job.timeout, timer.ends_by - started_at)
        ends_at = self.clock.now() + timeout
        if ends_at > claim.lease_until or not permission.has_permit_until(ends_at):
            # Something took so long that the call could outlive its lease or its permit, and meet another worker's.
            if job.delivery is Delivery.AT_MOST_ONCE:
                # Its start is written: no other message of it may call it, so this is its end.
                return Failed("its start took so long that no time was left to call it", NOT_CALLED), claim
            self.settler.release(timer, claim)
            return Returned("too little of its lease is left"), claim
        if isinstance(payload, Failed):
            return self._without_payload(timer, payload), claim
        self.starts.note(timer, started_at=started_at, ring=ring)
        called_at = self.clock.monotonic()
        outcome = self.targets.call(
            job.target, payload, _invocation_of(timer, claim), options=job.options, timeout=timeout
        )
        self.starts.journal.observe("target_ms", round(1000 * (self.clock.monotonic() - called_at)))
        return outcome, replace(claim, began_at=started_at)

    def _without_payload(self, timer: Timer, failure: Failed) -> Failed | None:
        is_unledgered = timer.job.delivery is Delivery.AT_LEAST_ONCE
        if failure is _GONE and is_unledgered and timer.job.occurrence is None and not timer.spent:
            # A payload goes when its job has succeeded, and only the ledger could have reported it to this message. That of an
            # occurrence stays, and that of a replayed job may have gone with its dead letter.
            self.settler.note_drop(timer, None, "its payload is gone: it has succeeded before")
            return None
        return failure


def _invocation_of(timer: Timer, claim: Claim) -> Invocation:
    """What the target receives about the attempt."""
    job = timer.job
    return Invocation(
        job_id=str(job_id_of(job)),
        tenant=job.tenant,
        idempotency_key=job.key,
        attempt=timer.attempt,
        fence=claim.fence,
        scheduled_at=job.scheduled_at,
        deadline=min(claim.lease_until - LEASE_MARGIN, timer.ends_by or claim.lease_until),
        traceparent=str(attempt_trace(job.trace, key=job.key, attempt=timer.attempt, fence=claim.fence)),
    )
