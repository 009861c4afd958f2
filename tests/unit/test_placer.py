from datetime import timedelta

import pytest

from functions.domain.far_ring.schedule_alarm import ScheduleAlarm
from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.wheel import Ring
from functions.ports.ready_queue import Rejected
from functions.services.far_ring.placer import ATTEMPTS, Placement
from testkit.builders import NOON, a_timer
from testkit.scheduler import World


@pytest.fixture
def world() -> World:
    return World()


def test_a_timer_that_is_due_within_guard_goes_to_the_ready_queue(world: World):
    timer = a_timer(due_at=NOON + world.wheel.guard - MILLISECOND)

    assert world.placer.place([timer]) == [Placement(Ring.NEAR)]
    assert world.ready.sent == [timer]
    assert world.rows.rows == {}


def test_a_timer_that_is_due_in_guard_or_later_goes_to_the_far_ring(world: World):
    timer = a_timer(due_at=NOON + world.wheel.guard)

    assert world.placer.place([timer]) == [Placement(Ring.FAR)]
    assert world.rows.get(job_id_of(timer.job)) == timer
    assert world.ready.sent == []


def test_a_timer_of_the_past_goes_out_at_once(world: World):
    assert world.placer.place([a_timer(due_at=NOON - timedelta(days=1))]) == [Placement(Ring.NEAR)]


def test_placing_nothing_writes_nothing(world: World):
    assert world.placer.place([]) == []
    assert (world.timers.puts, world.ready.sent) == ([], [])


def test_answers_come_in_the_order_of_the_timers(world: World):
    timers = [a_timer(due_at=NOON + seconds * SECOND) for seconds in (0, 600, 1, 700)]

    rings = [placement.ring for placement in world.placer.place(timers)]

    assert rings == [Ring.NEAR, Ring.FAR, Ring.NEAR, Ring.FAR]


def test_equal_timers_have_an_answer_each(world: World):
    timer = a_timer(identity="same")

    assert world.placer.place([timer, a_timer(identity="same"), timer]) == [Placement(Ring.NEAR)] * 3


def test_a_far_write_that_finished_late_is_followed_by_a_near_send(world: World):
    timer = a_timer(due_at=NOON + world.wheel.guard)
    world.timers.put_takes = MILLISECOND

    assert world.placer.place([timer]) == [Placement(Ring.NEAR)]
    assert world.rows.get(job_id_of(timer.job)) == timer
    assert world.ready.sent == [timer]


def test_a_far_write_that_finished_at_the_last_instant_is_in_time(world: World):
    timer = a_timer(due_at=NOON + world.wheel.guard + 2 * SECOND)
    world.timers.put_takes = 2 * SECOND

    assert world.placer.place([timer]) == [Placement(Ring.FAR)]
    assert world.ready.sent == []


def test_a_late_write_whose_message_is_refused_is_not_placed(world: World):
    world.timers.put_takes = MILLISECOND
    world.ready.refuses = lambda timer: Rejected(timer, "throttled", is_permanent=False)

    placement = world.placer.place([a_timer(due_at=NOON + world.wheel.guard)])[0]

    assert placement == Placement(None, "throttled")


def test_the_ring_is_chosen_again_on_every_attempt(world: World):
    timer = a_timer(due_at=NOON + world.wheel.guard + SECOND)
    world.timers.put_takes = 2 * SECOND
    world.timers.unwritten = lambda _: True

    assert world.placer.place([timer]) == [Placement(Ring.NEAR)]
    assert len(world.timers.puts) == 1
    assert world.ready.sent == [timer]


def test_only_what_was_not_placed_is_tried_again(world: World):
    stubborn, easy = a_timer(due_at=NOON + timedelta(hours=1)), a_timer(due_at=NOON + timedelta(hours=1, seconds=1))
    failures = iter([True, True])
    world.timers.unwritten = lambda timer: timer == stubborn and next(failures, False)

    placements = world.placer.place([stubborn, easy])

    assert placements == [Placement(Ring.FAR), Placement(Ring.FAR)]
    assert [list(put) for put in world.timers.puts] == [[stubborn, easy], [stubborn], [stubborn]]


def test_a_timer_that_no_store_takes_is_reported_with_the_last_fault(world: World):
    world.timers.unwritten = lambda _: True
    world.ready.refuses = lambda timer: Rejected(timer, "throttled", is_permanent=False)

    far, near = world.placer.place([a_timer(due_at=NOON + timedelta(hours=1)), a_timer()])

    assert (far.ring, far.fault) == (None, "the timer store did not confirm the write")
    assert (near.ring, near.fault) == (None, "throttled")
    assert len(world.timers.puts) == ATTEMPTS


def test_a_timer_that_the_queue_will_never_take_is_tried_once(world: World):
    tries: list[Timer] = []

    def refuse(timer: Timer) -> Rejected:
        tries.append(timer)
        return Rejected(timer, "too long", is_permanent=True)

    world.ready.refuses = refuse

    assert world.placer.place([a_timer()]) == [Placement(None, "too long", is_permanent=True)]
    assert len(tries) == 1


@pytest.mark.parametrize("sign", [1, -1])
def test_a_clock_beyond_half_the_skew_refuses_far_writes_and_still_sends_near(world: World, sign: int):
    world.clock.known_offset = sign * (world.wheel.skew / 2 + MILLISECOND)

    far, near = world.placer.place([a_timer(due_at=NOON + timedelta(hours=1)), a_timer()])

    assert (far.ring, far.is_permanent) == (None, True)
    assert "this clock differs from the store's" in far.fault
    assert near == Placement(Ring.NEAR)
    assert world.rows.rows == {}


def test_a_clock_within_half_the_skew_writes_far(world: World):
    world.clock.known_offset = world.wheel.skew / 2

    assert world.placer.place([a_timer(due_at=NOON + timedelta(hours=1))]) == [Placement(Ring.FAR)]


def test_a_write_whose_answer_reveals_the_skew_is_followed_by_a_near_send(world: World):
    timer = a_timer(due_at=NOON + timedelta(hours=1))

    def reveal(_: Timer | ScheduleAlarm) -> bool:
        world.clock.known_offset = timedelta(seconds=30)
        return False

    world.timers.unwritten = reveal

    assert world.placer.place([timer]) == [Placement(Ring.NEAR)]
    assert world.ready.sent == [timer]
    assert world.rows.get(job_id_of(timer.job)) == timer
