"""How many jobs a tick may promote: the room that the ready queues have left, divided by the shards.

However many scanners there are, the queues stay bounded, and what does not fit is bounded lag in the durable store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from functions.domain.fairness import budgets_of
from functions.domain.job import Priority
from functions.domain.wheel import Wheel
from functions.ports import Journal, ReadyDepths, ShardStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """Publishes budgets. capacity: jobs that a ready queue may hold, delayed and in flight included."""

    wheel: Wheel
    ready: ReadyDepths
    shards: ShardStore
    journal: Journal
    capacity: int

    def publish(self) -> Mapping[Priority, int]:
        """The budget of a shard's tick by class, until the next minute's."""
        depths = self.ready.depths()
        budgets = budgets_of(depths, capacity=self.capacity, shards=self.wheel.scan_shards)
        self.shards.publish(budgets)
        self.journal.event(
            "budgets_published",
            depths={priority.name.lower(): depth for priority, depth in depths.items()},
            budgets={priority.name.lower(): budget for priority, budget in budgets.items()},
        )
        return budgets
