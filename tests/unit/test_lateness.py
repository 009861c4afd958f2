from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from functions.domain.instants import HOUR, MILLISECOND, SECOND
from functions.domain.jobs.job import Priority, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.tenants.attempts import lateness
from functions.domain.tenants.plan import TenantPlan
from functions.domain.wheel import Ring
from functions.worker.start import Starts
from testkit.builders import NOON, a_job, a_submission, a_timer
from testkit.scheduler import World
from tests.unit.test_execute import a_message

PLAN = TenantPlan()
OBJECTIVE = 2 * SECOND


@pytest.mark.parametrize(("lag", "expected"), [(OBJECTIVE, OBJECTIVE), (-MILLISECOND, timedelta(0))])
def test_an_attempt_is_as_late_as_it_began_after_its_time_and_an_early_one_not_at_all(
    lag: timedelta, expected: timedelta
):
    assert lateness(a_timer(), PLAN, started_at=NOON + lag) == expected


@pytest.mark.parametrize(
    ("priority", "expected"),
    [(Priority.CRITICAL, OBJECTIVE), (Priority.HIGH, OBJECTIVE), (Priority.NORMAL, OBJECTIVE), (Priority.LOW, None)],
)
def test_nothing_is_promised_to_low_which_waits_first(priority: Priority, expected: timedelta | None):
    assert lateness(a_timer(priority=priority), PLAN, started_at=NOON + OBJECTIVE) == expected


def test_a_job_that_a_cap_held_back_is_late_after_its_booking():
    timer = replace(a_timer(), not_before=NOON + 60 * SECOND)
    assert lateness(timer, PLAN, started_at=NOON + 62 * SECOND) == OBJECTIVE


def test_a_job_that_was_due_when_it_was_asked_for_is_late_after_that():
    timer = Timer.first_of(a_job(), asked_at=NOON + 50 * SECOND)
    assert lateness(timer, PLAN, started_at=NOON + 52 * SECOND) == OBJECTIVE


@pytest.mark.parametrize("asked_at", [NOON - HOUR, NOON, None])
def test_a_job_that_was_not_due_when_it_was_asked_for_is_written_as_ever(asked_at: datetime | None):
    assert Timer.first_of(a_job(), asked_at=asked_at).not_before is None


def test_nothing_is_promised_to_what_came_due_before_its_tenant_was_resumed():
    resumed = replace(PLAN, changed_at=NOON + MILLISECOND)
    assert lateness(a_timer(), resumed, started_at=NOON + HOUR) is None


def test_what_comes_due_after_its_tenant_was_resumed_is_measured():
    resumed = replace(PLAN, changed_at=NOON)
    assert lateness(a_timer(), resumed, started_at=NOON + HOUR) == HOUR


@pytest.mark.parametrize(("objective", "expected"), [(3 * SECOND, 0.0), (3 * SECOND - MILLISECOND, 1.0)])
def test_a_worker_notes_whether_each_attempt_was_late_by_the_objective_of_its_stage(
    objective: timedelta, expected: float
):
    world = World()
    message = a_message(a_timer())
    world.clock.tick(3 * SECOND)

    world.worker(lag_objective=objective).execute([message], ends_at=NOON + timedelta(minutes=1))

    assert world.journal.values["late"] == [expected]


def test_a_late_attempt_is_named_in_the_log_with_its_tenant_and_its_lag():
    world = World()
    timer = a_timer()
    message = a_message(timer)
    world.clock.tick(3 * SECOND)

    world.work(message)

    named = {"job_id": str(job_id_of(timer.job)), "tenant": "acme", "attempt": 1}
    assert world.events("began_late") == [{**named, "lag_ms": 3_000.0}]
    assert world.events("began_early") == []


def test_an_attempt_that_began_early_is_counted_and_named():
    world = World()

    world.build(Starts).note(a_timer(), ring=Ring.NEAR, started_at=NOON - 5 * MILLISECOND)

    assert world.journal.counts == {"attempts": 1, "early": 1}
    assert [(name, keys["early_ms"]) for name, keys in world.journal.events] == [("began_early", 5.0)]
    assert world.journal.values == {"lag_ms": [0.0], "late": [0.0]}


@pytest.mark.parametrize(("priority", "expected"), [(Priority.CRITICAL, [3_000.0]), (Priority.HIGH, None)])
def test_a_worker_notes_of_critical_attempts_how_late_each_was(priority: Priority, expected: list[float] | None):
    world = World()
    message = a_message(a_timer(priority=priority))
    world.clock.tick(3 * SECOND)

    world.work(message)

    assert world.journal.values.get("critical_late_ms") == expected


def test_what_a_tenant_has_beyond_its_rate_is_not_late_though_it_has_waited():
    world = World()
    world.plans.plans = {"acme": TenantPlan(execution_rate=1 / 40)}
    for _ in range(3):
        world.submit(a_submission(due_at=NOON, priority=Priority.CRITICAL))

    world.receive_and_work()
    for _ in range(2):
        world.clock.tick(40 * SECOND)
        world.receive_and_work()

    assert world.journal.values["lag_ms"] == [0.0, 40_000.0, 80_000.0]
    assert world.journal.values["critical_late_ms"] == [0.0, 0.0, 0.0]


def test_a_job_that_is_submitted_once_it_is_due_is_late_from_then_on():
    world = World()
    world.clock.tick(50 * SECOND)
    world.submit(a_submission(priority=Priority.CRITICAL, due_at=NOON, asked_at=NOON + 50 * SECOND))
    world.clock.tick(3 * SECOND)

    world.receive_and_work()

    assert world.journal.values["lag_ms"] == [53_000.0]
    assert world.journal.values["critical_late_ms"] == [3_000.0]


def test_a_worker_leaves_out_what_was_promised_nothing():
    world = World()
    message = a_message(a_timer(priority=Priority.LOW))
    world.clock.tick(3 * SECOND)

    world.work(message)

    assert world.journal.values == {"lag_ms": [3_000.0], "target_ms": [0]}
