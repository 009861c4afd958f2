from dataclasses import replace
from datetime import timedelta

import pytest

from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.jobs.job import Priority
from functions.domain.jobs.job_id import job_id_of
from functions.domain.tenants.attempts import is_late
from functions.domain.tenants.plan import TenantPlan
from functions.domain.wheel import Ring
from functions.worker.start import Starts
from testkit.builders import NOON, a_timer
from testkit.scheduler import World
from tests.unit.test_execute import a_message

PLAN = TenantPlan()
OBJECTIVE = 2 * SECOND


@pytest.mark.parametrize(("lag", "expected"), [(OBJECTIVE, False), (OBJECTIVE + MILLISECOND, True)])
def test_an_attempt_is_late_above_the_objective_and_not_at_it(lag: timedelta, expected: bool):
    assert is_late(a_timer(), PLAN, started_at=NOON + lag, objective=OBJECTIVE) is expected


@pytest.mark.parametrize(
    ("priority", "expected"),
    [(Priority.CRITICAL, True), (Priority.HIGH, True), (Priority.NORMAL, True), (Priority.LOW, None)],
)
def test_nothing_is_promised_to_low_which_waits_first(priority: Priority, expected: bool | None):
    timer = a_timer(priority=priority)
    assert is_late(timer, PLAN, started_at=NOON + 3 * SECOND, objective=OBJECTIVE) is expected


def test_a_job_that_a_cap_held_back_is_late_after_its_booking():
    timer = replace(a_timer(), not_before=NOON + 60 * SECOND)
    assert is_late(timer, PLAN, started_at=NOON + 62 * SECOND, objective=OBJECTIVE) is False
    assert is_late(timer, PLAN, started_at=NOON + 63 * SECOND, objective=OBJECTIVE) is True


def test_nothing_is_promised_to_what_came_due_before_its_tenant_was_resumed():
    resumed = replace(PLAN, changed_at=NOON + MILLISECOND)
    assert is_late(a_timer(), resumed, started_at=NOON + 3600 * SECOND, objective=OBJECTIVE) is None


def test_what_comes_due_after_its_tenant_was_resumed_is_measured():
    resumed = replace(PLAN, changed_at=NOON)
    assert is_late(a_timer(), resumed, started_at=NOON + 3600 * SECOND, objective=OBJECTIVE) is True


@pytest.mark.parametrize(("objective", "expected"), [(5 * SECOND, 0.0), (SECOND, 1.0)])
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


def test_a_worker_leaves_out_what_was_promised_nothing():
    world = World()
    message = a_message(a_timer(priority=Priority.LOW))
    world.clock.tick(3 * SECOND)

    world.work(message)

    assert world.journal.values == {"lag_ms": [3_000.0], "target_ms": [0]}
