"""Ordered flows: jobs run one after the other, by their due times."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from functions.domain.instants import DAY, HOUR, MILLISECOND, MINUTE, SECOND
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.targets.flows import FlowId, FlowLimits, NamedFlow, parse_rate
from functions.ports.targets import Failed, Succeeded
from functions.services.far_ring.flow_order import LOST_AFTER, ORDER_LIFE, row_of
from testkit.builders import NOON, a_timer
from testkit.observed import CrashError, DeathError
from testkit.scheduler import World
from tests.unit.test_flows import _fail_once, put, run, run_with_faults, starts

STRIPE = FlowId("acme", "stripe")
ORDERED = NamedFlow(key="stripe", limits=FlowLimits(is_ordered=True))
TWICE = RetryPolicy(strategy=Strategy.FIXED, attempts=2, base=SECOND)


@pytest.fixture
def world() -> World:
    return World()


def in_order(n: int, **given: Any) -> Timer:
    return a_timer(flows=(ORDERED,), due_at=NOON + n * timedelta(milliseconds=10), **given)


def called(world: World) -> list[str]:
    return [call.job_id for call in world.calls]


def ids(*timers: Timer) -> list[str]:
    return [str(job_id_of(timer.job)) for timer in timers]


def test_jobs_run_by_their_due_times_however_they_come(world: World):
    timers = [in_order(n) for n in range(6)]
    put(world, *reversed(timers))

    run(world, NOON + 5 * MINUTE)

    assert called(world) == ids(*timers)
    assert not world.flows.orders[STRIPE]
    assert not world.flows.holders


def test_who_starts_in_its_turn_is_missed_by_nobody(world: World):
    put(world, in_order(1))

    run(world, NOON + MINUTE)

    assert len(called(world)) == 1
    assert not world.flows.missed


def test_short_jobs_follow_each_other_at_once(world: World):
    def answer(*_: Any) -> Succeeded:
        world.clock.tick(200 * MILLISECOND)
        return Succeeded("")

    world.targets.answer = answer
    # All but one come before their turn, and wait in the room.
    put(world, *reversed([in_order(n) for n in range(6)]))

    run(world, NOON + 5 * MINUTE)

    began = starts(world)
    assert len(began) == 6
    assert max(later - earlier for earlier, later in pairwise(began)) <= SECOND


def test_one_that_fails_holds_the_others_until_it_has_ended(world: World):
    timers = [in_order(n, retry=TWICE) for n in range(3)]
    first = ids(timers[0])[0]
    world.targets.answer = lambda *given: Failed("503") if given[-1].job_id == first else Succeeded("")
    put(world, *timers)

    run(world, NOON + 5 * MINUTE)

    assert called(world) == [first, *ids(*timers)]


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize(
    "call", ["line_up", "order", "hold", "finish", "wait", "note_entry", "note_turn", "leave", "remove", "waiting_at"]
)
@pytest.mark.parametrize("error", [CrashError, DeathError])
def test_a_fault_anywhere_keeps_the_order_and_loses_nothing(
    world: World, call: str, error: type[BaseException], after: bool
):
    timers = [in_order(n) for n in range(4)]
    put(world, *reversed(timers))
    _fail_once(world, f"flows.{call}", error, after=after)

    run_with_faults(world, NOON + 10 * MINUTE)

    assert called(world) == ids(*timers)


@pytest.mark.parametrize("is_keyed", [True, False])
def test_one_that_was_never_placed_holds_the_others_for_an_hour(world: World, is_keyed: bool):
    lost, following = in_order(0), in_order(1)
    if is_keyed:
        world.ledger.register(lost.job, job_id=ids(lost)[0], fingerprint="", owner="submit", now=NOON)
    world.flows.line_up(STRIPE, row_of(lost))
    put(world, following)

    run(world, NOON + LOST_AFTER - MINUTE)
    assert not world.calls
    run(world, NOON + LOST_AFTER + 2 * MINUTE)

    assert called(world) == ids(following)


def missing(world: World, *timers: Timer) -> None:
    """Whoever submitted them died before they were placed."""
    for timer in timers:
        world.flows.line_up(STRIPE, row_of(timer))


def test_however_many_were_never_placed_they_hold_the_others_for_one_hour_in_all(world: World):
    lost = [in_order(2 * n) for n in range(12)]
    following = [in_order(2 * n + 1) for n in range(12)]
    missing(world, *lost)
    put(world, *following)

    run(world, NOON + LOST_AFTER - MINUTE)
    assert not world.calls
    run(world, NOON + LOST_AFTER + 8 * MINUTE)

    assert called(world) == ids(*following)
    assert not world.flows.orders[STRIPE]


def test_one_that_was_lost_later_holds_the_others_for_an_hour_of_its_own(world: World):
    first, second = in_order(0), a_timer(flows=(ORDERED,), due_at=NOON + 30 * MINUTE)
    between, last = a_timer(flows=(ORDERED,), due_at=NOON + 20 * MINUTE), a_timer(flows=(ORDERED,), due_at=NOON + HOUR)
    missing(world, first, second)
    put(world, in_order(1))
    run(world, NOON + 20 * MINUTE)
    put(world, between)
    run(world, NOON + LOST_AFTER + MINUTE)
    put(world, last)
    run(world, NOON + 2 * LOST_AFTER)
    # The second was not due yet when the first was missed.
    assert ids(last)[0] not in called(world)
    assert ids(between)[0] in called(world)

    run(world, NOON + 2 * LOST_AFTER + 5 * MINUTE)

    assert called(world)[-1:] == ids(last)


def test_one_that_comes_after_it_was_taken_for_lost_goes_next(world: World):
    slow, following = in_order(0), in_order(1)
    missing(world, slow)
    put(world, following)
    run(world, NOON + LOST_AFTER + 2 * MINUTE)
    assert called(world) == ids(following)
    last = a_timer(flows=(ORDERED,), due_at=world.clock.now() + SECOND)

    put(world, last, slow)
    run(world, NOON + LOST_AFTER + 4 * MINUTE)

    assert called(world) == ids(following, slow, last)


def test_a_stage_that_stood_still_takes_nobody_for_lost(world: World):
    timers = [in_order(n) for n in range(3)]
    put(world, *reversed(timers))
    world.clock.tick(5 * HOUR)

    run(world, NOON + 5 * HOUR + 5 * MINUTE)

    assert called(world) == ids(*timers)


def test_who_has_started_and_is_missed_holds_the_others_for_an_hour_from_then(world: World):
    """What was noted of others before does not count for it: it may be about to begin."""
    lost, starting, behind = (in_order(n) for n in range(3))
    missing(world, lost, starting)
    put(world, behind)
    run(world, NOON + LOST_AFTER - MINUTE)
    world.flows.hold(STRIPE, row_of(starting))

    run(world, NOON + 2 * LOST_AFTER - 2 * MINUTE)
    assert not world.calls
    run(world, NOON + 2 * LOST_AFTER + 2 * MINUTE)

    assert called(world) == ids(behind)


def test_a_row_is_kept_for_longer_than_its_job_may_wait_and_anew_when_it_is_placed_again(world: World):
    timer = in_order(0)
    put(world, timer)
    (row,) = world.flows.orders[STRIPE].values()
    assert row.expires_at == timer.due_at + ORDER_LIFE
    later = NOON + 100 * DAY

    put(world, replace(timer, due_at=later))

    (row,) = world.flows.orders[STRIPE].values()
    assert row.expires_at == later + ORDER_LIFE


def test_who_waits_in_the_room_keeps_its_place_when_its_row_is_gone(world: World):
    timers = [in_order(n, retry=TWICE) for n in range(4)]
    first = ids(timers[0])[0]
    world.targets.answer = lambda *given: Failed("503") if given[-1].job_id == first else Succeeded("")
    put(world, *timers)
    world.receive_and_work()
    world.flows.orders[STRIPE].clear()

    run(world, NOON + 5 * MINUTE)

    assert called(world) == [first, *ids(*timers)]


def test_one_that_is_cancelled_holds_nobody_up(world: World):
    first, second, third = (in_order(n, retry=TWICE) for n in range(3))
    world.targets.answer = lambda *given: Failed("503") if [given[-1].job_id] == ids(first) else Succeeded("")
    put(world, first, second, third)
    world.canceller().cancel(job_id_of(second.job))

    run(world, NOON + HOUR)

    assert list(dict.fromkeys(called(world))) == ids(first, third)


def test_those_that_wait_when_a_flow_gets_an_order_keep_their_times(world: World):
    slow = NamedFlow(key="stripe", limits=FlowLimits(rate=parse_rate("6/min"), burst=1))
    timers = [a_timer(flows=(slow,), due_at=NOON + n * SECOND) for n in range(5)]
    put(world, *timers)
    run(world, NOON + 8 * SECOND)
    world.flows.set_limits(STRIPE, FlowLimits(is_ordered=True))

    run(world, NOON + 10 * MINUTE)

    assert called(world) == ids(*timers)


def test_those_that_wait_when_a_flow_loses_its_order_run(world: World):
    world.flows.set_limits(STRIPE, FlowLimits(is_ordered=True))
    timers = [in_order(n, retry=TWICE) for n in range(5)]
    first = ids(timers[0])[0]
    world.targets.answer = lambda *given: Failed("503") if given[-1].job_id == first else Succeeded("")
    put(world, *timers)
    run(world, NOON + timedelta(milliseconds=500))
    world.flows.set_limits(STRIPE, FlowLimits(concurrency=5))

    run(world, NOON + 10 * MINUTE)

    assert Counter(called(world)) == Counter([first, *ids(*timers)])


def test_two_orders_that_were_set_later_let_nobody_wait_for_ever(world: World):
    key = ("a", "b")
    both = [tuple(NamedFlow(key=each) for each in keys) for keys in (key, key[::-1])]
    timers = [a_timer(flows=both[n % 2], due_at=NOON + n * timedelta(milliseconds=10), retry=TWICE) for n in range(6)]
    failing = ids(*timers[:2])
    world.targets.answer = lambda *given: (
        Failed("503") if given[-1].job_id in failing and given[-1].attempt == 1 else Succeeded("")
    )
    for each in key:
        world.flows.set_limits(FlowId("acme", each), FlowLimits(is_ordered=True))
    put(world, *reversed(timers))

    run(world, NOON + 10 * MINUTE)

    assert set(called(world)) == set(ids(*timers))
    assert not world.flows.holders


def test_who_is_refused_by_a_second_order_gives_the_first_back(world: World):
    keys = ("a", "b")
    for each in keys:
        world.flows.set_limits(FlowId("acme", each), FlowLimits(is_ordered=True))
    other = a_timer(flows=(NamedFlow(key="b"),), due_at=NOON)
    world.flows.line_up(FlowId("acme", "b"), row_of(other))
    world.flows.hold(FlowId("acme", "b"), row_of(other))
    put(world, a_timer(flows=tuple(NamedFlow(key=each) for each in keys), due_at=NOON + SECOND))

    run(world, NOON + MINUTE)

    assert not world.calls
    assert list(world.flows.holders) == [FlowId("acme", "b")]


def test_a_copy_of_a_message_takes_no_turn_from_the_attempt_that_runs(world: World):
    a, b = (FlowId("acme", each) for each in ("a", "b"))
    for each in (a, b):
        world.flows.set_limits(each, FlowLimits(is_ordered=True))
    mine = a_timer(flows=(NamedFlow(key="a"), NamedFlow(key="b")), due_at=NOON)
    other = a_timer(flows=(NamedFlow(key="b"),), due_at=NOON)
    for flow, timer in ((a, mine), (b, other)):
        world.flows.line_up(flow, row_of(timer))
        world.flows.hold(flow, row_of(timer))
    world.ledger.claim(mine, owner="another worker", lease_until=NOON + MINUTE, now=NOON)

    put(world, mine)
    run(world, NOON + SECOND)

    assert not world.calls
    assert world.flows.holders.keys() >= {a}
