"""Leases, cursors and recorded facts of shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from functions.domain.far_ring.cursor import BucketAuditPosition, Cursors, Position, ShardProgress, SweepPosition
from functions.domain.far_ring.written_shards import WrittenShards
from functions.domain.stage.conditions import Conditions
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock


@dataclass(frozen=True, slots=True)
class ShardLease:
    """A shard that this scanner may scan. epoch: the fence of its checkpoints. cursors: None on the first tick ever.

    taken_at: when the tick began. sequence: of its checkpoints, so that a repeated write that lands late takes nothing back.
    has_died: whoever had it before did not give it back. died_at: the alarm that it was handling then, as far as it had recorded.
    """

    shard: int
    owner: str
    epoch: int
    cursors: Cursors | None
    taken_at: datetime
    sequence: int = 0
    has_died: bool = False
    died_at: Position | None = None


class ShardStore(Protocol):
    """Who scans a shard, and how far it has come; how far the sweeper has; the recorded constants."""

    def acquire(
        self, shard: int, *, owner: str, now: datetime, lease_until: datetime, skew: timedelta
    ) -> ShardLease | None:
        """Take the lease of a shard; None while another scanner has it."""
        ...

    def checkpoint(
        self, lease: ShardLease, cursors: Cursors, *, lease_until: datetime | None, next_alarm: Position | None = None
    ) -> bool:
        """Record cursors and prolong the lease, or give it back (None). next_alarm: the alarm that is handled next.

        False when a newer epoch has begun, or when a later checkpoint has been recorded.
        """
        ...

    def cursors(self, shards: Sequence[int]) -> dict[int, Cursors]:
        """The recorded cursors of those shards that have any."""
        ...

    def progress(self, shards: Sequence[int]) -> dict[int, ShardProgress]:
        """How those shards stand that have recorded cursors."""
        ...

    def conditions(self) -> Conditions | None:
        """The conditions of the stage as last published; None before the first."""
        ...

    def publish(self, conditions: Conditions) -> None:
        """Let everybody know them: the next tick of each shard has their budgets."""
        ...

    def audited(self) -> BucketAuditPosition | None:
        """How far the audit has come; None before the first."""
        ...

    def swept(self) -> SweepPosition | None:
        """How far the sweep of the schedules has come; None before the first."""
        ...

    def advance_sweep(self, *, before: SweepPosition | None, to: SweepPosition) -> bool:
        """Record how far the sweep of the schedules has come, if it still stands at `before`."""
        ...

    def advance_audit(self, *, before: BucketAuditPosition | None, to: BucketAuditPosition) -> bool:
        """Record how far the audit has come, if it still stands at `before`."""
        ...

    def confirm(self, wheel: Wheel, *, clock: Clock) -> None:
        """Record the constants of the stage, or compare them with the recorded ones. Raises WheelChanged.

        Before the first write of whoever has them: from when on which shards are written is recorded with them.
        """
        ...

    def written(self) -> WrittenShards | None:
        """The shards that were written so far, as of all writes before; None before the first who confirms."""
        ...
