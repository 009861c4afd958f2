"""Whoever meets something of a tenant that is deleted forgets it: what is slow, late or in the middle leaves nothing behind."""

from datetime import timedelta

import pytest

from functions.domain.far_ring.timer_record import encode_envelope
from functions.domain.instants import HOUR, SECOND
from functions.domain.jobs.job import Delivery
from functions.domain.operations.operation import OperationState
from functions.domain.tenants.changes import EFFECTIVE_AFTER, with_status
from functions.domain.tenants.deletion import begins_at
from functions.domain.tenants.plan import DEFAULT_PLAN, Tenant, TenantPlan, TenantStatus
from functions.ports.targets import Failed
from functions.services.tenants.plans import KNOWN_FOR, KnownPlans
from testkit.builders import NOON, a_link, a_schedule, a_submission, a_timer, an_operation
from testkit.fakes import FakeClock, InMemoryTenantStore, RecordingJournal
from testkit.scheduler import World

GONE = (TenantStatus.DELETING, TenantStatus.DELETED)


def delete(world: World, status: TenantStatus = TenantStatus.DELETED) -> None:
    world.plans.plans["acme"] = TenantPlan(status=status)


@pytest.mark.parametrize("delivery", Delivery)
@pytest.mark.parametrize("status", GONE)
def test_what_crashed_its_workers_is_no_dead_letter_any_more(status: TenantStatus, delivery: Delivery):
    world = World()
    delete(world, status)
    body = encode_envelope([a_timer(delivery=delivery)])

    assert world.burier().bury(body, message_id="m", seen_at=NOON, receive_count=10)

    assert world.letters.letters == {}
    assert world.ready.sent == []
    assert world.journal.counts == {"forgotten": 1}


@pytest.mark.parametrize("status", GONE)
def test_its_operations_are_not_carried_on(status: TenantStatus):
    world = World()
    world.operations.create(an_operation())
    delete(world, status)

    world.operate()

    (operation,) = world.operations.rows.values()
    assert operation.state is OperationState.WAITING


@pytest.mark.parametrize("status", GONE)
def test_a_broken_chain_is_not_healed(status: TenantStatus):
    def broken() -> World:
        world = World()
        world.store(a_schedule(), link=a_link(NOON + 3 * HOUR), alarm_at=None)
        world.clock.tick(HOUR)
        return world

    assert broken().heal().healed == 1
    world = broken()
    delete(world, status)
    before = world.state(a_schedule())

    assert world.heal().healed == 0

    assert world.state(a_schedule()) == before
    assert world.timers.alarms == []


def test_a_submission_that_read_the_old_plan_and_is_slow_leaves_a_message_that_is_forgotten():
    world = World()
    world.submit(a_submission(due_at=NOON))
    delete(world)

    world.receive_and_work()

    assert world.targets.effects == []
    assert world.ledger.rows == {}
    assert world.ready.receive() == []
    assert [event["tenant"] for event in world.events("job_forgotten")] == ["acme"]


def test_a_process_takes_something_in_until_it_knows_and_none_does_from_the_instant_that_the_answer_says():
    clock, store = FakeClock(), InMemoryTenantStore()
    plans = [
        KnownPlans(clock=clock, tenants=store, journal=RecordingJournal(), stage_plans={DEFAULT_PLAN: {}})
        for _ in range(31)
    ]
    for known in plans:
        known.of("acme")
        clock.tick(SECOND)
    deleting = with_status("acme", Tenant(), TenantStatus.DELETING, note="", now=clock.now())
    assert store.change("acme", deleting, seen=0)

    clock.tick(3 * SECOND)
    assert {known.of("acme").is_closed for known in plans} == {True, False}
    clock.tick(EFFECTIVE_AFTER - 3 * SECOND)
    assert {known.of("acme").is_closed for known in plans} == {True}


def test_a_retry_that_a_worker_places_late_is_forgotten_by_whoever_has_it_next():
    world = World()
    world.submit(a_submission(due_at=NOON))

    def fail_meanwhile(*_: object) -> Failed:
        delete(world)
        return Failed("no")

    world.targets.answer = fail_meanwhile
    world.receive_and_work()
    assert len(world.ready.sent) == 2  # the retry was placed behind the new status
    world.ledger.rows.clear()  # and then the deletion came
    world.clock.tick(timedelta(minutes=1))

    world.receive_and_work()

    assert len(world.targets.effects) == 1
    assert world.ledger.rows == {}
    assert world.ready.receive() == []


def test_a_tick_in_the_middle_promotes_nothing_of_it_and_writes_nothing():
    world = World()
    world.submit(a_submission(due_at=NOON + HOUR))
    world.store(a_schedule())
    sent, alarms = len(world.ready.sent), len(world.timers.alarms)
    delete(world)
    for _ in range(62):
        world.clock.tick(timedelta(minutes=1))
        for shard in range(world.wheel.scan_shards):
            world.scan(shard)

    assert len(world.ready.sent) == sent
    assert len(world.timers.alarms) == alarms
    assert world.letters.letters == {}


def test_all_that_had_begun_has_ended_when_the_deletion_begins():
    """The slowest way: a process reads the plans just before the change, and begins an attempt just before it reads again."""
    longest, skew = timedelta(minutes=5), timedelta(seconds=5)
    read_at = NOON - KNOWN_FOR
    begun_at = read_at + 2 * KNOWN_FOR
    ended_at = begun_at + longest

    assert ended_at + skew < begins_at(NOON, longest=longest, skew=skew)
