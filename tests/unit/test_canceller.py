from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.domain.errors import AlreadySettled, JobNotFound, NotPlaced, TooLate
from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.jobs.claims import ABSENT_IS_OVER, REQUEST_LIMIT, LedgerRow
from functions.domain.jobs.job import Delivery, Payload, Timer
from functions.domain.jobs.job_id import JobId, job_id_of, parse_job_id
from functions.domain.lifecycle import State
from functions.ports.ledger import Applied, Refused
from functions.ports.ready_queue import Rejected
from testkit.builders import LOCAL_WHEEL, NOON, a_submission, a_timer
from testkit.fakes import InMemoryLedger
from testkit.observed import ObservedTimers
from testkit.scheduler import World

LATER = NOON + timedelta(hours=1)


@pytest.fixture
def world() -> World:
    return World()


class TestLedgeredJobs:
    @pytest.mark.parametrize("delivery", [Delivery.EXACTLY_ONCE, Delivery.AT_MOST_ONCE])
    def test_a_far_job_gets_a_tombstone_and_loses_its_timer(self, world: World, delivery: Delivery):
        timer = a_placed(world, due_at=LATER, delivery=delivery)

        assert cancel(world, timer)

        assert world.row(timer.job).state is State.CANCELLED
        assert world.rows.get(job_id_of(timer.job)) is None

    def test_a_near_job_without_any_row_is_cancelled_all_the_same(self, world: World):
        timer = a_placed(world, due_at=NOON + 20 * SECOND)

        assert cancel(world, timer)

        world.clock.tick(timedelta(seconds=20))
        world.receive_and_work()
        assert world.calls == []

    def test_a_registered_job_is_cancelled(self, world: World):
        job_id = world.submit(a_submission(due_at=LATER, idempotency_key="order-7")).job_id

        assert world.canceller().cancel(parse_job_id(job_id))
        assert world.ledger.rows[parse_job_id(job_id).key].state is State.CANCELLED

    def test_a_job_that_is_claimed_between_the_tombstone_and_the_request_is_asked_all_the_same(self, world: World):
        timer = a_placed(world)
        world.ledger.claim(timer, owner="w", lease_until=LATER, now=NOON)
        world.ledger = RescuedMeanwhile(world.ledger, times=1)

        assert not cancel(world, timer)
        assert world.row(timer.job).cancel_requested

    def test_a_job_whose_row_keeps_changing_may_be_on_its_way(self, world: World):
        timer = a_placed(world)
        world.ledger.claim(timer, owner="w", lease_until=LATER, now=NOON)
        world.ledger = RescuedMeanwhile(world.ledger, times=100)

        with pytest.raises(TooLate):
            cancel(world, timer)

    def test_a_running_job_may_be_asked_twice(self, world: World):
        timer = a_placed(world)
        world.ledger.claim(timer, owner="w", lease_until=LATER, now=NOON)

        assert not cancel(world, timer)
        assert not cancel(world, timer)

    def test_a_released_job_is_cancelled(self, world: World):
        timer = a_placed(world)
        world.ledger.rows[timer.job.key] = LedgerRow(state=State.SCHEDULED, attempt=1, fence=1)

        assert cancel(world, timer)

        world.receive_and_work()
        assert world.calls == []

    def test_a_retrying_job_is_cancelled_and_its_next_attempt_dropped(self, world: World):
        timer = a_placed(world, attempt=2)
        world.ledger.rows[timer.job.key] = LedgerRow(state=State.RETRYING, attempt=1, fence=1)

        assert cancel(world, timer)

        world.receive_and_work()
        assert world.calls == []

    def test_a_timer_that_the_scanner_has_promoted_meets_the_tombstone(self, world: World):
        timer = a_placed(world, due_at=LATER)
        world.ready.send([timer])

        assert cancel(world, timer)
        world.clock.tick(timedelta(hours=1))
        world.receive_and_work()

        assert world.calls == []

    def test_a_cancel_may_be_repeated(self, world: World):
        timer = a_placed(world, due_at=LATER)

        assert cancel(world, timer)
        assert cancel(world, timer)

    def test_a_running_job_is_only_asked_not_to_be_tried_again(self, world: World):
        timer = a_placed(world)
        world.ledger.claim(timer, owner="w", lease_until=LATER, now=NOON)

        assert not cancel(world, timer)

        row = world.row(timer.job)
        assert (row.state, row.cancel_requested) == (State.RUNNING, True)

    @pytest.mark.parametrize("state", [State.SUCCEEDED, State.FAILED, State.EXPIRED, State.ATTEMPTED])
    def test_a_settled_job_cannot_be_cancelled(self, world: World, state: State):
        timer = a_placed(world)
        world.ledger.rows[timer.job.key] = LedgerRow(state=state)

        with pytest.raises(AlreadySettled) as refused:
            cancel(world, timer)

        assert (refused.value.job_id, refused.value.state) == (str(job_id_of(timer.job)), state)

    def test_a_job_that_settles_while_its_cancel_is_asked_for_is_settled(self, world: World):
        timer = a_placed(world)
        world.ledger.claim(timer, owner="w", lease_until=LATER, now=NOON)
        world.ledger = SettlingMeanwhile(world.ledger)

        with pytest.raises(AlreadySettled):
            cancel(world, timer)

    def test_a_cancelled_job_s_payload_is_forgotten(self, world: World):
        timer = a_placed(world, due_at=LATER, payload=Payload(pointer="acme/large"))
        world.payloads.objects["acme/large"] = "1"

        cancel(world, timer)

        assert world.payloads.objects == {}

    def test_a_cancel_on_the_very_instant_of_the_job_holds_when_it_comes_before_the_claim(self, world: World):
        timer = a_placed(world)

        assert cancel(world, timer)
        world.receive_and_work()

        assert world.calls == []


@pytest.mark.parametrize("delivery", Delivery)
def test_a_job_whose_row_would_have_expired_is_not_there_to_be_cancelled(world: World, delivery: Delivery):
    timer = a_timer(due_at=NOON - ABSENT_IS_OVER - MILLISECOND, delivery=delivery)

    with pytest.raises(JobNotFound):
        cancel(world, timer)
    assert world.ledger.rows == {}


class TestAtLeastOnceJobs:
    def test_a_far_job_is_cancelled_by_removing_its_timer(self, world: World):
        timer = a_placed(world, due_at=LATER, delivery=Delivery.AT_LEAST_ONCE)

        assert cancel(world, timer)

        assert world.rows.get(job_id_of(timer.job)) is None
        assert world.ledger.rows == {}

    def test_a_near_job_is_too_late_to_be_cancelled(self, world: World):
        timer = a_placed(world, due_at=NOON + 20 * SECOND, delivery=Delivery.AT_LEAST_ONCE)

        with pytest.raises(TooLate):
            cancel(world, timer)

    def test_a_far_job_is_cancelled_while_no_message_of_it_can_be_on_its_way(self, world: World):
        timer = a_placed(world, due_at=LATER, delivery=Delivery.AT_LEAST_ONCE)
        world.clock.tick(last_cancel(world, LATER) - NOON)

        assert cancel(world, timer)
        assert world.rows.get(job_id_of(timer.job)) is None

    def test_a_far_job_that_a_submission_under_way_could_still_send_near_is_left_to_run(self, world: World):
        timer = a_placed(world, due_at=LATER, delivery=Delivery.AT_LEAST_ONCE)
        world.clock.tick(last_cancel(world, LATER) - NOON + MILLISECOND)

        with pytest.raises(TooLate):
            cancel(world, timer)
        assert world.rows.get(job_id_of(timer.job)) == timer

    def test_the_window_of_a_cancel_closes_before_any_scanner_may_open_the_bucket(self, world: World):
        closes = last_cancel(world, LATER) + REQUEST_LIMIT

        assert closes <= world.wheel.closes_at(LATER) - world.wheel.skew

    def test_a_job_whose_submission_may_still_be_under_way_is_not_deleted(self, world: World):
        # A write that got no answer may land behind the delete, and nothing would stop it.
        world.rows._clock = world.clock
        timer = a_placed(world, due_at=LATER, delivery=Delivery.AT_LEAST_ONCE)
        world.clock.tick(REQUEST_LIMIT + world.wheel.skew - MILLISECOND)

        with pytest.raises(TooLate):
            cancel(world, timer)
        assert world.rows.get(job_id_of(timer.job)) == timer

        world.clock.tick(MILLISECOND)
        assert cancel(world, timer)

    def test_a_job_without_its_timer_was_cancelled_before(self, world: World):
        timer = a_placed(world, due_at=LATER, delivery=Delivery.AT_LEAST_ONCE)

        assert cancel(world, timer)
        assert cancel(world, timer)

    def test_a_repeated_cancel_near_the_job_s_time_can_promise_nothing(self, world: World):
        timer = a_placed(world, due_at=LATER, delivery=Delivery.AT_LEAST_ONCE)
        cancel(world, timer)
        world.clock.tick(timedelta(hours=1))

        with pytest.raises(TooLate):
            cancel(world, timer)

    def test_a_delete_that_takes_as_long_as_a_request_may_is_in_time(self, world: World):
        timer = a_placed(world, due_at=LATER, delivery=Delivery.AT_LEAST_ONCE)
        world.clock.tick(last_cancel(world, LATER) - NOON)
        world.timers.delete_takes = REQUEST_LIMIT

        assert cancel(world, timer)
        assert world.ready.sent == []

    def test_a_delete_that_finished_too_late_puts_the_job_back(self, world: World):
        timer = a_placed(world, due_at=LATER, delivery=Delivery.AT_LEAST_ONCE)
        world.clock.tick(last_cancel(world, LATER) - NOON)
        world.timers.delete_takes = REQUEST_LIMIT + world.wheel.skew + MILLISECOND

        with pytest.raises(TooLate):
            cancel(world, timer)

        assert world.ready.sent == [timer]

    def test_a_job_that_cannot_be_put_back_is_an_error_and_not_a_promise(self, world: World):
        timer = a_placed(world, due_at=LATER, delivery=Delivery.AT_LEAST_ONCE)
        world.clock.tick(last_cancel(world, LATER) - NOON)
        world.timers.delete_takes = timedelta(minutes=1)
        world.ready.refuses = lambda timer: Rejected(timer, "throttled", is_permanent=False)

        with pytest.raises(NotPlaced, match="throttled"):
            cancel(world, timer)

    def test_a_delete_that_finished_too_late_and_removed_nothing_has_nothing_to_put_back(self, world: World):
        timer = a_timer(due_at=LATER, delivery=Delivery.AT_LEAST_ONCE)
        world.clock.tick(last_cancel(world, LATER) - NOON)
        world.timers.delete_takes = timedelta(minutes=1)

        with pytest.raises(TooLate):
            cancel(world, timer)
        assert world.ready.sent == []

    def test_a_payload_is_kept_for_a_job_that_was_put_back(self, world: World):
        timer = a_placed(world, due_at=LATER, delivery=Delivery.AT_LEAST_ONCE, payload=Payload(pointer="acme/large"))
        world.payloads.objects["acme/large"] = "1"
        world.clock.tick(last_cancel(world, LATER) - NOON)
        world.timers.delete_takes = timedelta(minutes=1)

        with pytest.raises(TooLate):
            cancel(world, timer)
        assert world.payloads.objects == {"acme/large": "1"}

    def test_a_cancelled_job_s_payload_is_forgotten(self, world: World):
        timer = a_placed(world, due_at=LATER, delivery=Delivery.AT_LEAST_ONCE, payload=Payload(pointer="acme/large"))
        world.payloads.objects["acme/large"] = "1"

        cancel(world, timer)

        assert world.payloads.objects == {}


class TestKeyedAtLeastOnceJobs:
    """A repeat of the submission could place it again: the row of its key stops that first."""

    def test_a_cancelled_job_is_not_placed_again(self, world: World):
        job_id = a_keyed(world)
        world.clock.tick(FRESH)

        assert world.canceller().cancel(job_id)

        again = world.submit(KEYED)
        assert (again.state, again.ring) == (State.CANCELLED, None)
        assert world.rows.get(job_id) is None
        assert world.ledger.rows[job_id.key].state is State.CANCELLED

    def test_a_job_whose_submission_may_still_be_under_way_cannot_be_cancelled_yet(self, world: World):
        job_id = a_keyed(world)
        world.clock.tick(FRESH - MILLISECOND)

        with pytest.raises(TooLate):
            world.canceller().cancel(job_id)

        assert world.rows.get(job_id) is not None
        assert not world.ledger.rows[job_id.key].cancel_requested

    def test_a_cancel_may_be_repeated_even_near_the_job_s_time(self, world: World):
        job_id = a_keyed(world)
        world.clock.tick(FRESH)
        assert world.canceller().cancel(job_id)
        assert world.canceller().cancel(job_id)

        world.clock.tick(LATER - world.clock.now())
        assert world.canceller().cancel(job_id)

    def test_a_cancel_that_died_after_its_request_is_finished_by_its_repetition_at_once(self, world: World):
        job_id = a_keyed(world)
        world.clock.tick(FRESH)
        dying = replace(world.canceller(), timers=FailingDeletes(world.timers, world.clock))
        with pytest.raises(ConnectionError):
            dying.cancel(job_id)
        # Until the cancel is written, nothing reports that the job will not run; but nothing is placed for it either.
        repeated = world.submit(KEYED)
        assert (repeated.state, repeated.ring) == (State.SCHEDULED, None)

        assert world.canceller().cancel(job_id)
        assert world.rows.get(job_id) is None
        assert world.ledger.rows[job_id.key].state is State.CANCELLED

    def test_a_job_near_its_time_is_not_even_asked(self, world: World):
        job_id = a_keyed(world)
        world.clock.tick(last_cancel(world, LATER) - NOON + MILLISECOND)

        with pytest.raises(TooLate):
            world.canceller().cancel(job_id)
        assert not world.ledger.rows[job_id.key].cancel_requested

    def test_a_row_that_changes_meanwhile_may_be_on_its_way(self, world: World):
        job_id = a_keyed(world)
        world.clock.tick(FRESH)
        world.ledger = RescuedMeanwhile(world.ledger, times=1)

        with pytest.raises(TooLate):
            world.canceller().cancel(job_id)
        assert world.rows.get(job_id) is not None


FRESH = REQUEST_LIMIT + LOCAL_WHEEL.skew
"""For so long after it was registered a submission may be under way."""

KEYED = a_submission(due_at=LATER, idempotency_key="order-7", delivery=Delivery.AT_LEAST_ONCE)


def a_keyed(world: World) -> JobId:
    """A far at_least_once job with an idempotency key."""
    return parse_job_id(world.submit(KEYED).job_id)


def last_cancel(world: World, due_at: datetime) -> datetime:
    """The last instant at which an at_least_once job can be cancelled."""
    return due_at - world.wheel.guard - world.wheel.skew - REQUEST_LIMIT


def a_placed(world: World, **overrides: Any) -> Timer:
    timer = a_timer(**overrides)
    world.placer.place([timer])
    return timer


def cancel(world: World, timer: Timer) -> bool:
    return world.canceller().cancel(job_id_of(timer.job))


class SettlingMeanwhile(InMemoryLedger):
    """A ledger whose running job succeeds just before its cancel is requested."""

    def __init__(self, ledger: InMemoryLedger) -> None:
        self.__dict__.update(ledger.__dict__)

    def request_cancel(self, job_id: Any, **options: Any) -> Applied | Refused:
        self.rows[job_id.key] = LedgerRow(state=State.SUCCEEDED, fence=1)
        return super().request_cancel(job_id, **options)


class RescuedMeanwhile(InMemoryLedger):
    """A ledger whose row another one takes just before its cancel is requested, so many times."""

    def __init__(self, ledger: InMemoryLedger, *, times: int) -> None:
        self.__dict__.update(ledger.__dict__)
        self._times = times

    def request_cancel(self, job_id: Any, **options: Any) -> Applied | Refused:
        if self._times:
            self._times -= 1
            row = self.rows[job_id.key]
            self.rows[job_id.key] = replace(row, fence=row.fence + 1)
        return super().request_cancel(job_id, **options)


class FailingDeletes(ObservedTimers):
    """A timer store that does not answer a delete."""

    def delete(self, job_id: Any) -> Any:
        raise ConnectionError
