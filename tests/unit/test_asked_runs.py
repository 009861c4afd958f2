"""Runs that were triggered or backfilled, in the history of their schedule."""

from __future__ import annotations

from datetime import timedelta

import pytest

from functions.domain.instants import HOUR, MINUTE, SECOND
from functions.domain.jobs.job import Delivery
from functions.domain.lifecycle import State
from functions.domain.schedules.asked_runs import (
    MOST_ASKED,
    ROOM,
    AskedRun,
    Origin,
    asked_run_of,
    origin_of,
    read_asked,
    with_asked,
    write_asked,
)
from functions.domain.schedules.state import ScheduleState
from testkit.builders import NOON
from testkit.observed import DeathError, Watched
from tests.unit.test_execute import a_message
from tests.unit.test_schedule_routes import Api

TOKEN = "k-5f0c9a1be27d3586"
RANGE = {"start": "2027-02-28T00:00:00Z", "end": "2027-02-28T03:00:00Z", "per_minute": 60}


def triggered(number: int = 0, token: str = "") -> AskedRun:
    return AskedRun(due_at=NOON + number * MINUTE, token=token or f"k-{number:016x}")


def backfilled(number: int = 0) -> AskedRun:
    return AskedRun(due_at=NOON + number * SECOND, token=TOKEN, fire_at=NOON - (24 - number) * HOUR)


@pytest.mark.parametrize("run", [triggered(), backfilled(3)])
def test_a_run_is_known_by_its_name_and_read_as_it_was_written(run: AskedRun):
    identity = run.identity("nightly")

    assert asked_run_of(identity, due_at=run.due_at) == run
    assert origin_of(identity) is run.origin is not Origin.SCHEDULED
    assert read_asked(write_asked([run, triggered(9)])) == (run, triggered(9))


@pytest.mark.parametrize("identity", ["nightly:2027-03-01T12:00:00.000Z", "a-job", "nightly:other"])
def test_a_fire_and_any_other_job_was_not_asked_for(identity: str):
    assert asked_run_of(identity, due_at=NOON) is None


@pytest.mark.parametrize(
    "text", ["x", "t", "t:", "tz", "b1:x", "t1:2:x", "t-1:x", "b1:-2:x", "t%:x", "tzzzzzzzzzzzzz:x"]
)
def test_what_another_release_wrote_is_left_out(text: str):
    assert read_asked(f"{text} {triggered()}") == (triggered(),)


def test_only_the_last_are_remembered_and_each_of_them_once():
    runs: tuple[AskedRun, ...] = ()
    for number in range(30):
        runs = with_asked(with_asked(runs, backfilled(number)), backfilled(number))

    assert runs == tuple(backfilled(number) for number in range(30 - MOST_ASKED, 30))
    assert len(write_asked(runs)) <= ROOM


def test_long_names_take_no_more_room_than_there_is():
    runs: tuple[AskedRun, ...] = ()
    for number in range(30):
        runs = with_asked(runs, triggered(number, token=f"{number:040}"))

    assert len(write_asked(runs)) <= ROOM
    assert len(runs) == 7
    assert runs[-1].token == f"{29:040}"


def origins(api: Api) -> list[tuple[str, str]]:
    return [(run["origin"], run["state"]) for run in api.get()["runs"]]


def test_a_run_that_was_triggered_is_in_the_history_when_it_has_begun():
    api = Api()
    api.put()
    job = api.call("POST", "/v1/schedules/nightly:trigger")[1]["job"]
    assert origins(api) == []

    api.receive_and_work()

    (run,) = api.get()["runs"]
    assert (run["origin"], run["job_id"], run["state"], run["attempt"]) == ("triggered", job, State.SUCCEEDED, 1)
    assert run["fire_at"] == "2027-03-01T12:00:00.000Z"
    assert "last_outcome" not in api.get()  # that is of its last fire


def test_runs_that_were_backfilled_are_in_the_history_beside_its_fires():
    api = Api()
    api.put(every=60, success_history=1)
    api.clock.tick(MINUTE)
    api.receive_and_work()
    api.clock.tick(SECOND)
    jobs = api.call("POST", "/v1/schedules/nightly:backfill", RANGE)[1]["jobs"][:3]
    for _ in range(3):
        api.receive_and_work()
        api.clock.tick(SECOND)

    found = api.get()

    assert [run["origin"] for run in found["runs"]] == [*["backfilled"] * 3, "scheduled"]
    assert [run["job_id"] for run in found["runs"]][:3] == jobs[::-1]
    assert [run["fire_at"] for run in found["runs"]][:3] == [f"2027-02-28T00:0{minute}:00.000Z" for minute in (2, 1, 0)]
    assert [run["origin"] for run in found["last_successes"]] == ["backfilled"]
    assert found["last_outcome"] == State.SUCCEEDED


def test_the_id_of_a_run_is_known_when_its_row_is_gone():
    api = Api()
    api.put()
    job = api.call("POST", "/v1/schedules/nightly:trigger")[1]["job"]
    api.receive_and_work()
    api.ledger.rows.clear()

    (run,) = api.get()["runs"]
    assert (run["job_id"], run["state"]) == (job, "untracked")


def test_nothing_is_known_of_what_became_of_a_run_that_keeps_no_row():
    api = Api()
    api.put(job={"target": "handler:echo", "delivery": Delivery.AT_LEAST_ONCE.value})
    api.call("POST", "/v1/schedules/nightly:trigger")
    api.receive_and_work()

    assert origins(api) == [("triggered", "untracked")]


def test_a_schedule_without_history_shows_no_run_that_was_asked_for():
    api = Api()
    api.put(history=0)
    api.call("POST", "/v1/schedules/nightly:trigger")
    api.receive_and_work()

    assert origins(api) == []


def test_a_history_of_two_shows_the_last_two():
    api = Api()
    api.put(history=2)
    for _ in range(3):
        api.call("POST", "/v1/schedules/nightly:trigger")
        api.receive_and_work()
        api.clock.tick(SECOND)

    assert [run["fire_at"] for run in api.get()["runs"]] == ["2027-03-01T12:00:02.000Z", "2027-03-01T12:00:01.000Z"]


def test_a_fire_that_its_schedule_decided_writes_nothing_about_runs_that_were_asked_for(
    monkeypatch: pytest.MonkeyPatch,
):
    api = Api()
    api.put(every=60)
    asked: list[object] = []
    monkeypatch.setattr(api.schedules, "remember_asked", lambda *given, **_: asked.append(given))

    api.clock.tick(MINUTE)
    api.receive_and_work()

    assert (len(api.calls), asked) == (1, [])


def test_two_runs_that_begin_at_once_are_both_remembered(monkeypatch: pytest.MonkeyPatch):
    api = Api()
    api.put()
    for _ in range(2):
        api.call("POST", "/v1/schedules/nightly:trigger")
    first, second = (a_message(timer, f"m{number}") for number, timer in enumerate(api.ready.sent))
    remember, calls = api.schedules.remember_asked, []

    def in_between(*given, **named) -> bool:
        calls.append(given)
        if len(calls) == 1:
            api.work(second)
        return remember(*given, **named)

    monkeypatch.setattr(api.schedules, "remember_asked", in_between)
    api.work(first)

    assert len(calls) == 3
    assert len(state_of(api).asked_runs) == 2


@pytest.mark.parametrize("is_before", [True, False])
def test_a_death_at_any_call_to_a_store_neither_loses_nor_doubles_the_run_in_the_history(is_before: bool):
    deaths = 0
    for dies_at in range(20):
        api = Api()
        api.put()
        api.call("POST", "/v1/schedules/nightly:trigger")
        calls = [0]

        def die(_: str, calls: list[int] = calls, dies_at: int = dies_at) -> None:
            calls[0] += 1
            if calls[0] > dies_at:
                raise DeathError

        watched = api.watched(before=die) if is_before else api.watched(after=die)
        hears = (die, _nothing) if is_before else (_nothing, die)
        watched.schedules = Watched(api.schedules, "schedules", *hears)  # pyright: ignore[reportAttributeAccessIssue]
        try:
            watched.receive_and_work()
        except DeathError:
            deaths += 1
        api.clock.tick(timedelta(minutes=10))
        api.receive_and_work()

        assert [run.origin for run in state_of(api).asked_runs] == [Origin.TRIGGERED], dies_at
        if calls[0] <= dies_at:
            break
    assert deaths > 2


def _nothing(_: str) -> None:
    pass


def state_of(api: Api) -> ScheduleState:
    state = api.schedules.state("acme#nightly")
    assert state is not None
    return state
