"""How large a stage is: one that `infra/stage.py` accepts, its account's quotas, and the past of its tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

from functions.domain.wheel import Wheel
from infra.stage import PRIORITIES, Stage
from infra.throughput import FOR_A_HERD, NEW_TABLE_READS, NEW_TABLE_WRITES
from simulation.limits import Limits

ROW_BYTES = 600
"""Of a far row, names included: a payload of 300 bytes. Up to 1,024 it costs one write unit."""


def like(stage: Stage, *, shards: int | None = None, **changes: Any) -> Stage:
    """A stage with changes, which it checks like any other. Raises InvalidStage."""
    wheel = stage.wheel if shards is None else replace(stage.wheel, write_shards=shards, scan_shards=shards)
    return replace(stage, name="simulated", wheel=wheel, **changes)


SCALE = Stage.named("scale")
"""The stage for the mission's load."""

HERD = like(SCALE, warm_throughput={**SCALE.warm_throughput, **FOR_A_HERD})
"""The same for five million schedules without a spread, at one instant."""

PROD = Stage.named("prod")
"""The stage that a new account can take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What a table on demand has seen: the most units of a second, and what it holds now."""

    writes: float = 0.0
    reads: float = 0.0
    gigabytes: float = 0.0


WAITING: Mapping[str, Past] = {"timers": Past(gigabytes=500e6 * (ROW_BYTES + 100) / 1e9)}
"""500 million rows wait, each billed with another 100 bytes: what a scenario simulates comes on top of them."""


@dataclass(frozen=True, slots=True)
class Room:
    """What a table takes: its partitions, and its quotas. is_raised: whether a quota is not the default one."""

    partitions: int
    writes: float
    reads: float
    is_raised: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """An event source: concurrent invocations at first, a second more, and at most. polls: a second, for each of them."""

    start: float
    growth: float
    most: float
    polls: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSize:
    """What a scenario runs on.

    past: of tables, by name; those without one are new. old_shards, resharded_at: how many shards were written before that
    second.
    """

    stage: Stage = SCALE
    past: Mapping[str, Past] = field(default_factory=dict[str, Past])
    old_shards: int | None = None
    resharded_at: float = 0.0

    @property
    def shards(self) -> int:
        """Shards that are scanned."""
        return self.stage.wheel.scan_shards

    def wheel(self, *, write_shards: int | None = None) -> Wheel:
        """Its constants."""
        return replace(self.stage.wheel, write_shards=write_shards or self.stage.wheel.write_shards)

    def room_of(self, table: str, limits: Limits) -> Room:
        """What a table takes at once.

        On demand it takes what it was warmed to, or twice the most it has seen, and at least what a new one does; a partition
        takes no more than its own limit of that, so it has as many, or as many as its data fills. Where a stage asks for more
        than the default quota, that was raised as far.
        """
        warm, past = self.stage.warm_throughput.get(table), self.past.get(table, Past())
        writes = max(NEW_TABLE_WRITES, warm.writes if warm else 0, limits.grown_peak * past.writes)
        reads = max(NEW_TABLE_READS, warm.reads if warm else 0, limits.grown_peak * past.reads)
        partitions = max(
            ceil(writes / limits.partition_write_units),
            ceil(reads / limits.partition_read_units),
            ceil(past.gigabytes / limits.partition_gb),
        )
        quotas = [max(limits.table_units, asked) for asked in ((warm.writes, warm.reads) if warm else (0, 0))]
        return Room(partitions, *quotas, is_raised=max(quotas) > limits.table_units)

    def source_of(self, number: int, limits: Limits) -> Source:
        """The event source of a class."""
        pollers, most = self.stage.pollers[number], self.stage.workers[number]
        if pollers is None:
            return Source(limits.source_start, limits.source_growth, limits.source_most if most is None else most)
        share = pollers.concurrency / pollers.maximum
        return Source(
            pollers.minimum * share, limits.provisioned_growth, pollers.concurrency, polls=limits.provisioned_polls
        )

    def words(self, limits: Limits, tables: tuple[str, ...]) -> Iterator[str]:
        """What it consists of, for a report: each quota that has to be raised is named."""
        stage = self.stage
        yield f"{self.shards:,} shards, workers of {stage.worker.memory_mb:,} MB, ready_capacity {stage.ready_capacity:,}"
        sources = [self.source_of(number, limits) for number in range(len(PRIORITIES))]
        kinds = "provisioned event sources" if any(stage.pollers) else "standard event sources"
        yield f"{kinds}: " + ", ".join(
            f"{priority} {source.start:,.0f} to {source.most:,.0f} invocations"
            for priority, source in zip(PRIORITIES, sources, strict=True)
        )
        is_raised = stage.concurrency > limits.concurrency
        yield f"concurrency {stage.concurrency:,} and the API" + (
            f": the account's quota is raised from {limits.concurrency:,.0f}" if is_raised else ""
        )
        rooms = {table: self.room_of(table, limits) for table in tables}
        new = Room(ceil(NEW_TABLE_WRITES / limits.partition_write_units), limits.table_units, limits.table_units)
        for table, room in rooms.items():
            if room != new:
                raised = f" (raised from {limits.table_units:,.0f})" if room.is_raised else ""
                yield f"{table}: {room.partitions:,} partitions, quota {room.writes:,.0f} write units/s{raised}"
        if new in rooms.values():
            yield f"every other table is new: {new.partitions} partitions, quota {new.writes:,.0f} units/s"
