"""Callbacks: what is called with the outcome of a job, exactly once in effect, whoever dies where."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from functions.domain.errors import Undecodable
from functions.domain.far_ring.asked_record import decode_asked, encode_asked
from functions.domain.far_ring.run_terms import CALLBACKS_IN_RECORD
from functions.domain.far_ring.timer_record import decode_timer, encode_timer
from functions.domain.instants import HOUR, format_instant
from functions.domain.jobs.callbacks import Callbacks, read_callbacks
from functions.domain.jobs.job import Delivery, Payload, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.retry import RetryPolicy
from functions.domain.lifecycle import State
from functions.domain.tenants.plan import TenantPlan
from functions.ports.targets import Failed, Invocation, Outcome, Pending, Succeeded
from testkit.builders import NOON, a_job, a_schedule, a_timer, an_occurrence_timer
from testkit.observed import DeathError
from testkit.scheduler import World, pass_time

CALLBACKS = Callbacks(on_success="handler:well", on_failure="handler:badly", on_end="handler:over")
ONCE = RetryPolicy(attempts=1)
NAMES = {"handler:well": "on_success", "handler:badly": "on_failure", "handler:over": "on_end"}
TRACKED = [Delivery.EXACTLY_ONCE, Delivery.AT_LEAST_ONCE]


def a_world(outcome: Outcome) -> World:
    world = World(dates_rows=True)
    world.targets.answer = lambda target, _: Succeeded() if target in NAMES else outcome
    return world


def asked(**options: Any) -> Timer:
    return a_timer(**{"callbacks": CALLBACKS, "retry": ONCE, **options})


def called(world: World) -> list[tuple[str, dict[str, Any]]]:
    """What callbacks were called with, in order of their names."""
    bodies = [json.loads(payload or "null") for _, target, payload, _ in world.targets.effects if target in NAMES]
    return sorted(((body["callback"], body["job"]) for body in bodies), key=lambda each: each[0])


def names(world: World) -> list[str]:
    return [name for name, _ in called(world)]


@pytest.mark.parametrize("delivery", TRACKED)
def test_a_success_is_told_to_on_success_and_on_end_with_its_result(delivery: Delivery):
    world, timer = a_world(Succeeded(result='{"rows":3}')), asked(delivery=delivery, tags=("nightly",))
    world.placer.place([timer])

    pass_time(world, until=NOON + HOUR)

    assert names(world) == ["on_end", "on_success"]
    assert called(world)[0][1] == {
        "id": str(job_id_of(timer.job)),
        "tenant": "acme",
        "state": "succeeded",
        "attempts": 1,
        "scheduled_at": format_instant(NOON),
        "ended_at": called(world)[0][1]["ended_at"],
        "tags": ["nightly"],
        "result": {"rows": 3},
    }


@pytest.mark.parametrize("delivery", TRACKED)
def test_a_failure_for_good_is_told_to_on_failure_and_on_end_with_its_error(delivery: Delivery):
    world = a_world(Failed("no such order", "http_404", is_permanent=True))
    world.placer.place([asked(delivery=delivery)])

    pass_time(world, until=NOON + HOUR)

    assert names(world) == ["on_end", "on_failure"]
    assert [(job["state"], job["error"]) for _, job in called(world)] == [("failed", "no such order")] * 2


def test_a_retry_is_no_end():
    world = a_world(Failed("busy"))
    world.placer.place([asked(retry=RetryPolicy(attempts=3))])

    world.receive_and_work()

    assert not called(world)
    pass_time(world, until=NOON + 2 * HOUR)
    assert [(name, job["attempts"]) for name, job in called(world)] == [("on_end", 3), ("on_failure", 3)]


@pytest.mark.parametrize("delivery", TRACKED)
def test_an_expiry_is_a_failure(delivery: Delivery):
    world = a_world(Succeeded())
    world.placer.place([asked(delivery=delivery, expires_at=NOON)])

    pass_time(world, until=NOON + HOUR)

    assert names(world) in (["on_end", "on_failure"], ["on_end", "on_success"])
    if delivery is Delivery.EXACTLY_ONCE:
        assert [job["state"] for _, job in called(world)] == ["expired"] * 2


@pytest.mark.parametrize("delivery", TRACKED)
def test_a_cancel_of_a_waiting_job_is_told_to_on_end_at_once(delivery: Delivery):
    world, timer = a_world(Succeeded()), asked(delivery=delivery, due_at=NOON + 30 * HOUR)
    world.placer.place([timer])
    world.clock.tick(timedelta(minutes=2))

    assert world.canceller().cancel(job_id_of(timer.job))
    assert world.rows.stored(job_id_of(timer.job)) is None
    pass_time(world, until=NOON + HOUR)

    assert [(name, job["state"]) for name, job in called(world)] == [("on_end", "cancelled")]


def test_a_cancel_that_came_when_its_message_was_on_its_way_is_told_when_that_comes():
    world, timer = a_world(Succeeded()), asked()
    world.placer.place([timer])

    assert world.canceller().cancel(job_id_of(timer.job))
    pass_time(world, until=NOON + HOUR)

    assert names(world) == ["on_end"]


def test_a_cancel_while_an_attempt_runs_is_told_when_that_has_failed():
    world, timer = World(), asked(retry=RetryPolicy(attempts=5))

    def answer(target: str, _: Invocation) -> Outcome:
        if target in NAMES:
            return Succeeded()
        world.canceller().cancel(job_id_of(timer.job))
        return Failed("busy")

    world.targets.answer = answer
    world.placer.place([timer])

    pass_time(world, until=NOON + HOUR)

    assert [(name, job["state"]) for name, job in called(world)] == [("on_end", "cancelled")]


def reported(world: World, timer: Timer, *, fails: bool) -> None:
    reports = world.outcome_reports()
    if fails:
        reports.fail(job_id_of(timer.job), fence=1, failure=Failed("no", "x", is_permanent=True))
    else:
        reports.complete(job_id_of(timer.job), fence=1, result="7")


@pytest.mark.parametrize(("fails", "names_of"), [(False, ["on_end", "on_success"]), (True, ["on_end", "on_failure"])])
def test_an_end_that_a_target_reports_later_is_told(fails: bool, names_of: list[str]):
    world, timer = a_world(Pending()), asked()
    world.placer.place([timer])
    world.receive_and_work()

    reported(world, timer, fails=fails)
    pass_time(world, until=NOON + HOUR)

    assert names(world) == names_of


def test_a_replay_that_succeeds_is_an_end_of_its_own_and_one_that_fails_is_too():
    world, timer = a_world(Failed("no", "x", is_permanent=True)), asked()
    world.placer.place([timer])
    pass_time(world, until=NOON + HOUR)

    for outcome in (Failed("no", "x", is_permanent=True), Succeeded()):
        now = world.clock.now()
        last = world.row(timer.job)
        again = replace(timer, attempt=last.attempt).replayed(due_at=now)
        world.ledger.replay(again, far=again, job_id=str(job_id_of(timer.job)), fence=last.fence, owner="r", now=now)
        world.targets.answer = lambda target, _, outcome=outcome: Succeeded() if target in NAMES else outcome
        world.placer.place([again])
        pass_time(world, until=now + HOUR)

    assert names(world) == [*["on_end"] * 3, *["on_failure"] * 2, "on_success"]


def test_a_callback_has_retries_and_an_end_of_its_own_and_no_callback():
    world = World()
    world.targets.answer = lambda target, _: Failed("busy") if target in NAMES else Succeeded()
    world.placer.place([asked()])

    pass_time(world, until=NOON + 5 * HOUR)

    letters = {letter.timer.job.target: letter for letter in world.buried if letter.timer is not None}
    assert set(letters) == {"handler:well", "handler:over"}
    assert {letter.attempt for letter in letters.values()} == {RetryPolicy().attempts}
    assert not any(letter.timer.job.callbacks for letter in letters.values() if letter.timer)


def test_a_run_of_a_schedule_has_the_callbacks_of_its_definition():
    world = a_world(Succeeded())
    schedule = a_schedule(job=replace(a_schedule().job, callbacks=CALLBACKS))
    world.store(schedule)
    world.placer.place([an_occurrence_timer(schedule)])

    pass_time(world, until=NOON + timedelta(minutes=3))

    assert names(world) == ["on_end", "on_success"]
    assert {job["schedule_id"] for _, job in called(world)} == {schedule.schedule_id}


def test_callbacks_do_not_count_among_the_jobs_that_wait():
    world = a_world(Succeeded())
    world.plans.everybody = TenantPlan(max_pending=1_000)
    world.placer.place([asked()])

    pass_time(world, until=NOON + HOUR)
    world.tally.flush()

    assert sum(world.waiting.rows.values()) == -1  # that of the job, which was not counted in here


def succeeds(world: World, _: Timer) -> None:
    world.receive_and_work()


def completes(world: World, timer: Timer) -> None:
    world.outcome_reports().complete(job_id_of(timer.job), fence=1, result="7")


def cancels(world: World, timer: Timer) -> None:
    world.canceller().cancel(job_id_of(timer.job))


def held_before(world: World) -> None:
    world.receive_and_work()


def far_before(world: World) -> None:
    world.clock.tick(timedelta(minutes=2))


def nothing_before(_: World) -> None:
    pass


DEATHS: list[tuple[str, Outcome, Any, Callable[[World], None], Callable[[World, Timer], None], list[str]]] = [
    ("success", Succeeded(), {}, nothing_before, succeeds, ["on_end", "on_success"]),
    ("failure", Failed("no", "x", is_permanent=True), {}, nothing_before, succeeds, ["on_end", "on_failure"]),
    ("expiry", Succeeded(), {"expires_at": NOON - HOUR}, nothing_before, succeeds, ["on_end", "on_failure"]),
    ("a 202 reported later", Pending(), {}, held_before, completes, ["on_end", "on_success"]),
    ("a cancel", Succeeded(), {"due_at": NOON + 3 * HOUR}, far_before, cancels, ["on_end"]),
]


@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize(
    ("outcome", "options", "first", "end", "told"), [case[1:] for case in DEATHS], ids=[case[0] for case in DEATHS]
)
def test_a_death_at_any_call_to_a_store_loses_no_callback_and_doubles_none(
    outcome: Outcome,
    options: dict[str, Any],
    first: Callable[[World], None],
    end: Callable[[World, Timer], None],
    told: list[str],
    is_before: bool,
):
    died = 0
    for dies_at in range(40):
        world, timer = a_world(outcome), asked(**options)
        world.placer.place([timer])
        first(world)
        calls = [0]

        def die(_: str, calls: list[int] = calls, dies_at: int = dies_at) -> None:
            calls[0] += 1
            if calls[0] > dies_at:
                raise DeathError

        watched = world.watched(before=die) if is_before else world.watched(after=die)
        try:
            end(watched, timer)
        except DeathError:
            died += 1
        if outcome == Pending() and world.row(timer.job).state is State.RUNNING:
            completes(world, timer)  # whoever got no answer says it again
        if end is cancels:
            world.canceller().cancel(job_id_of(timer.job))
        pass_time(world, until=NOON + HOUR)
        assert names(world) == told, dies_at
        if calls[0] <= dies_at:
            break
    assert died > 2


def test_a_record_keeps_callbacks_and_says_where_they_are():
    timer = asked(payload=Payload(text='{"C":[1],"x":",\\"C\\":"}'))

    assert decode_timer(encode_timer(timer), tenant="acme") == timer
    assert CALLBACKS_IN_RECORD in encode_timer(timer)
    assert CALLBACKS_IN_RECORD not in encode_timer(replace(timer, job=replace(timer.job, callbacks=Callbacks())))


def test_a_row_keeps_the_callbacks_of_its_job():
    job = a_job(callbacks=Callbacks(on_end="handler:over"))

    kept = decode_asked(encode_asked(job), job_id_of(job))

    assert kept is not None
    assert kept.job.callbacks == job.callbacks


@pytest.mark.parametrize("values", ["abc", [1], ["a", "b", "c", "d"], [None]])
def test_what_are_no_callbacks_is_not_read(values: Any):
    with pytest.raises(Undecodable):
        read_callbacks(values)
