"""Answer what is known of a job: from its ledger row, else from its timer, else from its id."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from functions.domain.claims import LEDGER_LIFE, LedgerRow
from functions.domain.errors import JobNotFound
from functions.domain.job_id import JobId
from functions.domain.lifecycle import State
from functions.domain.wheel import Wheel
from functions.ports import Clock, Ledger, TimerStore

_NO_ROW = LedgerRow(state=State.SCHEDULED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What is known of a job. state is None where an at_least_once job has left the far ring: it keeps no row.

    due_at: of the attempt that is next or was last.
    """

    job_id: JobId
    state: State | None
    due_at: datetime
    row: LedgerRow = _NO_ROW


@dataclass(frozen=True, slots=True, kw_only=True)
class Finder:
    """Looks jobs up, in one key access, or two while no worker has claimed it."""

    wheel: Wheel
    clock: Clock
    ledger: Ledger
    timers: TimerStore

    def find(self, job_id: JobId) -> Found:
        """Raises JobNotFound when every row of such a job would have expired, or was removed."""
        row = self.ledger.get(job_id.key)
        if row is not None and (row.state is not State.SCHEDULED or job_id.is_ledgered):
            return Found(job_id=job_id, state=row.state, due_at=row.due_at or job_id.due_at, row=row)
        if job_id.due_at + LEDGER_LIFE < self.clock.now():
            raise JobNotFound(str(job_id))
        if job_id.is_ledgered or self.timers.get(job_id) is not None:
            # A near job has no row until it is claimed: the id says all there is.
            return Found(job_id=job_id, state=State.SCHEDULED, due_at=job_id.due_at)
        if self.wheel.is_surely_far(job_id.due_at, now=self.clock.now()):
            raise JobNotFound(str(job_id))  # it would have a row: it was cancelled
        state = State.SCHEDULED if job_id.due_at > self.clock.now() else None
        return Found(job_id=job_id, state=state, due_at=job_id.due_at)
