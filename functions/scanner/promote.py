"""Send rows of the far ring to the ready queues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from functions.domain.far_ring.sealed_timer import id_of
from functions.domain.tenants.plan import TenantPlan
from functions.domain.wheel import MAX_DELAY, Wheel
from functions.ports.clock import Clock
from functions.ports.ready_queue import ReadyQueue
from functions.ports.recorder import Journal
from functions.ports.timers import StoredTimer
from functions.scanner.punctual import send_in_time
from functions.scanner.unsendable_rows import UnsendableRows
from functions.scanner.warm import Warmer
from functions.services.far_ring.pacer import Pacer


@dataclass(frozen=True, slots=True)
class Promoted:
    """What became of rows. unsent: the keys of timers that could not be sent now. waited: for the right moment to send the others."""

    sent: int
    unsent: set[str]
    buried: int = 0
    waited: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promoter:
    """Promotes rows."""

    wheel: Wheel
    clock: Clock
    ready: ReadyQueue
    pacer: Pacer
    unsendable: UnsendableRows
    warmer: Warmer
    journal: Journal

    def promote(self, rows: Sequence[StoredTimer], *, shard: int, within: timedelta = timedelta(0)) -> Promoted:
        """Send the timers of these rows. What cannot be sent at all is kept as a dead letter. within: how long it may wait."""
        sent: list[str] = []
        unsent: set[str] = set()
        # Before the jobs themselves: the more of them there are, the longer it takes to send them.
        self.warmer.expect(rows, shard=shard)
        # What is sent as it stands is read by the worker, who keeps what it cannot read as this does.
        buried = self.unsendable.keep_unreadable(row for row in rows if row.sealed is None)
        sendable = [(row, timer) for row in rows if (timer := row.sealed or row.timer) is not None]
        # By object: two timers of a batch may be equal.
        answer = send_in_time([timer for _, timer in sendable], self.ready, clock=self.clock, within=within)
        rejected = {id(rejection.timer): rejection for rejection in answer.rejected}
        for row, timer in sendable:
            rejection = rejected.get(id(timer))
            if rejection is None:
                sent.append(id_of(timer))
            elif rejection.is_permanent:
                buried += self.unsendable.keep(row, rejection.reason)
            else:
                unsent.add(row.key)
        if sent:
            self.journal.event("promoted", shard=shard, job_ids=sent)
        return Promoted(sent=len(sent), unsent=unsent, buried=buried, waited=answer.waited)

    def with_bookings(self, tenant: str, plan: TenantPlan, rows: Sequence[StoredTimer]) -> Sequence[StoredTimer]:
        """The first rows of a tenant whose rate is capped, as they may go out now, each timer with its booking.

        An alarm needs no booking: the fires that it places do.
        """
        # Further than what is near is booked: a tenant that submits all the time must not keep its own rows waiting.
        # And no further than a queue delays: what comes early is placed again, and would be held back without its booking.
        until = self.clock.now() + min(self.wheel.guard + self.wheel.bucket, MAX_DELAY)
        due_ats = [row.timer.due_at for row in rows if row.timer is not None]
        bookings = iter(self.pacer.bookings(tenant, plan, due_ats, until=until))
        paced: list[StoredTimer] = []
        for row in rows:
            if row.timer is None:
                paced.append(row)
            elif (booking := next(bookings, None)) is not None:
                paced.append(StoredTimer(row.key, replace(row.timer, not_before=booking), written_at=row.written_at))
            else:
                break
        return paced
