"""The rooms of flows: what waits there, and whose turn it is.

A room is looked at by its turn, a message of Tickwheel's own that is sent for an instant and sends the next while anything
waits; and, where a flow bounds how many run at once, by whoever has just ended. Both let out what may start by then: tenants have turns, in
the order of their names, each as many jobs as its weight says, and within a tenant the earliest goes first.

What leaves is sent before it is taken out of the room. A death in between sends it twice, and the ledger drops the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from functions.domain.errors import NotPlaced
from functions.domain.far_ring.fairness import grant
from functions.domain.far_ring.flow_turn import flow_of, turn_of
from functions.domain.faults import fault_of
from functions.domain.instants import MINUTE, SECOND
from functions.domain.jobs.job import Timer
from functions.domain.targets.concurrency import is_free
from functions.domain.targets.flows import FlowId, FlowLimits, FlowState, limits_named, planned, starts
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.flows import FlowStore, StoredWaiting
from functions.ports.ready_queue import ReadyQueue
from functions.ports.recorder import Journal
from functions.ports.targets import PermitStore
from functions.ports.tenants import TenantPlans
from functions.services.far_ring.flow_limits import KnownFlowLimits
from functions.services.far_ring.flow_order import FlowOrders
from functions.services.far_ring.placer import Placer

REACH = 10 * SECOND
"""How far ahead a turn lets something out: so long a new tenant waits for the others that were before it."""

SLOW = 30 * SECOND
"""Between the turns of a room from which nothing can leave: whoever ends hands on, and a death is noticed by then."""

STALE = 2 * MINUTE
"""A turn that has not come by then is sent anew by whoever enters."""

MOST = 200
"""Jobs that one turn lets out."""

QUANTUM = 4
"""Jobs of a turn for a tenant of weight 1. Small: at 60 calls a minute and 20 tenants, each has a turn in 80 seconds."""

MOST_QUERIES = 100
_PAGE = 8
"""Rows that are read of a tenant whose weight is not known yet."""

_BUSY = timedelta(milliseconds=300)
"""So long nobody else lets out what is about to be sent and taken out. Whoever ends within it waits for that: another call may start."""

_TRIES = 6
_PAUSE = timedelta(milliseconds=100)


@dataclass(frozen=True, slots=True)
class _Picked:
    """What leaves a room. cursor, granted: where the turns of tenants continue. is_all: nothing else waits."""

    rows: list[StoredWaiting]
    cursor: str
    granted: int
    is_all: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowTurns:
    """Turns of flows."""

    wheel: Wheel
    clock: Clock
    flows: FlowStore
    permits: PermitStore
    placer: Placer
    ready: ReadyQueue
    plans: TenantPlans
    journal: Journal
    flow_limits: KnownFlowLimits
    flow_orders: FlowOrders

    def enter(self, flow: FlowId, timer: Timer) -> None:
        """Keep an attempt in the room. Raises what the stores raise, and NotPlaced."""
        self.flows.wait(flow, timer)
        state, now = self.flows.note_entry(flow), self.clock.now()
        if _is_overdue(state, now=now):
            # Sent before it is noted: who dies in between comes back, and a turn too many does no harm.
            self._plan_turn(flow, at=now)

    def reopen(self, flow: FlowId) -> bool:
        """Send the turn of a room that something waits in, where it is overdue or is not known; whether it was sent.

        Its message lives for 14 days, and its state for 30 days after its turn: what waits in the room lives on. Raises
        what the stores raise, and NotPlaced.
        """
        now = self.clock.now()
        if not _is_overdue(self.flows.state(flow), now=now):
            return False
        self._plan_turn(flow, at=now)
        return True

    def take(self, turn: Timer, *, receive_count: int) -> None:
        """Let out what may start, and send the next turn while anything waits. Raises what the stores raise."""
        flow, now = flow_of(turn), self.clock.now()
        state = self.flows.state(flow)
        if receive_count <= 1 and state.turn_at is not None and state.turn_at > max(now, turn.due_at + SECOND):
            return  # another turn follows
        if (next_at := self._let_out(flow)) is not None:
            self._plan_turn(flow, at=next_at)

    def send_anew(self, turn: Timer) -> None:
        """Its message was received too often: another one continues. Raises NotPlaced."""
        flow = flow_of(turn)
        self._send(turn_of(flow, at=self.clock.now() + MINUTE))
        self.journal.event("flow_turn_sent_anew", flow=str(flow))

    def hand_on(self, flow: FlowId) -> None:
        """A permit of the flow is free. Never raises: the next turn does it, too."""
        try:
            if not self.flows.is_waited_for(flow):
                return
            next_at = self._let_out(flow)
            if next_at is not None and next_at <= self.clock.now() + SECOND:
                # Others were at it all the time: the turn that is planned may be half a minute away.
                self._plan_turn(flow, at=next_at)
        except Exception as error:  # noqa: BLE001  the attempt that has ended must not come back for this
            self.journal.event("flow_not_handed_on", flow=str(flow), error=fault_of(error))

    def end(self, flow: FlowId, timer: Timer) -> None:
        """An attempt in an ordered flow is over: its job may have ended. Never raises: the next turn sees it, too."""
        try:
            if not self.flow_orders.end(flow, timer):
                return
        except Exception as error:  # noqa: BLE001  the attempt that has ended must not come back for this
            self.journal.event("flow_not_handed_on", flow=str(flow), error=fault_of(error))
            return
        self.hand_on(flow)

    def _let_out(self, flow: FlowId) -> datetime | None:
        """When to look again; None when nothing waits."""
        for _ in range(_TRIES):
            state, now = self.flows.state(flow), self.clock.now()
            if state.busy_until is not None and state.busy_until > now:
                self.clock.sleep(_PAUSE)
                continue
            limits = self._limits(flow)
            if limits is None:
                return None if self.flows.close(flow, seen=state) else now + SECOND
            free = min(MOST, self._free(flow, limits, now=now))
            instants = starts(state, limits, now=now, until=now + REACH, most=max(0, free))
            most = len(instants)
            picked = self._next_in_order(flow, state, most) if limits.is_ordered else self._pick(flow, state, most=most)
            if picked.rows:
                after = replace(
                    state,
                    version=state.version + 1,
                    planned_at=planned(state, limits, now=now, count=len(picked.rows)),
                    cursor=picked.cursor,
                    granted=picked.granted,
                    busy_until=now + _BUSY,
                )
                if not self.flows.leave(flow, seen=state, state=after):
                    continue
                is_sent = self._send_out(flow, picked.rows, instants)
                state = after
                picked = replace(picked, is_all=picked.is_all and is_sent)
            if picked.is_all and self.flows.close(flow, seen=state):
                return None
            return self._next_turn(state, limits, now=now, is_stuck=bool(instants) and not picked.rows)
        return self.clock.now() + SECOND

    def _next_turn(self, state: FlowState, limits: FlowLimits, *, now: datetime, is_stuck: bool) -> datetime:
        """is_stuck: nothing of what waits may leave, whatever its rate lets start."""
        if limits.rate is None or is_stuck:
            return now + SLOW
        following = starts(state, limits, now=now, until=now + STALE / 2, most=1)
        return max(now + REACH / 2, (following[0] if following else now + STALE / 2) - REACH / 2)

    def _limits(self, flow: FlowId) -> FlowLimits | None:
        """Those that were set, else those of the first job that waits; None when none does."""
        first = next(iter(self.flows.waiting(flow, after="", limit=1)), None)
        if first is None:
            return None
        named = limits_named(flow, first.timer.job.flows, tenant=first.tenant) if first.timer is not None else None
        return self.flow_limits.of(flow) or named or FlowLimits()

    def _free(self, flow: FlowId, limits: FlowLimits, *, now: datetime) -> int:
        if limits.concurrency is None:
            return MOST
        leases = self.permits.leases(str(flow), limit=limits.concurrency)
        taken = sum(not is_free(until, now=now, skew=self.wheel.lease_skew) for until in leases.values())
        return limits.concurrency - taken

    def _pick(self, flow: FlowId, state: FlowState, *, most: int) -> _Picked:
        """The next in the turns of their tenants, beginning where the last ones ended."""
        rows: list[StoredWaiting] = []
        behind: dict[str, str] = {}
        tenant, granted, is_kept, rounds = state.cursor, state.granted, False, 0
        for _ in range(MOST_QUERIES):
            if len(rows) >= most or rounds > 1:
                break
            after = behind.get(tenant, f"{tenant}#") if granted else f"{tenant}$" if tenant else ""
            page = self.flows.waiting(flow, after=after, limit=min(granted or _PAGE, most - len(rows)))
            following = page[0].tenant if page else ""
            if granted and following != tenant:
                granted = 0  # it has nothing left
                continue
            if not following:
                tenant, rounds = "", rounds + 1
                continue
            if not granted:
                tenant, granted = following, self._grant(following)
                is_kept |= not granted
                if granted and rounds and [tenant] == list(behind):
                    granted = most - len(rows)  # nobody else waits
                if not granted or tenant in behind:
                    continue
            mine = [row for row in page if row.tenant == tenant][:granted]
            behind[tenant], granted = mine[-1].place, granted - len(mine)
            readable = [row for row in mine if row.timer is not None]
            is_kept |= len(readable) < len(mine)
            rows += readable
            rounds = 0
        return _Picked(rows, tenant, granted, is_all=rounds > 1 and not is_kept)

    def _next_in_order(self, flow: FlowId, state: FlowState, most: int) -> _Picked:
        """The one that may run, where it waits here and its tenant is not paused."""
        found = self.flow_orders.next_waiting(flow) if most else None
        is_ready = found is not None and found.timer is not None and self._grant(found.tenant) > 0
        return _Picked([found] if found is not None and is_ready else [], state.cursor, state.granted, is_all=False)

    def _grant(self, tenant: str) -> int:
        """Jobs of its turn; none of a paused tenant. Those of a deleted one leave, and are forgotten by the worker."""
        plan = self.plans.of(tenant)
        return 0 if plan.is_paused and not plan.is_deleted else grant(QUANTUM, plan.weight)

    def _send_out(self, flow: FlowId, rows: Sequence[StoredWaiting], instants: Sequence[datetime]) -> bool:
        """Whether all of them were taken; what was not keeps its place in the room."""
        timers = [
            row.timer.with_turn(_place_of(flow, row.timer), starts_at=starts_at)
            for row, starts_at in zip(rows, instants, strict=False)
            if row.timer is not None
        ]
        placed = self.placer.place(timers)
        sent = [row.place for row, placement in zip(rows, placed, strict=True) if placement.ring is not None]
        self.flows.remove(flow, sent)
        self.journal.event("flow_let_out", flow=str(flow), count=len(sent))
        return len(sent) == len(rows)

    def _plan_turn(self, flow: FlowId, *, at: datetime) -> None:
        self._send(turn_of(flow, at=at))
        self.flows.note_turn(flow, at)

    def _send(self, turn: Timer) -> None:
        """Past the pacer: a turn waits for no cap, and no pause. Raises NotPlaced."""
        for rejected in self.ready.send([turn]):
            raise NotPlaced([rejected.reason])


def _is_overdue(state: FlowState, *, now: datetime) -> bool:
    """Whether no turn is to be expected any more."""
    return state.turn_at is None or state.turn_at + STALE < now


def _place_of(flow: FlowId, timer: Timer) -> int:
    """Which of the flows that its job names it is."""
    names = [FlowId(named.owner_of(timer.job.tenant), named.key) for named in timer.job.flows]
    return names.index(flow)
