"""What becomes of the order of a flow when somebody changes its jobs: each row of the table in docs/flows.md, on virtual time."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.domain.errors import TooLate
from functions.domain.instants import HOUR, MINUTE, SECOND
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import job_id_of, parse_job_id
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.lifecycle import State
from functions.domain.targets.flows import FlowId, FlowLimits
from functions.domain.tenants.plan import TenantPlan, TenantStatus
from functions.ports.targets import Failed, Outcome, Pending, Succeeded
from testkit.builders import NOON, a_submission, a_timer
from testkit.observed import DeathError
from testkit.scheduler import pass_time
from tests.unit.test_flow_order import ORDERED, STRIPE, TWICE, called, ids, in_order
from tests.unit.test_flows import put, run
from tests.unit.test_replay import Operator
from tests.unit.test_rescheduler import change, dying, run_now, watched

ONCE = RetryPolicy(strategy=Strategy.FIXED, attempts=1)
SLOWLY = RetryPolicy(strategy=Strategy.FIXED, attempts=2, base=10 * MINUTE, cap=10 * MINUTE)


@pytest.fixture
def world() -> Operator:
    world = Operator()
    world.is_mended = True
    return world


def far(hours: float, **given: Any) -> Timer:
    return a_timer(flows=(ORDERED,), due_at=NOON + hours * HOUR, **given)


def fails(world: Operator, *timers: Timer, times: int = 1) -> None:
    """The first attempts of these jobs fail."""
    left = dict.fromkeys(ids(*timers), times)

    def answer(*given: Any) -> Outcome:
        job_id = given[-1].job_id
        if left.get(job_id, 0) > 0:
            left[job_id] -= 1
            return Failed("503")
        return Succeeded()

    world.targets.answer = answer


def started_at(world: Operator, timer: Timer) -> list[datetime]:
    return [at for at, _, _, call in world.targets.effects if call.job_id == ids(timer)[0]]


def is_empty(world: Operator) -> bool:
    return not world.flows.orders[STRIPE] and not world.flows.holders and not world.flows.rooms[STRIPE]


def test_a_job_that_is_rescheduled_is_ordered_by_its_new_due_time(world: Operator):
    first, second, third = far(1), far(2), far(3)
    put(world, first, second, third)
    # To one instant, so that only the order says who goes first.
    moved = change(world, first, delay=3 * 3_600 + 1)
    fails(world, second, third)

    pass_time(world, until=NOON + 5 * HOUR)

    assert list(dict.fromkeys(called(world))) == [*ids(second, third), str(moved.job_id)]
    assert is_empty(world)


def test_a_job_that_is_rescheduled_holds_nobody_at_its_old_time(world: Operator):
    first, second = far(1), far(1.5)
    put(world, first, second)
    change(world, first, delay=2 * 3_600)

    pass_time(world, until=NOON + 1.5 * HOUR + MINUTE)

    assert called(world) == ids(second)
    assert started_at(world, second)[0] < NOON + 1.5 * HOUR + 2 * SECOND


def test_a_job_that_is_rescheduled_to_the_time_of_another_goes_in_the_order_of_their_submission(world: Operator):
    submitted = NOON - MINUTE
    early, late = (far(n, retry=TWICE) for n in (1, 2))
    timers = [
        replace(each, job=replace(each.job, submitted_at=submitted + n * SECOND))
        for n, each in enumerate((late, early))
    ]
    put(world, *timers)
    moved = change(world, timers[1], delay=2 * 3_600)

    pass_time(world, until=NOON + 3 * HOUR)

    assert called(world) == [*ids(timers[0]), str(moved.job_id)]


def test_a_job_has_its_new_place_before_it_is_moved(world: Operator):
    """Else one that is due later could start in between."""
    first, second = far(1), far(3)
    put(world, first, second)
    known: list[str] = []

    def note(call: str) -> None:
        if call == "ledger.move":
            known.extend(row.job_id for _, row in sorted(world.flows.orders[STRIPE].items()))

    moved = change(world, first, rescheduler=watched(world, before=note), delay=2 * 3_600)

    assert known == [*ids(first), str(moved.job_id), *ids(second)]


def test_a_job_that_is_edited_keeps_its_place(world: Operator):
    first, second = far(1), far(1.01)
    put(world, second, first)
    moved = change(world, first, payload={"another": "content"})
    world.targets.answer = lambda *given: Failed("503") if given[-1].attempt == 1 else Succeeded()

    pass_time(world, until=NOON + 2 * HOUR)

    assert list(dict.fromkeys(called(world))) == [str(moved.job_id), *ids(second)]
    assert is_empty(world)


def test_a_job_that_leaves_its_flow_by_an_edit_holds_nobody(world: Operator):
    first, second = far(1), far(1.01)
    put(world, first, second)
    change(world, first, flow=None)

    pass_time(world, until=NOON + 2 * HOUR)

    assert set(called(world)) >= set(ids(second))
    assert is_empty(world)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_death_while_a_job_is_rescheduled_keeps_the_order(world: Operator, when: str):
    first, second = far(1), far(1.5)
    put(world, first, second)
    with pytest.raises(DeathError):
        change(world, first, rescheduler=dying(world, "ledger.move", when=when), delay=2 * 3_600)

    pass_time(world, until=NOON + 4 * HOUR)

    # Where it was not moved, its new place is missed for an hour, and nobody is behind it.
    runs = [ids(first, second), ids(second)][when == "after"]
    assert called(world)[: len(runs)] == runs
    assert len(called(world)) == 2


def test_who_reschedules_too_late_leaves_no_place_behind(world: Operator):
    first, second = far(1), far(3)
    put(world, first, second)

    def claim(call: str) -> None:
        if call == "ledger.move":
            world.ledger.claim(first, owner="w", lease_until=NOON + HOUR, now=NOON)

    with pytest.raises(TooLate):
        change(world, first, rescheduler=watched(world, before=claim), delay=2 * 3_600)

    assert [row.job_id for row in world.flows.orders[STRIPE].values()] == ids(first, second)


def test_a_job_that_is_run_now_waits_for_nobody_who_is_not_due_yet(world: Operator):
    first, second = far(1), far(2)
    put(world, first, second)
    run_now(world, second)

    run(world, NOON + MINUTE)
    assert called(world) == ids(second)
    pass_time(world, until=NOON + 2 * HOUR)

    assert called(world) == ids(second, first)
    assert is_empty(world)


def test_a_job_that_is_run_now_waits_for_the_one_that_runs(world: Operator):
    first, second, third = in_order(0, retry=TWICE), far(1), far(2)
    put(world, first, second, third)
    fails(world, first)
    run_now(world, third)

    run(world, NOON + 2 * MINUTE)

    assert called(world) == ids(first, first, third)


def test_a_job_that_is_run_now_holds_the_others_until_it_has_ended(world: Operator):
    first, second = far(0.5), far(2, retry=SLOWLY)
    put(world, first, second)
    fails(world, second)
    world.clock.tick(25 * MINUTE)
    run_now(world, second)

    pass_time(world, until=NOON + 2 * HOUR)

    assert called(world) == ids(second, second, first)


def test_a_run_that_was_replayed_comes_in_by_the_due_time_of_its_job(world: Operator):
    timers = [in_order(n, retry=ONCE) for n in range(2)]
    fails(world, timers[0])
    put(world, *timers)
    run(world, NOON + MINUTE)
    (letter,) = world.buried
    later = [a_timer(flows=(ORDERED,), due_at=NOON + MINUTE + n * SECOND) for n in range(3)]
    put(world, *later)
    world.replay(letter)

    run(world, NOON + 5 * MINUTE)

    assert called(world) == ids(*timers, timers[0], *later)
    assert is_empty(world)


def test_a_replay_stops_nobody_who_runs(world: Operator):
    failed, running, behind = in_order(0, retry=ONCE), in_order(1, retry=SLOWLY), in_order(2)
    fails(world, failed, running)
    put(world, failed, running, behind)
    run(world, NOON + MINUTE)
    (letter,) = world.buried

    world.replay(letter)
    pass_time(world, until=NOON + 20 * MINUTE)

    assert called(world) == ids(failed, running, running, failed, behind)
    assert is_empty(world)


def test_a_run_that_was_replayed_holds_the_others_until_it_has_ended(world: Operator):
    timers = [in_order(n, retry=TWICE) for n in range(2)]
    fails(world, timers[0], times=3)
    put(world, *timers)
    run(world, NOON + MINUTE)
    (letter,) = world.buried
    behind = a_timer(flows=(ORDERED,), due_at=NOON + MINUTE)
    world.replay(letter)
    put(world, behind)

    run(world, NOON + 5 * MINUTE)

    assert called(world) == ids(timers[0], timers[0], timers[1], timers[0], timers[0], behind)


def test_a_message_of_before_a_replay_takes_no_place_from_it(world: Operator):
    failed, behind = in_order(0, retry=ONCE), in_order(1)
    fails(world, failed)
    put(world, failed)
    run(world, NOON + MINUTE)
    (letter,) = world.buried
    world.replay(letter)
    world.flows.hold(STRIPE, next(iter(world.flows.orders[STRIPE].values())))
    holders = dict(world.flows.holders)
    world.ready.messages.clear()
    put(world, behind)
    world.ready.send([failed])

    run(world, NOON + 2 * MINUTE)

    assert world.flows.holders == holders
    assert called(world) == ids(failed)


def test_a_job_whose_submission_is_repeated_keeps_its_turn_through_its_retries(world: Operator):
    given = {"flows": (ORDERED,), "due_at": NOON, "retry": SLOWLY, "idempotency_key": "order-1"}
    first = world.submit(a_submission(**given, asked_at=NOON - SECOND))
    world.submit(a_submission(**given, asked_at=NOON))
    behind = in_order(1)
    put(world, behind)
    world.targets.answer = lambda *given: Failed("503") if given[-1].attempt == 1 else Succeeded()
    job_id, given_back = parse_job_id(first.job_id), list[State]()
    finish = world.flows.finish

    def note(flow: FlowId, place: str) -> None:
        if job_id.identity in place and (row := world.ledger.get(job_id.key)) is not None:
            given_back.append(row.state)
        finish(flow, place)

    vars(world.flows).update(finish=note)

    pass_time(world, until=NOON + 20 * MINUTE)

    assert list(dict.fromkeys(called(world))) == [first.job_id, *ids(behind)]
    # Else somebody could come in between.
    assert set(given_back) == {State.SUCCEEDED}
    assert is_empty(world)


def test_who_is_behind_a_cancelled_job_that_waited_for_its_retry_goes_on_within_half_a_minute(world: Operator):
    first, second = in_order(0, retry=SLOWLY), in_order(1)
    fails(world, first)
    put(world, first, second)
    run(world, NOON + 2 * MINUTE)
    assert called(world) == ids(first)

    world.canceller().cancel(job_id_of(first.job))
    run(world, NOON + 2 * MINUTE + 31 * SECOND)

    assert called(world) == ids(first, second)


def test_who_is_behind_a_job_that_was_held_goes_on_when_that_is_completed(world: Operator):
    first, second = in_order(0), in_order(1)
    world.targets.answer = lambda *given: Pending() if given[-1].job_id == ids(first)[0] else Succeeded()
    put(world, first, second)
    run(world, NOON + 5 * SECOND)
    assert called(world) == ids(first)

    world.outcome_reports().complete(job_id_of(first.job), fence=world.row(first.job).fence, result="")
    run(world, NOON + MINUTE)

    assert called(world) == ids(first, second)


def test_the_jobs_of_a_paused_tenant_keep_their_places(world: Operator):
    timers = [in_order(n, retry=TWICE) for n in range(4)]
    fails(world, timers[0])
    put(world, *timers)
    run(world, NOON + timedelta(milliseconds=500))
    world.plans.plans["acme"] = TenantPlan(status=TenantStatus.PAUSED)
    earlier = a_timer(flows=(ORDERED,), due_at=NOON - SECOND)
    put(world, earlier)
    pass_time(world, until=NOON + HOUR)
    begun = called(world)
    world.plans.plans["acme"] = TenantPlan()

    pass_time(world, until=NOON + 2 * HOUR)

    assert begun == ids(timers[0])
    assert called(world) == ids(timers[0], timers[0], earlier, *timers[1:])
    assert is_empty(world)


def test_who_is_behind_a_job_that_has_expired_goes_on(world: Operator):
    first = in_order(0, retry=SLOWLY)
    expiring, behind = in_order(1, expires_at=NOON + 5 * MINUTE), in_order(2)
    fails(world, first)
    put(world, first, expiring, behind)

    pass_time(world, until=NOON + 15 * MINUTE)

    assert called(world) == ids(first, first, behind)
    assert world.row(expiring.job).state is State.EXPIRED
    assert is_empty(world)


def test_who_is_behind_a_job_that_may_wait_no_longer_goes_on(world: Operator):
    first = in_order(0)
    late = in_order(1, retry=replace(TWICE, max_age=HOUR))
    behind = in_order(2)
    world.targets.answer = lambda *given: Pending() if given[-1].job_id == ids(first)[0] else Succeeded()
    put(world, first, behind)
    run(world, NOON + 5 * SECOND)
    world.outcome_reports().heartbeat(job_id_of(first.job), fence=world.row(first.job).fence, lease=2 * HOUR)
    pass_time(world, until=NOON + HOUR + MINUTE)
    put(world, late)
    pass_time(world, until=NOON + HOUR + 2 * MINUTE)
    world.outcome_reports().complete(job_id_of(first.job), fence=world.row(first.job).fence, result="")

    pass_time(world, until=NOON + 2 * HOUR)

    assert called(world) == ids(first, behind)
    assert [letter.error_class for letter in world.buried] == ["flow_wait_too_long"]
    assert is_empty(world)


def test_who_runs_when_a_flow_gets_an_order_is_not_waited_for(world: Operator):
    unordered = replace(ORDERED, limits=FlowLimits(concurrency=5))
    running = a_timer(flows=(unordered,), due_at=NOON, retry=SLOWLY)
    fails(world, running)
    put(world, running)
    run(world, NOON + SECOND)
    world.flows.set_limits(STRIPE, FlowLimits(is_ordered=True))
    world.clock.tick(MINUTE)
    later = a_timer(flows=(unordered,), due_at=world.clock.now())
    put(world, later)

    pass_time(world, until=NOON + 2 * MINUTE)

    assert called(world) == ids(running, later)


def test_a_job_with_an_earlier_due_time_that_comes_later_goes_next_and_stops_nobody(world: Operator):
    first, last = in_order(5, retry=SLOWLY), in_order(6)
    fails(world, first)
    put(world, first, last)
    run(world, NOON + MINUTE)
    earlier = in_order(1)
    put(world, earlier)

    pass_time(world, until=NOON + 20 * MINUTE)

    assert called(world) == ids(first, first, earlier, last)


def test_a_job_that_is_not_due_yet_holds_nobody(world: Operator):
    later, now = far(5), in_order(0)
    put(world, later, now)

    run(world, NOON + SECOND)

    assert called(world) == ids(now)
