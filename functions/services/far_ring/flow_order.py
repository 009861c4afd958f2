"""The order of a flow: its jobs run one after the other, by their due times, and by their submission where these are equal.

Each job has a row in the order, written before the job is placed; whoever has started is its holder, which none other can become until
that one has ended, through all of its attempts. Who has ended is seen in the ledger, so nothing has to be told: a death between the end of a job and
its leaving the order costs a look of whoever waits behind it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from functions.domain.instants import HOUR
from functions.domain.jobs.claims import ABSENT_IS_OVER, LedgerRow
from functions.domain.jobs.job import Delivery, Job, Timer
from functions.domain.jobs.job_id import job_id_of, parse_job_id
from functions.domain.lifecycle import State
from functions.domain.targets.flows import FlowId, FlowOrder, OrderRow, place_in_order, place_in_room
from functions.ports.clock import Clock
from functions.ports.flows import FlowStore, StoredWaiting
from functions.ports.ledger import Ledger
from functions.services.far_ring.flow_limits import KnownFlowLimits

LOST_AFTER: timedelta = HOUR
"""A job that was due, that nobody has ever claimed or put back, whether its idempotency key is registered or not, and that somebody has missed for so long, was never placed: whoever submitted it
died in between. Counted from when somebody was missed and not from its time, so that a stage that stood still takes nobody for lost."""

ORDER_LIFE = timedelta(days=400)
"""How long a row is kept after its job was to start or to wake last: longer than any job waits, since a pause places it anew.
It only goes by this where nothing asks for its flow any more."""

MOST_STEPS = 10
"""Rows of jobs that have ended that one look removes. Who is behind more of them waits for the next look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowOrders:
    """The orders of flows."""

    clock: Clock
    flows: FlowStore
    ledger: Ledger
    flow_limits: KnownFlowLimits

    def line_up(self, timer: Timer) -> None:
        """Before a job is placed. Raises what the store raises: then it must not be placed."""
        for flow in self.ordered_of(timer.job):
            self.flows.line_up(flow, row_of(timer))

    def withdraw(self, timer: Timer) -> None:
        """A job that was lined up is not placed after all. Raises what the store raises."""
        for flow in self.ordered_of(timer.job):
            self.flows.finish(flow, row_of(timer).place)

    def ordered_of(self, job: Job) -> list[FlowId]:
        """Those of its flows that have an order."""
        if not job.flows or job.delivery is not Delivery.EXACTLY_ONCE:
            return []
        named = [(FlowId(each.owner_of(job.tenant), each.key), each) for each in job.flows]
        return [flow for flow, each in named if self.flow_limits.of_named(flow, each).is_ordered]

    def start(self, flow: FlowId, timer: Timer) -> bool:
        """Whether an attempt may start: else its job waits behind another. Raises what the stores raise."""
        mine, now = row_of(timer), self.clock.now()
        for _ in range(MOST_STEPS):
            first = self._first(flow, asking=mine.job_id)
            if first is not None and first[0].job_id == mine.job_id:
                if first[0].run == mine.run:
                    # Another place than this one is of the same submission, which was repeated.
                    return self.flows.hold(flow, replace(mine, place=first[0].place))
                if first[0].run > mine.run:
                    return False  # it has been replayed since
                self.flows.finish(flow, first[0].place)
            elif first is None or (not first[1] and first[0].place > mine.place):
                # It was placed before the flow had an order.
                self.flows.line_up(flow, mine)
            elif not first[1] and _is_ahead(first[0], now=now):
                return self.flows.hold(flow, mine)
            else:
                return False
        return False

    def release(self, flow: FlowId, timer: Timer) -> None:
        """It may not start, for another order: what waits here does not wait for that one. Raises what the stores raise.

        Another copy of its message may have begun the attempt with both: that one keeps its turn.
        """
        row = self.ledger.get(timer.job.key)
        if row is None or row.state is not State.RUNNING:
            self.flows.release(flow, row_of(timer).place)

    def next_waiting(self, flow: FlowId) -> StoredWaiting | None:
        """Who may leave the room: the first in the order where it waits there, or who was there before the flow had an order."""
        first = self._first(flow)
        if first is not None:
            job_id = parse_job_id(first[0].job_id)
            place = place_in_room(job_id.tenant, scheduled_at=job_id.due_at, identity=job_id.identity)
            if (found := self.flows.waiting_at(flow, place)) is not None:
                return found
            if first[1]:
                return None
        waiting = next(iter(self.flows.waiting(flow, after="", limit=1)), None)
        if waiting is None or waiting.timer is None:
            return None
        is_first = first is None or row_of(waiting.timer).place < first[0].place
        return waiting if is_first or (first is not None and _is_ahead(first[0], now=self.clock.now())) else None

    def end(self, flow: FlowId, timer: Timer) -> bool:
        """After an attempt: whether its job has ended, and left the order."""
        found = self.ledger.get(timer.job.key)
        if found is None or not found.is_settled:
            return False
        self.flows.finish(flow, row_of(timer).place)
        return True

    def _first(self, flow: FlowId, *, asking: str = "") -> tuple[OrderRow, bool] | None:
        """Who runs, else who is next; whether it runs. Those who have ended are removed. asking: who is here, and so not missed."""
        for _ in range(MOST_STEPS):
            order = self.flows.order(flow)
            first = order.holder or order.head
            if first is None:
                return None
            if first.job_id == asking or not self._is_over(flow, first, order):
                return first, order.holder is not None
            self.flows.finish(flow, first.place)
        return None

    def _is_over(self, flow: FlowId, row: OrderRow, order: FlowOrder) -> bool:
        job_id, now = parse_job_id(row.job_id), self.clock.now()
        found = self.ledger.get(job_id.key)
        if found is not None and not _is_only_registered(found):
            return found.is_settled
        if found is None and job_id.due_at + ABSENT_IS_OVER < now:
            return True
        if job_id.due_at > now:
            return False
        holder = order.holder
        missed_at = order.missed_at if holder is None else holder.missed_at
        if missed_at is None or (holder is None and missed_at < row.known_at):
            # Nobody behind it was missed before: they are due later. So one note is enough for all who are lost.
            self.flows.miss(flow, now=now, holder=holder)
            return False
        return missed_at + LOST_AFTER < now


def _is_only_registered(row: LedgerRow) -> bool:
    """Whether all that is known of a job is that somebody has submitted its idempotency key: it need not have been placed."""
    return row.state is State.SCHEDULED and not row.attempt and not row.waits_for and row.parked_until is None


def row_of(timer: Timer) -> OrderRow:
    """The row of a job in an order. That of a replay is another: whoever has seen its first end must not take the second for that."""
    job = timer.job
    place = place_in_order(
        scheduled_at=job.scheduled_at, asked_at=job.submitted_at, identity=job.identity, run=timer.spent
    )
    expires_at = max(timer.wakes_at, job.scheduled_at) + ORDER_LIFE
    return OrderRow(place=place, job_id=str(job_id_of(job)), expires_at=expires_at)


def _is_ahead(row: OrderRow, *, now: datetime) -> bool:
    """Whether it is not due yet: then it holds nobody, and whoever is behind it was asked to run now."""
    return parse_job_id(row.job_id).due_at > now
