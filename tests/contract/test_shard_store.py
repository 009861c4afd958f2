"""What every shard store keeps: one scanner a shard, cursors behind an epoch, and constants that do not change."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from functions.adapters.dynamodb.shards import DynamoDBShardStore
from functions.domain.errors import WheelChanged
from functions.domain.far_ring.cursor import (
    BucketAuditPosition,
    ClassCursor,
    Cursors,
    OwnCursor,
    Position,
    ShardProgress,
    SweepPosition,
    first_cursors,
)
from functions.domain.far_ring.fairness import MAX_OWN
from functions.domain.far_ring.written_shards import WrittenShards
from functions.domain.instants import HOUR, MILLISECOND, SECOND
from functions.domain.jobs.job import Priority
from functions.domain.stage.conditions import Conditions
from functions.ports.shards import ShardLease, ShardStore
from testkit.builders import LOCAL_WHEEL, NOON, a_wheel, worst_cursors
from testkit.fakes import FakeClock, InMemoryShardStore

LEASE = timedelta(seconds=30)
SKEW = LOCAL_WHEEL.skew
CLOCK = FakeClock()


def test_the_first_lease_of_a_shard_has_the_first_epoch_and_no_cursors(shards: ShardStore):
    lease = shards.acquire(3, owner="me", now=NOON, lease_until=NOON + LEASE, skew=SKEW)

    assert lease == ShardLease(shard=3, owner="me", epoch=1, cursors=None, taken_at=NOON)


def test_a_shard_that_another_scanner_has_is_not_leased(shards: ShardStore):
    acquire(shards, owner="first")

    assert shards.acquire(0, owner="second", now=NOON, lease_until=NOON + LEASE, skew=SKEW) is None


def test_shards_are_leased_apart(shards: ShardStore):
    acquire(shards, shard=0, owner="first")

    assert acquire(shards, shard=1, owner="second").epoch == 1


def test_a_lease_is_broken_only_when_it_is_over_by_more_than_the_skew(shards: ShardStore):
    acquire(shards, owner="dead")
    over = NOON + LEASE + SKEW

    early = shards.acquire(0, owner="second", now=over, lease_until=over + LEASE, skew=SKEW)
    late = shards.acquire(0, owner="third", now=over + MILLISECOND, lease_until=over + MILLISECOND + LEASE, skew=SKEW)

    assert early is None
    assert late is not None
    assert (late.owner, late.epoch) == ("third", 2)


def test_a_lease_whose_answer_was_lost_is_given_again_with_a_later_epoch(shards: ShardStore):
    acquire(shards, owner="me")

    assert acquire(shards, owner="me").epoch == 2


def test_a_lease_that_was_given_back_is_free_at_once(shards: ShardStore):
    lease = acquire(shards, owner="first")
    shards.checkpoint(lease, some_cursors(), lease_until=None)

    assert acquire(shards, owner="second").epoch == 2


def test_a_checkpoint_prolongs_the_lease(shards: ShardStore):
    lease = acquire(shards, owner="first")
    shards.checkpoint(lease, some_cursors(), lease_until=NOON + 2 * LEASE)
    after_the_first = NOON + LEASE + SKEW + MILLISECOND

    answer = shards.acquire(0, owner="second", now=after_the_first, lease_until=after_the_first + LEASE, skew=SKEW)

    assert answer is None


def test_the_next_scanner_starts_at_the_cursors_that_were_recorded(shards: ShardStore):
    shards.checkpoint(acquire(shards, owner="first"), some_cursors(), lease_until=None)

    assert acquire(shards, owner="second").cursors == some_cursors()


def test_a_checkpoint_repeated_by_its_scanner_holds(shards: ShardStore):
    lease = acquire(shards, owner="me")
    shards.checkpoint(lease, some_cursors(), lease_until=NOON + LEASE)

    assert shards.checkpoint(lease, some_cursors(), lease_until=NOON + LEASE)


def test_a_checkpoint_that_lands_behind_a_later_one_takes_nothing_back(shards: ShardStore):
    first = replace(acquire(shards, owner="me"), sequence=1)
    shards.checkpoint(first, first_cursors(0), lease_until=NOON + LEASE)
    shards.checkpoint(replace(first, sequence=2), some_cursors(), lease_until=None)

    assert not shards.checkpoint(first, first_cursors(0), lease_until=NOON + LEASE)
    assert shards.cursors([first.shard]) == {first.shard: some_cursors()}
    assert acquire(shards, owner="another").cursors == some_cursors()


def test_the_checkpoints_of_a_new_epoch_begin_anew(shards: ShardStore):
    lease = acquire(shards, owner="me")
    shards.checkpoint(replace(lease, sequence=9), some_cursors(), lease_until=None)

    assert shards.checkpoint(replace(acquire(shards, owner="me"), sequence=1), first_cursors(0), lease_until=None)


def test_a_checkpoint_of_a_stale_epoch_is_refused_and_changes_nothing(shards: ShardStore):
    stale = acquire(shards, owner="slow")
    later = NOON + timedelta(hours=1)
    fresh = shards.acquire(0, owner="quick", now=later, lease_until=later + LEASE, skew=SKEW)
    assert fresh is not None
    shards.checkpoint(fresh, some_cursors(), lease_until=later + LEASE)

    assert not shards.checkpoint(stale, first_cursors(0), lease_until=None)
    assert shards.cursors([0]) == {0: some_cursors()}
    assert shards.acquire(0, owner="third", now=later, lease_until=later + LEASE, skew=SKEW) is None


def test_cursors_are_found_for_the_shards_that_have_any(shards: ShardStore):
    for shard in range(105):
        shards.checkpoint(acquire(shards, shard=shard, owner="me"), first_cursors(shard * 60), lease_until=None)
    acquire(shards, shard=105, owner="me")

    found = shards.cursors(range(110))

    assert found == {shard: first_cursors(shard * 60) for shard in range(105)}


def test_no_shards_have_no_cursors(shards: ShardStore):
    assert shards.cursors([]) == {}


def test_nothing_is_audited_before_the_first_audit(shards: ShardStore):
    assert shards.audited() is None


def test_the_audit_advances_from_where_it_was(shards: ShardStore):
    assert shards.advance_audit(before=None, to=BucketAuditPosition(60))
    assert shards.advance_audit(before=BucketAuditPosition(60), to=BucketAuditPosition(120))
    assert shards.audited() == BucketAuditPosition(120)


def test_an_audit_may_stand_within_a_bucket_at_a_shard_and_behind_a_key(shards: ShardStore):
    within = BucketAuditPosition(60, 11, '2#acme#0001803902400#"é\uffff')

    assert shards.advance_audit(before=None, to=within)
    assert shards.audited() == within
    assert shards.advance_audit(before=within, to=BucketAuditPosition(60, 12))
    assert shards.audited() == BucketAuditPosition(60, 12)


def test_an_advance_whose_answer_was_lost_recognises_itself(shards: ShardStore):
    assert shards.advance_audit(before=None, to=BucketAuditPosition(60))
    assert shards.advance_audit(before=None, to=BucketAuditPosition(60))
    assert shards.advance_audit(before=BucketAuditPosition(60), to=BucketAuditPosition(60, 1, "a"))
    assert shards.advance_audit(before=BucketAuditPosition(60), to=BucketAuditPosition(60, 1, "a"))
    assert shards.audited() == BucketAuditPosition(60, 1, "a")


@pytest.mark.parametrize(
    "before",
    [
        None,
        BucketAuditPosition(0),
        BucketAuditPosition(120),
        BucketAuditPosition(60, 1),
        BucketAuditPosition(60, 0, "a"),
    ],
)
def test_an_audit_that_another_sweep_has_advanced_is_refused(shards: ShardStore, before: BucketAuditPosition | None):
    shards.advance_audit(before=None, to=BucketAuditPosition(60))

    assert not shards.advance_audit(before=before, to=BucketAuditPosition(180))
    assert shards.audited() == BucketAuditPosition(60)


def test_an_audit_does_not_advance_from_a_position_where_none_was(shards: ShardStore):
    assert not shards.advance_audit(before=BucketAuditPosition(60), to=BucketAuditPosition(120))
    assert shards.audited() is None


def test_nothing_is_swept_before_the_first_sweep(shards: ShardStore):
    assert shards.swept() is None


def test_the_sweep_of_the_schedules_advances_from_where_it_was(shards: ShardStore):
    first, second, end = SweepPosition(60, 'acme#"é'), SweepPosition(60, "globex#z"), SweepPosition(60, None)

    assert shards.advance_sweep(before=None, to=first)
    assert shards.swept() == first
    assert shards.advance_sweep(before=first, to=second)
    assert shards.advance_sweep(before=second, to=end)
    assert shards.swept() == end
    assert shards.advance_sweep(before=end, to=SweepPosition(360, "acme#a"))


def test_an_advance_of_the_sweep_whose_answer_was_lost_recognises_itself(shards: ShardStore):
    at = SweepPosition(60, "acme#a")

    assert shards.advance_sweep(before=None, to=at)
    assert shards.advance_sweep(before=None, to=at)
    assert shards.swept() == at


@pytest.mark.parametrize(
    "before",
    [None, SweepPosition(0, "acme#a"), SweepPosition(60, "acme#b"), SweepPosition(60, None), SweepPosition(60, "")],
)
def test_a_sweep_that_another_has_advanced_is_refused(shards: ShardStore, before: SweepPosition | None):
    shards.advance_sweep(before=None, to=SweepPosition(60, "acme#a"))

    assert not shards.advance_sweep(before=before, to=SweepPosition(60, "acme#z"))
    assert shards.swept() == SweepPosition(60, "acme#a")


def test_the_sweep_and_the_audit_advance_apart(shards: ShardStore):
    shards.advance_audit(before=None, to=BucketAuditPosition(60))
    shards.advance_sweep(before=None, to=SweepPosition(120, None))

    assert (shards.audited(), shards.swept()) == (BucketAuditPosition(60), SweepPosition(120, None))


def test_the_constants_of_the_first_deploy_are_confirmed_from_then_on(shards: ShardStore):
    shards.confirm(a_wheel(), clock=CLOCK)
    shards.confirm(a_wheel(), clock=CLOCK)


def test_a_changed_bucket_is_refused(shards: ShardStore):
    shards.confirm(a_wheel(), clock=CLOCK)

    with pytest.raises(WheelChanged, match="BUCKET"):
        shards.confirm(a_wheel(bucket=timedelta(seconds=30)), clock=CLOCK)


def test_a_stage_may_write_more_shards_than_before(shards: ShardStore):
    shards.confirm(a_wheel(write_shards=2, scan_shards=2), clock=CLOCK)
    shards.confirm(a_wheel(write_shards=8, scan_shards=8), clock=CLOCK)


def test_a_stage_may_write_fewer_shards_as_long_as_it_scans_all_that_were_ever_written(shards: ShardStore):
    shards.confirm(a_wheel(write_shards=8, scan_shards=8), clock=CLOCK)
    shards.confirm(a_wheel(write_shards=2, scan_shards=8), clock=CLOCK)

    with pytest.raises(WheelChanged, match="8 shards have been written"):
        shards.confirm(a_wheel(write_shards=2, scan_shards=7), clock=CLOCK)


def test_a_refused_change_leaves_the_recorded_constants(shards: ShardStore):
    shards.confirm(a_wheel(), clock=CLOCK)
    with pytest.raises(WheelChanged):
        shards.confirm(a_wheel(bucket=timedelta(seconds=30), write_shards=9, scan_shards=9), clock=CLOCK)

    shards.confirm(a_wheel(), clock=CLOCK)


def test_a_shard_is_written_since_the_first_who_may_write_it_was_about_to(shards: ShardStore):
    assert shards.written() is None
    clock = FakeClock()
    for write_shards in (2, 8, 4, 8):
        shards.confirm(a_wheel(write_shards=write_shards, scan_shards=9), clock=clock)
        clock.tick(HOUR)

    written, now = shards.written(), clock.now()

    assert written is not None
    assert written == WrittenShards(8, before=2, grown_at=NOON + HOUR)
    assert [written.written_since(shard, now=now) for shard in (1, 2, 7, 8)] == [None, NOON + HOUR, NOON + HOUR, now]


def test_all_shards_of_a_new_stage_are_written_since_it_was_deployed_by_the_clock_of_the_store(shards: ShardStore):
    clock = FakeClock()
    clock.ahead = clock.known_offset = HOUR
    shards.confirm(a_wheel(write_shards=2, scan_shards=2), clock=clock)

    assert shards.written() == WrittenShards(2, before=0, grown_at=NOON)


def test_of_two_who_let_a_stage_grow_at_once_the_later_says_from_where(shards: ShardStore):
    shards.confirm(a_wheel(write_shards=2, scan_shards=9), clock=CLOCK)

    class Meanwhile(FakeClock):
        """Another has recorded less between the read and the write."""

        def now(self) -> datetime:
            shards.confirm(a_wheel(write_shards=4, scan_shards=9), clock=CLOCK)
            return super().now()

    shards.confirm(a_wheel(write_shards=8, scan_shards=9), clock=Meanwhile(NOON + HOUR))

    assert shards.written() == WrittenShards(8, before=4, grown_at=NOON + HOUR)


def test_of_shards_that_a_release_before_was_first_to_write_nobody_knows_since_when(shards: ShardStore):
    written_by_the_release_before(shards, 2)
    assert shards.written() == WrittenShards(2)
    shards.confirm(a_wheel(write_shards=4, scan_shards=9), clock=CLOCK)
    assert shards.written() == WrittenShards(4, before=2, grown_at=NOON)

    written_by_the_release_before(shards, 8)  # after a rollback
    shards.confirm(a_wheel(write_shards=8, scan_shards=9), clock=CLOCK)

    written = shards.written()
    assert written == WrittenShards(8)
    assert written is not None
    assert [written.written_since(shard, now=NOON) for shard in (0, 3, 7, 8)] == [None, None, None, NOON]


def written_by_the_release_before(shards: ShardStore, count: int) -> None:
    """Which records nothing but the number."""
    if isinstance(shards, DynamoDBShardStore):
        shards.table.update({"k": "wheel"}, update="SET b = :b, w = :w", b=LOCAL_WHEEL.bucket // SECOND, w=count)
    else:
        assert isinstance(shards, InMemoryShardStore)
        shards.wheel = (LOCAL_WHEEL.bucket, WrittenShards(count))


def test_a_shard_was_scanned_when_the_tick_began_that_recorded_its_cursors_last(shards: ShardStore):
    taken_at = NOON + timedelta(seconds=1, microseconds=1)
    lease = shards.acquire(0, owner="me", now=taken_at, lease_until=NOON + LEASE, skew=SKEW)
    assert lease is not None
    assert shards.progress([0, 1]) == {}

    for lease_until in (NOON + LEASE, None):
        assert shards.checkpoint(lease, some_cursors(), lease_until=lease_until)
        assert shards.progress([0, 1]) == {0: ShardProgress(some_cursors(), NOON + timedelta(milliseconds=1_001))}


def test_a_tick_that_dies_before_it_records_anything_has_not_scanned_its_shard(shards: ShardStore):
    shards.checkpoint(acquire(shards, owner="me"), some_cursors(), lease_until=None)
    later = NOON + timedelta(minutes=5)
    shards.acquire(0, owner="dead", now=later, lease_until=later + LEASE, skew=SKEW)

    assert shards.progress([0]) == {0: ShardProgress(some_cursors(), NOON)}


def test_a_lease_that_was_given_back_has_not_died(shards: ShardStore):
    first = acquire(shards, owner="first")
    shards.checkpoint(first, some_cursors(), lease_until=NOON + LEASE)
    shards.checkpoint(replace(first, sequence=1), some_cursors(), lease_until=None)

    second = acquire(shards, owner="second")

    assert (second.epoch, second.cursors, second.has_died, second.died_at) == (2, some_cursors(), False, None)


def test_a_lease_that_was_not_given_back_has_died_of_what_it_was_ringing(shards: ShardStore):
    next_alarm = Position(120, 'a"é')
    first = acquire(shards, owner="first")
    shards.checkpoint(first, some_cursors(), lease_until=NOON + LEASE, next_alarm=next_alarm)

    second = after_a_death(shards, owner="second", at=NOON)
    assert (second.epoch, second.cursors, second.has_died, second.died_at) == (2, some_cursors(), True, next_alarm)

    # That one dies before it has done anything about it.
    third = after_a_death(shards, owner="third", at=second.taken_at)
    assert (third.has_died, third.died_at) == (True, next_alarm)
    shards.checkpoint(third, some_cursors(), lease_until=NOON + 2 * HOUR)
    fourth = after_a_death(shards, owner="fourth", at=third.taken_at)
    assert (fourth.has_died, fourth.died_at) == (True, None)


def test_a_lease_whose_answer_was_lost_does_not_take_itself_for_dead(shards: ShardStore):
    assert not acquire(shards, owner="me").has_died
    again = acquire(shards, owner="me")

    assert (again.epoch, again.has_died) == (2, False)


def test_what_a_sweep_carries_on_is_reported_with_its_place(shards: ShardStore):
    at = SweepPosition(60, "acme#a")
    reviving = at._replace(reviving='acme#"é', since=70)
    assert shards.advance_sweep(before=None, to=at)
    assert shards.advance_sweep(before=at, to=reviving)
    assert shards.swept() == reviving
    assert shards.advance_sweep(before=reviving, to=SweepPosition(60, "acme#b"))
    assert shards.swept() == SweepPosition(60, "acme#b")


def test_the_most_cursors_of_the_longest_tenants_and_jobs_are_recorded(shards: ShardStore):
    lease = acquire(shards, owner="me")
    worst = worst_cursors(MAX_OWN)

    assert shards.checkpoint(lease, worst, lease_until=NOON + LEASE, next_alarm=Position(120, "2#acme#7#nightly@1"))

    assert shards.cursors([0]) == {0: worst}


def after_a_death(shards: ShardStore, *, owner: str, at: datetime) -> ShardLease:
    """An hour later nobody has given the lease back."""
    later = at + HOUR
    lease = shards.acquire(0, owner=owner, now=later, lease_until=later + LEASE, skew=SKEW)
    assert lease is not None
    return lease


def acquire(shards: ShardStore, *, owner: str, shard: int = 0) -> ShardLease:
    lease = shards.acquire(shard, owner=owner, now=NOON, lease_until=NOON + LEASE, skew=SKEW)
    assert lease is not None
    return lease


def some_cursors() -> Cursors:
    """A position inside a bucket, and a tenant that is behind."""
    behind = {
        "whale": OwnCursor(Position(60, "2#whale#0001803902400#x"), deficit=7),
        "paused": OwnCursor(Position(0), is_held_back=True),
    }
    cursors = first_cursors(120)
    return cursors | {
        Priority.HIGH: ClassCursor(Position(180, "1#acme#0001803902400#é\uffff")),
        Priority.NORMAL: replace(
            cursors[Priority.NORMAL], own=behind, turn="whale", unhandled=Position(60, "2#acme#0001803902400#nightly@")
        ),
    }


def test_there_are_no_conditions_until_some_are_published(shards: ShardStore):
    assert shards.conditions() is None


def test_the_conditions_that_were_published_last_are_reported(shards: ShardStore):
    conditions = Conditions(
        published_at=NOON,
        budgets={Priority.CRITICAL: 0, Priority.NORMAL: 12},
        depths={Priority.LOW: 3},
        waiting={Priority.LOW: 2},
        lags={Priority.LOW: 400},
        shed=frozenset({Priority.LOW}),
        marked_since=NOON,
        unseen_since=NOON,
    )
    shards.publish(Conditions(published_at=NOON, budgets={Priority.LOW: 7}))
    shards.publish(conditions)

    assert shards.conditions() == conditions
