"""The textbook designs: when each lets a job out, and whose turn it is."""

from dataclasses import replace
from typing import Any

import pytest

from functions.domain.jobs.job import Priority
from simulation.baselines import BASELINES, Conditions, Fifo, RoundRobin, one_cursor, run_baseline, serve
from simulation.limits import Limits
from simulation.orders import Order
from simulation.scenario import Outage, Work
from tests.simulation.small import a_scenario

LIMITS = replace(Limits(), delivery_p50=0.0)


def an_order(due_at: float, tenant: str = "acme", host: str = "host", submitted_at: float = 0.0) -> Order:
    return Order(submitted_at, due_at, tenant, Priority.NORMAL, host)


def conditions(
    *, until: float = 10_000.0, most: float = 100.0, start: float = 100.0, growth: float = 0.0, **fields: Any
) -> Conditions:
    scenario = a_scenario(until=until, window=(0.0, until), fill=lambda _: Work(orders=[]), **fields)
    return Conditions(scenario=scenario, limits=LIMITS, share=1.0, start=start, growth=growth, most=most, service=1.0)


def run(name: str, orders: list[Order], given: Conditions):
    (design,) = (design for design in BASELINES if design.name == name)
    return serve(design.release(orders, given), design.waiting(), given)


def test_first_come_is_first_served() -> None:
    waiting = Fifo()
    for tenant in ("a", "a", "b"):
        waiting.add(an_order(0, tenant))

    assert [order.tenant for order in (waiting.take(), waiting.take(), waiting.take()) if order] == ["a", "a", "b"]
    assert waiting.take() is None


def test_a_round_has_one_job_of_each_tenant() -> None:
    waiting = RoundRobin()
    for tenant in ("a", "a", "a", "b", "c"):
        waiting.add(an_order(0, tenant))

    taken = [waiting.take() for _ in range(6)]

    assert [order.tenant for order in taken if order] == ["a", "b", "c", "a", "a"]
    assert taken[-1] is None


def test_a_perfect_timer_is_on_time_while_there_are_workers() -> None:
    calls = run("fifo", [an_order(1.0), an_order(2.0)], conditions())

    assert list(calls.at) == [1.0, 2.0]
    assert list(calls.lag) == [0.0, 0.0]


def test_jobs_wait_for_a_worker() -> None:
    calls = run("fifo", [an_order(1.0)] * 5, conditions(start=2, most=2))

    assert list(calls.at) == [1.0, 1.0, 2.0, 2.0, 3.0]


def test_workers_come_by_while_jobs_wait() -> None:
    calls = run("fifo", [an_order(1.0)] * 6, conditions(start=1, growth=1.0, most=100))

    assert list(calls.at) == [1.0, 2.0, 2.0, 3.0, 3.0, 3.0]


def test_the_cursor_looks_each_minute() -> None:
    calls = run("cursor", [an_order(59.0), an_order(61.0)], conditions())

    assert calls.at == pytest.approx([60.0, 120.0], abs=0.001)


def test_the_cursor_sends_no_faster_than_a_core_can() -> None:
    calls = run("cursor", [an_order(1.0)] * 1_000, conditions(start=1e6, most=1e6))

    assert calls.at[-1] == pytest.approx(60 + 1_000 / one_cursor(LIMITS))


def test_the_sorted_set_is_polled_each_second() -> None:
    calls = run("sorted_set", [an_order(1.25), an_order(2.0)], conditions())

    assert calls.at == pytest.approx([2.0, 2.0], abs=0.001)


def test_nobody_is_let_out_while_the_scheduler_is_away() -> None:
    for name in ("fifo", "round_robin", "cursor", "sorted_set"):
        calls = run(name, [an_order(10.0), an_order(500.0)], conditions(down=(5.0, 120.0)))

        assert calls.at == pytest.approx([120.0, 540.0 if name == "cursor" else 500.0], abs=0.001)


def test_a_call_that_fails_is_repeated_with_growing_gaps() -> None:
    outage = Outage(0.0, 10.0, lambda host: host == "down")

    calls = run("fifo", [an_order(1.0, host="down")], conditions(outage=outage))

    assert list(calls.at) == [1.0, 3.0, 6.0, 11.0]
    assert list(calls.is_first) == [1, 0, 0, 0]


def test_what_has_not_run_by_the_end_is_reported() -> None:
    (fifo, *_) = BASELINES

    found = run_baseline(fifo, [an_order(1.0)] * 10, {}, conditions(until=3.0, start=2, most=2))

    assert found.lag.count == 6
    assert found.finished == pytest.approx(0.6)


def test_the_cursor_says_what_its_one_partition_would_have_refused() -> None:
    cursor = next(design for design in BASELINES if design.name == "cursor")
    orders = [an_order(2_000.0, submitted_at=5.5)] * 1_500 + [an_order(9_000.0, submitted_at=5.5)] * 500

    found = run_baseline(cursor, orders, {}, conditions())

    assert found.note.startswith("let in all the same: 25%")
