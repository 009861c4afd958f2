"""Partitions: what they grant in a second, and what the shards that are not simulated take of it."""

import numpy as np
import pytest

from infra.stage_parts import InvalidStage
from simulation.limits import Limits, known
from simulation.partitions import Sample, ShardedTable, SpreadTable
from simulation.size import PROD, SCALE, Past, Room, StageSize, like

BUCKET = 1_800_000_000
LIMITS = Limits()


def a_table(*, shards: int = 512, sampled: tuple[int, ...] = (0,), partitions: int = 256) -> ShardedTable:
    return ShardedTable(LIMITS, Sample(shards, sampled), roomy(partitions))


def roomy(partitions: int) -> Room:
    """Partitions under a quota that is never reached."""
    return Room(partitions, writes=1e9, reads=1e9)


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
    # The use of a quota is looked at over five seconds.
    assert table.writes.peak_of_table == pytest.approx(97 * 512 / 5)


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
    table = SpreadTable(LIMITS, Sample(512, (0, 1)), roomy(4))

    granted = [table.take(at=1.0, units=1, is_read=False) for _ in range(20)]

    assert sum(granted) == 15  # 256 each: 3,840 of 4,000
    assert table.writes.throttled == 5
    assert 960 < table.writes.peak < 1_100


def test_what_a_tick_asks_of_a_table_of_hashes_is_asked_by_the_other_shards_when_they_tick() -> None:
    """Two of 512 shards: each stands for 256, which tick within a quarter of a minute."""
    table = SpreadTable(LIMITS, Sample(512, (0, 1)), roomy(4))

    granted = [table.take(at=1.0, units=1, is_read=False, is_ticked=True) for _ in range(240)]

    assert sum(granted) == 234  # 256 / 15 each: 3,994 of 4,000 in each of these seconds
    assert table.writes.total == pytest.approx(234 * 256)
    assert not table.take(at=15.9, units=1, is_read=False, is_ticked=True)
    assert table.take(at=16.0, units=1, is_read=False, is_ticked=True)


def test_a_tick_asks_by_itself_where_nothing_is_sampled() -> None:
    table = SpreadTable(LIMITS, Sample(2, (0, 1)), roomy(1))

    granted = [table.take(at=1.0, units=1, is_read=False, is_ticked=True) for _ in range(1_001)]

    assert sum(granted) == 1_000


@pytest.mark.parametrize("is_spread", [True, False], ids=["hashes", "shards"])
def test_the_quota_of_a_table_is_held_however_many_partitions_it_has(is_spread: bool) -> None:
    sample, room = Sample(64, (0,)), Room(1_000, writes=40_000, reads=40_000)
    spread, sharded = SpreadTable(LIMITS, sample, room), ShardedTable(LIMITS, sample, room)

    def write(second: float) -> bool:
        if is_spread:
            return spread.take(at=second, units=1, is_read=False)
        return sharded.take(BUCKET + int(second * 1_000), 0, at=second, units=1, is_ticked=False)

    granted = sum(write(number / 400) for number in range(4_000))

    # 64 units for each of them: 25,600 a second would be asked for a second, and a quota is 40,000.
    assert granted == 4_000
    more = sum(write(100 + number / 1_000) for number in range(10_000))
    assert more == pytest.approx(10 * 40_000 / 64, rel=0.02)
    assert (spread if is_spread else sharded).writes.over_quota == 10_000 - more


def test_a_new_table_has_four_partitions_and_the_default_quota() -> None:
    assert StageSize(stage=PROD).room_of("ledger", LIMITS) == Room(4, 40_000, 40_000)


def test_a_table_has_the_partitions_that_its_past_has_made() -> None:
    grown = StageSize(stage=PROD, past={"timers": Past(gigabytes=350), "ledger": Past(writes=20_000, reads=1_000)})

    assert grown.room_of("timers", LIMITS).partitions == 35
    assert grown.room_of("ledger", LIMITS).partitions == 40


def test_a_warm_table_has_partitions_for_it_and_a_quota_that_was_raised() -> None:
    warm = SCALE.warm_throughput["ledger"]

    room = StageSize(stage=SCALE).room_of("ledger", LIMITS)

    assert (room.partitions, room.writes, room.is_raised) == (warm.writes // 1_000, warm.writes, True)


def test_a_quota_that_has_to_be_raised_is_told() -> None:
    told = "; ".join(StageSize(stage=SCALE).words(LIMITS, ("ledger", "dead_letters")))

    assert "quota 300,000 write units/s (raised from 40,000)" in told
    assert "every other table is new: 4 partitions, quota 40,000" in told
    assert "the account's quota is raised from 1,000" in told
    assert "raised" not in "; ".join(StageSize(stage=PROD).words(LIMITS, ("ledger", "dead_letters")))


def test_a_stage_that_cannot_be_deployed_cannot_be_simulated() -> None:
    with pytest.raises(InvalidStage, match="max_concurrency of normal is 3000"):
        like(PROD, max_concurrency=(200, 200, 3_000, 100))


def test_every_limit_says_where_it_comes_from() -> None:
    limits = known(LIMITS)

    assert {limit.name for limit in limits} == set(Limits.__slots__)
    assert all(limit.unit and limit.source and limit.value > 0 for limit in limits)
