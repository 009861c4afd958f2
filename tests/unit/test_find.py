from datetime import timedelta

import pytest

from functions.api.jobs.find import JobInWheel
from functions.domain.errors import JobNotFound
from functions.domain.instants import MILLISECOND
from functions.domain.jobs.claims import ABSENT_IS_OVER, LedgerRow
from functions.domain.jobs.job import Delivery, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.lifecycle import State
from testkit.builders import NOON, a_timer
from testkit.scheduler import World

LATER = NOON + timedelta(hours=1)


@pytest.fixture
def world() -> World:
    return World()


def test_a_far_job_is_scheduled_for_its_time(world: World):
    timer = a_timer(due_at=LATER)
    world.placer.place([timer])

    assert find(world, timer) == JobInWheel(job_id=job_id_of(timer.job), state=State.SCHEDULED, due_at=LATER)


def test_a_near_job_that_no_worker_has_claimed_is_known_by_its_id(world: World):
    timer = a_timer(due_at=NOON + timedelta(seconds=5))

    assert find(world, timer).state is State.SCHEDULED


def test_a_job_is_what_its_ledger_row_says(world: World):
    timer = a_timer()
    row = LedgerRow(state=State.RETRYING, attempt=2, fence=3, due_at=LATER, error="HTTP 500")
    world.ledger.rows[timer.job.key] = row

    assert find(world, timer) == JobInWheel(job_id=job_id_of(timer.job), state=State.RETRYING, due_at=LATER, row=row)


def test_a_registered_at_least_once_job_is_scheduled_until_it_has_left_the_far_ring(world: World):
    timer = a_timer(due_at=LATER, delivery=Delivery.AT_LEAST_ONCE)
    world.placer.place([timer])
    world.ledger.rows[timer.job.key] = LedgerRow(state=State.SCHEDULED, due_at=LATER)
    assert find(world, timer).state is State.SCHEDULED

    world.rows.rows.clear()
    world.clock.tick(timedelta(hours=2))
    assert find(world, timer).state is None


def test_an_at_least_once_job_that_was_removed_is_not_found_while_it_would_surely_have_a_row(world: World):
    timer = a_timer(due_at=LATER, delivery=Delivery.AT_LEAST_ONCE)
    world.placer.place([timer])
    world.canceller().cancel(job_id_of(timer.job))

    with pytest.raises(JobNotFound):
        find(world, timer)


def test_an_at_least_once_job_that_may_be_on_its_way_needs_no_row_to_be_scheduled(world: World):
    surely_far = NOON + world.wheel.guard + world.wheel.skew
    with pytest.raises(JobNotFound):
        find(world, a_timer(due_at=surely_far, delivery=Delivery.AT_LEAST_ONCE))

    found = find(world, a_timer(due_at=surely_far - MILLISECOND, delivery=Delivery.AT_LEAST_ONCE))
    assert found.state is State.SCHEDULED


def test_an_exactly_once_job_that_is_cancelled_is_found_by_its_tombstone(world: World):
    timer = a_timer(due_at=LATER)
    world.placer.place([timer])
    world.canceller().cancel(job_id_of(timer.job))

    assert find(world, timer).state is State.CANCELLED


def test_a_cancelled_at_least_once_job_with_a_key_is_cancelled(world: World):
    timer = a_timer(due_at=LATER, delivery=Delivery.AT_LEAST_ONCE)
    world.ledger.rows[timer.job.key] = LedgerRow(state=State.CANCELLED, due_at=LATER)

    assert find(world, timer).state is State.CANCELLED


def test_an_at_least_once_job_is_scheduled_until_its_time_and_untracked_after(world: World):
    timer = a_timer(due_at=NOON + timedelta(seconds=5), delivery=Delivery.AT_LEAST_ONCE)
    assert find(world, timer).state is State.SCHEDULED

    world.clock.tick(timedelta(seconds=5))
    assert find(world, timer).state is None


def test_an_at_least_once_job_is_untracked_after_its_time_although_its_far_row_stays(world: World):
    timer = a_timer(due_at=LATER, delivery=Delivery.AT_LEAST_ONCE)
    world.placer.place([timer])
    assert find(world, timer).state is State.SCHEDULED

    world.clock.tick(timedelta(hours=1))
    assert world.rows.get(job_id_of(timer.job)) == timer
    assert find(world, timer).state is None


def test_a_job_whose_row_would_have_expired_is_not_found(world: World):
    timer = a_timer(due_at=NOON - ABSENT_IS_OVER)
    assert find(world, timer).state is State.SCHEDULED

    world.clock.tick(MILLISECOND)
    with pytest.raises(JobNotFound, match="there is no job"):
        find(world, timer)


def find(world: World, timer: Timer) -> JobInWheel:
    return world.finder().find(job_id_of(timer.job))
