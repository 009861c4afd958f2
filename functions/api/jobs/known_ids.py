"""Which job ids Tickwheel gave: by their check; and where they have none, by a row, or by the schedule of their fire.

A check says all there is to say, without a read. An idempotency key is registered, and a fire that a schedule does not
decide is too: their rows live for as long as their ids mean anything. Ids of before there were checks have a row from
their first attempt on, or a far row until 14 days after their time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from functions.domain.errors import JobNotFound
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.id_check import has_check
from functions.domain.jobs.job_id import JobId, job_id_of
from functions.domain.jobs.occurrence import fire_of
from functions.domain.schedules.fire_ids import decides
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.ledger import Ledger
from functions.ports.schedules import ScheduleStore
from functions.ports.tenants import TenantPlans
from functions.ports.timers import TimerStore


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownIds:
    """Reports whether an id was given to anybody. id_secret: of the stage."""

    wheel: Wheel
    clock: Clock
    ledger: Ledger
    timers: TimerStore
    schedules: ScheduleStore
    plans: TenantPlans
    id_secret: Callable[[], bytes]

    def check(self, job_id: JobId) -> JobId:
        """The id itself: no read where it has a check, else one to four. Raises JobNotFound, and nothing was written."""
        if not self.has_check(job_id):
            self.check_with(job_id, self.ledger.get(job_id.key))
        return job_id

    def check_with(self, job_id: JobId, row: LedgerRow | None) -> None:
        """As `check`, for whoever has read its ledger row: None where there is none."""
        if not self.has_check(job_id) and not self._is_stored(job_id, row):
            raise JobNotFound(str(job_id))

    def has_check(self, job_id: JobId) -> bool:
        """Whether the id alone shows that it was given."""
        return has_check(job_id, secret=self.id_secret())

    def _is_stored(self, job_id: JobId, row: LedgerRow | None) -> bool:
        if row is not None:
            return row.job_id == str(job_id)
        timer = self.timers.get(job_id)
        if timer is not None:
            return job_id_of(timer.job) == job_id
        fire = fire_of(job_id.identity)
        if fire is None:
            return False
        stored, state = self.schedules.get(f"{job_id.tenant}#{fire[0]}")
        return state is not None and decides(
            stored.schedule if stored is not None else None,
            state,
            job_id,
            now=self.clock.now(),
            wheel=self.wheel,
            subshards=self.plans.of(job_id.tenant).subshards,
        )
