"""What the physical partitions of a table take in each second, and when they refuse.

A sample of the shards is simulated, and a partition is shared by all of them. So each operation on a sampled shard is
counted once more for each shard that it stands for, on the partition that that one's key hashes onto.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import xxhash
from numpy.typing import NDArray

from simulation.limits import Limits
from simulation.size import Room

Loads = NDArray[np.float64]


def _uses(limits: Limits, room: Room) -> tuple[Use, Use]:
    """Of reads, and of writes."""
    window = int(limits.quota_window)
    return Use(room.reads, window), Use(room.writes, window)


@dataclass(slots=True)
class Use:
    """Units that a table was asked for, by the second.

    quota: units a second of the whole table. window: seconds over which its use is looked at. throttled: calls of the sample
    that were refused, those beyond the quota included. peak: units of the fullest partition in one second; above its limit,
    some of them are refused too. total: all units.
    """

    quota: float
    window: int
    units: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    throttled: int = 0
    over_quota: int = 0
    peak: float = 0.0
    peak_of_table: float = 0.0
    total: float = 0.0
    _spread: dict[int, float] = field(default_factory=lambda: defaultdict(float))

    def is_within_quota(self, second: int, units: float) -> bool:
        """Whether the quota has so much left; if not, that is counted."""
        if self._lately(second) + units <= self.quota * self.window:
            return True
        self.over_quota += 1
        self.throttled += 1
        return False

    def note(self, second: int, units: float) -> None:
        """The table takes so many units in that second."""
        self._spread[second] += units
        self.peak_of_table = max(self.peak_of_table, self._lately(second) / self.window)

    def _lately(self, second: int) -> float:
        return sum(self._spread.get(second - before, 0.0) for before in range(self.window))

    def add(self, second: int, units: float) -> None:
        """The units that were asked for in that second."""
        self.units[second] += units
        self.total += units


class Sample:
    """Which shards are simulated, and for which others each of them stands.

    shards: of the stage, all; sampled: the ones that are simulated.
    """

    def __init__(self, shards: int, sampled: tuple[int, ...]) -> None:
        self.shards = shards
        self.sampled = sampled
        others = sorted(set(range(shards)) - set(sampled))
        self._stands_for = {shard: (shard, *others[place :: len(sampled)]) for place, shard in enumerate(sampled)}

    @property
    def share(self) -> float:
        """Of the stage."""
        return len(self.sampled) / self.shards

    def stands_for(self, shard: int) -> tuple[int, ...]:
        """The shard itself, and those beside it that are not simulated."""
        return self._stands_for[shard]


class ShardedTable:
    """The timers: a key is a bucket and a shard, and hashes onto a partition.

    Without bursts: capacity that a partition has saved is not guaranteed, and none of it is counted on.
    """

    def __init__(self, limits: Limits, sample: Sample, room: Room) -> None:
        self._limits = limits
        self._sample = sample
        self._partitions = room.partitions
        self._weights: dict[tuple[int, int, bool], dict[int, tuple[Loads, float]]] = {}
        self._loads: dict[tuple[bool, int], Loads] = {}
        self.reads, self.writes = _uses(limits, room)

    def take(
        self, bucket: int, shard: int, *, at: float, units: float, is_read: bool = False, is_ticked: bool = True
    ) -> bool:
        """Whether the partition of a key grants so many units in that second.

        is_ticked: a scanner asks. Those of the other shards ask the same when they tick, within half a minute; whoever
        submits to other shards does it now.
        """
        use = self.reads if is_read else self.writes
        most = self._limits.partition_read_units if is_read else self._limits.partition_write_units
        load = self._load_at(int(at), is_read=is_read)
        if load[self.partition_of(bucket, shard)] + units > most:
            use.throttled += 1
            return False
        if not use.is_within_quota(int(at), units):
            return False
        for offset, (weights, keys) in self._weights_of(bucket, shard, is_ticked=is_ticked).items():
            second = int(at) + offset
            later = self._load_at(second, is_read=is_read)
            later += weights * units
            use.peak = max(use.peak, float(later.max()))
            use.note(second, keys * units)
        use.add(int(at), units / self._sample.share)
        return True

    def partition_of(self, bucket: int, shard: int) -> int:
        """Which partition holds a key."""
        return xxhash.xxh3_64_intdigest(f"{bucket}#{shard:04d}".encode()) % self._partitions

    def _load_at(self, second: int, *, is_read: bool) -> Loads:
        key = (is_read, second)
        load = self._loads.get(key)
        if load is None:
            load = self._loads[key] = np.zeros(self._partitions)
            if len(self._loads) > _REMEMBERED_SECONDS:
                del self._loads[next(iter(self._loads))]
        return load

    def _weights_of(self, bucket: int, shard: int, *, is_ticked: bool) -> dict[int, tuple[Loads, float]]:
        """How often each partition is hit, and how many keys are, by how many seconds later than the sampled one they are."""
        found = self._weights.get((bucket, shard, is_ticked))
        if found is None:
            hits: dict[int, Loads] = {}
            for other in self._sample.stands_for(shard):
                offset = 0 if other == shard or not is_ticked else other % int(self._limits.tick_jitter)
                weights = hits.setdefault(offset, np.zeros(self._partitions))
                weights[self.partition_of(bucket, other)] += 1
            found = {offset: (weights, float(weights.sum())) for offset, weights in hits.items()}
            self._weights[bucket, shard, is_ticked] = found
        return found


_REMEMBERED_SECONDS = 1_500


class SpreadTable:
    """A table whose keys are hashes: its load is even over its partitions, but for chance.

    The fullest of P partitions that n units fall onto at random holds about m + sqrt(2 m ln P), where m = n / P
    (Raab and Steger, "Balls into Bins", 1998, for m >> ln P).
    """

    def __init__(self, limits: Limits, sample: Sample, room: Room) -> None:
        self._limits = limits
        self._share = sample.share
        self._partitions = room.partitions
        # The shards that a sampled one stands for tick with it, in its part of the time in which all do.
        self._apart = max(1, round(limits.tick_jitter / len(sample.sampled))) if sample.share < 1 else 1
        self.reads, self.writes = _uses(limits, room)

    def take(self, *, at: float, units: float, is_read: bool, is_ticked: bool = False) -> bool:
        """Whether the table grants so many units in that second.

        is_ticked: a scanner asks. Those of the other shards ask the same when they tick.
        """
        use = self.reads if is_read else self.writes
        most = self._limits.partition_read_units if is_read else self._limits.partition_write_units
        seconds = range(int(at), int(at) + (self._apart if is_ticked else 1))
        each = units / self._share / len(seconds)
        if (use.units[int(at)] + each) / self._partitions > most:
            use.throttled += 1
            return False
        if not use.is_within_quota(int(at), each):
            return False
        for second in seconds:
            use.add(second, each)
            use.note(second, each)
            use.peak = max(use.peak, self._fullest(use.units[second]))
        return True

    def _fullest(self, units: float) -> float:
        mean = units / self._partitions
        return mean + math.sqrt(2 * mean * math.log(self._partitions)) if self._partitions > 1 else mean
