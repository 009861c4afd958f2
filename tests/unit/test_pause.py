"""What a tenant's status means for an attempt before its claim."""

from dataclasses import replace
from datetime import timedelta

import pytest

from functions.domain.far_ring.timer_record import decode_timer, encode_timer
from functions.domain.instants import HOUR, SECOND
from functions.domain.jobs.job import Timer
from functions.domain.tenants.attempts import comes_too_late, paused_until, resumed
from functions.domain.tenants.plan import TenantPlan, TenantStatus
from functions.domain.wheel import Ring
from testkit.builders import LOCAL_WHEEL, NOON, a_schedule, a_timer, an_occurrence_timer

ACTIVE = TenantPlan(status=TenantStatus.ACTIVE, changed_at=NOON)


@pytest.mark.parametrize("jitter", [0.0, 0.5, 0.999])
def test_what_waits_for_the_end_of_a_pause_waits_in_the_far_ring(jitter: float):
    waiting = pause(a_timer(), jitter=jitter)

    # With time to spare for the write.
    written_at = NOON + 9 * SECOND
    assert LOCAL_WHEEL.place(waiting.due_at, now=written_at) is Ring.FAR
    assert written_at <= LOCAL_WHEEL.closes_at(waiting.due_at)
    assert waiting.due_at <= NOON + LOCAL_WHEEL.guard + 10 * SECOND + LOCAL_WHEEL.bucket


def test_what_is_due_later_waits_until_then():
    assert pause(a_timer(due_at=NOON + HOUR)).due_at == NOON + HOUR


def test_age_stands_still_during_a_pause():
    timer = a_timer(due_at=NOON - HOUR)

    waiting = pause(timer)

    assert waiting.age_at(waiting.due_at) == timer.age_at(NOON) == HOUR


def test_age_stands_still_between_coming_due_and_the_end_of_a_pause():
    timer = a_timer(due_at=NOON - HOUR)

    assert resumed(timer, ACTIVE, now=NOON + SECOND).age_at(NOON + SECOND) == SECOND


def test_what_waited_in_the_near_ring_first_counts_no_age_twice():
    waiting = pause(a_timer(due_at=NOON - HOUR))
    plan = TenantPlan(status=TenantStatus.ACTIVE, changed_at=NOON + HOUR)

    assert resumed(waiting, plan, now=NOON + HOUR).age_at(NOON + HOUR) == HOUR


@pytest.mark.parametrize(
    "plan",
    [
        TenantPlan(),
        TenantPlan(status=TenantStatus.ACTIVE, changed_at=NOON - HOUR),
        TenantPlan(status=TenantStatus.ACTIVE, changed_at=NOON + HOUR),
        TenantPlan(status=TenantStatus.DRAINING, changed_at=NOON),
    ],
)
def test_nothing_is_excused_that_no_pause_has_held_up(plan: TenantPlan):
    timer = a_timer(due_at=NOON - SECOND)

    assert resumed(timer, plan, now=NOON) == timer


@pytest.mark.parametrize("timer", [a_timer(), a_timer(attempt=3)])
def test_what_is_excused_outlives_its_record(timer: Timer):
    waiting = pause(timer)

    assert decode_timer(encode_timer(waiting), tenant="acme") == waiting


@pytest.mark.parametrize(
    ("status", "late", "is_late"),
    [
        (TenantStatus.DRAINING, timedelta(0), True),
        (TenantStatus.DRAINING, -SECOND, False),
        (TenantStatus.ACTIVE, SECOND, False),
        (TenantStatus.PAUSED, SECOND, False),
    ],
)
def test_a_fire_is_too_late_from_the_end_of_its_tenant_on(status: TenantStatus, late: timedelta, is_late: bool):
    occurrence = an_occurrence_timer(a_schedule(), fire_at=NOON + late).job.occurrence
    assert occurrence is not None

    assert comes_too_late(occurrence, TenantPlan(status=status, changed_at=NOON)) is is_late


def test_a_fire_comes_to_its_end_where_nobody_knows_since_when_its_tenant_is_closed():
    occurrence = an_occurrence_timer(a_schedule()).job.occurrence
    assert occurrence is not None

    assert not comes_too_late(occurrence, TenantPlan(status=TenantStatus.DRAINING))


def pause(timer: Timer, *, jitter: float = 0.0) -> Timer:
    """As it comes back from the wheel."""
    until = paused_until(timer, now=NOON, wheel=LOCAL_WHEEL, jitter=jitter)
    return replace(timer.excused(since=NOON, until=until), due_at=until)
