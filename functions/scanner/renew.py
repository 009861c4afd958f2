"""Put rows that have waited for long anew, before their table lets go of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from functions.domain.jobs.claims import lost_attempt
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import first_identity, job_id_of
from functions.domain.wheel import FAR_MARGIN, Wheel
from functions.ports.clock import Clock
from functions.ports.ledger import Ledger, Refused
from functions.ports.recorder import Journal
from functions.ports.timers import StoredTimer
from functions.scanner.unsendable_rows import UnsendableRows
from functions.services.far_ring.placer import Placer


@dataclass(frozen=True, slots=True)
class Renewed:
    """What became of rows. failed: the keys of those with which it could not be done."""

    failed: set[str]
    buried: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewer:
    """Renews rows."""

    wheel: Wheel
    clock: Clock
    ledger: Ledger
    placer: Placer
    unsendable: UnsendableRows
    journal: Journal

    def renew(self, rows: Sequence[StoredTimer]) -> Renewed:
        """Put rows that wait into a bucket that comes.

        An alarm is not renewed: the sweep carries on a chain whose alarm is gone.
        """
        buried = self.unsendable.keep_unreadable(rows)
        now = self.clock.now()
        until = now + self.wheel.guard + FAR_MARGIN
        waiting: dict[str, Timer] = {}
        for row in rows:
            waits = self._what_waits(row.timer, until=until, now=now) if row.timer is not None else None
            if waits is not None:
                waiting[row.key] = replace(waits, not_before=until)
        placements = self.placer.place(list(waiting.values()))
        failed = {key for key, placement in zip(waiting, placements, strict=True) if placement.ring is None}
        return Renewed(failed, buried)

    def _what_waits(self, timer: Timer, *, until: datetime, now: datetime) -> Timer | None:
        """Its attempt, whose ledger row lives longer for it; None where its job has ended, or is at a later one.

        A later attempt, where that has lost its message: this row may be all that is left of the job. Its ledger row is
        not reported as waiting, for then a tick that dies before it is placed would leave nothing that is overdue.
        """
        if not timer.job.is_ledgered:
            return timer
        answer = self.ledger.park(timer, until=until, now=now)
        if not isinstance(answer, Refused):
            if first_identity(timer.job.identity) != timer.job.identity:
                # Whoever asks by its first id, or by its key, gets an answer for as long as it waits.
                self.ledger.renew_first(timer, now=now)
            return timer
        lost = lost_attempt(timer, answer.row, now=now)
        if lost is not None:
            self.journal.event("revived", job_id=str(job_id_of(timer.job)), attempt=lost.attempt)
        return lost
