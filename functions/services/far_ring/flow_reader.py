"""What goes on in flows, for those who ask: it changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from functions.domain.jobs.job_id import JobId
from functions.domain.targets.flows import (
    FlowFigures,
    FlowId,
    FlowLimits,
    FlowState,
    FlowWait,
    earliest_start,
    limits_named,
    place_in_room,
)
from functions.ports.clock import Clock
from functions.ports.flows import FlowStore
from functions.ports.targets import PermitStore

MOST_COUNTED = 1_000
"""Jobs in a room that are counted: where more wait, an answer says at least so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowReader:
    """Reads flows as they are."""

    clock: Clock
    flows: FlowStore
    permits: PermitStore

    def figures(self, flow: FlowId) -> FlowFigures | None:
        """None of a flow that has no limits and that nothing has used of late.

        Three read units, half of one for each 4 KB of what waits, a megabyte at most, and for each 50 permits.
        """
        state, now = self.flows.state(flow), self.clock.now()
        limits, is_set = self._limits(flow)
        if not is_set and state == FlowState():
            return None
        places, has_more = self.flows.places(flow, limit=MOST_COUNTED)
        return FlowFigures(
            limits=limits,
            is_set=is_set,
            waiting=len(places),
            tenants=len({place.partition("#")[0] for place in places}),
            has_more=has_more,
            next_start_at=earliest_start(state, limits, now=now),
            running=self._running(flow, limits.concurrency) if limits.concurrency is not None else None,
        )

    def wait_of(self, job_id: JobId, flow: FlowId) -> FlowWait | None:
        """How a job waits in the room of a flow; None where it has left that.

        Three read units, and half of one for each 4 KB of what its tenant has there before it, a megabyte at most.
        """
        own = place_in_room(job_id.tenant, scheduled_at=job_id.due_at, identity=job_id.identity)
        places, has_more = self.flows.places(flow, after=f"{job_id.tenant}#", upto=own, limit=MOST_COUNTED)
        if not has_more and own not in places:
            return None
        before = len(places) if has_more else len(places) - 1
        limits, _ = self._limits(flow)
        starts_at = earliest_start(self.flows.state(flow), limits, now=self.clock.now(), behind=before)
        return FlowWait(flow=flow, limits=limits, before=before, starts_at=starts_at)

    def _limits(self, flow: FlowId) -> tuple[FlowLimits, bool]:
        """Those in effect, and whether they were set: else they are those of the job that goes next."""
        found = self.flows.limits(flow)
        if found is not None:
            return found, True
        first = next(iter(self.flows.waiting(flow, after="", limit=1)), None)
        timer = first.timer if first is not None else None
        named = limits_named(flow, timer.job.flows, tenant=timer.job.tenant) if timer is not None else None
        return named or FlowLimits(), False

    def _running(self, flow: FlowId, limit: int) -> int:
        now = self.clock.now()
        return sum(until > now for until in self.permits.leases(str(flow), limit=limit).values())
