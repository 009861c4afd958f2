"""Lets attempts through the flows that their jobs name: a call's token of each rate, and a permit of each concurrency.

    entry = gate.enter(timer, lease_until=...)
    match entry:
        case Entered():                 # claim, call, settle; then
            gate.leave(entry)
        case Later(until):              # it has had its turn, and is a moment too early: the same attempt, then
        case Waits():                   # its turn comes: gate.wait(timer, entry)

Tokens are taken when an attempt starts and at no other time, so a rate holds however messages are delayed. What has no
token enters the room of the flow, where it costs nothing until its turn.

**What it costs.** A job without flows: nothing. A call under a rate: a write unit. One under a bound of concurrency: two
write units and a read unit. A job that waits: the write that was refused, the note of its
parking where it is ledgered, a write unit for each KB to enter and again to leave, one to count its entry, its share of a turn, and a message.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from functions.domain.instants import SECOND
from functions.domain.jobs.job import Delivery, Timer
from functions.domain.targets.concurrency import Permit
from functions.domain.targets.flows import FlowId, FlowLimits
from functions.ports.clock import Clock
from functions.ports.flows import FlowStore, NoRoom
from functions.services.far_ring.flow_limits import KnownFlowLimits
from functions.services.far_ring.flow_order import FlowOrders
from functions.services.far_ring.flow_turns import SLOW, FlowTurns
from functions.services.targets.concurrency_limiter import ConcurrencyLimiter


@dataclass(frozen=True, slots=True)
class Entered:
    """It may start. permits: what it has of those of its flows that bound how many run at once."""

    permits: tuple[Permit, ...] = ()
    flows: tuple[FlowId, ...] = ()
    ordered: tuple[FlowId, ...] = ()
    timer: Timer | None = None


@dataclass(frozen=True, slots=True)
class Later:
    """Its flow has no token left for this moment."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Waits:
    """It has to wait for its turn. place: of the flow among those that its job names."""

    place: int
    flow: FlowId


Entry = Entered | Later | Waits


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowGate:
    """The flows of one process. jitter: a random number from 0 up to 1."""

    clock: Clock
    flows: FlowStore
    flow_limits: KnownFlowLimits
    flow_turns: FlowTurns
    flow_orders: FlowOrders
    limiter: ConcurrencyLimiter
    jitter: Callable[[], float]

    def enter(self, timer: Timer, *, lease_until: datetime) -> Entry:
        """What the attempt of a timer may do now. Raises what the stores raise: then nothing is taken."""
        taken = _Taken(self.flows, self.limiter)
        ordered: list[FlowId] = []
        try:
            for place, named in enumerate(timer.job.flows):
                flow = FlowId(named.owner_of(timer.job.tenant), named.key)
                limits = self.flow_limits.of_named(flow, named)
                refusal: Later | Waits | None = None
                is_ordered = limits.is_ordered and timer.job.delivery is Delivery.EXACTLY_ONCE
                if is_ordered and not self.flow_orders.start(flow, timer):
                    refusal = Waits(place, flow)
                    # Limits that were set later may give a job two orders: who holds one never waits for the other.
                    for other in ordered:
                        self.flow_orders.release(other, timer)
                elif is_ordered:
                    ordered.append(flow)
                if refusal is None:
                    refusal = self._take_token(timer, Waits(place, flow), limits, taken, is_first=is_ordered)
                if refusal is None and not self._take_permit(flow, limits, taken, lease_until=lease_until):
                    refusal = Waits(place, flow)
                if refusal is not None:
                    taken.give_back()
                    if isinstance(refusal, Waits) and limits.is_ordered and not is_ordered:
                        return Later(self.clock.now() + SLOW)  # the room is for those that have an order
                    return refusal
        except Exception:
            taken.give_back()
            raise
        return Entered(tuple(taken.permits.values()), tuple(taken.permits), tuple(ordered), timer if ordered else None)

    def wait(self, timer: Timer, waits: Waits) -> None:
        """Keep an attempt in the room of a flow until its turn. Raises what the stores raise: then its message stays."""
        self.flow_turns.enter(waits.flow, timer)

    def leave(self, entry: Entered) -> None:
        """The attempt is over. Never raises."""
        for flow, permit in zip(entry.flows, entry.permits, strict=True):
            self.limiter.give_back(permit)
            if flow not in entry.ordered:
                self.flow_turns.hand_on(flow)
        for flow in entry.ordered:
            assert entry.timer is not None
            self.flow_turns.end(flow, entry.timer)

    def _take_token(
        self, timer: Timer, waits: Waits, limits: FlowLimits, taken: _Taken, *, is_first: bool = False
    ) -> Later | Waits | None:
        """is_first: in the order of the flow, before all who wait in its room."""
        flow, has_had_turn = waits.flow, is_first or waits.place in timer.turns
        if limits.rate is None:
            is_waited_for = not has_had_turn and self.flows.is_waited_for(flow)
            return waits if is_waited_for else None
        now, cost = self.clock.now(), limits.rate.interval
        latest = now + limits.tolerance
        answer = self.flows.spend(flow, cost=cost, now=now, latest=latest, has_had_turn=has_had_turn)
        if not isinstance(answer, NoRoom):
            taken.tokens[flow] = cost
            return None
        if not has_had_turn:
            return waits
        until = answer.next_at - limits.tolerance if answer.next_at is not None else now + SECOND
        return Later(until + cost * self.jitter())

    def _take_permit(self, flow: FlowId, limits: FlowLimits, taken: _Taken, *, lease_until: datetime) -> bool:
        if limits.concurrency is None:
            return True
        permit = self.limiter.take(str(flow), limit=limits.concurrency, lease_until=lease_until)
        if permit is not None:
            taken.permits[flow] = permit
        return permit is not None


@dataclass(frozen=True, slots=True)
class _Taken:
    """What an attempt has taken so far."""

    flows: FlowStore
    limiter: ConcurrencyLimiter
    tokens: dict[FlowId, timedelta] = field(default_factory=dict[FlowId, timedelta])
    permits: dict[FlowId, Permit] = field(default_factory=dict[FlowId, Permit])

    def give_back(self) -> None:
        """It does not start."""
        for permit in self.permits.values():
            self.limiter.give_back(permit)
        for flow, cost in self.tokens.items():
            self.flows.refund(flow, cost=cost)
