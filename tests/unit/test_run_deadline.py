"""The deadline of a run: over all its attempts, the waits between them, and what its target does after a 202."""

from datetime import timedelta

import pytest

from functions.domain.far_ring.timer_record import decode_timer, encode_timer
from functions.domain.instants import MINUTE, SECOND
from functions.domain.jobs.claims import LEASE_MARGIN
from functions.domain.jobs.job import Delivery
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.jobs.submission import fingerprint_of, job_of
from functions.domain.lifecycle import State
from functions.ports.targets import Failed, Pending, Succeeded
from testkit.builders import NOON, a_job, a_submission, a_timer
from testkit.scheduler import World
from tests.unit.test_execute import a_message

EACH_MINUTE = RetryPolicy(strategy=Strategy.FIXED, attempts=20, base=MINUTE, cap=MINUTE)
REFUSED = Failed("503", "http_503")


@pytest.fixture
def world() -> World:
    return World()


def test_no_attempt_follows_that_would_be_due_after_it(world: World):
    world.targets.answer = lambda *_: REFUSED
    timer = a_timer(retry=EACH_MINUTE, run_deadline=timedelta(minutes=3))

    for minute in range(1, 4):
        world.work(a_message(timer, f"attempt {minute}"))
        if minute < 3:
            (*_, timer) = world.ready.sent
            world.clock.tick(MINUTE)

    assert len(world.calls) == 3
    assert world.row(timer.job).state is State.FAILED
    assert [(letter.error_class, letter.attempt) for letter in world.buried] == [("http_503", 3)]


def test_a_retry_that_is_spread_beyond_it_is_made_at_its_earliest():
    timer = a_timer(retry=EACH_MINUTE, run_deadline=timedelta(seconds=100))

    following = timer.next_attempt(failed_at=NOON, jitter=0.99, retry_after=timedelta(seconds=99))

    assert following is not None
    assert following.due_at == NOON + timedelta(seconds=99)


def test_an_attempt_that_comes_after_it_calls_nothing(world: World):
    timer = a_timer(run_deadline=MINUTE)
    world.clock.tick(MINUTE)

    world.work(a_message(timer))

    assert world.calls == []
    assert [letter.error_class for letter in world.buried] == ["run_deadline"]


@pytest.mark.parametrize("delivery", [Delivery.AT_LEAST_ONCE, Delivery.AT_MOST_ONCE])
def test_it_ends_jobs_of_every_delivery(world: World, delivery: Delivery):
    world.clock.tick(MINUTE)

    world.work(a_message(a_timer(run_deadline=MINUTE, delivery=delivery)))

    assert world.calls == []
    assert world.journal.counts["failed"] == 1


def test_a_call_has_no_more_time_than_is_left_of_it(world: World):
    timer = a_timer(timeout=timedelta(seconds=30), run_deadline=timedelta(seconds=40))
    world.clock.tick(timedelta(seconds=32))
    seen: list[timedelta] = []
    world.targets.answer = lambda _, call: seen.append(call.deadline - world.clock.now()) or Succeeded()

    world.work(a_message(timer))

    assert seen == [timedelta(seconds=8)]


def test_a_target_that_goes_on_after_a_202_is_ended_at_it_however_often_it_is_heard_of(world: World):
    world.targets.answer = lambda *_: Pending()
    timer = a_timer(timeout=timedelta(seconds=20), run_deadline=timedelta(minutes=3))
    world.work(a_message(timer))

    for turn in range(40):
        world.clock.tick(10 * SECOND)
        now = world.clock.now()
        if world.row(timer.job).state is State.RUNNING:
            world.ledger.extend(job_id_of(timer.job), fence=1, lease_until=now + MINUTE, now=now)
        if world.ready.sent[-1].due_at <= now:
            world.work(a_message(world.ready.sent[-1], f"watchdog {turn}"))

    assert [(letter.error_class, letter.dead_at) for letter in world.buried] == [("run_deadline", NOON + 3 * MINUTE)]
    assert world.row(timer.job).state is State.FAILED
    assert len(world.calls) == 1


def test_a_silent_target_is_not_called_again_after_it(world: World):
    world.targets.answer = lambda *_: Pending()
    timer = a_timer(timeout=timedelta(seconds=20), run_deadline=timedelta(seconds=25))
    world.work(a_message(timer))
    (watchdog,) = world.ready.sent
    assert watchdog.due_at == NOON + timedelta(seconds=25)

    world.clock.tick(20 * SECOND + LEASE_MARGIN + MINUTE)
    world.work(a_message(watchdog, "watchdog"))

    assert [letter.error_class for letter in world.buried] == ["run_deadline"]
    assert len(world.calls) == 1


def test_a_cancel_that_was_requested_before_it_stays_a_cancel(world: World):
    world.targets.answer = lambda *_: Pending()
    timer = a_timer(timeout=timedelta(seconds=20), run_deadline=timedelta(seconds=25))
    world.work(a_message(timer))
    world.ledger.request_cancel(job_id_of(timer.job), row=world.row(timer.job), now=NOON)
    world.clock.tick(timedelta(seconds=25))
    world.work(a_message(world.ready.sent[-1], "at the deadline"))
    assert world.row(timer.job).state is State.RUNNING

    world.clock.tick(MINUTE)
    world.work(a_message(world.ready.sent[-1], "at the end of the lease"))

    assert world.row(timer.job).state is State.CANCELLED
    assert world.buried == []


def test_nobody_waits_for_a_destination_beyond_it():
    timer = a_timer(run_deadline=MINUTE)

    assert timer.may_wait_until(NOON + 59 * SECOND)
    assert not timer.may_wait_until(NOON + MINUTE)


def test_a_replay_has_all_of_its_time_again():
    timer = a_timer(run_deadline=MINUTE)

    again = timer.replayed(due_at=NOON + timedelta(days=1))

    assert again.ends_by == NOON + timedelta(days=1) + MINUTE


def test_a_pause_is_not_counted():
    timer = a_timer(run_deadline=MINUTE)

    assert timer.excused(since=NOON, until=NOON + timedelta(days=30)).ends_by == NOON + timedelta(days=30) + MINUTE


def test_it_is_kept_with_its_timer_and_a_job_without_it_is_written_as_ever():
    timer = a_timer(run_deadline=timedelta(hours=2))

    assert decode_timer(encode_timer(timer), tenant="acme") == timer
    assert '"D"' not in encode_timer(a_timer())


def test_two_submissions_that_differ_by_it_are_two_jobs():
    usual, bounded = a_submission(), a_submission(run_deadline=MINUTE)

    assert fingerprint_of(usual) != fingerprint_of(bounded)
    job = job_of(bounded, identity="x", wheel=World().wheel)
    assert job.run_deadline == MINUTE
    assert a_job().run_deadline is None
