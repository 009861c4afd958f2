"""The conditions of the stage: how many jobs a tick may promote, how far it is behind, and what is shed meanwhile.

The budget of a class is the room that its ready queue has left, divided by the shards: however many scanners there are,
the queues stay bounded, and what does not fit is bounded lag in the durable store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from functions.domain.far_ring.fairness import budgets_of
from functions.domain.instants import EPOCH
from functions.domain.jobs.job import Priority
from functions.domain.stage.conditions import Conditions, lags_of, shed_at, worst_of
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.ready_queue import ReadyDepths
from functions.ports.recorder import Journal
from functions.ports.shards import ShardStore
from functions.ports.tenants import TenantPlans


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """Publishes conditions. capacity: jobs that a ready queue may hold, delayed and in flight included.

    shed_after: the lag from which on submissions are refused, `low` first.
    """

    wheel: Wheel
    clock: Clock
    ready: ReadyDepths
    shards: ShardStore
    plans: TenantPlans
    journal: Journal
    capacity: int
    shed_after: timedelta

    def publish(self) -> Conditions:
        """The conditions until the next minute's."""
        now, before = self.clock.now(), self.shards.conditions()
        found = self.ready.depths()
        depths = {priority: depth.held for priority, depth in found.items()}
        waiting = {priority: depth.waiting for priority, depth in found.items()}
        cursors = self.shards.cursors(range(self.wheel.scan_shards))
        lags = lags_of(cursors, now=now)
        # While everybody is paused the scanners stand still on purpose.
        is_paused = self.plans.of_everybody().is_paused
        # Nothing is older in a new stage. Whoever has published last, and marked nothing, may have kept dead letters until now.
        marked_since = EPOCH if before is None else before.marked_since or now
        if before is None or not before.is_fresh(now):
            before = Conditions(published_at=now)
        # A shard without cursors has no lag, and may never have had a rule: it is behind since it was first missed.
        unseen_since = before.unseen_since or now if len(cursors) < self.wheel.scan_shards else None
        conditions = Conditions(
            published_at=now,
            budgets=budgets_of(depths, capacity=self.capacity, shards=self.wheel.scan_shards),
            depths=depths,
            waiting=waiting,
            lags=lags,
            shed=frozenset()
            if is_paused
            else shed_at(lags, before=before.lags, elapsed=now - before.published_at, limit=self.shed_after),
            marked_since=marked_since,
            unseen_since=unseen_since,
        )
        self.shards.publish(conditions)
        self.journal.event(
            "conditions_published",
            depths=_by_name(depths),
            waiting=_by_name(waiting),
            budgets=_by_name(conditions.budgets),
            lags=_by_name(lags),
            shed=[priority.name.lower() for priority in sorted(conditions.shed)],
        )
        # The lag of all shards, also of those whose scanners are silent or have never ticked.
        unseen_s = int((now - (unseen_since or now)).total_seconds())
        self.journal.observe("promotion_lag_s", 0 if is_paused else max(unseen_s, worst_of(lags)))
        for priority in Priority:
            # Of an empty queue both are what everybody knows, and a metric costs by the hours in which it has values.
            if depths.get(priority, 0):
                self.journal.observe("depth", depths[priority])
                self.journal.observe("budget", conditions.budgets[priority])
        if conditions.shed:
            self.journal.count("shedding")
        return conditions


def _by_name(counts: Mapping[Priority, int]) -> dict[str, int]:
    return {priority.name.lower(): count for priority, count in counts.items()}
