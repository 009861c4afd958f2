"""The budgets of the scanners."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.domain.errors import Undecodable
from functions.domain.far_ring.cursor import ClassCursor, Cursors, OwnCursor, Position, first_cursors
from functions.domain.far_ring.fairness import budgets_of, grant, order_from, quantum_of
from functions.domain.instants import EPOCH, MILLISECOND, MINUTE
from functions.domain.jobs.job import Priority
from functions.domain.stage.conditions import FRESH, Conditions, decode_conditions, encode_conditions, worst_of
from functions.domain.tenants.plan import TenantPlan, TenantStatus
from functions.ports.timers import Page
from functions.sweeper.publish import Publisher
from testkit.builders import NOON, a_submission, a_timer
from testkit.fakes import InMemoryTimerStore
from testkit.scheduler import World


def a_publisher(world: World) -> Publisher:
    return world.build(Publisher, capacity=10, shed_after=timedelta(minutes=5))


def behind(world: World, *, minutes: int, priorities: Sequence[Priority] = tuple(Priority), shard: int = 0) -> None:
    cursors = first_cursors(world.wheel.bucket_of(NOON))
    late = ClassCursor(Position(world.wheel.bucket_of(NOON - timedelta(minutes=minutes))))
    keep(world, {**cursors, **dict.fromkeys(priorities, late)}, shard=shard)


def keep(world: World, cursors: Cursors, *, shard: int = 0) -> None:
    lease = world.shards.acquire(shard, owner="me", now=NOON, lease_until=NOON, skew=world.wheel.skew)
    assert lease is not None
    assert world.shards.checkpoint(lease, cursors, lease_until=None)


@pytest.mark.parametrize(
    ("priorities", "lag"), [((), 0), ((Priority.LOW,), 0), ((Priority.LOW, Priority.HIGH), 600), (tuple(Priority), 600)]
)
def test_the_lag_of_promotion_is_reported_without_low(priorities: Sequence[Priority], lag: int):
    world = World()
    behind(world, minutes=10, priorities=priorities)

    a_publisher(world).publish()

    assert world.journal.values["promotion_lag_s"] == [lag]


def test_promotion_does_not_lag_while_everybody_is_paused():
    world = World()
    behind(world, minutes=10)
    world.plans.everybody = TenantPlan(status=TenantStatus.PAUSED)

    a_publisher(world).publish()

    assert world.journal.values["promotion_lag_s"] == [0]


def test_a_shard_that_nobody_has_ever_scanned_is_behind_since_it_was_first_missed():
    world = World()
    assert world.wheel.scan_shards == 2
    behind(world, minutes=0)  # of one of two

    for _ in range(4):
        a_publisher(world).publish()
        world.clock.tick(MINUTE)

    assert world.journal.values["promotion_lag_s"] == [0, 60, 120, 180]
    assert a_publisher(world).publish().shed == frozenset()  # it may hold nothing: no reason to refuse anything


def test_shards_that_have_all_been_scanned_are_behind_by_their_buckets_alone():
    world = World()
    world.shards.publish(Conditions(published_at=NOON, unseen_since=NOON - 5 * MINUTE))
    for shard in range(world.wheel.scan_shards):
        behind(world, minutes=0, shard=shard)

    assert a_publisher(world).publish().unseen_since is None
    assert world.journal.values["promotion_lag_s"] == [0]


def test_while_everybody_is_paused_no_shard_is_missed():
    world = World()
    world.shards.publish(Conditions(published_at=NOON, unseen_since=NOON - 5 * MINUTE))
    world.plans.everybody = TenantPlan(status=TenantStatus.PAUSED)

    a_publisher(world).publish()

    assert world.journal.values["promotion_lag_s"] == [0]


def test_the_room_in_a_queue_is_divided_by_the_shards():
    depths = {Priority.CRITICAL: 0, Priority.HIGH: 99, Priority.NORMAL: 100, Priority.LOW: 1_000}

    budgets = budgets_of(depths, capacity=100, shards=8)

    assert budgets == {Priority.CRITICAL: 13, Priority.HIGH: 1, Priority.NORMAL: 0, Priority.LOW: 0}


def test_what_is_published_is_what_the_next_tick_may_promote():
    world = World()
    world.ready.send([a_timer() for _ in range(5)])

    conditions = a_publisher(world).publish()

    assert conditions.budgets == {Priority.CRITICAL: 5, Priority.HIGH: 5, Priority.NORMAL: 3, Priority.LOW: 5}
    assert world.shards.conditions() == conditions
    assert not conditions.full
    assert world.events("conditions_published")[0]["depths"] == {"critical": 0, "high": 0, "normal": 5, "low": 0}


def test_a_class_without_room_is_full():
    world = World()
    world.ready.send([a_timer(priority=Priority.LOW) for _ in range(10)])

    assert a_publisher(world).publish().full == {Priority.LOW}
    assert world.conditions.full() == {Priority.LOW}


def test_a_lag_that_lasts_sheds_low_first_and_then_all_but_critical():
    world = World()
    publisher = a_publisher(world)
    behind(world, minutes=6)

    assert not publisher.publish().shed  # it may be gone in a minute
    assert publisher.publish().shed == {Priority.LOW}
    behind(world, minutes=11)
    assert publisher.publish().shed == {Priority.LOW}
    assert publisher.publish().shed == {Priority.HIGH, Priority.NORMAL, Priority.LOW}
    known = world.conditions.now()
    assert known is not None
    assert known.shed == {Priority.HIGH, Priority.NORMAL, Priority.LOW}
    assert world.journal.counts["shedding"] == 3

    behind(world, minutes=0)
    assert not publisher.publish().shed


def test_a_shard_that_hastens_through_the_day_before_it_was_first_scanned_refuses_nobody():
    world = World()
    publisher = a_publisher(world)
    for hours in (24, 17, 10, 3):
        behind(world, minutes=60 * hours)
        assert not publisher.publish().shed
        world.clock.tick(timedelta(minutes=1))


@pytest.mark.parametrize(("read_ms", "most_minutes"), [(5, 0), (40, 2)])
def test_a_shard_that_looks_through_a_day_of_empty_buckets_refuses_nobody_and_seems_late_only_briefly(
    read_ms: int, most_minutes: int, monkeypatch: pytest.MonkeyPatch
):
    world = World()

    published = published_while_scanned(world, monkeypatch, minutes=5, read_ms=read_ms)

    assert [conditions.shed for conditions in published] == [frozenset()] * len(published)
    assert len(published) >= 4
    # Three minutes in a row are an alarm.
    assert len([conditions for conditions in published if worst_of(conditions.lags)]) <= most_minutes


def test_a_new_stage_is_never_behind_however_slow_its_first_ticks_are(monkeypatch: pytest.MonkeyPatch):
    world = World()
    world.shards.confirm(world.wheel, clock=world.clock)

    published = published_while_scanned(world, monkeypatch, minutes=10, read_ms=2_000)

    assert len(published) >= 9
    assert {(worst_of(conditions.lags), conditions.shed) for conditions in published} == {(0, frozenset())}
    assert world.journal.values["oldest_bucket_age_s"] == [0.0] * 10


def published_while_scanned(
    world: World, monkeypatch: pytest.MonkeyPatch, *, minutes: int, read_ms: int
) -> list[Conditions]:
    """What the sweeper publishes each minute, also in the middle of a tick, while a read of a bucket takes so long."""
    read = InMemoryTimerStore.read
    published: list[Conditions] = []

    def read_slowly(self: InMemoryTimerStore, *asked: Any, **named: Any) -> Page:
        world.clock.tick(read_ms * MILLISECOND)
        if world.clock.now() >= NOON + timedelta(seconds=10) + len(published) * MINUTE:
            published.append(world.publish())
        return read(self, *asked, **named)

    monkeypatch.setattr(InMemoryTimerStore, "read", read_slowly)
    for minute in range(minutes):
        world.clock.tick(max(NOON + minute * MINUTE - world.clock.now(), timedelta(0)))
        world.scan()
    return published


@pytest.mark.parametrize(("minutes", "is_shed"), [(35, False), (36, True)])
def test_a_lag_that_is_caught_up_within_the_limit_at_its_pace_sheds_nothing(minutes: int, is_shed: bool):
    # From 43 minutes to 36 in one: seven of those a minute are 35 in five minutes.
    world = World()
    publisher = a_publisher(world)
    behind(world, minutes=43)
    publisher.publish()
    world.clock.tick(timedelta(minutes=1))
    behind(world, minutes=minutes - 1)

    conditions = publisher.publish()
    assert conditions.lags[Priority.NORMAL] == 60 * minutes
    assert bool(conditions.shed) is is_shed


def test_low_that_waits_sheds_nothing_but_low():
    world = World()
    publisher = a_publisher(world)
    behind(world, minutes=60, priorities=[Priority.LOW])

    publisher.publish()

    assert publisher.publish().shed == {Priority.LOW}
    assert publisher.publish().lags[Priority.LOW] == 3_600


def test_nothing_is_shed_while_everybody_is_paused():
    world = World()
    world.plans.everybody = TenantPlan(status=TenantStatus.PAUSED)
    publisher = a_publisher(world)
    behind(world, minutes=60)

    publisher.publish()

    assert not publisher.publish().shed


def test_what_is_held_makes_no_lag():
    world = World()
    cursors = first_cursors(world.wheel.bucket_of(NOON))
    held = OwnCursor(Position(world.wheel.bucket_of(NOON - timedelta(hours=5))), is_held_back=True)
    cursors[Priority.NORMAL] = ClassCursor(Position(world.wheel.bucket_of(NOON)), {"paused": held})
    keep(world, cursors)

    assert set(a_publisher(world).publish().lags.values()) == {0}


def test_conditions_of_a_publisher_that_has_stopped_say_nothing():
    world = World()
    world.shards.publish(Conditions(published_at=NOON, budgets={Priority.LOW: 0}, shed=frozenset({Priority.LOW})))
    known = world.conditions.now()
    assert known is not None
    assert (world.conditions.full(), known.shed) == ({Priority.LOW}, {Priority.LOW})

    world.clock.tick(FRESH + timedelta(seconds=1))

    assert world.conditions.full() == frozenset()
    assert world.conditions.now() is None


def test_after_a_publisher_has_stopped_a_tick_promotes_what_an_empty_queue_would_take_and_no_more():
    world = World()
    world.capacity = 6
    for number in range(20):
        world.submit(a_submission(due_at=NOON + timedelta(minutes=5), idempotency_key=f"{number}"))
    world.clock.tick(timedelta(minutes=10))

    assert [world.scan(shard).sent for shard in range(world.wheel.scan_shards)].count(3) == 1


def test_a_tick_has_no_budget_from_a_publisher_that_has_stopped():
    world = World()
    due_at = NOON + timedelta(minutes=5)
    world.submit(a_submission(due_at=due_at))
    world.shards.publish(Conditions(published_at=NOON, budgets=dict.fromkeys(Priority, 0)))
    world.clock.tick(timedelta(minutes=4))
    shards = range(world.wheel.scan_shards)
    assert sum(world.scan(shard).sent for shard in shards) == 0

    world.clock.tick(timedelta(minutes=2))

    assert sum(world.scan(shard).sent for shard in shards) == 1


def test_conditions_are_read_as_they_were_written():
    conditions = Conditions(
        published_at=NOON,
        budgets={Priority.LOW: 7},
        depths={Priority.HIGH: 3},
        waiting={Priority.HIGH: 2},
        lags={Priority.CRITICAL: 0},
        shed=frozenset({Priority.LOW, Priority.NORMAL}),
        marked_since=NOON - timedelta(days=7),
        unseen_since=NOON - MINUTE,
    )

    assert decode_conditions(encode_conditions(conditions)) == conditions


def test_conditions_of_the_release_before_report_nothing_that_waits():
    written = '{"at":1,"budgets":{},"depths":{"2":7},"lags":{},"shed":[]}'

    assert decode_conditions(written).waiting == {}


def test_of_a_new_stage_every_dead_letter_is_marked():
    world = World()

    assert a_publisher(world).publish().marked_since == EPOCH
    world.clock.tick(timedelta(days=1))
    assert a_publisher(world).publish().marked_since == EPOCH
    assert world.conditions.marked_since() == EPOCH


def test_of_a_stage_of_the_release_before_dead_letters_are_marked_from_now_on_also_after_a_rollback():
    world = World()
    marked_since: list[datetime | None] = []
    for _ in range(2):
        # What a release before publishes says nothing of marks.
        world.shards.publish(Conditions(published_at=world.clock.now()))
        for _ in range(2):
            world.clock.tick(timedelta(hours=1))
            marked_since.append(a_publisher(world).publish().marked_since)

    hours = [NOON + timedelta(hours=number) for number in (1, 1, 3, 3)]
    assert marked_since == hours


def test_since_when_dead_letters_are_marked_is_known_of_a_publisher_that_has_stopped_too():
    world = World()
    world.shards.publish(Conditions(published_at=NOON, marked_since=NOON))
    world.clock.tick(timedelta(days=1))

    assert (world.conditions.now(), world.conditions.marked_since()) == (None, NOON)


def test_what_waits_for_workers_is_published_beside_what_is_held():
    world = World()
    world.ready.send([a_timer(), a_timer(due_at=NOON + timedelta(minutes=2))])

    conditions = a_publisher(world).publish()

    assert (conditions.depths[Priority.NORMAL], conditions.waiting[Priority.NORMAL]) == (2, 1)
    assert world.events("conditions_published")[0]["waiting"] == {"critical": 0, "high": 0, "normal": 1, "low": 0}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"at":"x","budgets":{},"depths":{},"lags":{},"shed":[]}'])
def test_what_is_no_conditions_is_never_taken_for_them(text: str):
    with pytest.raises(Undecodable):
        decode_conditions(text)


def test_a_quantum_is_a_part_of_the_budget_within_bounds():
    assert [quantum_of(budget) for budget in (None, 0, 100, 1_000, 10**6)] == [500, 10, 10, 50, 500]


def test_a_turn_is_at_least_one_job():
    assert [grant(10, weight) for weight in (0.01, 0.5, 1, 3)] == [1, 5, 10, 30]


def test_a_round_goes_on_where_it_was_cut_off_also_when_that_tenant_is_gone():
    assert order_from("", ["b", "a"]) == ["", "a", "b"]
    assert order_from("b", ["c", "a"]) == ["c", "", "a"]
    assert order_from("z", ["a"]) == ["", "a"]
