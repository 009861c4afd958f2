"""What is due soon does not pass by a cap, a pause, or a class that is full."""

from datetime import timedelta
from typing import Any

import pytest

from functions.domain.far_ring.timer_record import decode_timer, encode_timer
from functions.domain.instants import SECOND
from functions.domain.jobs.job import Priority, Timer
from functions.domain.stage.conditions import Conditions
from functions.domain.tenants.plan import TenantPlan, TenantStatus
from functions.domain.wheel import FAR_MARGIN, MAX_DELAY, Ring
from functions.ports.ready_queue import Rejected
from testkit.builders import NOON, a_submission, a_timer, a_wheel
from testkit.scheduler import World

CAPPED = {"acme": TenantPlan(execution_rate=0.1)}


@pytest.fixture
def world() -> World:
    return World()


def near(count: int, *, tenant: str = "acme", **overrides: Any) -> list[Timer]:
    return [a_timer(due_at=NOON + number * SECOND, tenant=tenant, **overrides) for number in range(count)]


def written(world: World) -> list[Timer]:
    return [timer for put in world.timers.puts for timer in put]


def test_a_tenant_without_limits_costs_nothing(world: World):
    placed = world.placer.place(near(5))

    assert {placement.ring for placement in placed} == {Ring.NEAR}
    assert all(timer.not_before is None for timer in world.ready.sent)
    assert world.rates.writes == 0


def test_near_jobs_of_a_capped_tenant_go_out_with_bookings_and_the_rest_into_the_far_ring(world: World):
    world.plans.plans = CAPPED
    jobs = near(30)

    placed = world.placer.place(jobs)

    assert [placement.ring for placement in placed] == [Ring.NEAR] * 15 + [Ring.FAR] * 15
    assert world.rates.writes == 1
    assert [(timer.wakes_at - NOON) / SECOND for timer in world.ready.sent] == [*range(0, 150, 10)]
    assert {timer.wakes_at for timer in written(world)} == {NOON + world.wheel.guard + FAR_MARGIN}


def test_no_booking_of_a_scanner_is_further_ahead_than_a_queue_delays():
    world = World(wheel=a_wheel(bucket=timedelta(seconds=720), guard=timedelta(seconds=900)))
    world.plans.plans = {"acme": TenantPlan(execution_rate=0.01)}
    far = NOON + world.wheel.guard + FAR_MARGIN
    world.placer.place([a_timer(due_at=far, wheel=world.wheel) for _ in range(30)])
    world.clock.tick(world.wheel.guard)

    for shard in range(world.wheel.scan_shards):
        world.scan(shard)

    delays = [timer.wakes_at - world.clock.now() for timer in world.ready.sent]
    assert len(delays) > 5
    assert max(delays) <= MAX_DELAY


def test_a_held_back_job_is_promoted_with_a_booking_and_runs_late_by_its_first_due_time(world: World):
    world.plans.plans = CAPPED
    world.placer.place(near(16))
    world.ready.sent.clear()
    world.clock.tick(world.wheel.guard)

    for shard in range(world.wheel.scan_shards):
        world.scan(shard)

    (late,) = world.ready.sent
    assert late.due_at == NOON + 15 * SECOND
    assert late.wakes_at > world.clock.now() - FAR_MARGIN


def test_jobs_of_different_tenants_keep_their_places(world: World):
    world.plans.plans = CAPPED | {"globex": TenantPlan(status=TenantStatus.PAUSED)}
    jobs = [*near(1, tenant="globex"), *near(2), *near(1, tenant="umbrella")]

    placed = world.placer.place(jobs)

    assert [placement.ring for placement in placed] == [Ring.FAR, Ring.NEAR, Ring.NEAR, Ring.NEAR]
    assert [timer.job.identity for timer in world.ready.sent] == [timer.job.identity for timer in jobs[1:]]


def test_near_jobs_of_a_full_class_wait_in_the_far_ring(world: World):
    world.shards.publish(Conditions(published_at=NOON, budgets={Priority.NORMAL: 0, Priority.HIGH: 1}))

    placed = world.placer.place([*near(1), *near(1, priority=Priority.HIGH)])

    assert [placement.ring for placement in placed] == [Ring.FAR, Ring.NEAR]


def test_a_submission_that_is_held_back_says_so_and_keeps_its_time(world: World):
    world.plans.plans = {"acme": TenantPlan(status=TenantStatus.PAUSED)}

    accepted = world.submit(a_submission(due_at=NOON + SECOND))

    assert (accepted.ring, accepted.due_at) == (Ring.FAR, NOON + SECOND)
    (row,) = written(world)
    assert (row.due_at, row.not_before) == (NOON + SECOND, NOON + world.wheel.guard + FAR_MARGIN)


def test_what_is_far_anyway_is_let_be(world: World):
    world.plans.plans = CAPPED
    far = a_timer(due_at=NOON + timedelta(hours=1))

    world.placer.place([far])

    assert written(world) == [far]
    assert world.rates.writes == 0


def test_one_that_loses_a_reservation_takes_the_next_bookings(world: World):
    world.plans.plans = CAPPED
    other = World()
    other.rates = world.rates
    other.plans.plans = CAPPED

    world.placer.place(near(2))
    other.placer.place(near(2))
    world.placer.place(near(2))

    starts = [*other.ready.sent, *world.ready.sent]
    assert sorted((timer.wakes_at - NOON) / SECOND for timer in starts) == [0, 10, 20, 30, 40, 50]
    assert world.rates.writes == 5


def test_while_the_rates_cannot_be_written_a_near_job_of_a_capped_tenant_waits_in_the_far_ring(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    world.plans.plans = CAPPED

    def broken(*_: Any, **__: Any) -> Any:
        raise ConnectionError("no answer")

    monkeypatch.setattr(world.rates, "book", broken)

    assert world.placer.place(near(1))[0].ring is Ring.FAR
    assert world.events("rate_unknown")


def test_a_clock_that_may_write_no_far_rows_holds_nothing_back(world: World):
    world.plans.plans = {"acme": TenantPlan(status=TenantStatus.PAUSED)}
    world.clock.known_offset = world.wheel.skew

    near_one, far_one = world.placer.place([*near(1), a_timer(due_at=NOON + timedelta(hours=1))])

    assert near_one.ring is Ring.NEAR
    assert far_one.is_permanent


def test_a_place_that_is_repeated_reserves_once(world: World):
    world.plans.plans = CAPPED
    refusals = iter([True, False])
    world.ready.refuses = lambda timer: Rejected(timer, "busy", is_permanent=False) if next(refusals) else None

    world.placer.place(near(1))

    assert (world.rates.writes, len(world.ready.sent)) == (1, 1)


def test_an_instant_before_which_a_timer_does_not_run_is_written_down():
    held = Timer(job=a_timer().job, due_at=NOON, not_before=NOON + SECOND)

    assert decode_timer(encode_timer(held), tenant=held.job.tenant) == held
    assert held.wakes_at == NOON + SECOND
    assert Timer(job=held.job, due_at=NOON, not_before=NOON - SECOND).wakes_at == NOON
