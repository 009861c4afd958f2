"""Flows: what all jobs that name a key share."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from functions.domain.errors import InvalidJob
from functions.domain.instants import HOUR, MINUTE, SECOND
from functions.domain.jobs.job import MAX_PARKED, Delivery, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.lifecycle import State
from functions.domain.targets.flows import (
    THE_STAGE,
    FlowId,
    FlowLimits,
    FlowScope,
    NamedFlow,
    parse_rate,
    read_flow,
    write_flow,
)
from functions.domain.tenants.plan import TenantPlan, TenantStatus
from functions.ports.targets import Failed, Outcome, Succeeded
from testkit.builders import NOON, a_timer
from testkit.observed import CrashError, DeathError, Watched
from testkit.scheduler import World

STRIPE = FlowId("acme", "stripe")
SHARED = FlowId(THE_STAGE, "stripe")


def limits(rate: str = "", **given: Any) -> FlowLimits:
    return FlowLimits(rate=parse_rate(rate) if rate else None, **given)


def a_flow(rate: str = "", *, key: str = "stripe", **given: Any) -> NamedFlow:
    return NamedFlow(key=key, limits=limits(rate, **given))


OF_STAGE = NamedFlow(key="stripe", scope=FlowScope.STAGE)


@pytest.fixture
def world() -> World:
    return World()


def flowing(*flows: NamedFlow, **given: Any) -> Timer:
    return a_timer(flows=flows, **given)


def put(world: World, *timers: Timer) -> None:
    assert [placement.ring is not None for placement in world.placer.place(timers)] == [True] * len(timers)


def run(world: World, until: datetime) -> None:
    """Poll until then, some seconds at a time while nothing comes."""
    while world.clock.now() < until:
        world.receive_and_work()
        coming = [message.visible_at for message in world.ready.messages.values()]
        following = min(coming, default=until)
        world.clock.tick(min(max(following - world.clock.now(), timedelta(milliseconds=1)), until - world.clock.now()))


def starts(world: World, tenant: str = "") -> list[datetime]:
    return [at for at, _, _, call in world.targets.effects if tenant in ("", call.tenant)]


def most_in(starts: Sequence[datetime], window: timedelta) -> int:
    """The most that have started in any window of this length, both of its ends included."""
    return max(sum(first <= each <= first + window for each in starts) for first in starts)


def test_a_job_without_flows_costs_nothing(world: World):
    put(world, a_timer())

    run(world, NOON + MINUTE)

    assert len(world.calls) == 1
    assert (world.flows.reads, world.flows.writes) == (0, 0)


def test_what_a_rate_lets_start_at_once_is_its_burst(world: World):
    put(world, *[flowing(a_flow("1/h", burst=3)) for _ in range(5)])

    run(world, NOON + MINUTE)

    assert len(world.calls) == 3


def test_no_window_has_more_starts_than_its_rate_and_its_burst(world: World):
    put(world, *[flowing(a_flow("60/min", burst=10)) for _ in range(200)])

    run(world, NOON + 10 * MINUTE)

    begun = starts(world)
    assert len(begun) == 200
    assert most_in(begun, timedelta(seconds=59)) <= 60 + 10
    assert most_in(begun, timedelta(seconds=9)) <= 10 + 10


def test_a_rate_is_used_up_while_there_is_something_that_waits(world: World):
    put(world, *[flowing(a_flow("60/min")) for _ in range(120)])

    run(world, NOON + 130 * SECOND)

    assert len(world.calls) >= 118


def test_a_slow_rate_starts_one_after_the_other(world: World):
    put(world, *[flowing(a_flow("2/h")) for _ in range(3)])

    run(world, NOON + 70 * MINUTE)

    begun = starts(world)
    assert [round((each - begun[0]) / MINUTE) for each in begun] == [0, 30, 60]


def test_as_many_run_at_once_as_a_flow_lets(world: World):
    running: list[int] = []
    put(world, *[flowing(a_flow(concurrency=2), timeout=timedelta(seconds=10)) for _ in range(6)])

    def answer(*_: object) -> Outcome:
        now, taken = world.clock.now(), world.permits.leases(str(STRIPE), limit=2)
        running.append(sum(until > now for until in taken.values()))
        return Succeeded()

    world.targets.answer = answer
    run(world, NOON + 2 * MINUTE)

    assert len(world.calls) == 6
    assert max(running) <= 2


def test_whoever_ends_lets_the_next_one_out(world: World):
    first, second = flowing(a_flow(concurrency=1)), flowing(a_flow(concurrency=1))
    put(world, first)
    is_first = iter([True])

    def answer(*_: object) -> Outcome:
        if next(is_first, False):
            put(world, second)
            world.receive_and_work()
            assert world.flows.rooms[STRIPE]
        return Succeeded()

    world.targets.answer = answer
    run(world, NOON + 2 * SECOND)

    assert len(world.calls) == 2
    assert not world.flows.rooms[STRIPE]
    assert world.flows.states[STRIPE].turn_at is None


def test_tenants_share_a_flow_of_the_stage_by_their_weights(world: World):
    world.flows.set_limits(SHARED, limits("60/min"))
    world.plans.plans["big"] = TenantPlan(weight=2)
    for tenant in ("big", "small"):
        put(world, *[flowing(OF_STAGE, tenant=tenant) for _ in range(300)])

    run(world, NOON + 4 * MINUTE)

    counts = Counter(call.tenant for call in world.calls)
    assert counts.total() >= 230
    assert 1.8 < counts["big"] / counts["small"] < 2.2


def test_a_tenant_with_one_job_does_not_wait_behind_a_thousand(world: World):
    world.flows.set_limits(SHARED, limits("60/min"))
    put(world, *[flowing(OF_STAGE, tenant="whale") for _ in range(1_000)])
    run(world, NOON + MINUTE)
    put(world, flowing(OF_STAGE, tenant="one", due_at=NOON + MINUTE))

    run(world, NOON + 2 * MINUTE)

    (begun,) = starts(world, "one")
    assert begun <= NOON + MINUTE + 25 * SECOND


def test_within_a_tenant_the_earliest_goes_first(world: World):
    timers = [flowing(a_flow("60/min", burst=1), due_at=NOON - n * SECOND) for n in range(10)]
    put(world, *timers)

    run(world, NOON + MINUTE)

    due = [call.scheduled_at for call in world.calls]
    assert due[1:] == sorted(due[1:])


def test_limits_that_were_set_go_before_those_of_a_job(world: World):
    world.flows.set_limits(STRIPE, limits("1/h", burst=2))
    put(world, *[flowing(a_flow("1000/s", burst=1000)) for _ in range(5)])

    run(world, NOON + MINUTE)

    assert len(world.calls) == 2


def test_a_flow_without_limits_holds_nobody_up(world: World):
    put(world, *[flowing(NamedFlow(key="stripe")) for _ in range(50)])

    run(world, NOON + SECOND)

    assert len(world.calls) == 50


def test_who_waits_for_limits_that_are_gone_goes_within_a_minute(world: World):
    world.flows.set_limits(STRIPE, limits("1/d"))
    put(world, *[flowing(NamedFlow(key="stripe")) for _ in range(50)])
    run(world, NOON + SECOND)
    world.flows.forget_limits(STRIPE)

    run(world, NOON + 3 * MINUTE)

    assert len(world.calls) == 50


def test_a_job_goes_through_all_of_its_flows(world: World):
    slow, fast = a_flow("30/min", key="slow"), a_flow("60/min", key="fast")
    put(world, *[flowing(fast) for _ in range(100)])
    put(world, *[flowing(slow, fast) for _ in range(20)])

    run(world, NOON + 4 * MINUTE)

    begun = starts(world)
    assert len(begun) == 120
    assert most_in(begun, timedelta(seconds=59)) <= 60 + 6


def test_what_waits_spends_no_attempt(world: World):
    timers = [
        flowing(a_flow("6/min", burst=1), retry=RetryPolicy(strategy=Strategy.FIXED, attempts=1)) for _ in range(5)
    ]
    put(world, *timers)

    run(world, NOON + 2 * MINUTE)

    assert [call.attempt for call in world.calls] == [1] * 5
    assert {world.row(timer.job).state for timer in timers} == {State.SUCCEEDED}


def test_each_attempt_is_a_call_of_the_flow(world: World):
    world.targets.answer = lambda *_: Failed("503")
    retry = RetryPolicy(strategy=Strategy.FIXED, attempts=3, base=timedelta(seconds=1))
    put(world, flowing(a_flow("6/min", burst=1), retry=retry))

    run(world, NOON + 2 * MINUTE)

    begun = starts(world)
    assert len(begun) == 3
    assert min(later - sooner for sooner, later in pairwise(begun)) >= 10 * SECOND


def test_a_paused_tenant_holds_no_other_up_and_goes_on_afterwards(world: World):
    world.flows.set_limits(SHARED, limits("60/min", burst=1))
    put(world, flowing(OF_STAGE, tenant="other"))
    put(world, *[flowing(OF_STAGE, tenant="paused") for _ in range(3)])
    put(world, *[flowing(OF_STAGE, tenant="other") for _ in range(3)])
    world.receive_and_work()
    world.plans.plans["paused"] = TenantPlan(status=TenantStatus.PAUSED)

    run(world, NOON + MINUTE)
    assert (len(starts(world, "other")), len(starts(world, "paused"))) == (4, 0)
    world.plans.plans["paused"] = TenantPlan()
    run(world, NOON + 3 * MINUTE)

    assert len(starts(world, "paused")) == 3


def test_what_is_cancelled_while_it_waits_is_not_called(world: World):
    first, second = flowing(a_flow("6/min", burst=1)), flowing(a_flow("6/min", burst=1))
    put(world, first, second)
    run(world, NOON + SECOND)
    waiting = next(timer for timer in (first, second) if world.row(timer.job).state is not State.SUCCEEDED)
    world.canceller().cancel(job_id_of(waiting.job))

    run(world, NOON + MINUTE)

    assert len(world.calls) == 1
    assert world.row(waiting.job).state is State.CANCELLED


@pytest.mark.long
def test_who_waits_longer_than_its_policy_allows_is_a_dead_letter(world: World):
    put(world, *[flowing(a_flow("1/d")) for _ in range(20)])

    run(world, NOON + MAX_PARKED + 10 * timedelta(days=1))

    assert len(world.calls) + len(world.buried) == 20


@pytest.mark.parametrize("delivery", [Delivery.EXACTLY_ONCE, Delivery.AT_LEAST_ONCE, Delivery.AT_MOST_ONCE])
@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("call", ["wait", "note_entry", "note_turn", "leave", "remove", "close", "spend", "state"])
@pytest.mark.parametrize("error", [CrashError, DeathError])
def test_a_fault_anywhere_loses_nothing(
    world: World, call: str, error: type[BaseException], after: bool, delivery: Delivery
):
    timers = [flowing(a_flow("60/min"), delivery=delivery) for _ in range(6)]
    put(world, *timers)
    _fail_once(world, f"flows.{call}", error, after=after)

    run_with_faults(world, NOON + 10 * MINUTE)

    called = Counter(call.job_id for call in world.calls)
    assert set(called) == {str(job_id_of(timer.job)) for timer in timers}
    if delivery is not Delivery.AT_LEAST_ONCE:
        assert set(called.values()) == {1}
    assert not world.flows.rooms[STRIPE]


def run_with_faults(world: World, until: datetime) -> None:
    while world.clock.now() < until:
        try:
            run(world, until)
        except (CrashError, DeathError):
            continue


def _fail_once(world: World, call: str, error: type[BaseException], *, after: bool) -> None:
    calls: list[str] = []

    def strike(name: str) -> None:
        if name == call and not calls:
            calls.append(name)
            raise error

    hooks: dict[str, Callable[[str], None]] = {
        "before": strike if not after else lambda _: None,
        "after": strike if after else lambda _: None,
    }
    setattr(world, "flows", Watched(world.flows, "flows", **hooks))  # noqa: B010  of another type


@pytest.mark.parametrize("text", ["", "60", "60/m", "0/s", "1001/s", "1.5/s", "60 / min", "-1/s", "60/MIN", "60/min\n"])
def test_a_rate_that_is_none_is_refused_with_an_example(text: str):
    with pytest.raises(InvalidJob, match="60/min"):
        parse_rate(text)


@pytest.mark.parametrize(
    ("text", "interval"), [("10/s", SECOND / 10), ("60/min", SECOND), ("2/h", HOUR / 2), ("1000/d", 24 * HOUR / 1000)]
)
def test_a_rate_says_how_far_apart_calls_are(text: str, interval: timedelta):
    assert parse_rate(text).interval == interval
    assert str(parse_rate(text)) == text


@pytest.mark.parametrize(
    "flow", [a_flow("60/min", burst=7, concurrency=2), NamedFlow(key="a.b"), OF_STAGE, a_flow(concurrency=1)]
)
def test_a_flow_is_read_as_it_was_written(flow: NamedFlow):
    assert read_flow(write_flow(flow)) == flow


@pytest.mark.parametrize("flows", [[a_flow(key=f"k{n}") for n in range(4)], [a_flow(), a_flow("1/s")]])
def test_a_job_names_up_to_three_flows_each_once(flows: Sequence[NamedFlow]):
    with pytest.raises(InvalidJob):
        a_timer(flows=tuple(flows))


def test_limits_of_a_flow_of_the_stage_are_not_said_by_a_job():
    with pytest.raises(InvalidJob, match="operators"):
        NamedFlow(key="stripe", scope=FlowScope.STAGE, limits=limits("1/s"))
