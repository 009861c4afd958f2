"""Take jobs in: register those with an idempotency key, keep large payloads, place them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from functions.domain.errors import InvalidJob, KeyReused, NotPlaced, TickwheelError
from functions.domain.far_ring.timer_record import INLINE_LIMIT, PACKED, write_payload
from functions.domain.far_ring.write_units import submission_units
from functions.domain.faults import fault_of
from functions.domain.instants import format_instant
from functions.domain.jobs.claims import ABSENT_IS_OVER, LedgerRow
from functions.domain.jobs.job import Job, Payload, Timer
from functions.domain.jobs.job_id import JobId, job_id_of, parse_job_id
from functions.domain.jobs.submission import PAST_GRACE, Submission, fingerprint_of, job_of, keyed_identity
from functions.domain.lifecycle import State
from functions.domain.tenants.usage import Usage
from functions.domain.wheel import Ring, Wheel
from functions.ports.clock import Clock
from functions.ports.ledger import Applied, Ledger
from functions.ports.payloads import PayloadStore
from functions.ports.recorder import Journal, UsageCounter
from functions.ports.tenants import TenantPlans
from functions.services.far_ring.placer import Placer
from functions.services.jobs.moves import last_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What a submission is answered. is_replay: the idempotency key had been used, and this is its first job.

    state: None of one that was moved, and has ended so long ago that nothing says how.
    """

    job_id: str
    tenant: str
    due_at: datetime
    state: State | None
    ring: Ring | None
    is_replay: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitter:
    """Takes jobs in. identity: a fresh random identity; token: a fresh owner token; id_secret: of the stage.

    side_by_side: maps a function over items at the same time, answers in order.
    """

    wheel: Wheel
    clock: Clock
    ledger: Ledger
    payloads: PayloadStore
    placer: Placer
    plans: TenantPlans
    journal: Journal
    identity: Callable[[], str]
    id_secret: Callable[[], bytes]
    token: Callable[[], str]
    side_by_side: Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
    usage: UsageCounter

    def submit(self, submissions: Sequence[Submission]) -> list[Accepted | TickwheelError]:
        """Take jobs in; an answer each, in order. A job is accepted only once it is durably in the wheel."""
        answers: dict[int, Accepted | TickwheelError] = {}
        to_place: dict[int, _Prepared] = {}
        for index, outcome in enumerate(self.side_by_side(self._prepare_safely, submissions)):
            if isinstance(outcome, _Prepared):
                to_place[index] = outcome
            else:
                answers[index] = outcome
        timers = [
            Timer.first_of(prepared.job, asked_at=submissions[index].asked_at) for index, prepared in to_place.items()
        ]
        for (index, prepared), placement in zip(to_place.items(), self.placer.place(timers), strict=True):
            if placement.ring is None:
                answers[index] = NotPlaced([placement.fault])
                continue
            answers[index] = _accepted(prepared.job, ring=placement.ring, is_replay=prepared.is_replay)
            if not prepared.is_replay:
                self.usage.add(prepared.job.tenant, _used(submissions[index], prepared.job, placement.ring))
        accepted = [answer for answer in answers.values() if isinstance(answer, Accepted) and not answer.is_replay]
        self.journal.count("jobs_submitted", len(accepted))
        if accepted:
            placed = {ring: [answer.job_id for answer in accepted if answer.ring is ring] for ring in Ring}
            self.journal.event("jobs_accepted", near=placed[Ring.NEAR], far=placed[Ring.FAR])
        return [answers[index] for index in range(len(submissions))]

    def _prepare_safely(self, submission: Submission) -> Accepted | TickwheelError | _Prepared:
        """One job's fault must not refuse the others of its batch."""
        try:
            return self._prepare(submission)
        except TickwheelError as error:
            return error
        except Exception as error:  # noqa: BLE001  reported for the one that it belongs to
            self.journal.event("submission_failed", tenant=submission.tenant, error=fault_of(error))
            return NotPlaced([f"a store failed: {type(error).__name__}"])

    def _prepare(self, submission: Submission) -> Accepted | _Prepared:
        """The job to place; or the answer, when there is nothing to place."""
        if submission.idempotency_key is None:
            return _Prepared(self._with_stored_payload(self._job(submission), submission))
        job = self._job(submission)
        now = self.clock.now()
        if submission.due_at < now - PAST_GRACE and self.ledger.get(job.key) is None:
            raise InvalidJob(
                f"is in the past by more than {PAST_GRACE.total_seconds():g} s: it is now {format_instant(now)}",
                field="run_at",
                value=format_instant(submission.due_at),
            )
        # Its row comes first: from here on the key answers with this id, even if this call dies.
        fingerprint = fingerprint_of(submission)
        answer = self.ledger.register(
            job, job_id=str(job_id_of(job)), fingerprint=fingerprint, owner=self.token(), now=now
        )
        if isinstance(answer, Applied):
            return _Prepared(self._with_stored_payload(job, submission))
        assert answer.row is not None  # only an existing row refuses
        return self._replay(job, submission, answer.row, fingerprint=fingerprint)

    def _replay(self, job: Job, submission: Submission, row: LedgerRow, *, fingerprint: str) -> Accepted | _Prepared:
        """A used key answers with its first job, whatever time it asks for now."""
        if row.fingerprint and row.fingerprint != fingerprint:
            # Placing it would overwrite the first job's payload; accepting it without would lose it.
            raise KeyReused(row.job_id)
        first = parse_job_id(row.job_id)
        if row.state is State.MOVED:
            return self._tell_moved(first)
        job = replace(
            job,
            bucket=first.bucket,
            shard=first.shard,
            scheduled_at=first.due_at,
            expires_at=first.due_at + submission.expires_after if submission.expires_after else None,
        )
        if row.state is not State.SCHEDULED or row.cancel_requested:
            # A cancel that is under way may still be refused: until it is written, the job counts as scheduled.
            return _accepted(job, state=row.state, is_replay=True)
        # The first submission may have died between its two writes. Placing it again, as the first asked for it,
        # overwrites its row or is dropped by the ledger.
        job = self._with_stored_payload(job, submission)
        if job.is_ledgered or self.wheel.place(job.scheduled_at, now=self.clock.now()) is Ring.NEAR:
            return _Prepared(job, is_replay=True)
        ring = self.placer.place_registered(Timer.first_of(job))
        if ring is None:
            now_row = self.ledger.get(job.key)
            return _accepted(job, state=now_row.state if now_row else State.CANCELLED, is_replay=True)
        return _accepted(job, ring=ring, is_replay=True)

    def _tell_moved(self, first: JobId) -> Accepted:
        """It was rescheduled or edited since: it continues under its last id."""
        last, row = last_of(self.ledger, first)
        is_forgotten = row is None and last.due_at + ABSENT_IS_OVER < self.clock.now()
        return Accepted(
            job_id=str(last),
            tenant=last.tenant,
            due_at=last.due_at,
            state=row.state if row else None if is_forgotten else State.SCHEDULED,
            ring=None,
            is_replay=True,
        )

    def _with_stored_payload(self, job: Job, submission: Submission) -> Job:
        if submission.payload is None:
            return job
        part, written = write_payload(submission.payload)
        if len(written.encode()) > INLINE_LIMIT:
            return replace(job, payload=Payload(pointer=self.payloads.put(job, submission.payload)))
        # Packed once, however often its record is written.
        return replace(job, payload=Payload(packed=written)) if part == PACKED else job

    def _job(self, submission: Submission) -> Job:
        subshards = self.plans.of(submission.tenant).subshards
        if submission.idempotency_key is not None:
            # It is registered: its row distinguishes its id from any other.
            identity = keyed_identity(submission.tenant, submission.idempotency_key)
            return job_of(submission, identity=identity, wheel=self.wheel, subshards=subshards)
        return job_of(
            submission, identity=self.identity(), wheel=self.wheel, subshards=subshards, id_secret=self.id_secret()
        )


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A job that is to be placed. is_replay: its key had been used, by the same job."""

    job: Job
    is_replay: bool = False


def _accepted(
    job: Job, *, state: State = State.SCHEDULED, ring: Ring | None = None, is_replay: bool = False
) -> Accepted:
    return Accepted(
        job_id=str(job_id_of(job)),
        tenant=job.tenant,
        due_at=job.scheduled_at,
        state=state,
        ring=ring,
        is_replay=is_replay,
    )


def _used(submission: Submission, job: Job, ring: Ring) -> Usage:
    units = submission_units(
        Timer.first_of(job),
        is_far=ring is Ring.FAR,
        is_keyed=submission.idempotency_key is not None,
    )
    return Usage(submitted=1, units=units, bytes=len((submission.payload or "").encode()))
