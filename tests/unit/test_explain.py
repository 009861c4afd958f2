"""What the API gathers to explain a job, over the stores."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.domain.errors import JobNotFound
from functions.domain.explanation.facts import Explanation, Reason
from functions.domain.far_ring.cursor import first_cursors
from functions.domain.instants import HOUR, MINUTE, SECOND
from functions.domain.jobs.job import Delivery, Priority, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.lifecycle import State
from functions.domain.schedules.firing import next_fire
from functions.domain.schedules.state import Status, changed
from functions.domain.stage.conditions import Conditions
from functions.domain.targets.breaker import guarded_destination, opened
from functions.domain.targets.flows import FlowLimits, NamedFlow, parse_rate
from functions.domain.tenants.plan import TenantPlan, TenantStatus
from functions.ports.targets import Failed, Pending
from testkit.builders import (
    NOON,
    a_link,
    a_schedule,
    a_stored_schedule,
    a_template,
    a_timer,
    an_occurrence_timer,
    every,
)
from testkit.scheduler import World
from tests.unit.test_execute import a_message
from tests.unit.test_rescheduler import a_placed, change, run_now

LATER = NOON + HOUR


@pytest.fixture
def world() -> World:
    return World()


def test_a_far_job_waits_for_its_bucket(world: World):
    assert explain(world, a_placed(world)).reason is Reason.WAITING


def test_a_job_in_the_room_of_a_flow_waits_for_its_turn_and_says_when_that_comes_at_the_earliest(world: World):
    an_hour = NamedFlow(key="stripe", limits=FlowLimits(rate=parse_rate("1/h"), burst=1))
    timers = [a_timer(due_at=NOON - (3 - number) * SECOND, flows=(an_hour,)) for number in range(3)]
    world.placer.place(timers)

    for _ in range(3):
        world.receive_and_work()

    states = [world.ledger.rows[timer.job.key].state for timer in timers]
    waiting = [timer for timer, state in zip(timers, states, strict=True) if state is State.SCHEDULED]
    explanations = [explain(world, timer) for timer in waiting]
    assert [each.reason for each in explanations] == [Reason.WAITING_FOR_FLOW] * 2
    assert [each.at for each in explanations] == [NOON + HOUR, NOON + 2 * HOUR]


def test_a_job_that_has_left_the_room_of_its_flow_is_on_its_way(world: World):
    an_hour = NamedFlow(key="stripe", limits=FlowLimits(rate=parse_rate("1/h"), burst=1))
    timers = [a_timer(due_at=NOON - SECOND, flows=(an_hour,)) for _ in range(2)]
    world.placer.place(timers)
    for _ in range(3):
        world.receive_and_work()
    (waiting,) = [timer for timer in timers if world.ledger.rows[timer.job.key].state is State.SCHEDULED]
    world.flows.rooms.clear()

    explanation = explain(world, waiting)

    assert (explanation.reason, "has had its turn" in explanation.detail) == (Reason.IN_READY_QUEUE, True)


def test_a_promoted_job_is_in_the_ready_queue_although_its_far_row_stays(world: World):
    timer = a_placed(world)
    world.clock.tick(HOUR + MINUTE)
    world.scan(0)
    world.scan(1)

    explanation = explain(world, timer)

    assert (explanation.reason, explanation.at) == (Reason.IN_READY_QUEUE, LATER)
    assert "60 s" in explanation.detail


class TestItsTurn:
    def test_a_job_of_a_tenant_with_more_due_than_its_turns_let_out_waits_for_its_own(self, world: World):
        due = [a_placed(world, identity=f"job-{number:03}") for number in range(40)]
        shard = due[0].job.shard
        world.shards.publish(Conditions(published_at=NOON + HOUR, budgets={Priority.NORMAL: 15}))
        world.clock.tick(HOUR + MINUTE)
        scanned_to(world, NOON)
        world.scan(shard)

        first, last = explain(world, due[0]), explain(world, due[-1])

        assert first.reason is Reason.IN_READY_QUEUE
        assert (last.reason, last.at) == (Reason.OVER_CAP, LATER)
        assert "Tenant acme has more normal jobs due" in last.detail

    def test_a_job_of_a_paused_tenant_waits_for_its_resumption(self, world: World):
        timer = a_placed(world)
        world.plans.plans = {"acme": TenantPlan(status=TenantStatus.PAUSED)}
        world.clock.tick(HOUR + MINUTE)
        scanned_to(world, NOON)
        world.scan(timer.job.shard)

        explanation = explain(world, timer)

        assert (explanation.reason, explanation.at) == (Reason.TENANT_PAUSED, None)
        assert "tenant acme is paused" in explanation.detail

    def test_a_due_job_that_its_scanner_has_not_come_to_learns_where_that_is(self, world: World):
        timer = a_placed(world)
        world.clock.tick(HOUR + MINUTE)
        scanned_to(world, NOON)

        explanation = explain(world, timer)

        assert (explanation.reason, explanation.at) == (Reason.WAITING, NOON)
        assert "It is due since 60 s" in explanation.detail

    def test_a_job_whose_bucket_was_opened_a_moment_ago_is_on_its_way(self, world: World):
        timer = a_placed(world)
        scanned_to(world, NOON)
        world.clock.tick(HOUR - MINUTE)

        assert explain(world, timer).reason is Reason.IN_READY_QUEUE


def scanned_to(world: World, instant: datetime) -> None:
    """Both shards were scanned up to the bucket of an instant."""
    for shard in range(world.wheel.scan_shards):
        lease = world.shards.acquire(shard, owner="", now=instant, lease_until=instant, skew=world.wheel.skew)
        assert lease is not None
        world.shards.checkpoint(lease, first_cursors(world.wheel.bucket_of(instant)), lease_until=None)


def test_a_parked_job_is_reported_by_the_breaker_of_its_destination(world: World):
    timer = a_placed(world)
    world.clock.tick(HOUR)
    open_breaker(world, timer.job.target)

    explanation = explain(world, timer)

    assert (explanation.reason, explanation.at) == (Reason.PARKED, world.clock.now() + 30 * SECOND)


def test_a_job_whose_target_nobody_can_call_is_explained_all_the_same(world: World):
    timer = a_placed(world, target="gopher://x")
    world.clock.tick(HOUR)

    assert explain(world, timer).reason is Reason.IN_READY_QUEUE


def test_a_job_whose_destination_is_too_long_for_a_breaker_is_explained_without_one(world: World):
    timer = a_placed(world, target=f"https://{'a' * 1_100}.example/")
    world.clock.tick(HOUR)

    assert guarded_destination(timer.job.target) == ""
    assert explain(world, timer).reason is Reason.IN_READY_QUEUE


def test_a_retry_that_is_far_is_reported_with_its_time(world: World):
    timer = a_placed(world, due_at=NOON, retry=RetryPolicy(strategy=Strategy.FIXED, attempts=2, base=HOUR, cap=HOUR))
    world.targets.answer = lambda *_: Failed("busy")
    world.receive_and_work()

    explanation = explain(world, timer)

    assert (explanation.reason, explanation.at) == (Reason.RETRYING, LATER)
    assert "busy" in explanation.detail


def test_a_held_job_is_reported_with_its_lease(world: World):
    timer = a_placed(world, due_at=NOON)
    world.targets.answer = lambda *_: Pending()
    world.receive_and_work()

    assert explain(world, timer).reason is Reason.HELD


def test_a_job_that_was_let_run_now_has_succeeded(world: World):
    timer = a_placed(world)
    run_now(world, timer)
    world.receive_and_work()

    assert explain(world, timer).reason is Reason.SUCCEEDED


def test_a_moved_job_is_explained_under_its_new_id(world: World):
    timer = a_placed(world)
    moved = change(world, timer, delay=7_200)

    found, explanation = world.explainer().explain(job_id_of(timer.job))

    assert found.job_id == moved.job_id
    assert (explanation.reason, explanation.at) == (Reason.WAITING, moved.due_at)


def test_an_at_least_once_job_is_untracked_once_it_is_due(world: World):
    timer = a_placed(world, delivery=Delivery.AT_LEAST_ONCE)
    assert explain(world, timer).reason is Reason.WAITING

    world.clock.tick(HOUR)
    assert explain(world, timer).reason is Reason.UNTRACKED


def test_a_job_that_was_cancelled_without_a_row_is_not_found(world: World):
    with pytest.raises(JobNotFound):
        explain(world, a_timer(due_at=LATER, delivery=Delivery.AT_LEAST_ONCE))


class TestFires:
    def test_a_fire_that_its_schedule_spreads_reports_both_instants(self, world: World):
        schedule = a_schedule(spread=timedelta(minutes=30))
        fire = next_fire_of(schedule)
        world.store(schedule, link=a_link(fire))
        timer = an_occurrence_timer(schedule, fire_at=fire)
        world.clock.tick(fire - NOON - MINUTE)

        explanation = explain(world, timer)

        assert (explanation.reason, explanation.at) == (Reason.SPREAD_OR_JITTERED, fire)
        assert "says 2027-03-01T1" in explanation.detail

    def test_a_fire_that_nothing_moved_is_on_its_way(self, world: World):
        schedule = a_schedule()
        world.store(schedule, link=a_link(LATER))
        world.clock.tick(HOUR - MINUTE)

        assert explain(world, an_occurrence_timer(schedule, fire_at=LATER)).reason is Reason.IN_READY_QUEUE

    def test_a_fire_of_a_paused_schedule_will_be_skipped(self, world: World):
        schedule = a_schedule(rule=every(minutes=1))
        world.store(schedule, status=Status.PAUSED, changed_at=NOON)

        assert explain(world, an_occurrence_timer(schedule, fire_at=NOON + MINUTE)).reason is Reason.PAUSED

    def test_a_fire_of_a_schedule_that_is_gone_will_be_skipped(self, world: World):
        schedule = a_schedule()
        world.store(schedule, recent=(NOON,))
        state = changed(world.state(schedule), status=Status.DELETED, now=NOON)
        assert world.schedules.change(
            replace(a_stored_schedule(schedule=schedule), version=state.version, status=state.status),
            state,
            seen=world.state(schedule),
        )

        assert explain(world, an_occurrence_timer(schedule, fire_at=NOON)).reason is Reason.PAUSED

    def test_a_fire_that_is_due_and_parked_is_reported_by_the_target_of_its_schedule(self, world: World):
        schedule = a_schedule(job=a_template(target="https://example.com/other"))
        world.store(schedule, recent=(NOON,))
        open_breaker(world, "https://example.com/")

        assert explain(world, an_occurrence_timer(schedule, fire_at=NOON)).reason is Reason.PARKED

    def test_a_fire_that_has_run_needs_no_schedule(self, world: World):
        timer = an_occurrence_timer(fire_at=NOON)
        world.ledger.claim(timer, owner="w", lease_until=LATER, now=NOON)
        row = world.row(timer.job)
        world.ledger.rows[timer.job.key] = replace(row, state=State.SUCCEEDED)

        assert explain(world, timer).reason is Reason.SUCCEEDED


def open_breaker(world: World, target: str) -> None:
    destination = "https://example.com"
    assert target.startswith(destination)
    breaker = opened("acme", destination, owner="w", now=world.clock.now(), error_class="http_500", retry_after=None)
    world.breaker_store.put(breaker, seen=None)


def next_fire_of(schedule: Any) -> Any:
    fire = next_fire(schedule, after=NOON)
    assert fire is not None
    assert fire.at != fire.nominal_at
    return fire.at


def explain(world: World, timer: Timer) -> Explanation:
    return world.explainer().explain(job_id_of(timer.job))[1]


def test_a_job_that_found_no_permit_says_so(world: World):
    timer = a_placed(world)
    world.plans.plans = {"acme": TenantPlan(max_concurrency=1)}
    world.clock.tick(HOUR)
    assert world.limiter.take("acme", limit=1, lease_until=world.clock.now() + MINUTE) is not None
    world.work(a_message(timer))

    explanation = explain(world, timer)

    assert (explanation.reason, explanation.at) == (Reason.AT_CONCURRENCY_CAP, world.row(timer.job).parked_until)


def test_a_job_that_a_pause_found_at_its_worker_says_so(world: World):
    timer = a_placed(world)
    world.plans.plans = {"acme": TenantPlan(status=TenantStatus.PAUSED)}
    world.clock.tick(HOUR)
    world.work(a_message(timer))

    assert explain(world, timer).reason is Reason.TENANT_PAUSED
