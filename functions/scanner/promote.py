"""Send rows of the far ring to the ready queues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from functions.domain.jobs.job_id import job_id_of
from functions.domain.tenants.plan import TenantPlan
from functions.domain.wheel import MAX_DELAY, Wheel
from functions.ports.clock import Clock
from functions.ports.ready_queue import ReadyQueue
from functions.ports.recorder import Journal
from functions.ports.timers import StoredTimer
from functions.scanner.row_burier import RowBurier
from functions.services.far_ring.pacer import Pacer


@dataclass(frozen=True, slots=True)
class Promoted:
    """What became of rows. unsent: the keys of timers that could not be sent now."""

    sent: int
    unsent: set[str]
    buried: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Promoter:
    """Promotes rows."""

    wheel: Wheel
    clock: Clock
    ready: ReadyQueue
    pacer: Pacer
    row_burier: RowBurier
    journal: Journal

    def promote(self, rows: Sequence[StoredTimer], *, shard: int) -> Promoted:
        """Send the timers of these rows. What cannot be sent at all is buried."""
        unsent: set[str] = set()
        buried = [self.row_burier.bury(row, row.fault) for row in rows if row.timer is None and row.alarm is None]
        sendable = {id(row.timer): row for row in rows if row.timer is not None}
        rejected = self.ready.send([row.timer for row in sendable.values() if row.timer is not None])
        for rejection in rejected:
            row = sendable[id(rejection.timer)]
            if rejection.is_permanent:
                buried.append(self.row_burier.bury(row, rejection.reason))
            else:
                unsent.add(row.key)
        kept = {id(rejection.timer) for rejection in rejected}
        sent_ids = [
            str(job_id_of(row.timer.job))
            for number, row in sendable.items()
            if row.timer is not None and number not in kept
        ]
        if sent_ids:
            self.journal.event("promoted", shard=shard, job_ids=sent_ids)
        return Promoted(sent=len(sendable) - len(rejected), unsent=unsent, buried=sum(buried))

    def with_bookings(self, tenant: str, plan: TenantPlan, rows: Sequence[StoredTimer]) -> Sequence[StoredTimer]:
        """The first rows of a tenant whose rate is capped, as they may go out now, each timer with its booking.

        An alarm needs no booking: the fires that it places do.
        """
        # Further than what is near is booked: a tenant that hands in all the time must not keep its own rows waiting.
        # And no further than a queue delays: what comes early is placed again, and would be held back without its booking.
        until = self.clock.now() + min(self.wheel.guard + self.wheel.bucket, MAX_DELAY)
        due_ats = [row.timer.due_at for row in rows if row.timer is not None]
        bookings = iter(self.pacer.bookings(tenant, plan, due_ats, until=until))
        paced: list[StoredTimer] = []
        for row in rows:
            if row.timer is None:
                paced.append(row)
            elif (booking := next(bookings, None)) is not None:
                paced.append(replace(row, timer=replace(row.timer, not_before=booking)))
            else:
                break
        return paced
