"""Put rows that have waited for long anew, before their table lets go of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from functions.domain.errors import NotPlaced
from functions.domain.jobs.claims import lost_attempt
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import first_identity, job_id_of
from functions.domain.lifecycle import State
from functions.domain.wheel import FAR_MARGIN, Wheel
from functions.ports.clock import Clock
from functions.ports.ledger import Ledger, Refused
from functions.ports.recorder import Journal
from functions.ports.timers import StoredTimer
from functions.scanner.unsendable_rows import UnsendableRows
from functions.services.far_ring.placer import Placer
from functions.services.jobs.callback_caller import CallbackCaller


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
    callbacks: CallbackCaller
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
        failed: set[str] = set()
        for row in rows:
            try:
                waits = self._what_waits(row.timer, until=until, now=now) if row.timer is not None else None
            except NotPlaced:
                failed.add(row.key)
                continue
            if waits is not None:
                waiting[row.key] = waits
        placements = self.placer.place(list(waiting.values()))
        failed |= {key for key, placement in zip(waiting, placements, strict=True) if placement.ring is None}
        return Renewed(failed, buried)

    def _what_waits(self, timer: Timer, *, until: datetime, now: datetime) -> Timer | None:
        """Its attempt, as it is to wait, whose ledger row lives longer for it; None where its job has ended, or is at a later one.

        A job that was cancelled comes to no worker, who would put its callbacks. Raises NotPlaced where they cannot be put.
        A later attempt, where that has lost its message: this row may be all that is left of the job. Its ledger row is
        not reported as waiting, for then a tick that dies before it is placed would leave nothing that is overdue.
        """
        waiting = replace(timer, not_before=until)
        if not timer.job.is_ledgered:
            return waiting
        answer = self.ledger.park(timer, until=until, now=now)
        if not isinstance(answer, Refused):
            if first_identity(timer.job.identity) != timer.job.identity:
                # Whoever asks by its first id, or by its key, gets an answer for as long as it waits.
                self.ledger.renew_first(timer, now=now)
            return waiting
        if answer.row is not None and answer.row.state is State.CANCELLED:
            self.callbacks.found(timer, answer.row)
        lost = lost_attempt(timer, answer.row, now=now)
        if lost is None:
            return None
        self.journal.event("revived", job_id=str(job_id_of(timer.job)), attempt=lost.attempt)
        return replace(lost, not_before=until)
