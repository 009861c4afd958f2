"""Answer what is known of a job: from its ledger row, else from its timer, else from its id.

One that was moved is answered under the id with which it continues.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from functions.api.jobs.known_ids import KnownIds
from functions.domain.errors import JobNotFound
from functions.domain.jobs.claims import ABSENT_IS_OVER, LedgerRow
from functions.domain.jobs.job_id import JobId
from functions.domain.lifecycle import State
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.ledger import Ledger
from functions.ports.timers import TimerStore
from functions.services.jobs.moves import last_behind

_NO_ROW = LedgerRow(state=State.SCHEDULED)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInWheel:
    """What is known of a job. state is None where an at_least_once job has left the far ring: it keeps no row.

    job_id: under which it continues. due_at: of the attempt that is next or was last.
    """

    job_id: JobId
    state: State | None
    due_at: datetime
    row: LedgerRow = _NO_ROW


@dataclass(frozen=True, slots=True, kw_only=True)
class Finder:
    """Looks jobs up, in one key access, or two while no worker has claimed it. known: which ids Tickwheel gave."""

    wheel: Wheel
    clock: Clock
    ledger: Ledger
    timers: TimerStore
    known: KnownIds

    def find(self, job_id: JobId) -> JobInWheel:
        """Raises JobNotFound when nobody was given the id, and when every row of such a job would have expired, or was removed."""
        row = self.ledger.get(job_id.key)
        self.known.check_with(job_id, row)
        job_id, row = last_behind(self.ledger, job_id, row)
        if row is not None and (row.state is not State.SCHEDULED or job_id.is_ledgered):
            return JobInWheel(job_id=job_id, state=row.state, due_at=row.due_at or job_id.due_at, row=row)
        if job_id.due_at + ABSENT_IS_OVER < self.clock.now():
            raise JobNotFound(str(job_id))
        now = self.clock.now()
        if not job_id.is_ledgered and job_id.due_at <= now:
            # Its far row stays after its promotion, and says nothing of what became of it.
            return JobInWheel(job_id=job_id, state=None, due_at=job_id.due_at)
        has_a_row = not job_id.is_ledgered and self.wheel.is_surely_far(job_id.due_at, now=now)
        if has_a_row and self.timers.get(job_id) is None:
            raise JobNotFound(str(job_id))  # it was cancelled
        # A near job has no row until it is claimed: the id says all there is.
        return JobInWheel(job_id=job_id, state=State.SCHEDULED, due_at=job_id.due_at)
