from datetime import timedelta

import pytest

from functions.domain.instants import HOUR, SECOND
from functions.domain.jobs.job import Job
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.occurrence import Keeps
from functions.domain.lifecycle import State
from functions.domain.schedules.kept_runs import KeptRun, read_kept, trimmed, with_run, write_kept
from functions.domain.schedules.state import Status
from functions.ports.targets import Failed, Succeeded
from testkit.builders import NOON, a_link, a_schedule, an_occurrence_timer
from testkit.scheduler import World
from tests.unit.test_execute import a_message

KEEPING = a_schedule(success_history=2, failure_history=3, history=0)


@pytest.fixture
def world() -> World:
    return World()


def a_run(number: int, *, has_succeeded: bool = True, ended_at: int | None = None) -> KeptRun:
    timer = an_occurrence_timer(KEEPING, fire_at=NOON + number * HOUR)
    ended = NOON + (number if ended_at is None else ended_at) * HOUR
    return KeptRun(job_id=job_id_of(timer.job), has_succeeded=has_succeeded, attempt=1, ended_at=ended)


def test_a_failure_is_kept_however_many_successes_follow():
    kept = (a_run(0, has_succeeded=False),)

    for number in range(1, 50):
        kept = with_run(kept, a_run(number), keeps=Keeps(2, 3))

    assert kept == (a_run(0, has_succeeded=False), a_run(48), a_run(49))


def test_of_each_kind_only_the_last_are_kept_in_the_order_in_which_they_ended():
    late = a_run(1, ended_at=9)

    assert trimmed([late, a_run(2), a_run(3)], keeps=Keeps(2, 0)) == (a_run(3), late)


def test_a_run_that_ends_again_is_kept_once_as_it_ended_last():
    failed = a_run(0, has_succeeded=False)

    assert with_run([failed], a_run(0, ended_at=5), keeps=Keeps(1, 1)) == (a_run(0, ended_at=5),)
    assert with_run([failed], failed, keeps=Keeps(1, 1)) == (failed,)


@pytest.mark.parametrize("text", ["x", "[1]", "[[]]", '[["j1~x",1,1,1,""]]', "{}", '[["j1~x",1,1]]', '[["j1~x"'])
def test_what_cannot_be_read_is_no_run(text: str):
    assert read_kept(text) == ()


def test_what_is_kept_is_read_as_it_was_written_also_with_what_a_later_release_adds():
    kept = (a_run(0, has_succeeded=False), a_run(1))

    assert read_kept(write_kept(kept)) == kept
    assert read_kept(write_kept(kept).replace('""]', '"",7]')) == kept


def test_the_runs_of_a_schedule_are_kept_as_they_end(world: World):
    world.store(KEEPING)
    fires = [an_occurrence_timer(KEEPING, fire_at=NOON - number * SECOND) for number in (5, 4, 3, 2, 1)]
    for number, fire in enumerate(fires):
        outcome = Failed("HTTP 400", is_permanent=True) if number == 1 else Succeeded()
        world.targets.answer = lambda *_, outcome=outcome: outcome
        world.work(a_message(fire))
        world.clock.tick(SECOND)

    kept = world.state(KEEPING).kept_runs
    assert [(run.fire_at, run.has_succeeded) for run in kept] == [
        (NOON - 4 * SECOND, False),
        (NOON - 2 * SECOND, True),
        (NOON - 1 * SECOND, True),
    ]
    assert (kept[0].error, kept[0].attempt) == ("error", 1)


def test_a_run_whose_end_was_reported_twice_is_kept_once(world: World):
    world.store(KEEPING)
    fire = an_occurrence_timer(KEEPING)
    world.work(a_message(fire))
    kept = world.state(KEEPING).kept_runs

    world.work(a_message(fire, "m2"))

    assert (world.state(KEEPING).kept_runs, len(kept)) == (kept, 1)


def test_a_schedule_that_keeps_none_is_not_written_to_at_an_end(world: World, monkeypatch: pytest.MonkeyPatch):
    schedule = a_schedule()
    world.store(schedule)
    asked: list[str] = []
    monkeypatch.setattr(world.schedules, "keep_runs", lambda key, *_, **__: asked.append(key))

    world.work(a_message(an_occurrence_timer(schedule)))

    assert asked == []


def test_a_run_of_a_schedule_that_was_deleted_and_made_anew_is_not_kept(world: World):
    world.store(KEEPING, version=7, born=7)

    world.ends().runs.ended(an_occurrence_timer(KEEPING, version=3), State.SUCCEEDED, ended_at=NOON)

    assert world.state(KEEPING).kept_runs == ()


@pytest.mark.parametrize("version", [0, -1])
@pytest.mark.parametrize("status", [Status.ACTIVE, Status.PAUSED])
def test_a_run_that_was_triggered_is_kept_also_of_a_paused_schedule(world: World, status: Status, version: int):
    world.store(KEEPING, status=status)
    timer = an_occurrence_timer(KEEPING, version=version)
    job: Job = timer.job

    world.ends().runs.ended(timer, State.EXPIRED, ended_at=NOON + SECOND)

    (run,) = world.state(KEEPING).kept_runs
    assert (run.job_id, run.has_succeeded, run.error) == (job_id_of(job), False, "expired")


@pytest.mark.parametrize("state", [State.CANCELLED, State.SKIPPED])
def test_a_run_that_was_cancelled_or_skipped_is_neither(world: World, state: State):
    world.store(KEEPING, link=a_link(NOON + timedelta(days=1)))

    world.ends().runs.ended(an_occurrence_timer(KEEPING), state, ended_at=NOON)

    assert world.state(KEEPING).kept_runs == ()


def test_two_that_end_at_once_are_both_kept(world: World, monkeypatch: pytest.MonkeyPatch):
    world.store(KEEPING)
    keep, first, second = (
        world.schedules.keep_runs,
        an_occurrence_timer(KEEPING),
        an_occurrence_timer(KEEPING, fire_at=NOON - SECOND),
    )
    calls: list[int] = []

    def in_between(*given, **named) -> bool:
        calls.append(1)
        if len(calls) == 1:
            world.ends().runs.ended(second, State.SUCCEEDED, ended_at=NOON - SECOND)
        return keep(*given, **named)

    monkeypatch.setattr(world.schedules, "keep_runs", in_between)

    world.ends().runs.ended(first, State.SUCCEEDED, ended_at=NOON)

    assert [run.fire_at for run in world.state(KEEPING).kept_runs] == [NOON - SECOND, NOON]


def test_a_run_whose_worker_dies_before_it_is_kept_has_ended_and_the_next_is_kept(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    world.store(KEEPING)
    first, second = (an_occurrence_timer(KEEPING, fire_at=NOON - number * SECOND) for number in (2, 1))
    with monkeypatch.context() as dying:
        dying.setattr(world.schedules, "keep_runs", _die)
        assert world.work(a_message(first, "m1")) == ["m1"]

    assert world.work(a_message(first, "m1", receive_count=2)) == []
    assert world.work(a_message(second, "m2")) == []

    assert world.row(first.job).state is State.SUCCEEDED
    assert [run.fire_at for run in world.state(KEEPING).kept_runs] == [NOON - SECOND]
    assert len(world.calls) == 2


def _die(*_: object, **__: object) -> bool:
    raise ConnectionError
