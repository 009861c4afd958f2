"""Tenants in turns: what goes out in which tick when more is due than may."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from functions.domain.cursor import first_cursors
from functions.domain.fairness import MIN_QUANTUM, ROUNDS_A_TICK
from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.job import Priority, Timer
from functions.domain.tenant_plan import TenantPlan, TenantStatus
from functions.ports import Rejected
from functions.scanner import rounds
from tests.builders import NOON, a_timer
from tests.unit.world import World

BUDGET = MIN_QUANTUM * ROUNDS_A_TICK
TICK = timedelta(minutes=1)


@pytest.fixture
def world() -> World:
    """A shard that was scanned up to now, and promotes so many normal jobs a tick."""
    world = World()
    recorded(world, world.wheel.bucket_of(NOON))
    world.shards.published = {Priority.NORMAL: BUDGET}
    return world


def test_no_more_goes_out_than_the_budget_and_the_next_tick_goes_on_where_it_ended(world: World):
    rows(world, "acme", BUDGET + 5)

    report = world.scan()

    assert (report.sent, report.stopped_by) == (BUDGET, "the budget of a class is used up")
    assert (world.scan().sent, world.scan().sent) == (5, 0)


def test_a_class_without_a_budget_has_no_bound(world: World):
    world.shards.published = {}
    rows(world, "acme", 3 * rounds.PAGE + 1)

    assert world.scan().sent == 3 * rounds.PAGE + 1


def test_a_tenant_with_one_job_is_not_behind_one_with_thousands(world: World):
    rows(world, "a-whale", 5_000)
    minnow = rows(world, "minnow", 1)[0]

    world.scan()

    assert minnow in world.ready.sent
    assert Counter(timer.job.tenant for timer in world.ready.sent) == {"a-whale": BUDGET - 1, "minnow": 1}


def test_a_job_that_comes_later_is_not_behind_one_with_thousands_either(world: World):
    rows(world, "a-whale", 5_000)
    world.scan()
    minnow = rows(world, "minnow", 1, due_at=NOON + 3 * TICK)[0]
    world.clock.tick(2 * TICK)

    world.scan()

    assert minnow in world.ready.sent


def test_tenants_that_have_more_than_goes_out_share_it_by_their_weights(world: World):
    world.plans.plans = {"heavy": TenantPlan(weight=3), "light": TenantPlan(weight=0.5)}
    for tenant in ("heavy", "light", "usual"):
        rows(world, tenant, 3_000)

    for _ in range(10):
        world.scan()

    sent = Counter(timer.job.tenant for timer in world.ready.sent)
    assert sum(sent.values()) == 10 * BUDGET
    unit = 10 * BUDGET / 4.5
    for tenant, weight in (("heavy", 3), ("light", 0.5), ("usual", 1)):
        assert abs(sent[tenant] - weight * unit) <= 3 * MIN_QUANTUM * weight


def test_a_turn_that_the_budget_cuts_off_goes_on_in_the_next_tick(world: World):
    world.shards.published = {Priority.NORMAL: 15}
    for tenant in ("a", "b", "c"):
        rows(world, tenant, 100)

    for _ in range(6):
        world.scan()

    sent = Counter(timer.job.tenant for timer in world.ready.sent)
    assert sum(sent.values()) == 6 * 15
    assert max(sent.values()) - min(sent.values()) <= MIN_QUANTUM


def test_everything_goes_out_once_however_it_is_cut(world: World):
    due = [*rows(world, "whale", 777), *rows(world, "b", 20), *rows(world, "zebra", 300), *rows(world, "a", 3)]
    due += rows(world, "whale", 50, due_at=NOON + TICK)

    while len(world.ready.sent) < len(due):
        world.clock.tick(SECOND)
        assert world.scan().sent
    world.clock.tick(TICK)

    assert world.scan().sent == 0
    assert Counter(map(key, world.ready.sent)) == Counter(map(key, due))


def test_a_tenant_that_has_caught_up_is_in_the_stream_again(world: World):
    rows(world, "whale", 300)
    assert "whale" in world.scan().cursors[Priority.NORMAL].own

    world.scan()

    assert world.scan().cursors[Priority.NORMAL].own == {}
    late = rows(world, "whale", 1, due_at=NOON + 3 * TICK)
    world.clock.tick(2 * TICK)
    world.scan()
    assert world.ready.sent[-1:] == late


def test_a_paused_tenant_is_passed_and_goes_on_in_order_when_it_is_resumed(world: World):
    held = rows(world, "paused", 5) + rows(world, "paused", 5, due_at=NOON + TICK)
    others = rows(world, "a", 2) + rows(world, "z", 2) + rows(world, "z", 2, due_at=NOON + TICK)
    world.plans.plans = {"paused": TenantPlan(status=TenantStatus.PAUSED)}

    for _ in range(5):
        world.scan()
        world.clock.tick(TICK)
    assert world.ready.sent == others

    world.plans.plans = {}
    assert world.scan().sent == len(held)
    assert world.ready.sent[len(others) :] == held
    assert world.scan().cursors[Priority.NORMAL].own == {}


def test_a_paused_tenant_makes_no_bucket_old(world: World):
    rows(world, "paused", 5)
    world.plans.plans = {"paused": TenantPlan(status=TenantStatus.PAUSED)}

    for _ in range(10):
        world.scan()
        world.clock.tick(TICK)

    assert world.journal.values["oldest_bucket_age_s"][-1] == 0.0


def test_a_paused_tenant_is_neither_a_straggler_nor_does_the_audit_wait_for_it(world: World):
    held, ran = rows(world, "paused", 2), rows(world, "acme", 1)
    world.plans.plans = {"paused": TenantPlan(status=TenantStatus.PAUSED)}
    world.sweep()
    for _ in range(10):
        world.scan(0)
        world.scan(1)
        world.clock.tick(TICK)

    report = world.sweep()

    assert (report.waits_for, report.audited, report.stragglers) == ([], 1, 1)  # nobody has run what was promoted
    assert not set(map(key, held)) & {key(timer) for timer in world.ready.sent}
    assert key(ran[0]) in {key(timer) for timer in world.ready.sent}


def test_tenants_beyond_those_that_may_have_a_turn_of_their_own_hold_the_stream_up_and_are_served(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(rounds, "MAX_OWN", 2)
    due = [timer for tenant in ("a", "b", "c", "d") for timer in rows(world, tenant, 100)]
    due += rows(world, "e", 1)

    sent = 0
    while sent < len(due):
        report = world.scan()
        assert report.sent
        assert len(report.cursors[Priority.NORMAL].own) <= 2
        sent += report.sent

    assert Counter(map(key, world.ready.sent)) == Counter(map(key, due))


def test_a_paused_tenant_for_which_there_is_no_room_is_left_to_the_workers(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(rounds, "MAX_OWN", 1)
    world.plans.plans = {name: TenantPlan(status=TenantStatus.PAUSED) for name in ("a", "b")}
    rows(world, "a", 1)
    beyond, other = rows(world, "b", 1), rows(world, "c", 1)

    world.scan()

    assert world.ready.sent == [*beyond, *other]


def test_a_refused_row_of_a_tenant_that_left_the_stream_is_read_again_and_nothing_is_passed(world: World):
    due = [*rows(world, "a", 30), *rows(world, "b", 30), *rows(world, "c", 5)]
    refused = {key(due[3]), key(due[33])}
    world.ready.refuses = lambda timer: Rejected(timer, "busy", is_permanent=False) if key(timer) in refused else None
    for _ in range(3):
        world.scan()

    world.ready.refuses = lambda _: None
    for _ in range(5):
        world.scan()

    assert {key(timer) for timer in world.ready.sent} == set(map(key, due))


def test_a_tick_that_died_loses_nothing_of_any_turn(world: World):
    due = [*rows(world, "a", 300), *rows(world, "b", 40), *rows(world, "c", 1)]
    world.scan()
    world.shards.rows[0]["lease_until"] = None
    before = world.shards.rows[0]["cursors"]
    world.scan()
    # What the second tick recorded is gone, as if it had died before: what it sent is sent again.
    world.shards.rows[0]["cursors"] = before

    for _ in range(5):
        world.scan()

    assert {key(timer) for timer in world.ready.sent} == set(map(key, due))


def test_a_higher_class_leaves_the_lower_ones_a_share_of_every_tick(world: World):
    world.shards.published = {}
    for priority in Priority:
        rows(world, "acme", 3 * rounds.PAGE, priority=priority)
    world.timers.before_read = lambda: world.clock.tick(2 * SECOND)

    world.scan()

    assert {timer.job.priority for timer in world.ready.sent} >= {Priority.CRITICAL, Priority.LOW}


def rows(world: World, tenant: str, count: int, *, due_at: Any = NOON, **overrides: Any) -> list[Timer]:
    """Rows of a tenant in the shard that is scanned, in the order of their keys."""
    timers = [a_timer(due_at=due_at + number * MILLISECOND, tenant=tenant, **overrides) for number in range(count)]
    timers = [replace(timer, job=replace(timer.job, shard=0)) for timer in timers]
    world.rows.put(timers)
    return timers


def key(timer: Timer) -> str:
    """What names a row."""
    return f"{timer.job.tenant}#{timer.job.identity}"


def recorded(world: World, bucket: int) -> None:
    """Both shards were scanned up to a bucket."""
    for shard in range(world.wheel.scan_shards):
        lease = world.shards.acquire(shard, owner="", now=NOON, lease_until=NOON, skew=world.wheel.skew)
        assert lease is not None
        world.shards.checkpoint(lease, first_cursors(bucket), lease_until=None)
