"""Jobs whose destination is left alone: the worker parks them before it claims them."""

from dataclasses import replace
from datetime import timedelta

import pytest

from functions.domain.instants import MINUTE, SECOND
from functions.domain.jobs.job import Delivery, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.retry import RetryPolicy
from functions.domain.lifecycle import Event, State
from functions.domain.targets.breaker import MIN_FAILURES
from functions.ports.ready_queue import Rejected
from functions.ports.targets import Failed, Pending, Succeeded
from testkit.builders import NOON, a_timer
from testkit.observed import CrashError
from testkit.scheduler import World
from tests.unit.test_execute import a_message


@pytest.fixture
def world() -> World:
    """One whose only destination has failed often enough."""
    world = World()
    world.targets.answer = lambda *_: Failed("503", "http_503")
    world.work(*(a_message(_at_once(a_timer()), f"f{number}") for number in range(MIN_FAILURES)))
    assert len(world.calls) == MIN_FAILURES
    world.ready.sent.clear()
    world.targets.effects.clear()
    return world


def test_a_job_for_a_broken_destination_waits_on_without_an_attempt(world: World):
    timer = a_timer()

    assert world.work(a_message(timer)) == []

    assert world.calls == []
    (parked,) = world.ready.sent
    assert parked == replace(timer, due_at=parked.due_at)
    assert parked.due_at > NOON
    row = world.row(timer.job)
    assert (row.state, row.attempt, row.fence, row.parked_until) == (State.SCHEDULED, 0, 0, parked.due_at)
    assert world.journal.counts["parked"] == 1


def test_jobs_of_another_destination_and_of_another_tenant_go_on(world: World):
    world.targets.answer = lambda *_: Succeeded()
    elsewhere, other = a_timer(target="https://example.org/hook"), a_timer(tenant="globex")

    world.work(a_message(elsewhere, "e"), a_message(other, "o"))

    assert len(world.calls) == 2


def test_parked_jobs_do_not_come_back_at_once(world: World):
    dues = set()
    for number in range(10):
        world.jitter = number / 10
        world.work(a_message(a_timer(), f"p{number}"))
        dues.add(world.ready.sent[-1].due_at)

    assert len(dues) == 10
    assert max(dues) - min(dues) >= 20 * SECOND


def test_the_first_job_after_the_pause_probes_and_lets_the_others_go(world: World):
    timers = [a_timer() for _ in range(3)]
    world.work(*(a_message(timer, str(number)) for number, timer in enumerate(timers)))
    world.clock.tick(2 * MINUTE)
    world.targets.answer = lambda *_: Succeeded()

    world.work(*(a_message(timer, f"again {number}") for number, timer in enumerate(world.ready.sent[:3])))

    assert [world.row(timer.job).state for timer in timers] == [State.SUCCEEDED] * 3
    assert [world.row(timer.job).attempt for timer in timers] == [1] * 3
    assert world.breaker_store.rows == {}


def test_a_probe_that_fails_has_spent_its_attempt_and_the_others_none(world: World):
    timers = [a_timer() for _ in range(2)]
    world.work(*(a_message(timer, str(number)) for number, timer in enumerate(timers)))
    first, second = world.ready.sent[:2]
    world.clock.tick(2 * MINUTE)

    world.work(a_message(first, "probe"), a_message(second, "after"))

    assert [world.row(timer.job).state for timer in timers] == [State.RETRYING, State.SCHEDULED]
    assert len(world.calls) == 1


def test_a_job_that_has_expired_meanwhile_expires_and_its_destination_is_not_called(world: World):
    timer = a_timer(expires_at=NOON + SECOND)
    world.clock.tick(MINUTE)

    world.work(a_message(timer))

    assert world.row(timer.job).state is State.EXPIRED
    assert world.calls == []


@pytest.mark.parametrize(("max_age", "state"), [(timedelta(minutes=5), State.SCHEDULED), (SECOND, State.FAILED)])
def test_a_job_waits_for_a_destination_no_longer_than_its_policy_allows(world: World, max_age: timedelta, state: State):
    timer = a_timer(retry=RetryPolicy(max_age=max_age))

    world.work(a_message(timer))

    assert world.row(timer.job).state is state
    assert world.calls == []
    assert [letter.error_class for letter in world.buried[MIN_FAILURES:]] == ["breaker_open"] * (state is State.FAILED)


def test_a_watchdog_that_would_call_nothing_is_not_parked(world: World):
    timer = a_timer(retry=RetryPolicy(attempts=1))
    world.clock.tick(2 * MINUTE)  # one call is let through
    world.targets.answer = lambda *_: Pending()
    world.work(a_message(timer))
    watchdog = world.ready.sent[-1]
    world.clock.tick(MINUTE)

    world.work(a_message(watchdog, "watchdog"))

    assert world.row(timer.job).state is State.FAILED


@pytest.mark.parametrize("delivery", [Delivery.AT_LEAST_ONCE, Delivery.AT_MOST_ONCE])
def test_every_delivery_is_parked_alike(world: World, delivery: Delivery):
    world.work(a_message(a_timer(delivery=delivery)))

    assert world.calls == []
    assert len(world.ready.sent) == 1


def test_a_probe_whose_job_is_a_duplicate_is_given_back(world: World):
    timer = a_timer()
    world.ledger.cancel(job_id_of(timer.job), owner="op", now=NOON)
    world.clock.tick(2 * MINUTE)
    world.targets.answer = lambda *_: Succeeded()

    world.work(a_message(timer))
    world.work(a_message(a_timer(), "next"))

    assert len(world.calls) == 1
    assert world.breaker_store.rows == {}


def test_a_parked_job_that_cannot_be_placed_comes_back(world: World):
    timer = a_timer()
    world.ready.refuses = lambda refused: Rejected(refused, "no answer", is_permanent=False)

    assert world.work(a_message(timer)) == ["m1"]
    assert world.ready.sent == []


def test_a_ledger_that_fails_makes_no_message_of_each_receive(world: World):
    timer = a_timer()

    def fail(*_: object, **__: object) -> None:
        raise CrashError

    world.ledger.park = fail  # pyright: ignore[reportAttributeAccessIssue]

    assert [world.work(a_message(timer)) for _ in range(3)] == [["m1"]] * 3
    assert world.ready.sent == []


@pytest.mark.parametrize("ends", [Event.SUCCEED, Event.WITHDRAW])
def test_a_job_that_has_ended_does_not_go_round_under_an_open_breaker(world: World, ends: Event):
    timer = a_timer()
    world.ledger.claim(timer, owner="w", lease_until=NOON, now=NOON)
    world.ledger.settle(timer, ends, fence=1, owner="w", now=NOON)

    assert world.work(a_message(timer)) == []
    assert world.ready.sent == []
    assert world.journal.counts["duplicates_dropped"] == 1
    assert "parked" not in world.journal.counts


def _at_once(timer: Timer) -> Timer:
    """One that is not tried again."""
    return replace(timer, job=replace(timer.job, retry=RetryPolicy(attempts=1)))
