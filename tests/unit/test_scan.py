from dataclasses import replace
from datetime import timedelta
from typing import Any, NoReturn

import pytest

from functions.domain.dead_letters.dead_letter_id import parse_dead_letter_id
from functions.domain.far_ring.cursor import ClassCursor, Cursors, Position, first_cursors
from functions.domain.far_ring.timer_key import timer_key
from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job import Delivery, Payload, Priority, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.key_lengths import DEAD_LETTER_IDENTITY
from functions.domain.lifecycle import State
from functions.domain.schedules.rules import CronRule
from functions.domain.schedules.schedule import Schedule
from functions.ports.ready_queue import Rejected
from functions.scanner import due_alarms, owed_alarms
from functions.scanner import tick as ticking
from functions.scanner.leases import LEASE
from functions.scanner.pages import PAGE
from functions.scanner.tick import CHECKPOINT_SENDS
from testkit.builders import NOON, a_schedule, a_template, a_timer, an_alarm, every
from testkit.observed import CrashError, DeathError
from testkit.scheduler import World


@pytest.fixture
def world() -> World:
    """A shard that was scanned up to now."""
    world = World()
    recorded(world, world.wheel.bucket_of(NOON))
    return world


def test_a_far_timer_is_promoted_to_the_ready_queue_with_the_delay_that_is_left(world: World):
    timer = a_row(world, due_at=NOON + 80 * SECOND)

    report = world.scan()

    assert (report.sent, report.buried, report.stopped_by) == (1, 0, "")
    assert world.ready.sent == [timer]
    assert [message.visible_at for message in world.ready.messages.values()] == [NOON + 80 * SECOND]


def test_a_promoted_timer_is_not_promoted_again(world: World):
    a_row(world, due_at=NOON + 80 * SECOND)

    world.scan()
    world.clock.tick(timedelta(minutes=1))

    assert world.scan().sent == 0
    assert len(world.ready.sent) == 1


def test_a_bucket_is_opened_when_its_start_comes_within_the_lookahead(world: World):
    a_row(world, due_at=NOON + 120 * SECOND)

    world.clock.tick(timedelta(seconds=29))
    assert world.scan().sent == 0
    world.clock.tick(timedelta(seconds=1))
    assert world.scan().sent == 1


def test_where_nobody_knows_since_when_a_shard_is_written_its_first_tick_starts_24_hours_back():
    world = World()
    missed = a_row(world, due_at=NOON - timedelta(hours=23, minutes=59))
    a_row(world, due_at=NOON - timedelta(hours=24, minutes=1))

    world.scan()

    assert world.ready.sent == [missed]


def test_the_first_tick_of_a_shard_finds_what_was_written_before_its_rule_existed_and_is_as_late_as_that():
    world = World()
    world.shards.confirm(replace(world.wheel, write_shards=1), clock=world.clock)
    world.clock.tick(timedelta(days=7))
    world.shards.confirm(replace(world.wheel, write_shards=2), clock=world.clock)
    first = a_row(world, due_at=world.clock.now() + world.wheel.guard, shard=1)
    world.clock.tick(timedelta(hours=5))

    world.scan(1, time_limit=timedelta(0))

    assert world.ready.sent == []
    assert set(world.publish().lags.values()) == {5 * 3_600}
    assert world.publish().shed == set(Priority) - {Priority.CRITICAL}

    world.scan(1)

    assert world.ready.sent == [first]
    assert set(world.publish().lags.values()) == {0}


@pytest.mark.parametrize("skew", [timedelta(0), timedelta(hours=1), -timedelta(hours=1)])
def test_the_first_tick_of_a_shard_that_was_never_written_starts_now_by_the_clock_of_the_store(skew: timedelta):
    world = World()
    world.shards.confirm(replace(world.wheel, write_shards=1), clock=world.clock)
    world.clock.ahead = world.clock.known_offset = skew

    world.scan(1, time_limit=timedelta(0))

    assert world.shards.cursors([1])[1] == first_cursors(world.wheel.bucket_of(NOON))


def test_a_shard_that_was_not_scanned_for_hours_is_caught_up_oldest_first():
    world = World()
    recorded(world, world.wheel.bucket_of(NOON - timedelta(hours=30)))
    timers = [a_row(world, due_at=NOON - timedelta(hours=hours)) for hours in (1, 29, 12)]

    world.scan()

    assert world.ready.sent == [timers[1], timers[2], timers[0]]


def test_classes_are_outermost_and_within_a_class_the_oldest_bucket_goes_first(world: World):
    recorded(world, world.wheel.bucket_of(NOON) - 120)
    old, fresh = NOON - 120 * SECOND, NOON
    low_old = a_row(world, due_at=old, priority=Priority.LOW)
    critical_fresh = a_row(world, due_at=fresh, priority=Priority.CRITICAL)
    normal_fresh = a_row(world, due_at=fresh)
    critical_old = a_row(world, due_at=old, priority=Priority.CRITICAL)
    normal_old = a_row(world, due_at=old)
    high_old = a_row(world, due_at=old, priority=Priority.HIGH)

    world.scan()

    assert world.ready.sent == [critical_old, critical_fresh, high_old, normal_old, normal_fresh, low_old]


def test_classes_that_have_fallen_behind_another_read_each_bucket_once_between_them(world: World):
    opened = world.wheel.bucket_of(NOON)
    recorded(world, opened, first_cursors(opened - 3_600) | {Priority.CRITICAL: ClassCursor(Position(opened))})
    timers = [a_row(world, due_at=NOON - timedelta(minutes=30), priority=priority) for priority in Priority]

    world.scan()

    assert world.ready.sent == timers[1:]
    assert len({bucket for bucket, _ in world.timers.reads}) == len(world.timers.reads) == 62


def test_a_quiet_tick_reads_each_open_bucket_once(world: World):
    for priority in Priority:
        a_row(world, due_at=NOON, priority=priority)

    world.scan()

    opened = world.wheel.bucket_of(NOON)
    assert world.timers.reads == [(opened, ""), (opened + 60, "")]


def test_a_bucket_of_many_pages_is_read_page_by_page_and_sent_whole(world: World):
    timers = [
        a_row(world, due_at=NOON + (number % 60) * SECOND, priority=Priority(number % 4))
        for number in range(3 * PAGE + 1)
    ]

    report = world.scan()

    assert report.sent == len(timers)
    assert sorted(map(key, world.ready.sent)) == sorted(map(key, timers))


def test_the_first_page_of_a_bucket_serves_every_class_as_far_as_it_goes(world: World):
    for priority in (Priority.CRITICAL, Priority.HIGH, Priority.LOW):
        a_row(world, due_at=NOON, priority=priority)
    normal = [a_row(world, due_at=NOON) for _ in range(PAGE)]
    last_of_first_page = sorted(map(key, normal))[PAGE - 3]

    assert world.scan().sent == PAGE + 3

    opened = world.wheel.bucket_of(NOON)
    assert [after for bucket, after in world.timers.reads if bucket == opened] == ["", last_of_first_page, "3#"]


def test_a_shard_that_another_scanner_has_is_left_alone(world: World):
    a_row(world)
    world.shards.acquire(0, owner="other", now=NOON, lease_until=NOON + LEASE, skew=world.wheel.skew)

    assert world.scan().stopped_by == "another scanner has the shard"
    assert world.ready.sent == []
    assert world.timers.reads == []


def test_a_tick_gives_its_lease_back(world: World):
    world.scan()

    assert world.shards.acquire(0, owner="next", now=NOON, lease_until=NOON + LEASE, skew=world.wheel.skew)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_scanner_whose_clock_is_skewed_gives_its_shard_back_without_scanning(world: World, sign: int):
    timer = a_row(world)
    before = world.shards.cursors([0])
    world.clock.known_offset = sign * (world.wheel.skew / 2 + MILLISECOND)

    assert world.scan().stopped_by == "its clock is skewed"

    assert (world.timers.reads, world.ready.sent) == ([], [])
    assert world.shards.cursors([0]) == before
    assert world.journal.counts["clock_skewed"] == 1
    world.clock.known_offset = world.wheel.skew / 2
    world.scan()
    assert world.ready.sent == [timer]
    assert world.journal.counts["clock_skewed"] == 1


def test_an_error_gives_the_lease_back_with_what_was_passed(world: World):
    first, second = a_row(world, due_at=NOON), a_row(world, due_at=NOON + 60 * SECOND)
    world.ready.refuses = lambda timer: _crash() if timer == second else None

    with pytest.raises(CrashError):
        world.scan()

    assert world.shards.cursors([0])[0][Priority.NORMAL].at == Position(world.wheel.bucket_of(NOON) + 60)
    world.ready.refuses = lambda _: None
    assert world.scan().stopped_by == ""
    assert world.ready.sent == [first, second]


def test_an_error_is_raised_again_after_another_scanner_has_taken_the_shard_over(world: World):
    a_row(world)
    before = world.shards.cursors([0])

    def fail_without_the_shard() -> None:
        late = NOON + timedelta(hours=1)
        assert world.shards.acquire(0, owner="other", now=late, lease_until=late + LEASE, skew=world.wheel.skew)
        raise CrashError

    world.timers.before_read = fail_without_the_shard
    with pytest.raises(CrashError):
        world.scan()

    assert world.shards.cursors([0]) == before
    assert world.scan().stopped_by == "another scanner has the shard"


def test_a_tick_that_died_is_repeated_from_its_last_checkpoint(world: World):
    first, second = a_row(world, due_at=NOON), a_row(world, due_at=NOON + 60 * SECOND)
    world.ready.dies_after = 1
    with pytest.raises(DeathError):
        world.scan()

    world.ready.dies_after = None
    world.clock.tick(LEASE + world.wheel.skew + SECOND)
    world.scan()

    assert world.ready.sent == [first, first, second]


def test_progress_is_recorded_every_2000_sends(world: World):
    for _ in range(CHECKPOINT_SENDS + 3 * PAGE):
        a_row(world, due_at=NOON)
    world.ready.dies_after = CHECKPOINT_SENDS + PAGE

    with pytest.raises(DeathError):
        world.scan()

    at = world.shards.cursors([0])[0][Priority.NORMAL].own["acme"].at
    keys = sorted(key(timer) for timer in world.ready.sent)
    assert at == Position(world.wheel.bucket_of(NOON), keys[CHECKPOINT_SENDS - 1])


def test_progress_is_recorded_every_five_seconds(world: World):
    a_row(world, due_at=NOON, priority=Priority.CRITICAL)
    a_row(world, due_at=NOON + 60 * SECOND, priority=Priority.CRITICAL)
    world.ready.send_takes = timedelta(seconds=5)
    world.ready.dies_after = 1

    with pytest.raises(DeathError):
        world.scan()

    assert world.shards.cursors([0])[0][Priority.CRITICAL].at == Position(world.wheel.bucket_of(NOON) + 60)


def test_a_scanner_whose_shard_was_taken_over_stops_at_its_next_checkpoint_and_records_nothing(world: World):
    for _ in range(CHECKPOINT_SENDS + PAGE):
        a_row(world, due_at=NOON)
    before = world.shards.cursors([0])
    taken = iter([True])

    def take_over() -> None:
        if next(taken, False):
            late = NOON + timedelta(hours=1)
            assert world.shards.acquire(0, owner="other", now=late, lease_until=late + LEASE, skew=world.wheel.skew)

    world.timers.before_read = take_over
    report = world.scan()

    assert report.stopped_by == "another scanner has taken the shard over"
    assert report.sent == CHECKPOINT_SENDS
    assert world.shards.cursors([0]) == before


def test_a_row_that_cannot_be_decoded_is_a_dead_letter_and_is_passed(world: World):
    timer = a_row(world, due_at=NOON + SECOND)
    bucket = world.wheel.bucket_of(NOON)
    world.rows.rows[bucket, 0]["2#acme#1803902400000#broken"] = '{"i":'

    report = world.scan()

    assert (report.sent, report.buried) == (1, 1)
    assert world.ready.sent == [timer]
    assert [(letter.tenant, letter.identity, letter.raw) for letter in world.buried] == [("acme", "broken", '{"i":')]
    assert "could not be promoted: not a timer record" in world.buried[0].error
    assert world.journal.counts["dead_lettered"] == 1
    assert world.scan().buried == 0


def test_a_row_under_a_foreign_key_is_a_dead_letter_of_no_tenant(world: World):
    bucket = world.wheel.bucket_of(NOON)
    world.rows.rows[bucket, 0] = {"2#foreign": "hello"}

    world.scan()

    assert [(letter.tenant, letter.identity, letter.raw) for letter in world.buried] == [("?", "2#foreign", "hello")]


def test_a_foreign_key_that_is_as_long_as_a_key_can_be_is_cut_in_the_key_of_its_dead_letter(world: World):
    bucket = world.wheel.bucket_of(NOON)
    world.rows.rows[bucket, 0] = {"2#" + "f" * 1_022: "hello"}

    world.scan()

    (letter,) = world.buried
    assert letter.identity == "2#" + "f" * (DEAD_LETTER_IDENTITY - 2)
    assert parse_dead_letter_id(str(letter.letter_id)) == letter.letter_id


def test_a_timer_that_the_queue_will_never_take_is_a_dead_letter_and_is_passed(world: World):
    bad = a_row(world, identity="bad", due_at=NOON)
    good = a_row(world, due_at=NOON + SECOND)
    world.ready.refuses = lambda timer: Rejected(timer, "too long", is_permanent=True) if timer == bad else None

    report = world.scan()

    assert world.ready.sent == [good]
    assert (report.sent, report.buried) == (1, 1)
    letter = world.buried[0]
    assert (letter.job_id, letter.timer, letter.error) == (
        str(job_id_of(bad.job)),
        bad,
        "could not be promoted: too long",
    )
    assert world.row(bad.job).state is State.FAILED
    assert world.scan().sent == 0


def test_the_end_of_an_unsendable_job_is_reported_before_its_row_is_passed(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    a_row(world)
    world.ready.refuses = lambda timer: Rejected(timer, "too long", is_permanent=True)
    kept: list[int] = []
    checkpoint = world.shards.checkpoint

    def watched(*given: Any, **named: Any) -> bool:
        kept.append(world.trail.kept)
        return checkpoint(*given, **named)

    monkeypatch.setattr(world.shards, "checkpoint", watched)

    world.scan()

    assert len(world.trail.endings) == 1
    assert kept == [1]


def test_an_unsendable_job_that_is_not_ledgered_is_a_dead_letter_without_a_row(world: World):
    bad = a_row(world, delivery=Delivery.AT_LEAST_ONCE)
    world.ready.refuses = lambda timer: Rejected(timer, "too long", is_permanent=True)

    assert world.scan().buried == 1
    assert [letter.timer for letter in world.buried] == [bad]
    assert world.ledger.rows == {}


def test_the_dead_letter_of_an_unsendable_retry_keeps_the_fence_that_its_target_was_reported(world: World):
    bad = a_row(world, attempt=3)
    world.ledger.rows[bad.job.key] = LedgerRow(state=State.RETRYING, attempt=2, fence=2, due_at=bad.due_at)
    world.ready.refuses = lambda timer: Rejected(timer, "too long", is_permanent=True)

    world.scan()

    assert [letter.fence for letter in world.buried] == [2]


def test_an_unsendable_job_that_was_registered_is_settled_with_its_dead_letter(world: World):
    bad = a_row(world)
    world.ledger.rows[bad.job.key] = LedgerRow(state=State.SCHEDULED, job_id="j1~x", fingerprint="f")
    world.ready.refuses = lambda timer: Rejected(timer, "too long", is_permanent=True)

    assert world.scan().buried == 1
    assert (world.row(bad.job).state, world.row(bad.job).fingerprint) == (State.FAILED, "f")
    assert world.row(bad.job).error == "could not be promoted: too long"


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.CANCELLED, State.ATTEMPTED])
def test_an_unsendable_row_of_a_settled_job_is_passed_without_a_dead_letter(world: World, state: State):
    bad = a_row(world)
    good = a_row(world, due_at=NOON + SECOND)
    world.ledger.rows[bad.job.key] = LedgerRow(state=state)
    world.ready.refuses = lambda timer: Rejected(timer, "too long", is_permanent=True) if timer == bad else None

    assert world.scan().buried == 0

    assert world.buried == []
    assert "dead_lettered" not in world.journal.counts
    assert world.row(bad.job).state is state
    assert world.ready.sent == [good]


@pytest.mark.parametrize("state", [State.RUNNING, State.RETRYING])
def test_an_unsendable_row_of_an_attempt_that_a_worker_has_had_is_passed(world: World, state: State):
    bad = a_row(world)
    row = LedgerRow(state=state, attempt=1, fence=1, owner="w", lease_until=NOON)
    world.ledger.rows[bad.job.key] = row
    world.ready.refuses = lambda timer: Rejected(timer, "too long", is_permanent=True)

    assert world.scan().buried == 0
    assert world.buried == []
    assert world.row(bad.job) == row


def test_a_packed_payload_that_cannot_be_unpacked_is_the_worker_s_to_refuse(world: World):
    timer = a_row(world, payload=Payload(packed="hello"))

    assert (world.scan().sent, world.buried) == (1, [])
    assert world.ready.sent == [timer]


def test_a_transient_refusal_leaves_the_cursor_before_the_first_row_that_was_not_sent(world: World):
    timers = [a_row(world, due_at=NOON + number * SECOND, identity=f"j{number}") for number in range(5)]
    world.ready.refuses = lambda timer: (
        Rejected(timer, "throttled", is_permanent=False) if timer in (timers[1], timers[3]) else None
    )

    report = world.scan()

    assert report.stopped_by == "a normal message was refused"
    assert report.cursors[Priority.NORMAL].at == Position(world.wheel.bucket_of(NOON), key(timers[0]))
    assert world.ready.sent == [timers[0], timers[2], timers[4]]

    world.ready.refuses = lambda _: None
    world.scan()
    assert world.ready.sent[3:] == timers[1:]


def test_a_refusal_of_the_first_row_moves_no_cursor(world: World):
    a_row(world)
    before = world.shards.cursors([0])[0]
    world.ready.refuses = lambda timer: Rejected(timer, "throttled", is_permanent=False)

    report = world.scan()

    assert report.cursors[Priority.NORMAL] == before[Priority.NORMAL]


def test_a_class_whose_queue_refuses_messages_does_not_stop_the_others(world: World):
    stuck = a_row(world, priority=Priority.HIGH)
    others = [a_row(world, priority=priority) for priority in (Priority.CRITICAL, Priority.NORMAL, Priority.LOW)]
    before = world.shards.cursors([0])[0]
    world.ready.refuses = lambda timer: Rejected(timer, "throttled", is_permanent=False) if timer == stuck else None

    report = world.scan()

    assert world.ready.sent == others
    assert report.stopped_by == "a high message was refused"
    assert report.cursors[Priority.HIGH] == before[Priority.HIGH]

    world.ready.refuses = lambda _: None
    world.scan()
    assert world.ready.sent == [*others, stuck]


def test_a_refused_class_sends_nothing_of_its_later_buckets(world: World):
    first, later = a_row(world, due_at=NOON), a_row(world, due_at=NOON + 60 * SECOND)
    world.ready.refuses = lambda timer: Rejected(timer, "throttled", is_permanent=False) if timer == first else None

    world.scan()
    assert world.ready.sent == []

    world.ready.refuses = lambda _: None
    world.scan()
    assert world.ready.sent == [first, later]


def test_a_tick_ends_at_80_percent_of_its_time_limit_and_the_next_one_goes_on(world: World):
    timers = [a_row(world, due_at=NOON - number * 60 * SECOND) for number in range(9, -1, -1)]
    recorded(world, world.wheel.bucket_of(timers[0].due_at))
    world.ready.send_takes = timedelta(seconds=4)

    report = world.scan(time_limit=timedelta(seconds=40))

    assert report.stopped_by == "80 % of the time limit is used"
    assert world.clock.instant == NOON + 32 * SECOND
    world.ready.send_takes = timedelta(0)
    world.scan()
    assert world.ready.sent == timers


def test_a_tick_says_how_old_the_oldest_open_bucket_is(world: World):
    world.scan()
    assert world.journal.values["oldest_bucket_age_s"] == [0.0]

    behind = World()
    recorded(behind, behind.wheel.bucket_of(NOON - timedelta(hours=1)))
    behind.scan(time_limit=timedelta(0))
    assert behind.journal.values["oldest_bucket_age_s"] == [3600.0 + 90]


def test_low_priority_does_not_make_the_oldest_open_bucket_old():
    wheel = World().wheel
    late = ClassCursor(Position(wheel.bucket_of(NOON - timedelta(hours=1))))
    for priority, age in ((Priority.LOW, 90.0), (Priority.NORMAL, 3600.0 + 90)):
        behind = World()
        lease = behind.shards.acquire(0, owner="me", now=NOON, lease_until=NOON, skew=behind.wheel.skew)
        assert lease is not None
        assert behind.shards.checkpoint(
            lease, {**first_cursors(wheel.bucket_of(NOON)), priority: late}, lease_until=None
        )
        behind.scan(time_limit=timedelta(0))
        assert behind.journal.values["oldest_bucket_age_s"] == [age]


def test_a_tick_notes_what_it_promoted(world: World):
    a_row(world)

    world.scan()

    assert world.journal.counts["promoted"] == 1
    assert world.events("shard_scanned") == [{"shard": 0, "sent": 1, "alarms_due": 0, "buried": 0, "stopped_by": ""}]


def test_each_shard_is_scanned_apart(world: World):
    mine, other = a_row(world), a_row(world, shard=1)

    world.scan(0)
    assert world.ready.sent == [mine]
    world.scan(1)
    assert world.ready.sent == [mine, other]


class TestAlarms:
    def test_an_alarm_among_timers_comes_due_behind_them_and_its_fire_is_promoted(self, world: World):
        before, after = (a_row(world, tenant=tenant, due_at=NOON + 80 * SECOND) for tenant in ("a", "z"))
        schedule = an_alarm_row(world)

        report = world.scan()

        assert (report.sent, report.handled, report.buried, report.stopped_by) == (2, 1, 0, "")
        assert [timer.job.identity for timer in world.ready.sent] == [
            before.job.identity,
            after.job.identity,
            "nightly:2027-03-01T12:01:20.000Z",
        ]
        state = world.state(schedule)
        assert state.link is not None
        assert (state.link.at, state.fire_count) == (NOON + timedelta(hours=1, seconds=80), 1)
        assert world.events("shard_scanned") == [
            {"shard": 0, "sent": 2, "alarms_due": 1, "buried": 0, "stopped_by": ""}
        ]

    def test_an_alarm_that_came_due_does_not_ring_again(self, world: World):
        an_alarm_row(world)
        world.scan()
        world.clock.tick(timedelta(minutes=1))

        assert world.scan().handled == 0
        assert len(world.ready.sent) == 1

    def test_the_alarms_of_a_page_ring_together(self, world: World):
        for number in range(5):
            an_alarm_row(world, schedule_id=f"s{number}")

        assert world.scan().handled == 5
        assert world.journal.counts["alarms_due"] == 5
        assert len(world.ready.sent) == 5

    def test_an_alarm_of_a_stale_version_is_passed(self, world: World):
        schedule = an_alarm_row(world)
        world.store(schedule, version=2)

        report = world.scan()

        assert (report.handled, report.buried, report.stopped_by) == (1, 0, "")
        assert world.ready.sent == []

    def test_a_chain_that_is_refused_holds_up_no_timer_and_comes_due_again(self, world: World):
        before, after = (a_row(world, tenant=tenant, due_at=NOON + 80 * SECOND) for tenant in ("a", "z"))
        schedule = an_alarm_row(world)
        world.ready.refuses = lambda timer: (
            Rejected(timer, "throttled", is_permanent=False) if timer.job.occurrence else None
        )

        report = world.scan()

        assert (report.sent, report.handled, report.stopped_by) == (2, 0, "a schedule could not go on")
        assert report.cursors[Priority.NORMAL].unhandled is not None
        world.ready.refuses = lambda _: None
        report = world.scan()
        assert (report.sent, report.handled, report.stopped_by) == (0, 1, "")
        assert report.cursors[Priority.NORMAL].unhandled is None
        assert [timer for timer in world.ready.sent if not timer.job.occurrence] == [before, after]
        assert world.state(schedule).fire_count == 1

    def test_an_error_of_a_store_that_schedules_need_stops_no_timers(self, world: World):
        before, after = (a_row(world, tenant=tenant, due_at=NOON + 80 * SECOND) for tenant in ("a", "z"))
        low = a_row(world, priority=Priority.LOW)
        schedule = an_alarm_row(world)
        world.timers.unwritten = lambda _: _crash()

        world.scan()

        assert [timer for timer in world.ready.sent if not timer.job.occurrence] == [before, after, low]
        (event,) = world.events("alarms_failed")
        assert str(event["error"]).startswith("CrashError at functions.")
        world.timers.unwritten = lambda _: False
        assert world.scan().handled == 1
        assert world.state(schedule).fire_count == 1

    def test_alarms_ring_some_at_a_time_as_long_as_there_is_time(self, world: World, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(due_alarms, "HANDLED_AT_ONCE", 2)
        schedules = [an_alarm_row(world, schedule_id=f"s{number}") for number in range(5)]
        world.timers.put_takes = 2 * SECOND

        report = world.scan(time_limit=5 * SECOND)

        assert (report.handled, report.stopped_by) == (4, "80 % of the time limit is used")
        world.timers.put_takes = timedelta(0)
        assert world.scan().handled == 1
        assert [world.state(schedule).fire_count for schedule in schedules] == [1] * 5

    def test_the_lease_is_prolonged_while_alarms_ring(self, world: World, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(due_alarms, "HANDLED_AT_ONCE", 1)
        for number in range(20):
            an_alarm_row(world, schedule_id=f"s{number:02d}")
        world.timers.put_takes = 2 * SECOND
        world.timers.unwritten = lambda _: world.clock.now() > NOON + 38 * SECOND and _die()
        with pytest.raises(DeathError):
            world.scan()

        now = world.clock.now()
        lease = world.shards.acquire(0, owner="other", now=now, lease_until=now + LEASE, skew=world.wheel.skew)
        assert now > NOON + LEASE + world.wheel.skew
        assert lease is None

    def test_a_chain_whose_next_alarm_is_not_written_comes_due_again(self, world: World):
        schedule = an_alarm_row(world)
        world.timers.unwritten = lambda _: True

        report = world.scan()

        unhandled = report.cursors[Priority.NORMAL].unhandled
        assert unhandled is not None
        assert unhandled.bucket == world.wheel.bucket_of(NOON + 80 * SECOND)
        assert world.state(schedule).fire_count == 0
        world.timers.unwritten = lambda _: False
        assert world.scan().handled == 1
        assert world.state(schedule).fire_count == 1

    def test_a_refused_chain_holds_up_no_other(self, world: World):
        schedules = [an_alarm_row(world, schedule_id=f"s{number}") for number in range(5)]
        world.ready.refuses = lambda timer: (
            Rejected(timer, "throttled", is_permanent=False) if timer.job.identity[:2] in ("s1", "s3") else None
        )

        assert world.scan().handled == 3

        assert [world.state(schedule).fire_count for schedule in schedules] == [1, 0, 1, 0, 1]
        world.ready.refuses = lambda _: None
        world.scan()
        assert [world.state(schedule).fire_count for schedule in schedules] == [1] * 5

    def test_an_alarm_that_is_refused_for_an_hour_is_left_to_the_sweep(self, world: World):
        schedule = an_alarm_row(world)
        world.ready.refuses = lambda timer: Rejected(timer, "throttled", is_permanent=False)
        world.scan()
        world.clock.tick(timedelta(minutes=60))
        assert world.scan().cursors[Priority.NORMAL].unhandled is not None
        assert world.events("alarms_left") == []

        world.clock.tick(timedelta(minutes=3))

        world.scan()
        assert world.events("alarms_left") == [{"tenant": "acme", "count": 1}]
        assert world.scan().cursors[Priority.NORMAL].unhandled is None
        world.ready.refuses = lambda _: None
        both_scanned(world)
        assert world.heal().healed == 1
        assert world.state(schedule).fire_count == 2

    def test_a_scanner_that_dies_while_alarms_ring_lets_them_ring_again_and_sends_no_timer_again(self, world: World):
        timers = [a_row(world, due_at=NOON + 60 * SECOND, tenant="z", priority=priority) for priority in Priority]
        schedule = an_alarm_row(world)
        world.ready.dies_after = 4
        with pytest.raises(DeathError):
            world.scan()

        world.ready.dies_after = None
        world.clock.tick(LEASE + world.wheel.skew + SECOND)
        report = world.scan()

        assert (report.sent, report.handled) == (0, 1)
        assert [timer for timer in world.ready.sent if not timer.job.occurrence] == timers
        assert world.state(schedule).fire_count == 1

    def test_alarms_count_towards_the_next_checkpoint(self, world: World, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(ticking, "CHECKPOINT_SENDS", 3)
        monkeypatch.setattr(due_alarms, "HANDLED_AT_ONCE", 3)
        for number in range(3):
            an_alarm_row(world, schedule_id=f"s{number}", priority=Priority.CRITICAL)
            an_alarm_row(world, schedule_id=f"t{number}")
        world.ready.dies_after = 3
        with pytest.raises(DeathError):
            world.scan()

        cursors = world.shards.cursors([0])[0]
        assert cursors[Priority.CRITICAL].unhandled is None
        assert cursors[Priority.NORMAL].unhandled is not None

    def test_more_alarms_than_a_tick_remembers_are_read_again(self, world: World, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(owed_alarms, "MOST_OWED", 2)
        schedules = [an_alarm_row(world, schedule_id=f"s{number}") for number in range(5)]

        report = world.scan()

        assert (report.stopped_by, report.cursors[Priority.NORMAL].unhandled) == ("", None)
        assert [world.state(schedule).fire_count for schedule in schedules] == [1] * 5

    def test_alarms_that_were_left_ring_in_their_order_over_buckets_and_pages(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ):
        schedules = [an_alarm_row(world, schedule_id=f"s{number:03d}") for number in range(PAGE + 20)]
        schedules += [an_alarm_row(world, schedule_id="t", alarm_after=20 * SECOND)]
        with monkeypatch.context() as patched:
            patched.setattr(due_alarms, "HANDLED_AT_ONCE", 1)
            world.timers.put_takes = 2 * SECOND
            assert world.scan(time_limit=5 * SECOND).handled == 2
        world.timers.put_takes = timedelta(0)

        report = world.scan()

        assert (report.stopped_by, report.cursors[Priority.NORMAL].unhandled) == ("", None)
        assert [world.state(schedule).fire_count for schedule in schedules] == [1] * len(schedules)

    def test_timers_leave_time_for_alarms(self, world: World):
        schedule = an_alarm_row(world)
        for number in range(20):
            a_row(world, tenant=f"t{number}", due_at=NOON + 60 * SECOND)
        for number in range(20):
            a_row(world, due_at=NOON + 60 * SECOND, tenant=f"l{number}", priority=Priority.LOW)
        world.ready.send_takes = 8 * SECOND

        report = world.scan(time_limit=12 * SECOND)

        assert report.sent == 20
        assert world.state(schedule).fire_count == 1

    def test_an_alarm_that_cannot_be_decoded_is_a_dead_letter_and_its_chain_is_carried_on_by_the_sweep(
        self, world: World
    ):
        schedule = an_alarm_row(world)
        rows = world.rows.rows[world.wheel.bucket_of(NOON + 80 * SECOND), 0]
        (alarm,) = rows
        rows[alarm] = '{"i":'

        assert world.scan().buried == 1

        assert [(letter.tenant, letter.identity, letter.raw) for letter in world.buried] == [
            ("acme", "nightly@1", '{"i":')
        ]
        both_scanned(world)
        assert world.heal().healed == 1
        assert world.state(schedule).fire_count == 1

    def test_a_schedule_that_cannot_be_computed_does_not_stop_its_shard(self, world: World):
        an_alarm_row(world, timezone="Mars/Olympus", rule=CronRule("* * * * *"))
        timer = a_row(world, tenant="z")

        report = world.scan()

        assert (report.handled, report.stopped_by) == (1, "")
        assert world.ready.sent == [timer]


def an_alarm_row(
    world: World, *, priority: Priority = Priority.NORMAL, alarm_after: timedelta = 80 * SECOND, **overrides: Any
) -> Schedule:
    """A schedule of shard 0 that fires 80 seconds after noon, its alarm row placed."""
    rule = every(hours=1, phase=alarm_after)
    schedule = a_schedule(**{"rule": rule, "job": a_template(priority=priority), **overrides})
    alarm = an_alarm(schedule, alarm_at=NOON + alarm_after, shard=0)
    world.store(schedule, link=alarm.link, alarm_at=alarm.alarm_at)
    world.rows.put_alarms([alarm])
    return schedule


def both_scanned(world: World) -> None:
    """Every shard has been scanned up to two minutes from now."""
    for shard in range(world.wheel.scan_shards):
        lease = world.shards.acquire(shard, owner="later", now=NOON, lease_until=NOON, skew=world.wheel.skew)
        assert lease is not None
        cursors = first_cursors(world.wheel.bucket_of(NOON + timedelta(minutes=2)))
        world.shards.checkpoint(lease, cursors, lease_until=None)


def a_row(world: World, *, shard: int = 0, **overrides: Any) -> Timer:
    """A far row of a shard."""
    timer = a_timer(**overrides)
    timer = replace(timer, job=replace(timer.job, shard=shard))
    world.rows.put([timer])
    return timer


def key(timer: Timer) -> str:
    return timer_key(timer.job, due_at=timer.due_at)


def _crash() -> NoReturn:
    raise CrashError


def _die() -> NoReturn:
    raise DeathError


def recorded(world: World, bucket: int, cursors: Cursors | None = None) -> None:
    """The shard has been scanned up to the start of a bucket, or as far as these cursors."""
    lease = world.shards.acquire(0, owner="before", now=NOON, lease_until=NOON, skew=world.wheel.skew)
    assert lease is not None
    world.shards.checkpoint(lease, cursors or first_cursors(bucket), lease_until=None)
