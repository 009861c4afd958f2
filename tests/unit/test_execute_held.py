"""Attempts whose targets answer 202: the worker's side."""

from dataclasses import replace
from datetime import timedelta

import pytest

from functions.domain.far_ring.timer_record import decode_timer
from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.jobs.claims import LEASE_MARGIN, after_lease
from functions.domain.jobs.job import Delivery, Payload, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.retry import RetryPolicy
from functions.domain.lifecycle import Event, State
from functions.ports.targets import Failed, Pending, Succeeded
from testkit.builders import NOON, a_timer
from testkit.observed import CrashError, DeathError
from testkit.scheduler import World
from tests.unit.test_execute import a_message

TIMEOUT = timedelta(seconds=20)


@pytest.fixture
def world() -> World:
    world = World()
    world.targets.answer = lambda *_: Pending()
    return world


def test_a_held_attempt_stays_leased_and_has_a_watchdog(world: World):
    timer = a_timer(timeout=TIMEOUT)

    assert world.work(a_message(timer)) == []

    row = world.row(timer.job)
    lease_until = NOON + TIMEOUT + LEASE_MARGIN
    assert (row.state, row.fence, row.lease_until) == (State.RUNNING, 1, lease_until)
    assert decode_timer(row.held, tenant="acme") == timer
    due_at = after_lease(lease_until, skew=world.wheel.skew)
    assert world.ready.sent == [timer.watchdog(due_at=due_at)]
    assert world.journal.counts == {"attempts": 1, "held": 1}


def test_the_lease_of_a_held_attempt_counts_from_the_answer(world: World):
    timer = a_timer(timeout=TIMEOUT)

    def answer_late(*_: object) -> Pending:
        world.clock.tick(10 * SECOND)
        return Pending()

    world.targets.answer = answer_late
    world.work(a_message(timer))

    assert world.row(timer.job).lease_until == NOON + 10 * SECOND + TIMEOUT + LEASE_MARGIN


@pytest.mark.parametrize("delivery", [Delivery.AT_LEAST_ONCE, Delivery.AT_MOST_ONCE])
def test_a_job_without_a_row_to_settle_later_has_succeeded_when_its_target_goes_on(world: World, delivery: Delivery):
    timer = a_timer(delivery=delivery)

    assert world.work(a_message(timer)) == []
    assert world.ready.sent == []
    assert world.journal.counts["succeeded"] == 1


def test_a_silent_target_is_called_again_with_a_larger_fence(world: World):
    timer = a_timer(timeout=TIMEOUT)
    world.work(a_message(timer))
    world.clock.tick(timedelta(minutes=1))
    world.targets.answer = lambda *_: Succeeded()

    world.work(a_message(world.ready.sent[0], "watchdog"))

    row = world.row(timer.job)
    assert (row.state, row.attempt, row.fence) == (State.SUCCEEDED, 2, 2)
    assert world.journal.counts["leases_expired"] == 1
    assert "rescues" not in world.journal.counts


def test_a_target_that_falls_silent_in_its_last_attempt_leaves_a_dead_letter_and_is_not_called(world: World):
    timer = a_timer(timeout=TIMEOUT, retry=RetryPolicy(attempts=1))
    world.work(a_message(timer))
    world.clock.tick(timedelta(minutes=1))

    world.work(a_message(world.ready.sent[0], "watchdog"))

    assert world.row(timer.job).state is State.FAILED
    assert [(letter.error_class, letter.attempt) for letter in world.buried] == [("silent", 2)]
    assert len(world.calls) == 1


def test_a_watchdog_looks_again_after_each_heartbeat_however_often(world: World):
    timer = a_timer(timeout=TIMEOUT)
    world.work(a_message(timer))
    for minute in range(1, 30):
        world.clock.tick(timedelta(minutes=1))
        lease_until = NOON + timedelta(minutes=minute, seconds=90)
        world.ledger.extend(job_id_of(timer.job), fence=1, lease_until=lease_until, now=world.clock.now())
        watchdog = world.ready.sent[-1]
        if watchdog.due_at > world.clock.now():
            continue

        assert world.work(a_message(watchdog, f"watchdog {minute}")) == []

        assert world.ready.sent[-1] == timer.watchdog(due_at=after_lease(lease_until, skew=world.wheel.skew))
        assert world.row(timer.job).fence == 1
    assert len(world.ready.sent) > 10
    assert len(world.calls) == 1


def test_a_watchdog_of_a_finished_attempt_is_dropped(world: World):
    timer = a_timer(timeout=TIMEOUT)
    world.work(a_message(timer))
    row = world.row(timer.job)
    world.ledger.settle(timer, Event.SUCCEED, fence=1, owner=row.owner, now=NOON)
    world.clock.tick(timedelta(minutes=1))

    assert world.work(a_message(world.ready.sent[0], "watchdog")) == []
    assert world.row(timer.job).state is State.SUCCEEDED
    assert len(world.calls) == 1


def test_a_cancel_of_a_silent_attempt_is_kept_by_its_watchdog(world: World):
    timer = a_timer(timeout=TIMEOUT)
    world.work(a_message(timer))
    world.ledger.request_cancel(job_id_of(timer.job), row=world.row(timer.job), now=NOON)
    world.clock.tick(timedelta(minutes=1))

    world.work(a_message(world.ready.sent[0], "watchdog"))

    assert world.row(timer.job).state is State.CANCELLED
    assert len(world.calls) == 1


def test_what_a_fast_target_settled_before_its_worker_noted_it_is_tidied_up_by_the_worker(world: World):
    timer = a_timer()
    timer = _with_payload(world, timer)

    def settle_first(*_: object) -> Pending:
        row = world.row(timer.job)
        world.ledger.settle(timer, Event.SUCCEED, fence=row.fence, owner=row.owner, now=NOON)
        return Pending()

    world.targets.answer = settle_first

    assert world.work(a_message(timer)) == ["m1"]
    assert world.row(timer.job).state is State.SUCCEEDED
    assert world.journal.counts["succeeded"] == 1
    assert timer.job.payload.pointer is not None
    assert world.payloads.get(timer.job.payload.pointer) is None


def test_a_worker_that_dies_before_it_notes_the_hold_leaves_a_watchdog_and_its_message(world: World):
    timer = a_timer(timeout=TIMEOUT)

    def die(*_: object, **__: object) -> None:
        raise DeathError

    world.ledger.hold = die  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(DeathError):
        world.work(a_message(timer))

    assert len(world.ready.sent) == 1
    assert world.row(timer.job).state is State.RUNNING


def test_a_store_that_fails_while_an_attempt_is_held_does_not_give_it_to_another(world: World):
    timer = a_timer(timeout=TIMEOUT)

    def fail(*_: object, **__: object) -> None:
        raise CrashError

    world.ledger.hold = fail  # pyright: ignore[reportAttributeAccessIssue]

    assert world.work(a_message(timer)) == ["m1"]
    assert world.row(timer.job).state is State.RUNNING  # its target is at it: it waits for the lease


def test_a_failure_with_a_retry_after_is_tried_again_no_sooner(world: World):
    timer = a_timer(retry=RetryPolicy(base=2 * SECOND))
    world.targets.answer = lambda *_: Failed("503", retry_after=timedelta(minutes=2))

    world.work(a_message(timer))

    assert [placed.due_at for placed in world.ready.sent] == [NOON + timedelta(minutes=2)]
    assert world.row(timer.job).due_at == NOON + timedelta(minutes=2)


def test_a_job_that_is_too_old_for_another_attempt_is_a_dead_letter(world: World):
    timer = a_timer(retry=RetryPolicy(base=2 * SECOND, max_age=timedelta(minutes=1)))
    world.clock.tick(timedelta(minutes=1) - 2 * SECOND + MILLISECOND)
    world.targets.answer = lambda *_: Failed("503")

    world.work(a_message(timer))

    assert world.ready.sent == []
    assert world.row(timer.job).state is State.FAILED


def _with_payload(world: World, timer: Timer) -> Timer:
    pointer = world.payloads.put(timer.job, '{"n":7}')
    return replace(timer, job=replace(timer.job, payload=Payload(pointer=pointer)))
