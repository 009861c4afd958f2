"""The limits of flows, as a process knows them."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import timedelta

from functions.domain.targets.flows import FlowId, FlowLimits, NamedFlow
from functions.ports.clock import Clock
from functions.ports.flows import FlowStore
from functions.services.stage.cache_age import ReadAt

KNOWN_FOR = timedelta(seconds=30)
"""As long as a plan is known. A change takes effect everywhere within a minute."""

MOST_KNOWN = 10_000
NO_LIMITS = FlowLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFlowLimits:
    """The limits that were set for flows, as a process knows them."""

    clock: Clock
    flows: FlowStore
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _known: dict[FlowId, tuple[ReadAt, FlowLimits | None]] = field(default_factory=dict, init=False)

    def of(self, flow: FlowId) -> FlowLimits | None:
        """As of at most half a minute before. Raises what the store raises."""
        known = self._known.get(flow)
        if known is not None and not known[0].is_older_than(KNOWN_FOR, clock=self.clock):
            return known[1]
        read_at = ReadAt.now(self.clock)
        limits = self.flows.limits(flow)
        with self._lock:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[flow] = (read_at, limits)
        return limits

    def of_named(self, flow: FlowId, named: NamedFlow) -> FlowLimits:
        """Those that count for a job: what was set for the flow, else what the job says."""
        return self.of(flow) or named.limits or NO_LIMITS
