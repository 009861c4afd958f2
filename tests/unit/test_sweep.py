from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from functions.domain.claims import LedgerRow
from functions.domain.cursor import ClassCursor, Position, first_cursors
from functions.domain.errors import NotPlaced
from functions.domain.instants import SECOND
from functions.domain.job import Delivery, Priority, Timer
from functions.domain.job_id import job_id_of
from functions.domain.lifecycle import State
from functions.ports import Rejected
from functions.sweeper.sweep import PAGE, SweepReport
from tests.builders import NOON, a_timer
from tests.unit.world import World

RIPE = NOON - timedelta(minutes=6)
"""Due in the bucket that is audited at noon."""


@pytest.fixture
def world() -> World:
    """Two shards, scanned up to now; audited up to the bucket of RIPE."""
    world = World()
    for shard in range(2):
        scanned(world, shard, world.wheel.bucket_of(NOON) + 120)
    world.shards.audit = world.wheel.bucket_of(RIPE)
    return world


def test_a_row_without_a_ledger_row_is_a_straggler_and_is_sent_again(world: World):
    timer = a_row(world)

    assert world.sweep() == a_report(1, 1)

    assert world.ready.sent == [timer]
    assert world.events("straggler") == [{"job_id": str(job_id_of(timer.job)), "attempt": 1}]
    assert world.journal.counts == {"audited": 1, "stragglers": 1}


def test_a_straggler_is_sent_again_once(world: World):
    a_row(world)

    world.sweep()
    world.clock.tick(timedelta(minutes=1))
    world.sweep()

    assert len(world.ready.sent) == 1


def test_a_registered_job_that_nobody_claimed_is_a_straggler(world: World):
    timer = a_row(world)
    world.ledger.rows[timer.job.key] = LedgerRow(state=State.SCHEDULED)

    assert world.sweep().stragglers == 1


def test_a_retry_whose_attempt_nobody_claimed_is_a_straggler(world: World):
    timer = a_row(world, attempt=2)
    world.ledger.rows[timer.job.key] = LedgerRow(state=State.RETRYING, attempt=1)

    assert world.sweep().stragglers == 1


@pytest.mark.parametrize(
    ("state", "attempt"),
    [
        (State.SUCCEEDED, 1),
        (State.FAILED, 1),
        (State.CANCELLED, 0),
        (State.EXPIRED, 1),
        (State.ATTEMPTED, 1),
        (State.RUNNING, 1),
        (State.RETRYING, 1),
        (State.RUNNING, 2),
    ],
)
def test_a_job_that_was_claimed_or_settled_is_none(world: World, state: State, attempt: int):
    timer = a_row(world)
    world.ledger.rows[timer.job.key] = LedgerRow(state=state, attempt=attempt, owner="someone")

    assert world.sweep() == a_report(1, 0)
    assert world.ready.sent == []


def test_an_at_least_once_job_has_no_ledger_row_to_be_missed(world: World):
    a_row(world, delivery=Delivery.AT_LEAST_ONCE)

    assert world.sweep() == a_report(0, 0)


def test_a_row_that_cannot_be_decoded_was_buried_by_the_scanner(world: World):
    timer = a_row(world)
    world.rows.rows[world.wheel.bucket_of(RIPE), timer.job.shard]["2#acme#1#x"] = "?"

    assert world.sweep().audited == 1


def test_a_bucket_is_ripe_five_minutes_after_its_end(world: World):
    a_row(world, due_at=NOON - timedelta(minutes=5))

    assert world.sweep().audited == 0
    world.clock.tick(timedelta(seconds=59))
    assert world.sweep().audited == 0
    world.clock.tick(timedelta(seconds=1))
    assert world.sweep().audited == 1


def test_an_audit_waits_for_a_scanner_that_is_behind_and_goes_on_when_it_has_caught_up(world: World):
    timer = a_row(world, shard=1)
    scanned(world, 1, world.wheel.bucket_of(RIPE))

    assert world.sweep() == a_report(0, 0, 1)
    assert world.ready.sent == []

    scanned(world, 1, world.wheel.bucket_of(RIPE) + 60)
    assert world.sweep().stragglers == 1
    assert world.ready.sent == [timer]


def test_an_audit_waits_for_the_slowest_class_of_a_shard(world: World):
    cursors = first_cursors(world.wheel.bucket_of(NOON))
    cursors[Priority.LOW] = ClassCursor(Position(world.wheel.bucket_of(RIPE), "3#x"))
    recorded(world, 0, cursors)

    assert world.sweep().waits_for == [0]


def test_an_audit_waits_for_a_tenant_that_is_behind(world: World):
    cursors = first_cursors(world.wheel.bucket_of(NOON))
    at = cursors[Priority.NORMAL].at
    cursors[Priority.NORMAL] = ClassCursor(at, {"whale": Position(world.wheel.bucket_of(RIPE), "2#whale#1")})
    recorded(world, 0, cursors)

    assert world.sweep().waits_for == [0]


def test_an_audit_waits_for_a_shard_that_was_never_scanned(world: World):
    world.shards.rows.clear()

    assert world.sweep().waits_for == [0, 1]


def test_the_first_sweep_of_a_stage_records_where_audits_begin(world: World):
    world.shards.audit = None
    a_row(world)

    assert world.sweep() == a_report(0, 0)
    assert world.shards.audit == world.wheel.bucket_of(NOON) - 300


def test_a_large_bucket_is_audited_page_by_page(world: World):
    for _ in range(PAGE + 1):
        a_row(world)

    assert world.sweep() == a_report(PAGE + 1, PAGE + 1)


def test_audits_catch_up_oldest_first_and_at_most_an_hour_of_buckets_a_sweep(world: World):
    world.shards.audit = world.wheel.bucket_of(NOON - timedelta(hours=3))

    world.sweep()

    assert world.shards.audit == world.wheel.bucket_of(NOON - timedelta(hours=2))


def test_buckets_older_than_the_ledger_s_memory_are_passed_over(world: World):
    a_row(world, due_at=NOON - timedelta(days=14, minutes=1))
    world.shards.audit = world.wheel.bucket_of(NOON - timedelta(days=20))

    assert world.sweep().stragglers == 0
    assert world.shards.audit is not None
    assert world.shards.audit > world.wheel.bucket_of(NOON - timedelta(days=14))


def test_a_sweep_ends_at_80_percent_of_its_time_limit(world: World):
    world.shards.audit = world.wheel.bucket_of(NOON - timedelta(hours=1))
    world.timers.before_read = lambda: world.clock.tick(timedelta(seconds=5))

    world.sweep(time_limit=timedelta(seconds=50))

    assert world.clock.instant == NOON + 40 * SECOND
    assert world.shards.audit == world.wheel.bucket_of(NOON - timedelta(minutes=56))


def test_a_sample_reads_its_share_of_the_shards_and_always_the_same():
    def read(sample: float) -> list[tuple[int, str]]:
        world = World()
        for shard in range(2):
            scanned(world, shard, world.wheel.bucket_of(NOON))
        world.shards.audit = world.wheel.bucket_of(NOON - timedelta(minutes=65))
        world.sample = sample
        world.sweep()
        return world.timers.reads

    whole, tenth = read(1.0), read(0.1)

    assert len(whole) == 2 * 60
    assert 0 < len(tenth) < len(whole) / 3
    assert tenth == read(0.1)
    assert set(tenth) <= set(read(0.5)) <= set(whole)
    assert read(0.0) == []


def test_a_straggler_that_cannot_be_placed_is_audited_again(world: World):
    timer = a_row(world)
    world.ready.refuses = lambda timer: Rejected(timer, "throttled", is_permanent=False)

    with pytest.raises(NotPlaced):
        world.sweep()

    world.ready.refuses = lambda _: None
    world.sweep()
    assert world.ready.sent == [timer]


def test_a_sweep_that_meets_another_one_stops(world: World):
    world.shards.audit = world.wheel.bucket_of(NOON - timedelta(minutes=30))

    def sweep_too() -> None:
        world.shards.audit = world.wheel.bucket_of(NOON - timedelta(minutes=20))

    world.timers.before_read = sweep_too
    world.sweep()

    assert world.shards.audit == world.wheel.bucket_of(NOON - timedelta(minutes=20))
    assert len(world.timers.reads) == 2


def a_report(audited: int, stragglers: int, *waits_for: int) -> SweepReport:
    return SweepReport(audited, stragglers, list(waits_for))


def a_row(world: World, *, shard: int = 0, **overrides: Any) -> Timer:
    """A far row that was due long enough ago."""
    timer = a_timer(**{"due_at": RIPE, **overrides})
    timer = replace(timer, job=replace(timer.job, shard=shard))
    world.rows.put([timer])
    return timer


def scanned(world: World, shard: int, bucket: int) -> None:
    recorded(world, shard, first_cursors(bucket))


def recorded(world: World, shard: int, cursors: Any) -> None:
    lease = world.shards.acquire(shard, owner="scanner", now=NOON, lease_until=NOON, skew=world.wheel.skew)
    assert lease is not None
    world.shards.checkpoint(lease, cursors, lease_until=None)
