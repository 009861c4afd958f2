"""How large a stage is: its shards, its partitions, and what its functions may have."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from functions.domain.wheel import Wheel

SHED_AFTER = timedelta(minutes=5)
DELIVERY_MARGIN = timedelta(seconds=30)
TICK_LIMIT = timedelta(seconds=60)
ROW_BYTES = 600
"""Of a far row, names included: a payload of 300 bytes. Up to 1,024 it costs one write unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSize:
    """What a stage has. partitions: physical ones of the timers, and of the ledger and the other tables.

    most: concurrent invocations of each class, critical first. growth, start: of each event source in its place, where
    it is not the standard one. old_shards, resharded_at: how many shards were written before that second.
    """

    shards: int = 512
    partitions: int = 256
    ledger_partitions: int = 512
    ready_capacity: int = 6_000_000
    most: tuple[float, float, float, float] = (1_000, 1_000, 1_000, 200)
    growth: float | None = None
    start: float | None = None
    worker_mb: int = 1_024
    scanner_mb: int = 1_769
    worker_limit: timedelta = timedelta(seconds=120)
    old_shards: int | None = None
    resharded_at: float = 0.0

    def wheel(self, *, write_shards: int | None = None) -> Wheel:
        """The constants of a stage on AWS."""
        return Wheel(
            bucket=timedelta(seconds=60),
            lookahead=timedelta(seconds=120),
            skew=timedelta(seconds=60),
            guard=timedelta(seconds=240),
            write_shards=write_shards or self.shards,
            scan_shards=self.shards,
        )

    def visibility(self, wheel: Wheel) -> timedelta:
        """How long a received message stays hidden."""
        return self.worker_limit + wheel.skew + DELIVERY_MARGIN
