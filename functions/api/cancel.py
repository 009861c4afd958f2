"""Stop a job that has not run: one path for each kind, and never a promise that cannot be kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from functions.domain.claims import LEDGER_LIFE
from functions.domain.errors import AlreadySettled, JobNotFound, TooLate
from functions.domain.job_id import JobId
from functions.domain.lifecycle import State
from functions.domain.wheel import Wheel
from functions.placing import Placer
from functions.ports import Applied, Clock, Ledger, PayloadStore, StoredTimer, TimerStore

_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Canceller:
    """Cancels jobs. token: a fresh owner token."""

    wheel: Wheel
    clock: Clock
    ledger: Ledger
    timers: TimerStore
    payloads: PayloadStore
    placer: Placer
    token: Callable[[], str]

    def cancel(self, job_id: JobId) -> bool:
        """True when the job will not run. False when it is running: it is asked not to be tried again.

        Raises JobNotFound (it is long over), AlreadySettled, TooLate (an at_least_once job near its time).
        """
        if job_id.due_at + LEDGER_LIFE < self.clock.now():
            raise JobNotFound(str(job_id))
        return self._bury_the_key(job_id) if job_id.is_ledgered else self._delete(job_id)

    def _bury_the_key(self, job_id: JobId) -> bool:
        """A tombstone in the ledger: whatever message is on its way will meet it."""
        owner = self.token()
        for _ in range(_TRIES):
            now = self.clock.now()
            answer = self.ledger.cancel(job_id, owner=owner, now=now)
            if isinstance(answer, Applied):
                # Housekeeping: the tombstone alone keeps the job from running.
                self._forget(self.timers.delete(job_id))
                return True
            row = answer.row
            if row is None:
                continue
            if row.is_settled:
                raise AlreadySettled(str(job_id), state=row.state)
            if isinstance(self.ledger.request_cancel(job_id, fence=row.fence, now=now), Applied):
                return False
        raise TooLate(str(job_id))

    def _delete(self, job_id: JobId) -> bool:
        """Such a job reads no tombstone: only its row, removed before its bucket can have opened, is proof."""
        row = self.ledger.get(job_id.key)
        if row is not None and row.state is State.CANCELLED:
            return True
        if self.clock.now() > self.wheel.closes_at(job_id.due_at):
            raise TooLate(str(job_id))
        deleted = self.timers.delete(job_id)
        finished = self.clock.now()
        if deleted is None:
            raise TooLate(str(job_id))
        if finished > self.wheel.closes_at(job_id.due_at):
            # The delete stalled: the scanner may have read the row or not. Without a promise to cancel, it must run.
            if deleted.timer is not None:
                self.placer.place([deleted.timer])
            raise TooLate(str(job_id))
        self._forget(deleted)
        # With an idempotency key it has a row, which keeps a repeated submission from placing it again.
        self.ledger.cancel_registered(job_id, now=finished)
        return True

    def _forget(self, stored: StoredTimer | None) -> None:
        if stored is not None and stored.timer is not None and stored.timer.job.payload.pointer is not None:
            self.payloads.delete(stored.timer.job.payload.pointer)
