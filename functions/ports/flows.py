"""The flows that jobs share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from functions.domain.jobs.job import Timer
from functions.domain.targets.flows import FlowId, FlowLimits, FlowOrder, FlowState, OrderRow
from functions.ports.ledger import Applied


@dataclass(frozen=True, slots=True)
class NoRoom:
    """A flow lets nothing more start now. next_at: its theoretical arrival time. is_waited_for: somebody is before it."""

    next_at: datetime | None
    is_waited_for: bool = False


@dataclass(frozen=True, slots=True)
class StoredWaiting:
    """What waits in a room. place: its key there. timer: None where a newer Tickwheel has written it."""

    place: str
    tenant: str
    timer: Timer | None


class FlowStore(Protocol):
    """Limits and states of flows, and the rooms in which jobs wait for them."""

    def limits(self, flow: FlowId) -> FlowLimits | None:
        """The limits that were set for a flow, as of some moment before."""
        ...

    def page(self, owner: str, *, after: str, limit: int) -> tuple[dict[str, FlowLimits], bool]:
        """The flows of an owner whose limits were set, by their keys behind one; whether there are more."""
        ...

    def set_limits(self, flow: FlowId, limits: FlowLimits) -> None:
        """Set limits for a flow."""
        ...

    def forget_limits(self, flow: FlowId) -> bool:
        """Set none any more; whether there were some."""
        ...

    def spend(
        self, flow: FlowId, *, cost: timedelta, now: datetime, latest: datetime, has_had_turn: bool
    ) -> Applied | NoRoom:
        """Add a cost to the theoretical arrival time, or to now, unless it is past `latest`, or somebody waits."""
        ...

    def refund(self, flow: FlowId, *, cost: timedelta) -> None:
        """Take a cost back that was spent for nothing."""
        ...

    def state(self, flow: FlowId) -> FlowState:
        """As of all writes before."""
        ...

    def is_waited_for(self, flow: FlowId) -> bool:
        """Whether somebody waits, as of some moment before."""
        ...

    def wait(self, flow: FlowId, timer: Timer) -> None:
        """Keep a timer in the room, in the order of its job's time within its tenant. Repeating it changes nothing."""
        ...

    def note_entry(self, flow: FlowId) -> FlowState:
        """Count an entry, so that nobody takes the room for empty who looked before; the state after it."""
        ...

    def note_turn(self, flow: FlowId, turn_at: datetime) -> None:
        """Note when the room is looked at next."""
        ...

    def waiting(self, flow: FlowId, *, after: str, limit: int) -> list[StoredWaiting]:
        """The first that wait behind a place, in the order of their places, as of all writes before."""
        ...

    def places(self, flow: FlowId, *, after: str = "", upto: str = "", limit: int) -> tuple[list[str], bool]:
        """The first places behind one, and up to another, that are taken, as of some moment before; whether there are more.

        Without their timers: fewer than the limit, where these are large.
        """
        ...

    def waited_for(self, *, after: str, limit: int) -> tuple[set[FlowId], str]:
        """Flows for which something waits, among so many rows, as of some moment before; from where to go on, empty at the end.

        after: empty for the beginning, what an answer said, or anything else for any place.
        """
        ...

    def line_up(self, flow: FlowId, row: OrderRow) -> None:
        """Put a job into the order. Repeating it only changes when it may be forgotten."""
        ...

    def order(self, flow: FlowId) -> FlowOrder:
        """Who runs and who is first, as of all writes before."""
        ...

    def hold(self, flow: FlowId, row: OrderRow) -> bool:
        """Let a job start, if no other has: none does until it is finished. Repeating it changes nothing."""
        ...

    def miss(self, flow: FlowId, *, now: datetime, holder: OrderRow | None = None) -> None:
        """Note that nothing is known of who is first in the order. Of its holder: if it still is that, once."""
        ...

    def finish(self, flow: FlowId, place: str) -> None:
        """A job has ended: it is taken out of the order, and another may start. Repeating it changes nothing."""
        ...

    def release(self, flow: FlowId, place: str) -> None:
        """A job that has not started lets another one start, and keeps its place. Repeating it changes nothing."""
        ...

    def waiting_at(self, flow: FlowId, place: str) -> StoredWaiting | None:
        """What waits in the room at a place, as of all writes before."""
        ...

    def leave(self, flow: FlowId, *, seen: FlowState, state: FlowState) -> bool:
        """Note what leaves the room, if nothing has left it since `seen`."""
        ...

    def remove(self, flow: FlowId, places: Sequence[str]) -> None:
        """Take out of the room what has left it."""
        ...

    def close(self, flow: FlowId, *, seen: FlowState) -> bool:
        """Note that nobody waits, if nobody has entered since `seen`."""
        ...
