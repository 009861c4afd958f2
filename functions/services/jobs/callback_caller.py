"""Puts the jobs of callbacks into the wheel when their job has ended.

Its end is in its row by then, and the message of its attempt is not acknowledged yet: after a death in between, the
message comes back, its row says how the job has ended, and the same jobs are put again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from functions.domain.far_ring.asked_record import decode_asked
from functions.domain.jobs.callback_jobs import Outcome, callback_job, outcome_in
from functions.domain.jobs.claims import ABANDONED, LedgerRow
from functions.domain.jobs.job import Job, Timer
from functions.domain.jobs.job_id import JobId, job_id_of, parse_job_id
from functions.domain.lifecycle import State
from functions.domain.tenants.usage import Usage
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.ledger import Ledger, Refused
from functions.ports.recorder import Journal, UsageCounter
from functions.services.far_ring.placer import Placer


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackCaller:
    """Lets callbacks be called. token: a fresh owner token. Safe to repeat. Raises NotPlaced."""

    wheel: Wheel
    clock: Clock
    ledger: Ledger
    placer: Placer
    journal: Journal
    usage: UsageCounter
    token: Callable[[], str]

    def ended(self, timer: Timer, outcome: Outcome) -> None:
        """The job of this timer has ended so."""
        for name, target in timer.job.callbacks.of(outcome.state, is_abandoned=outcome.is_abandoned):
            job = callback_job(timer.job, name, target, outcome, now=self.clock.now(), wheel=self.wheel)
            self._put(job, of=timer.job)

    def found(self, timer: Timer, row: LedgerRow | None) -> None:
        """The row of the job of this timer was found: whoever ended it may have died before its callbacks were put."""
        outcome = outcome_in(row, now=self.clock.now()) if row is not None and timer.job.callbacks else None
        if outcome is not None:
            self.ended(timer, outcome)

    def abandoned(self, job_id: JobId, row: LedgerRow, *, like: Callable[[], Job]) -> None:
        """Its schedule has given up the run of this row. like: another run of it, where the row does not say what this one calls."""
        kept = decode_asked(row.asked, job_id) if row.asked else None
        if kept is not None and (kept.job.callbacks or kept.job.occurrence is not None):
            job = kept.job
        else:
            job = replace(
                like(),
                identity=job_id.identity,
                bucket=job_id.bucket,
                shard=job_id.shard,
                priority=job_id.priority,
                delivery=job_id.delivery,
                scheduled_at=job_id.due_at,
            )
        outcome = Outcome(
            state=State.CANCELLED,
            attempts=row.attempt,
            ended_at=row.updated_at if row.is_settled and row.updated_at is not None else self.clock.now(),
            spent=row.spent,
            error=ABANDONED,
        )
        self.ended(Timer.first_of(job), outcome)

    def _put(self, job: Job, *, of: Job) -> None:
        """Its row comes first, and keeps the id that it had when it was first put."""
        answer = self.ledger.register_callback(
            job, job_id=str(job_id_of(job)), owner=self.token(), now=self.clock.now()
        )
        if isinstance(answer, Refused):
            row = answer.row
            if row is None or row.state is not State.SCHEDULED or not row.job_id:
                return
            first = parse_job_id(row.job_id)
            job = replace(job, bucket=first.bucket, shard=first.shard, scheduled_at=first.due_at)
        self.placer.place_one(Timer.first_of(job))
        if not isinstance(answer, Refused):
            self.usage.add(job.tenant, Usage(units=1))
            self.journal.event("callback_put", job_id=str(job_id_of(job)), tenant=job.tenant, of=str(job_id_of(of)))
