"""The lease of a shard, and the checkpoints that are written under it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from functions.domain.far_ring.cursor import Cursors, Position, first_cursors
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.recorder import AuditTrail
from functions.ports.shards import ShardLease, ShardStore

LEASE = timedelta(seconds=30)
"""Prolonged by every checkpoint: a tick that dies holds its shard no longer than this and SKEW."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leases:
    """Takes shards, and records how far they have come. token: a fresh owner token."""

    wheel: Wheel
    clock: Clock
    shards: ShardStore
    audit: AuditTrail
    token: Callable[[], str]

    def acquire(self, shard: int, *, now: datetime) -> ShardLease | None:
        """Take a shard; None while another scanner has it."""
        return self.shards.acquire(shard, owner=self.token(), now=now, lease_until=now + LEASE, skew=self.wheel.skew)

    def cursors_of(self, lease: ShardLease, *, now: datetime) -> Cursors:
        """How far its shard has come. One that nobody has scanned may hold rows that were written before its rule existed."""
        if lease.cursors is not None:
            return lease.cursors
        # Whose clock is wrong promotes nothing, but where it began is recorded.
        now, written = now - self.clock.offset(), self.shards.written()
        since = written and written.written_since(lease.shard, now=now)
        return first_cursors(self.wheel.first_bucket(now=now, written_since=since))

    def checkpoint(
        self, lease: ShardLease, cursors: Cursors, *, is_last: bool, next_alarm: Position | None = None
    ) -> bool:
        """Record cursors, and give the shard back where it is the last; False when another scanner has taken it over."""
        lease_until = None if is_last else self.clock.now() + LEASE
        # What is passed is not read again: should this tick die, nobody else reports how it ended.
        self.audit.flush()
        return self.shards.checkpoint(lease, cursors, lease_until=lease_until, next_alarm=next_alarm)
