"""The sweep of the rooms of flows: one whose turn is overdue gets another.

The message of a turn lives for 14 days: where workers stand still for longer, or a message is lost, a room would stay shut until
something else enters it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from functions.domain.faults import fault_of
from functions.domain.targets.flows import FlowId
from functions.ports.flows import FlowStore
from functions.ports.recorder import Journal
from functions.services.far_ring.flow_turns import FlowTurns

PAGE = 500
"""Rows of the table of tenants that one sweep looks at: at most a megabyte, and few read units while rows are small."""

MOST_ROOMS = 50
"""Rooms that one sweep looks into: their turns are a read and at most two writes each. The others wait for the next pass."""


@dataclass(slots=True, kw_only=True)
class RoomOpener:
    """Looks for rooms a page at a time, each sweep where the one before ended.

    token: a fresh random text. Where a process begins is left to chance, and kept nowhere: a pass takes as long as the table is
    large, and what begins in the middle of it comes to its end as well.
    """

    flows: FlowStore
    flow_turns: FlowTurns
    journal: Journal
    token: Callable[[], str]
    _after: str | None = field(default=None, init=False)

    def sweep(self) -> int:
        """How many turns were sent anew. Never raises: neither chains nor buckets wait for rooms."""
        try:
            after = self.token() if self._after is None else self._after
            found, self._after = self.flows.waited_for(after=after, limit=PAGE)
        except Exception as error:  # noqa: BLE001  the next sweep reads the same page
            self.journal.event("flow_rooms_not_swept", error=fault_of(error))
            return 0
        return sum(self._reopen(flow) for flow in sorted(found, key=str)[:MOST_ROOMS])

    def _reopen(self, flow: FlowId) -> bool:
        try:
            is_sent = self.flow_turns.reopen(flow)
        except Exception as error:  # noqa: BLE001  one room must not keep the others shut
            self.journal.event("flow_rooms_not_swept", error=fault_of(error))
            return False
        if is_sent:
            self.journal.event("flow_turn_sent_anew", flow=str(flow))
        return is_sent
