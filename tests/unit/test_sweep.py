from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.domain.errors import NotPlaced
from functions.domain.far_ring.cursor import BucketAuditPosition, ClassCursor, OwnCursor, Position, first_cursors
from functions.domain.instants import SECOND
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job import Delivery, Priority, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.overlap import Overlap
from functions.domain.lifecycle import State
from functions.domain.stage.conditions import FRESH
from functions.ports.ready_queue import Rejected
from functions.sweeper.sweep import MIN_BACKLOG, PAGE, SETTLING, SweepReport
from testkit.builders import NOON, a_schedule, a_timer, an_alarm, an_occurrence_timer
from testkit.scheduler import World

RIPE = NOON - timedelta(minutes=6)
"""Due in the bucket that is audited at noon."""


@pytest.fixture
def world() -> World:
    """Two shards, scanned up to now; audited up to the bucket of RIPE."""
    world = World()
    for shard in range(2):
        scanned(world, shard, world.wheel.bucket_of(NOON) + 120)
    world.shards.audit = at(world, RIPE)
    return world


def test_a_row_without_a_ledger_row_is_a_straggler_and_is_sent_again(world: World):
    timer = a_row(world)

    assert world.sweep() == a_report(1, 1)

    assert world.ready.sent == [timer]
    assert world.events("straggler") == [{"job_id": str(job_id_of(timer.job)), "attempt": 1, "fault": ""}]
    assert world.journal.counts == {"audited": 1, "stragglers": 1}


@pytest.mark.parametrize(("parked_until", "stragglers"), [(NOON - SETTLING + SECOND, 0), (NOON - SETTLING, 1)])
def test_a_parked_job_is_no_straggler_until_its_own_message_is_overdue(
    world: World, parked_until: datetime, stragglers: int
):
    timer = a_row(world)
    world.ledger.park(timer, until=parked_until, now=RIPE)

    assert world.sweep().stragglers == stragglers


def test_a_straggler_is_sent_again_once(world: World):
    a_row(world)

    world.sweep()
    world.clock.tick(timedelta(minutes=1))
    world.sweep()

    assert len(world.ready.sent) == 1


@pytest.mark.parametrize(
    ("overlap", "attempt", "stragglers"),
    [(Overlap.BUFFER_ONE, 1, 0), (Overlap.BUFFER_ONE, 2, 1), (Overlap.FORBID, 1, 1), (Overlap.ALLOW, 1, 1)],
)
def test_only_a_fire_that_may_still_wait_for_its_slot_is_no_straggler(
    world: World, overlap: Overlap, attempt: int, stragglers: int
):
    world.rows.put([an_occurrence_timer(a_schedule(overlap=overlap), fire_at=RIPE, attempt=attempt)])

    assert world.sweep().stragglers == stragglers


def test_an_alarm_is_no_straggler(world: World):
    world.rows.put_alarms([an_alarm(alarm_at=RIPE)])

    assert world.sweep() == a_report(0, 0)


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


def test_a_released_attempt_that_nobody_claimed_again_is_a_straggler(world: World):
    timer = a_row(world, attempt=2)
    world.ledger.rows[timer.job.key] = LedgerRow(state=State.SCHEDULED, attempt=2, fence=3)

    assert world.sweep().stragglers == 1


def test_the_row_of_an_attempt_before_a_released_one_is_none(world: World):
    timer = a_row(world, attempt=1)
    world.ledger.rows[timer.job.key] = LedgerRow(state=State.SCHEDULED, attempt=2, fence=3)

    assert world.sweep() == a_report(1, 0)


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
    cursors[Priority.NORMAL] = ClassCursor(at, {"whale": OwnCursor(Position(world.wheel.bucket_of(RIPE), "2#whale#1"))})
    recorded(world, 0, cursors)

    assert world.sweep().waits_for == [0]


def test_an_audit_waits_for_a_shard_that_was_never_scanned(world: World):
    world.shards.rows.clear()

    assert world.sweep().waits_for == [0, 1]


def test_a_herd_that_waits_for_workers_makes_no_straggler_and_no_second_message(world: World):
    herd = [a_row(world) for _ in range(MIN_BACKLOG + 1)]
    world.ready.send(herd)
    world.clock.tick(timedelta(minutes=2))

    report = world.sweep()

    assert (report.audited, report.stragglers, report.waits_for_queues) == (0, 0, True)
    assert len(world.ready.sent) == len(herd)


def test_an_audit_that_waited_for_queues_finds_what_was_lost_once_they_have_drained(world: World):
    herd = [a_row(world) for _ in range(MIN_BACKLOG + 1)]
    world.ready.send(herd)
    world.clock.tick(timedelta(minutes=2))
    assert world.sweep().waits_for_queues
    lost, *others = herd
    for timer in others:
        world.ledger.rows[timer.job.key] = LedgerRow(state=State.SUCCEEDED, attempt=1)
    world.ready.messages.clear()

    assert world.sweep() == a_report(len(herd), 1)
    assert world.ready.sent[len(herd) :] == [lost]


def test_a_few_waiting_messages_do_not_stop_the_audit(world: World):
    a_row(world)
    world.ready.send([a_timer() for _ in range(MIN_BACKLOG)])
    world.clock.tick(timedelta(minutes=2))

    assert world.sweep().stragglers == 1


def test_the_larger_the_queues_may_be_the_more_may_wait(world: World):
    world.ready_capacity = 2_000_000
    a_row(world)
    world.ready.send([a_timer() for _ in range(2_000)])
    world.clock.tick(timedelta(minutes=2))
    assert world.sweep().stragglers == 1

    world.ready.send([a_timer()])
    world.clock.tick(timedelta(minutes=1))
    assert world.sweep().waits_for_queues


def test_what_is_delayed_or_at_a_worker_does_not_wait(world: World):
    a_row(world)
    world.ready.send([a_timer() for _ in range(MIN_BACKLOG + 5)])
    world.clock.tick(timedelta(minutes=2))
    world.ready.receive(10)

    assert world.sweep().stragglers == 1


def test_an_audit_waits_where_nothing_is_known_of_the_queues(world: World):
    a_row(world)
    assert world.sweep(publishes=False).waits_for_queues
    world.publish()

    world.clock.tick(FRESH + SECOND)
    assert world.sweep(publishes=False).waits_for_queues

    assert world.sweep().stragglers == 1


def test_what_was_promoted_after_the_queues_were_counted_is_audited_a_minute_later(world: World):
    """Its message is in no depth that was published."""
    a_row(world)
    scanned(world, 0, world.wheel.bucket_of(RIPE))
    world.publish()
    scanned(world, 0, world.wheel.bucket_of(NOON))

    assert world.sweep(publishes=False) == SweepReport(waits_for=[], waits_for_queues=True)
    assert world.sweep().stragglers == 1


def test_the_first_sweep_of_a_stage_records_where_audits_begin(world: World):
    world.shards.audit = None
    a_row(world)

    assert world.sweep() == SweepReport()
    assert world.shards.audit == BucketAuditPosition(world.wheel.bucket_of(NOON) - 300)


def test_a_large_bucket_is_audited_page_by_page(world: World):
    for _ in range(PAGE + 1):
        a_row(world)

    assert world.sweep() == a_report(PAGE + 1, PAGE + 1)


def test_audits_catch_up_oldest_first_with_all_that_is_ripe(world: World):
    world.shards.audit = at(world, NOON - timedelta(hours=3))
    timers = [a_row(world, due_at=NOON - timedelta(minutes=minutes)) for minutes in (10, 170, 90)]

    assert world.sweep() == a_report(3, 3)

    assert world.ready.sent == [timers[1], timers[2], timers[0]]
    assert world.shards.audit == at(world, NOON - timedelta(minutes=5))


def test_a_sweep_that_runs_out_of_time_within_a_bucket_goes_on_behind_its_last_page(world: World):
    for _ in range(3 * PAGE):
        a_row(world, shard=1)
    world.timers.before_read = lambda: world.clock.tick(timedelta(seconds=30))

    # Of shard 0 there is one read, of shard 1 one page.
    assert world.sweep().audited == PAGE
    resumed = world.shards.audit
    assert resumed is not None
    assert (resumed.bucket, resumed.shard) == (world.wheel.bucket_of(RIPE), 1)
    assert resumed.key == sorted(world.rows.rows[world.wheel.bucket_of(RIPE), 1])[PAGE - 1]

    world.timers.reads.clear()
    world.timers.before_read = lambda: None
    world.ready.messages.clear()
    assert world.sweep().audited == 2 * PAGE
    assert world.timers.reads[0] == (resumed.bucket, resumed.key)
    assert len(world.ready.sent) == 3 * PAGE
    assert world.shards.audit == at(world, world.clock.instant - timedelta(minutes=5))


def test_a_sweep_that_runs_out_of_time_between_two_shards_goes_on_with_the_next_one(world: World):
    mine, other = a_row(world), a_row(world, shard=1)
    world.timers.before_read = lambda: world.clock.tick(timedelta(seconds=50))

    assert world.sweep() == a_report(1, 1)
    assert world.shards.audit == BucketAuditPosition(world.wheel.bucket_of(RIPE), 1)
    assert world.ready.sent == [mine]

    assert world.sweep() == a_report(1, 1)
    assert world.ready.sent == [mine, other]


def test_a_bucket_that_was_begun_waits_only_for_the_shards_that_are_left(world: World):
    a_row(world, shard=1)
    world.publish()
    scanned(world, 0, world.wheel.bucket_of(RIPE))
    world.shards.audit = BucketAuditPosition(world.wheel.bucket_of(RIPE), 1)

    assert world.sweep(publishes=False) == a_report(1, 1)


def test_buckets_older_than_the_ledger_s_memory_are_passed_over(world: World):
    a_row(world, due_at=NOON - timedelta(days=14, minutes=1))
    world.shards.audit = at(world, NOON - timedelta(days=20))

    assert world.sweep().stragglers == 0
    assert world.shards.audit is not None
    assert world.shards.audit > at(world, NOON - timedelta(days=14))


def test_a_sweep_ends_at_80_percent_of_its_time_limit(world: World):
    world.shards.audit = at(world, NOON - timedelta(hours=1))
    world.timers.before_read = lambda: world.clock.tick(timedelta(seconds=5))

    world.sweep(time_limit=timedelta(seconds=50))

    assert world.clock.instant == NOON + 40 * SECOND
    assert world.shards.audit == at(world, NOON - timedelta(minutes=56))


def test_a_sample_reads_its_share_of_the_shards_and_always_the_same():
    def read(sample: float) -> list[tuple[int, str]]:
        world = World()
        for shard in range(2):
            scanned(world, shard, world.wheel.bucket_of(NOON))
        world.shards.audit = at(world, NOON - timedelta(minutes=65))
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


def test_a_straggler_that_no_queue_will_ever_take_is_counted_and_passed(world: World):
    bad, good = a_row(world, identity="bad"), a_row(world, identity="good")
    world.ready.refuses = lambda timer: Rejected(timer, "too long", is_permanent=True) if timer == bad else None

    assert world.sweep() == a_report(2, 2, unplaced=1)

    assert world.ready.sent == [good]
    assert [event["fault"] for event in world.events("straggler")] == ["too long", ""]
    assert world.sweep() == SweepReport()
    assert world.events("swept")[0]["unplaced"] == 1


def test_a_sweep_that_fails_says_what_it_has_found(world: World):
    a_row(world)
    world.ready.refuses = lambda timer: Rejected(timer, "throttled", is_permanent=False)

    with pytest.raises(NotPlaced):
        world.sweep()

    assert world.events("swept")[0]["stragglers"] == 1
    assert world.journal.counts == {"audited": 1, "stragglers": 1}


def test_a_page_that_was_audited_is_not_audited_again_after_a_failure(world: World):
    timers = sorted((a_row(world) for _ in range(PAGE + 1)), key=lambda timer: timer.job.identity)
    world.ready.refuses = lambda timer: (
        Rejected(timer, "throttled", is_permanent=False) if timer == timers[-1] else None
    )
    with pytest.raises(NotPlaced):
        world.sweep()

    world.ready.refuses = lambda _: None
    world.ready.messages.clear()
    assert world.sweep() == a_report(1, 1)


def test_a_sweep_that_meets_another_one_stops(world: World):
    world.shards.audit = at(world, NOON - timedelta(minutes=30))

    def sweep_too() -> None:
        world.shards.audit = at(world, NOON - timedelta(minutes=20))

    world.timers.before_read = sweep_too
    world.sweep()

    assert world.shards.audit == at(world, NOON - timedelta(minutes=20))
    assert len(world.timers.reads) == 2


def a_report(audited: int, stragglers: int, *waits_for: int, unplaced: int = 0) -> SweepReport:
    return SweepReport(audited, stragglers, unplaced, list(waits_for))


def at(world: World, instant: datetime) -> BucketAuditPosition:
    """The audit stands before the bucket of an instant."""
    return BucketAuditPosition(world.wheel.bucket_of(instant))


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
