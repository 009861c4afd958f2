from datetime import UTC, datetime, timedelta

import pytest

from functions.domain.errors import InvalidWheel
from functions.domain.instants import MILLISECOND, SECOND, from_seconds, to_seconds
from functions.domain.wheel import Ring
from testkit.builders import DEPLOYED_WHEEL, LOCAL_WHEEL, NOON, a_wheel


def test_a_timer_within_guard_is_near_and_from_guard_on_far():
    wheel = DEPLOYED_WHEEL

    assert wheel.place(NOON + wheel.guard - MILLISECOND, now=NOON) is Ring.NEAR
    assert wheel.place(NOON + wheel.guard, now=NOON) is Ring.FAR
    assert wheel.place(NOON - timedelta(days=1), now=NOON) is Ring.NEAR


def test_a_bucket_holds_its_start_and_not_its_end():
    start = to_seconds(NOON)

    assert LOCAL_WHEEL.bucket_of(NOON) == start
    assert LOCAL_WHEEL.bucket_of(NOON + 60 * SECOND - MILLISECOND) == start
    assert LOCAL_WHEEL.bucket_of(NOON + 60 * SECOND) == start + 60
    assert LOCAL_WHEEL.ends_at(start) == NOON + 60 * SECOND


def test_instants_before_the_epoch_have_buckets_too():
    assert LOCAL_WHEEL.bucket_of(datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)) == -60


def test_the_horizon_is_the_last_bucket_that_starts_within_the_lookahead():
    wheel = LOCAL_WHEEL

    assert wheel.horizon(now=NOON) == to_seconds(NOON) + 60
    assert wheel.horizon(now=NOON + 29 * SECOND) == to_seconds(NOON) + 60
    assert wheel.horizon(now=NOON + 30 * SECOND) == to_seconds(NOON) + 120


@pytest.mark.parametrize(
    ("written_since", "starts_at"),
    [
        (None, NOON - timedelta(hours=24)),
        (NOON - timedelta(days=300), NOON - timedelta(hours=24)),
        (NOON - timedelta(hours=3), NOON - timedelta(hours=3)),
        (NOON - 61 * SECOND, NOON - timedelta(minutes=2)),
        (NOON, NOON),
    ],
)
def test_the_first_tick_of_a_shard_starts_where_it_may_have_a_row_and_at_most_24_hours_back(
    written_since: datetime | None, starts_at: datetime
):
    assert from_seconds(LOCAL_WHEEL.first_bucket(now=NOON, written_since=written_since)) == starts_at


def test_a_far_write_may_finish_until_a_scanner_that_is_skew_ahead_opens_its_bucket():
    wheel = DEPLOYED_WHEEL
    due_at = NOON + timedelta(hours=1)

    assert wheel.closes_at(due_at) == due_at - timedelta(seconds=120 + 60 + 60)


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"bucket": timedelta(0)}, "BUCKET is 0 s, but must be a whole number of seconds above 0"),
        ({"bucket": timedelta(seconds=1.5)}, "BUCKET is 1.5 s"),
        ({"skew": timedelta(seconds=-1)}, "SKEW is -1 s, but must not be negative"),
        ({"lookahead": timedelta(seconds=89)}, "LOOKAHEAD is 89 s, but must be at least 90 s"),
        ({"guard": timedelta(seconds=154)}, "GUARD is 154 s, but must be at least LOOKAHEAD .* = 155 s: .* lost"),
        ({"guard": timedelta(seconds=901)}, "GUARD is 901 s, but must be at most 900 s"),
        ({"write_shards": 0}, "write_shards is 0, but must be from 1 to 9999"),
        ({"write_shards": 10_000, "scan_shards": 10_000}, "write_shards is 10000"),
        ({"write_shards": 3, "scan_shards": 2}, "scan_shards is 2, but must be at least write_shards .3."),
    ],
)
def test_constants_that_would_lose_jobs_are_refused(changed: dict[str, timedelta], rule: str):
    with pytest.raises(InvalidWheel, match=rule):
        a_wheel(**changed)


def test_every_broken_rule_is_named():
    with pytest.raises(InvalidWheel) as refused:
        a_wheel(lookahead=timedelta(seconds=1), guard=timedelta(seconds=1), write_shards=0)

    assert str(refused.value).count("; ") == 2


def test_the_smallest_and_the_largest_guard_are_taken():
    assert a_wheel(guard=timedelta(seconds=155)).guard < a_wheel(guard=timedelta(seconds=900)).guard


@pytest.mark.parametrize(
    ("tenant", "identity", "shards", "shard"),
    [("acme", "job-1", 2, 1), ("acme", "job-1", 64, 33), ("globex", "job-1", 64, 47), ("a", "b", 9_999, 2_809)],
)
def test_shards_are_the_same_in_every_release(tenant: str, identity: str, shards: int, shard: int):
    wheel = a_wheel(write_shards=shards, scan_shards=shards)

    assert wheel.shard_of(tenant, identity) == shard


def test_a_tenant_lives_in_one_shard_and_a_whale_in_as_many_as_it_has_subshards():
    wheel = a_wheel(write_shards=64, scan_shards=64)
    identities = [f"job-{number}" for number in range(500)]

    assert len({wheel.shard_of("acme", identity) for identity in identities}) == 1
    assert len({wheel.shard_of("whale", identity, subshards=8) for identity in identities}) == 8
