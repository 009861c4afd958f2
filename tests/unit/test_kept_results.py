"""Results of jobs: short ones in the row, long ones beside it, whoever dies where."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from functions.api.jobs.find import Finder
from functions.api.jobs.whole_results import WholeResults
from functions.domain.errors import StaleFence
from functions.domain.instants import HOUR
from functions.domain.jobs.callbacks import Callbacks
from functions.domain.jobs.job import Delivery, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.results import WHOLE_LIMIT
from functions.domain.lifecycle import State
from functions.domain.targets.http_answers import RESULT_LIMIT
from functions.ports.targets import Outcome, Pending, Succeeded
from testkit.builders import NOON, a_timer
from testkit.observed import DeathError
from testkit.scheduler import World, pass_time

ROWS = json.dumps({"status": 200, "body": [f"row {number}" for number in range(1_000)]}, separators=(",", ":"))


def a_world(outcome: Outcome) -> World:
    world = World(dates_rows=True)
    world.targets.answer = lambda target, _: Succeeded() if target == "handler:over" else outcome
    return world


def a_run(outcome: Outcome, **options: Any) -> tuple[World, Timer]:
    world, timer = a_world(outcome), a_timer(**options)
    world.placer.place([timer])
    world.receive_and_work()
    return world, timer


def result_of(world: World, timer: Timer) -> Any:
    """As the API answers it."""
    return json.loads(world.build(WholeResults).of(world.build(Finder).find(job_id_of(timer.job))))


def test_a_short_result_is_in_the_row_alone():
    world, timer = a_run(Succeeded(json.dumps("x" * (RESULT_LIMIT - 2))))

    assert (world.row(timer.job).result, world.row(timer.job).whole) == (json.dumps("x" * (RESULT_LIMIT - 2)), "")
    assert not world.results.objects


def test_of_a_long_result_the_row_has_the_beginning_and_where_the_whole_is():
    world, timer = a_run(Succeeded(ROWS))

    row = world.row(timer.job)
    assert len(row.result) + len(row.whole) <= RESULT_LIMIT
    assert json.loads(row.result)["status"] == 200
    assert json.loads(row.result)["truncated"] is True
    assert list(world.results.objects.values()) == [ROWS]
    assert result_of(world, timer) == json.loads(ROWS)


def test_a_result_above_256_kb_is_kept_up_to_there_and_marked():
    world, timer = a_run(Succeeded(json.dumps("x" * 1_000_000)))

    (whole,) = world.results.objects.values()
    assert WHOLE_LIMIT - 12 < len(whole) <= WHOLE_LIMIT
    assert result_of(world, timer)["truncated"] is True
    assert result_of(world, timer)["body"].startswith('"xxx')


def test_the_beginning_is_answered_when_the_object_is_gone():
    world, timer = a_run(Succeeded(ROWS))
    world.results.objects.clear()

    assert result_of(world, timer) == json.loads(world.row(timer.job).result)
    assert result_of(world, timer)["truncated"] is True


def test_a_store_that_is_away_costs_the_result_but_for_its_beginning_and_never_a_second_effect():
    world, timer = a_world(Succeeded(ROWS)), a_timer()
    world.placer.place([timer])

    def fail(name: str) -> None:
        if name.startswith("results"):
            raise TimeoutError("S3")

    world.watched(before=fail).receive_and_work()

    row = world.row(timer.job)
    assert (row.state, row.whole, json.loads(row.result)["truncated"]) == (State.SUCCEEDED, "", True)
    assert "result_not_kept" in [name for name, _ in world.journal.events]
    pass_time(world, until=NOON + HOUR)
    assert len(world.calls) == 1


@pytest.mark.parametrize("delivery", [Delivery.AT_LEAST_ONCE, Delivery.AT_MOST_ONCE])
def test_a_job_without_a_row_that_could_name_it_leaves_no_object(delivery: Delivery):
    world, _ = a_run(Succeeded(ROWS), delivery=delivery)

    assert not world.results.objects


class TestReports:
    def test_a_target_that_answered_202_may_report_a_long_result(self):
        world, timer = a_run(Pending())

        world.outcome_reports().complete(job_id_of(timer.job), fence=1, result=ROWS)

        assert result_of(world, timer) == json.loads(ROWS)

    def test_it_may_be_faster_than_its_worker(self):
        world, timer = a_world(Pending()), a_timer(callbacks=Callbacks(on_end="handler:over"))

        def answer(target: str, _: Any) -> Outcome:
            if target == "handler:over":
                return Succeeded()
            world.outcome_reports().complete(job_id_of(timer.job), fence=1, result=ROWS)
            return Pending()

        world.targets.answer = answer
        world.placer.place([timer])
        pass_time(world, until=NOON + HOUR)

        assert result_of(world, timer) == json.loads(ROWS)
        assert [told["result_size"] for told in told_to_callbacks(world)] == [len(ROWS)]

    def test_whoever_does_not_have_the_attempt_keeps_nothing(self):
        world, timer = a_run(Pending())

        with pytest.raises(StaleFence):
            world.outcome_reports().complete(job_id_of(timer.job), fence=2, result=ROWS)

        assert not world.results.objects

    def test_the_first_of_two_results_stays_whatever_the_second_has_put(self):
        world, timer = a_run(Pending())
        reports = world.outcome_reports()

        reports.complete(job_id_of(timer.job), fence=1, result=ROWS)
        reports.complete(job_id_of(timer.job), fence=1, result=json.dumps("other" * 1_000))

        assert result_of(world, timer) == json.loads(ROWS)

    def test_a_store_that_is_away_ends_nothing_and_the_report_may_be_repeated(self):
        world, timer = a_run(Pending())

        def fail(name: str) -> None:
            if name.startswith("results"):
                raise TimeoutError("S3")

        with pytest.raises(TimeoutError):
            world.watched(before=fail).outcome_reports().complete(job_id_of(timer.job), fence=1, result=ROWS)

        assert world.row(timer.job).state is State.RUNNING
        world.outcome_reports().complete(job_id_of(timer.job), fence=1, result=ROWS)
        assert result_of(world, timer) == json.loads(ROWS)


def told_to_callbacks(world: World) -> list[dict[str, Any]]:
    return [
        json.loads(payload or "null")["job"]
        for _, target, payload, _ in world.targets.effects
        if target == "handler:over"
    ]


@pytest.mark.parametrize("delivery", [Delivery.EXACTLY_ONCE, Delivery.AT_LEAST_ONCE])
def test_a_callback_is_told_the_beginning_and_the_size_of_what_is_kept(delivery: Delivery):
    world, _ = a_run(Succeeded(ROWS), delivery=delivery, callbacks=Callbacks(on_end="handler:over"))
    pass_time(world, until=NOON + HOUR)

    (told,) = told_to_callbacks(world)
    assert told["result"]["truncated"] is True
    assert len(json.dumps(told["result"])) <= RESULT_LIMIT + 100
    assert told.get("result_size") == (len(ROWS) if delivery is Delivery.EXACTLY_ONCE else None)


def works(world: World, _: Timer) -> None:
    world.receive_and_work()


def completes(world: World, timer: Timer) -> None:
    world.outcome_reports().complete(job_id_of(timer.job), fence=1, result=ROWS)


@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize(
    ("outcome", "end"), [(Succeeded(ROWS), works), (Pending(), completes)], ids=["worker", "report"]
)
def test_a_death_at_any_call_to_a_store_leaves_a_row_whose_result_can_be_read(
    outcome: Outcome, end: Callable[[World, Timer], None], is_before: bool
):
    died = 0
    for dies_at in range(30):
        world, timer = a_world(outcome), a_timer(timeout=timedelta(seconds=20))
        world.placer.place([timer])
        if end is completes:
            world.receive_and_work()
        calls = [0]

        def die(_: str, calls: list[int] = calls, dies_at: int = dies_at) -> None:
            calls[0] += 1
            if calls[0] > dies_at:
                raise DeathError

        try:
            end(world.watched(before=die) if is_before else world.watched(after=die), timer)
        except DeathError:
            died += 1
        if outcome == Pending() and world.row(timer.job).state is State.RUNNING:
            completes(world, timer)  # whoever got no answer says it again
        pass_time(world, until=NOON + HOUR)
        assert world.row(timer.job).state is State.SUCCEEDED, dies_at
        assert result_of(world, timer) == json.loads(ROWS), dies_at
        if calls[0] <= dies_at:
            break
    assert died > 2
