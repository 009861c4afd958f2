"""Partitions: what they grant in a second, and what the shards that are not simulated take of it."""

import numpy as np
import pytest

from simulation.limits import Limits, known
from simulation.partitions import Sample, ShardedTable, SpreadTable

BUCKET = 1_800_000_000
LIMITS = Limits()


def a_table(*, shards: int = 512, sampled: tuple[int, ...] = (0,), partitions: int = 256) -> ShardedTable:
    return ShardedTable(LIMITS, Sample(shards, sampled), partitions=partitions)


def test_a_partition_throttles_above_its_write_units() -> None:
    table = a_table(shards=1, partitions=1)

    granted = [table.take(BUCKET, 0, at=5.5, units=1, is_ticked=False) for _ in range(1_005)]

    assert sum(granted) == 1_000
    assert table.writes.throttled == 5
    assert table.take(BUCKET, 0, at=6.0, units=1, is_ticked=False)


def test_reads_and_writes_throttle_apart() -> None:
    table = a_table(shards=1, partitions=1)
    table.take(BUCKET, 0, at=5.5, units=1_000, is_ticked=False)

    assert table.take(BUCKET, 0, at=5.5, units=3_000, is_read=True)
    assert not table.take(BUCKET, 0, at=5.5, units=1, is_read=True)


def test_every_shard_is_stood_for_once() -> None:
    sample = Sample(512, (0, 7, 300))

    stood_for = [shard for sampled in sample.sampled for shard in sample.stands_for(sampled)]

    assert sorted(stood_for) == list(range(512))
    assert sample.stands_for(7)[0] == 7


def test_the_fullest_of_512_keys_on_256_partitions_is_that_of_the_hashes() -> None:
    """50,000 writes a second into one bucket: 97.7 for each of 512 keys, and several keys on the fullest partition."""
    table = a_table(sampled=tuple(range(0, 512, 8)))
    keys = np.bincount([table.partition_of(BUCKET, shard) for shard in range(512)])

    for shard in range(0, 512, 8):
        assert table.take(BUCKET, shard, at=1.0, units=97, is_ticked=False)

    assert table.writes.peak == 97 * keys.max()
    assert table.writes.peak < 1_000
    assert table.writes.peak_of_table == pytest.approx(97 * 512)


def test_the_load_of_the_others_throttles_a_sampled_shard() -> None:
    table = a_table(shards=64, sampled=(0,), partitions=1)

    granted = [table.take(BUCKET, 0, at=1.0, units=1, is_ticked=False) for _ in range(20)]

    assert sum(granted) == 16  # of 64 shards each: 1,024 writes


def test_other_scanners_tick_within_half_a_minute() -> None:
    table = a_table(shards=64, sampled=(0,), partitions=1)

    granted = [table.take(BUCKET, 0, at=1.0, units=1) for _ in range(20)]

    assert all(granted)
    assert table.writes.peak == 20 * 3  # those with the same offset


def test_a_table_of_hashes_throttles_when_its_partitions_are_full() -> None:
    table = SpreadTable(LIMITS, Sample(512, (0, 1)), partitions=4)

    granted = [table.take(at=1.0, units=1, is_read=False) for _ in range(20)]

    assert sum(granted) == 15  # 256 each: 3,840 of 4,000
    assert table.writes.throttled == 5
    assert 960 < table.writes.peak < 1_100


def test_every_limit_says_where_it_comes_from() -> None:
    limits = known(LIMITS)

    assert {limit.name for limit in limits} == set(Limits.__slots__)
    assert all(limit.unit and limit.source and limit.value > 0 for limit in limits)
