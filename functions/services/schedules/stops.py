"""Executions that end without an attempt that ends them: what is reported, whichever process finds out.

A part of `functions/services/jobs/ends.py` that asks nothing of schedules, so that those who carry chains on have it, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from functions.domain.audit import Ending, ending_of
from functions.domain.instants import from_ms, to_ms
from functions.domain.jobs.claims import ABANDONED, LedgerRow
from functions.domain.jobs.job import Job, Timer
from functions.domain.jobs.job_id import JobId, job_id_of, parse_job_id
from functions.domain.lifecycle import State
from functions.ports.clock import Clock
from functions.ports.ledger import Cancelled, Ledger, Refused
from functions.ports.recorder import AuditTrail, Journal, PendingCounter


class TellsAbandoned(Protocol):
    """Lets callbacks be called of a run that is given up."""

    def abandoned(self, job_id: JobId, row: LedgerRow, *, like: Callable[[], Job]) -> None:
        """Safe to repeat. Raises NotPlaced."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Stops:
    """Reports how executions were stopped, and writes the ends of runs that are given up. token: a fresh owner token."""

    clock: Clock
    ledger: Ledger
    journal: Journal
    token: Callable[[], str]
    pending: PendingCounter
    audit: AuditTrail
    callbacks: TellsAbandoned

    def skipped(self, timer: Timer, reason: str) -> None:
        """A fire will not run, for this reason. Metrics and its schedule get it with the other skips."""
        job_id = job_id_of(timer.job)
        self.journal.event("fire_skipped", job_id=str(job_id), reason=reason)
        self.pending.leave(job_id, asked_for=timer.asked_for)
        self.audit.note(
            Ending(
                job_id=job_id,
                outcome=State.SKIPPED,
                attempt=0,
                ended_at=self.clock.now(),
                due_at=job_id.due_at,
                target=timer.job.target,
                reason=reason,
            )
        )

    def cancelled(self, job_id: JobId, answer: Cancelled, *, reason: str = "", attempt: int = 0) -> None:
        """Its tombstone was written, or what stands for one. answer: what that found. attempt: the last that began."""
        if not answer.is_repeated:
            self.journal.event(
                "job_settled", job_id=str(job_id), tenant=job_id.tenant, outcome=State.CANCELLED.value, attempt=attempt
            )
            self.journal.count(State.CANCELLED.value)
            self.pending.leave(job_id, asked_for=answer.asked_for)
        self.audit.note(
            Ending(
                job_id=job_id,
                outcome=State.CANCELLED,
                attempt=attempt,
                ended_at=self.clock.now(),
                due_at=job_id.due_at,
                reason=reason,
                is_repeated=answer.is_repeated,
            )
        )

    def give_up(self, job_id: JobId, row: LedgerRow, *, like: Callable[[], Job]) -> datetime | None:
        """End a run of which no message is left, running or not: when it ended, as its row says from then on.

        like: another run of its schedule, where its row does not say what is called when it has ended. None when somebody has touched its row since it was seen, and has not ended it. Its schedule gets no report: it is
        who waits for it no longer.
        """
        now = from_ms(to_ms(self.clock.now()))
        answer = self.ledger.give_up(job_id, row=row, reason=ABANDONED, owner=self.token(), now=now)
        if isinstance(answer, Refused):
            if answer.row is None or not answer.row.is_settled:
                return None
            self.report_again(answer.row, like=like)
            return answer.row.updated_at
        self.cancelled(job_id, answer, reason=ABANDONED, attempt=row.attempt)
        self.journal.event("run_abandoned", job_id=str(job_id))
        self.journal.count("runs_abandoned")
        # Behind the row, which whoever looks at this run next finds, should this process die here.
        self.callbacks.abandoned(job_id, row, like=like)
        return now

    def report_again(self, row: LedgerRow, *, like: Callable[[], Job]) -> None:
        """Somebody found the row of a run that was given up: whoever did that may have died before it was reported.

        like: as of `give_up`.
        """
        again = ending_of(parse_job_id(row.job_id), row, now=self.clock.now()) if row.job_id else None
        if again is not None and again.reason == ABANDONED:
            self.audit.note(again)
            self.callbacks.abandoned(again.job_id, row, like=like)
