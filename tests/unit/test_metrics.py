"""What is observed for percentiles, and its dimensions."""

from dataclasses import replace
from datetime import time, timedelta
from typing import Any

import pytest

from functions.adapters.sqs import ring_of
from functions.domain.instants import HOUR, SECOND
from functions.domain.jobs.job import Priority, Timer
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.metrics import DIMENSIONS, VALUES, dimensions_of
from functions.domain.schedules.schedule import Weekday, Window, WindowMode
from functions.domain.schedules.shifts import waited_for_opening
from functions.domain.wheel import Ring
from functions.ports.targets import Failed
from testkit.builders import NOON, a_link, a_schedule, a_timer, an_occurrence_timer, every
from testkit.scheduler import World
from tests.unit.test_execute import a_message
from tests.unit.test_materialiser import begun, revive
from tests.unit.test_publish import a_publisher

FROM_TWO_ON = Window(start=time(14), end=time(15), days=frozenset(Weekday))


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize(
    ("timer", "ring", "expected"),
    [
        (a_timer(), Ring.NEAR, ("near", "normal", "job")),
        (a_timer(priority=Priority.CRITICAL), Ring.FAR, ("far", "critical", "job")),
        (an_occurrence_timer(), Ring.FAR, ("far", "normal", "fire")),
        (a_timer(attempt=2), Ring.NEAR, ("near", "normal", "retry")),
        (an_occurrence_timer(attempt=2), Ring.NEAR, ("near", "normal", "retry")),
    ],
)
def test_an_attempt_is_reported_by_its_ring_its_priority_and_its_kind(
    timer: Timer, ring: Ring, expected: tuple[str, str, str]
):
    dimensions = dimensions_of(timer, ring=ring)

    assert tuple(dimensions) == DIMENSIONS["lag_ms"]
    assert tuple(dimensions.values()) == expected


def test_no_dimension_can_hold_a_tenant():
    assert {name for names in DIMENSIONS.values() for name in names} == set(VALUES)
    assert sum(len(VALUES[name]) for names in DIMENSIONS.values() for name in names) == 9


def test_the_lag_of_a_promoted_job_is_that_of_the_far_ring(world: World):
    near, far = a_message(a_timer(), "m1"), a_message(a_timer(priority=Priority.HIGH), "m2")
    world.clock.tick(timedelta(milliseconds=250))

    world.work(near, replace(far, ring=Ring.FAR))

    assert world.journal.dimensioned == [
        ("lag_ms", 250.0, {"ring": "near", "priority": "normal", "kind": "job"}),
        ("lag_ms", 250.0, {"ring": "far", "priority": "high", "kind": "job"}),
    ]


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"ring": {"stringValue": "far", "dataType": "String"}}, Ring.FAR),
        ({}, Ring.NEAR),
        ({"ring": {"stringValue": "outer"}}, Ring.NEAR),
        ({"ring": {"binaryValue": "AA=="}}, Ring.NEAR),
    ],
)
def test_a_message_that_says_nothing_of_its_ring_is_near(attributes: dict[str, Any], expected: Ring):
    assert ring_of(attributes) is expected


def test_a_retry_says_how_long_it_waits(world: World):
    world.targets.answer = lambda *_: Failed("no", "http_500")
    policy = RetryPolicy(strategy=Strategy.FIXED, attempts=3, base=7 * SECOND, cap=7 * SECOND)

    world.work(a_message(a_timer(retry=policy)))

    assert world.journal.values["retry_in_s"] == [7.0]


def test_a_job_that_is_not_tried_again_says_no_wait(world: World):
    world.targets.answer = lambda *_: Failed("no", "http_400", is_permanent=True)

    world.work(a_message(a_timer()))

    assert "retry_in_s" not in world.journal.values


def test_fires_say_how_far_they_are_apart(world: World):
    schedule = a_schedule(rule=every(minutes=1))
    begun(world, schedule)

    revive(world, schedule)

    # The first has none before it.
    assert world.journal.values["gap_s"] == [60.0, 60.0]
    assert "outside_window_wait_s" not in world.journal.values


def test_a_fire_that_waited_for_its_window_says_for_how_long(world: World):
    schedule = a_schedule(rule=every(minutes=1), windows=(FROM_TWO_ON,), window_mode=WindowMode.DEFER)

    assert waited_for_opening(schedule, nominal_at=NOON, at=NOON + 2 * HOUR) == 2 * HOUR
    assert waited_for_opening(schedule, nominal_at=NOON + 2 * HOUR, at=NOON + 2 * HOUR + SECOND) == timedelta(0)
    assert waited_for_opening(a_schedule(), nominal_at=NOON, at=NOON + HOUR) == timedelta(0)


def test_what_waits_for_a_window_is_observed_when_it_is_placed(world: World):
    schedule = a_schedule(rule=every(minutes=1), windows=(FROM_TWO_ON,), window_mode=WindowMode.DEFER)
    waited = timedelta(hours=2, minutes=20)
    begun(world, schedule, link=a_link(nominal_at=NOON - waited))

    revive(world, schedule)

    assert world.journal.values["outside_window_wait_s"][0] == waited.total_seconds()


def test_the_sweeper_says_depth_and_budget_of_each_class_that_holds_anything(world: World):
    world.ready.send([a_timer() for _ in range(5)])

    a_publisher(world).publish()

    assert world.journal.values["depth"] == [5]
    assert world.journal.values["budget"] == [3]
