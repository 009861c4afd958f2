"""Callbacks: what is called with the outcome of a job, exactly once in effect, whoever dies where."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from functions.domain.errors import TooLate, Undecodable
from functions.domain.far_ring.asked_record import decode_asked, encode_asked
from functions.domain.far_ring.run_terms import CALLBACKS_IN_RECORD
from functions.domain.far_ring.timer_record import decode_timer, encode_timer
from functions.domain.instants import HOUR, format_instant
from functions.domain.jobs.callbacks import Callbacks, read_callbacks
from functions.domain.jobs.job import Delivery, Payload, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.overlap import Overlap
from functions.domain.jobs.retry import RetryPolicy
from functions.domain.lifecycle import State
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.slots import SILENCE
from functions.domain.tenants.plan import TenantPlan
from functions.ports.ledger import Claimed
from functions.ports.ready_queue import Rejected
from functions.ports.targets import Failed, Invocation, Outcome, Pending, Succeeded
from functions.ports.timers import StoredTimer
from functions.scanner.renew import Renewer
from testkit.builders import NOON, a_job, a_link, a_schedule, a_timer, an_occurrence_timer, every
from testkit.observed import DeathError, Watched
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


def a_payload_before(world: World) -> None:
    world.payloads.objects["large"] = "[1]"


DEATHS: list[tuple[str, Outcome, Any, Callable[[World], None], Callable[[World, Timer], None], list[str]]] = [
    ("success", Succeeded(), {}, nothing_before, succeeds, ["on_end", "on_success"]),
    ("failure", Failed("no", "x", is_permanent=True), {}, nothing_before, succeeds, ["on_end", "on_failure"]),
    ("expiry", Succeeded(), {"expires_at": NOON - HOUR}, nothing_before, succeeds, ["on_end", "on_failure"]),
    (
        "success of a job without a row whose payload goes with it",
        Succeeded(),
        {"delivery": Delivery.AT_LEAST_ONCE, "payload": Payload(pointer="large")},
        a_payload_before,
        succeeds,
        ["on_end", "on_success"],
    ),
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


def test_a_cancel_is_told_by_whoever_renews_the_row_of_its_job_which_comes_to_no_worker():
    world, timer = a_world(Succeeded()), asked(due_at=NOON + 3 * HOUR)
    world.placer.place([timer])
    key = next(iter(world.rows.rows.values()))
    world.ledger.cancel(job_id_of(timer.job), now=NOON, owner="a client")

    for _ in range(2):
        renewed = world.build(Renewer).renew([StoredTimer(str(key), timer)])
        assert not renewed.failed
    pass_time(world, until=NOON + HOUR)

    assert [(name, job["state"]) for name, job in called(world)] == [("on_end", "cancelled")]


def test_a_row_whose_callbacks_cannot_be_put_is_not_renewed():
    world, timer = a_world(Succeeded()), asked(due_at=NOON + 3 * HOUR)
    world.ledger.cancel(job_id_of(timer.job), now=NOON, owner="a client")
    world.ready.refuses = lambda refused: Rejected(refused, "throttled", is_permanent=False)

    assert world.build(Renewer).renew([StoredTimer("row", timer)]).failed == {"row"}


@pytest.mark.parametrize("is_asked_again", [True, False])
@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize("delivery", TRACKED)
def test_a_death_while_a_far_job_is_cancelled_leaves_one_end_and_one_callback_that_tells_it(
    delivery: Delivery, is_before: bool, is_asked_again: bool
):
    ends: set[str] = set()
    for dies_at in range(40):
        world, timer = a_world(Succeeded()), asked(delivery=delivery, due_at=NOON + 3 * HOUR)
        world.placer.place([timer])
        far_before(world)
        calls = [0]

        def die(_: str, calls: list[int] = calls, dies_at: int = dies_at) -> None:
            calls[0] += 1
            if calls[0] > dies_at:
                raise DeathError

        with suppress(DeathError):
            cancels(world.watched(before=die) if is_before else world.watched(after=die), timer)
        if is_asked_again:
            cancels(world, timer)
        pass_time(world, until=NOON + 4 * HOUR)

        has_run = any(target not in NAMES for _, target, _, _ in world.targets.effects)
        state = "succeeded" if has_run else "cancelled"
        ends.add(state)
        assert [job["state"] for name, job in called(world) if name == "on_end"] == [state], dies_at
        assert {job["id"] for _, job in called(world)} == {str(job_id_of(timer.job))}
        assert not (has_run and is_asked_again), dies_at
        assert names(world) == ["on_end", *(["on_success"] if has_run else [])]
        assert world.rows.stored(job_id_of(timer.job)) is None or not is_asked_again
        if calls[0] <= dies_at:
            break
    # The first write of a tracked job is its tombstone: only a death before it lets the job run.
    may_run = not is_asked_again and (is_before or delivery is Delivery.AT_LEAST_ONCE)
    assert ends == ({"cancelled", "succeeded"} if may_run else {"cancelled"})


def test_a_cancel_whose_write_stalled_until_its_job_was_near_lets_it_run_and_tells_of_that():
    world, timer = a_world(Succeeded()), asked(delivery=Delivery.AT_LEAST_ONCE, due_at=NOON + HOUR)
    world.placer.place([timer])
    far_before(world)
    world.timers.put_takes = timedelta(minutes=57)

    with pytest.raises(TooLate):
        cancels(world, timer)
    world.timers.put_takes = timedelta(0)
    pass_time(world, until=NOON + 3 * HOUR)

    assert [(name, job["state"]) for name, job in called(world)] == [
        ("on_end", "succeeded"),
        ("on_success", "succeeded"),
    ]


def test_a_far_job_that_calls_nothing_at_its_end_is_cancelled_as_before():
    world, timer = a_world(Succeeded()), asked(delivery=Delivery.AT_LEAST_ONCE, due_at=NOON + 3 * HOUR)
    timer = replace(timer, job=replace(timer.job, callbacks=Callbacks(on_success="handler:well")))
    world.placer.place([timer])
    far_before(world)

    cancels(world, timer)

    assert (world.rows.stored(job_id_of(timer.job)), dict(world.ledger.rows)) == (None, {})


RUNS = [
    a_schedule(overlap=Overlap.FORBID, job=replace(a_schedule().job, callbacks=CALLBACKS)),
    a_schedule(rule=every(minutes=10, from_end=True), job=replace(a_schedule().job, callbacks=CALLBACKS)),
]
"""One whose next fire finds the run in its slot, and one whose chain waits for its end."""


def a_silent_run(schedule: Schedule, *, has_begun: bool) -> tuple[World, Timer]:
    """A run whose worker died, or which was parked, and of which no message is left."""
    world, run = a_world(Succeeded()), an_occurrence_timer(schedule)
    link = a_link(NOON, is_awaited=True) if schedule.is_end_to_start else None
    world.store(schedule, holder=str(job_id_of(run.job)), holder_since=NOON, link=link, fire_count=1)
    if has_begun:
        assert isinstance(world.ledger.claim(run, owner="dead", lease_until=NOON + HOUR, now=NOON), Claimed)
    else:
        world.ledger.park(run, until=NOON + HOUR, now=NOON)
    world.clock.tick(2 * SILENCE)
    return world, run


def gives_up(world: World, schedule: Schedule) -> None:
    if schedule.is_end_to_start:
        world.materialiser.revive(schedule.uid)
        return
    fire = an_occurrence_timer(schedule, fire_at=NOON + 2 * SILENCE)
    assert fire.job.occurrence is not None
    world.occurrences().decide(fire, fire.job.occurrence)


@pytest.mark.parametrize("has_begun", [True, False])
@pytest.mark.parametrize("schedule", RUNS, ids=["by a later fire", "by its chain"])
def test_a_run_that_its_schedule_gives_up_is_told_to_on_failure_and_on_end(schedule: Schedule, has_begun: bool):
    world, run = a_silent_run(schedule, has_begun=has_begun)

    gives_up(world, schedule)
    gives_up(world, schedule)
    pass_time(world, until=world.clock.now() + timedelta(minutes=5))

    told = [(name, job) for name, job in called(world) if job["id"] == str(job_id_of(run.job))]
    assert [(name, job["state"], job["error"]) for name, job in told] == [
        ("on_end", "cancelled", "abandoned"),
        ("on_failure", "cancelled", "abandoned"),
    ]
    assert {job["schedule_id"] for _, job in told} == {schedule.schedule_id}


def test_what_a_run_calls_that_is_given_up_is_what_it_was_begun_with():
    schedule = RUNS[0]
    world, run = a_silent_run(schedule, has_begun=True)
    bare = replace(schedule, job=replace(schedule.job, callbacks=Callbacks()))

    gives_up(world, bare)
    pass_time(world, until=world.clock.now() + timedelta(minutes=5))

    assert names(world) == ["on_end", "on_failure"]
    assert {job["id"] for _, job in called(world)} == {str(job_id_of(run.job))}


def test_a_late_message_of_a_run_that_was_given_up_doubles_no_callback():
    world, run = a_silent_run(RUNS[0], has_begun=True)
    gives_up(world, RUNS[0])
    world.ready.send([run])

    pass_time(world, until=world.clock.now() + timedelta(minutes=5))

    assert [name for name, job in called(world) if job["id"] == str(job_id_of(run.job))] == ["on_end", "on_failure"]


@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize("schedule", RUNS, ids=["by a later fire", "by its chain"])
def test_a_death_while_a_run_is_given_up_loses_no_callback_and_doubles_none(schedule: Schedule, is_before: bool):
    died = 0
    for dies_at in range(40):
        world, run = a_silent_run(schedule, has_begun=True)
        calls = [0]

        def die(_: str, calls: list[int] = calls, dies_at: int = dies_at) -> None:
            calls[0] += 1
            if calls[0] > dies_at:
                raise DeathError

        watched = world.watched(before=die) if is_before else world.watched(after=die)
        watched.schedules = Watched(  # pyright: ignore[reportAttributeAccessIssue]
            world.schedules, "schedules", *((die, _nothing) if is_before else (_nothing, die))
        )
        try:
            gives_up(watched, schedule)
        except DeathError:
            died += 1
            gives_up(world, schedule)  # the message comes back, or the sweep
        pass_time(world, until=world.clock.now() + timedelta(minutes=5))

        told = [name for name, job in called(world) if job["id"] == str(job_id_of(run.job))]
        assert told == ["on_end", "on_failure"], dies_at
        if calls[0] <= dies_at:
            break
    assert died > 4


def _nothing(_: str) -> None:
    pass


def test_a_record_keeps_callbacks_and_says_where_they_are():
    timer = asked(payload=Payload(text='{"C":[1],"x":",\\"C\\":"}'), reads_cancel=True)

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
