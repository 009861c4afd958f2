from datetime import timedelta
from typing import Any

import pytest

from functions.domain.claims import LEDGER_LIFE, LedgerRow
from functions.domain.errors import AlreadySettled, JobNotFound, TooLate
from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.job import Delivery, Payload, Timer
from functions.domain.job_id import job_id_of, parse_job_id
from functions.domain.lifecycle import State
from functions.ports import Applied, Refused
from tests.builders import NOON, a_submission, a_timer
from tests.fakes import InMemoryLedger
from tests.unit.world import World

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
    timer = a_timer(due_at=NOON - LEDGER_LIFE - MILLISECOND, delivery=delivery)

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

    def test_a_far_job_is_cancelled_up_to_the_instant_at_which_its_bucket_may_open(self, world: World):
        timer = a_placed(world, due_at=LATER, delivery=Delivery.AT_LEAST_ONCE)
        world.clock.tick(world.wheel.closes_at(LATER) - NOON)

        assert cancel(world, timer)

    def test_a_far_job_whose_bucket_may_be_open_is_left_to_run(self, world: World):
        timer = a_placed(world, due_at=LATER, delivery=Delivery.AT_LEAST_ONCE)
        world.clock.tick(world.wheel.closes_at(LATER) - NOON + MILLISECOND)

        with pytest.raises(TooLate):
            cancel(world, timer)
        assert world.rows.get(job_id_of(timer.job)) == timer

    def test_a_delete_that_removed_nothing_is_no_proof(self, world: World):
        timer = a_timer(due_at=LATER, delivery=Delivery.AT_LEAST_ONCE)

        with pytest.raises(TooLate):
            cancel(world, timer)

    def test_a_delete_that_finished_too_late_puts_the_job_back(self, world: World):
        timer = a_placed(world, due_at=LATER, delivery=Delivery.AT_LEAST_ONCE)
        world.clock.tick(world.wheel.closes_at(LATER) - NOON)
        world.timers.delete_takes = 50 * SECOND

        with pytest.raises(TooLate):
            cancel(world, timer)

        assert world.ready.sent == [timer]

    def test_a_cancelled_job_with_a_key_is_not_placed_again(self, world: World):
        submission = a_submission(due_at=LATER, idempotency_key="order-7", delivery=Delivery.AT_LEAST_ONCE)
        job_id = parse_job_id(world.submit(submission).job_id)

        assert world.canceller().cancel(job_id)

        again = world.submit(submission)
        assert (again.state, again.ring) == (State.CANCELLED, None)
        assert world.rows.get(job_id) is None

    def test_a_cancel_of_a_job_with_a_key_may_be_repeated(self, world: World):
        submission = a_submission(due_at=LATER, idempotency_key="order-7", delivery=Delivery.AT_LEAST_ONCE)
        job_id = parse_job_id(world.submit(submission).job_id)

        assert world.canceller().cancel(job_id)
        assert world.canceller().cancel(job_id)

    def test_a_cancelled_job_s_payload_is_forgotten(self, world: World):
        timer = a_placed(world, due_at=LATER, delivery=Delivery.AT_LEAST_ONCE, payload=Payload(pointer="acme/large"))
        world.payloads.objects["acme/large"] = "1"

        cancel(world, timer)

        assert world.payloads.objects == {}


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
