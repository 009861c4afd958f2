from datetime import timedelta

import pytest

from soak.curves import (
    GAUGES,
    PROCESS_WARM_UP,
    SHORTEST_WARM_UP,
    Judged,
    growth_of,
    judge_curves,
    lags_of,
    warm_up_of,
)
from soak.troubles import CYCLE
from testkit.builders import NOON
from verification.history import Answer, Call

START, END = 600.0, 1_800.0
TIMES = [10.0 * number for number in range(190)]


def a_call(key: str, *, due: float, lag: float, attempt: int = 1) -> Call:
    """due, lag: seconds, after noon and after that."""
    scheduled_at = NOON + timedelta(seconds=due)
    called_at = scheduled_at + timedelta(seconds=lag)
    return Call(
        key=key,
        tenant="acme",
        attempt=attempt,
        fence=attempt,
        scheduled_at=scheduled_at,
        called_at=called_at,
        until=called_at,
        payload=None,
        answer=Answer.EFFECT,
    )


def judged(name: str, **given: object) -> Judged:
    curves, lives = given.get("curves", {}), given.get("lives", {})
    found = judge_curves(curves, lives, start=START, end=END)  # pyright: ignore[reportArgumentType]
    return next(each for each in found if each.gauge.name == name)


def test_a_queue_that_fills_is_wrong() -> None:
    filling = judged("depth", curves={"depth": [(at, 100 + at / 10) for at in TIMES]})
    assert filling.is_wrong
    assert filling.verdict.rise == pytest.approx(120)


def test_a_queue_that_each_cycle_of_faults_fills_and_empties_is_not() -> None:
    assert not judged("depth", curves={"depth": [(at, 100 + at % CYCLE) for at in TIMES]}).is_wrong


def test_what_grows_before_the_judgement_begins_counts_for_nothing() -> None:
    assert not judged("depth", curves={"depth": [(at, min(at, START)) for at in TIMES]}).is_wrong


def test_what_the_emulator_keeps_is_reported_and_is_not_wrong() -> None:
    growing = judged("memory emulator", curves={"memory emulator": [(at, 200 + at) for at in TIMES]})
    assert growing.verdict.rise == pytest.approx(END - START)
    assert not growing.is_wrong


def a_life(begin: float, *, growth: float) -> list[tuple[float, float]]:
    """Of 300 s; growth: MiB a minute, once it has warmed up."""
    return [
        (at, 60 + 20 * min(1.0, (at - begin) / PROCESS_WARM_UP) + growth * (at - begin) / 60)
        for at in TIMES
        if begin <= at < begin + 300
    ]


def test_a_function_whose_processes_grow_is_wrong_although_they_are_killed_before_they_are_large() -> None:
    lives = {"Worker": [a_life(begin, growth=1) for begin in range(0, 1_800, 300)]}
    worker = judged("memory Worker", lives=lives)
    assert worker.is_wrong
    assert worker.verdict.rise == pytest.approx(20)


def test_what_a_process_takes_to_start_is_no_growth() -> None:
    assert not judged("memory Worker", lives={"Worker": [a_life(at, growth=0) for at in range(0, 1_800, 300)]}).is_wrong


def test_nothing_is_said_of_a_curve_that_was_not_read() -> None:
    assert judged("depth").verdict.is_flat is None
    assert not judged("depth").is_wrong


def test_lag_is_that_of_the_first_calls_of_steady_jobs_by_when_they_were_due() -> None:
    calls = [
        a_call("a", due=5, lag=0.1),
        a_call("b", due=10, lag=0.3),
        a_call("b", due=10, lag=95),  # after a rescue
        a_call("c", due=29, lag=2.5),
        a_call("d", due=31, lag=0.2),
        a_call("e", due=32, lag=9, attempt=2),
        a_call("shaky", due=33, lag=60),
    ]
    lags = lags_of(calls, steady={"a", "b", "c", "d", "e"}, begun_at=NOON)
    assert lags["lag p50"] == [(15.0, 300.0), (45.0, 200.0)]
    assert lags["lag p95"] == [(15.0, 2_500.0), (45.0, 200.0)]
    assert lags["late"] == [(15.0, pytest.approx(100 / 3)), (45.0, 0.0)]


def test_growth_is_what_came_from_one_reading_to_the_next() -> None:
    assert growth_of([(0, 3), (30, 5), (60, 5)]) == [(30, 2), (60, 0)]


def test_a_third_is_warm_up_and_no_less_than_it_takes_to_be_steady() -> None:
    assert warm_up_of(1_800) == 600
    assert warm_up_of(300) == SHORTEST_WARM_UP


def test_no_gauge_is_there_twice() -> None:
    assert len({gauge.name for gauge in GAUGES}) == len(GAUGES)
