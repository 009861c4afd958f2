"""A fire that does not run: what is told of it, whoever finds that out."""

from __future__ import annotations

from dataclasses import dataclass

from functions.auditing import UNAUDITED
from functions.domain.audit import Ending
from functions.domain.job import Timer
from functions.domain.job_id import job_id_of
from functions.domain.lifecycle import State
from functions.ports import Audit, Clock, Journal, PendingCounter
from functions.tally import UNCOUNTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Skips:
    """Tells log, audit, and what counts jobs that wait. Metrics and its schedule hear of it with the others that it skips."""

    clock: Clock
    journal: Journal
    pending: PendingCounter = UNCOUNTED
    audit: Audit = UNAUDITED

    def tell(self, timer: Timer, reason: str) -> None:
        """It will not run, for this reason."""
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
