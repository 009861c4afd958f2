"""How many jobs of each class may go out in a tick: as the stage has published, or as if every ready queue were empty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from functions.domain.far_ring.fairness import budgets_of
from functions.domain.jobs.job import Priority
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.shards import ShardStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """Reads budgets. capacity: jobs that a ready queue may hold."""

    wheel: Wheel
    clock: Clock
    shards: ShardStore
    capacity: int

    def of_a_tick(self) -> Mapping[Priority, int]:
        """One read. A class that is not among them may send any number."""
        conditions = self.shards.conditions()
        is_fresh = conditions is not None and conditions.is_fresh(self.clock.now())
        # A publisher that has stopped must not stop promotion for good, nor be taken for leave to flood the queues.
        return conditions.budgets if conditions is not None and is_fresh else self.empty

    @property
    def empty(self) -> Mapping[Priority, int]:
        """The budgets of a tick if every ready queue were empty."""
        return budgets_of(dict.fromkeys(Priority, 0), capacity=self.capacity, shards=self.wheel.scan_shards)
