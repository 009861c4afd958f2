"""The generic cell rate algorithm."""

from datetime import datetime, timedelta

import pytest

from functions.domain.gcra import Reservation, interval_of, reserve, room_at, tolerance_of
from tests.builders import NOON

SECOND = timedelta(seconds=1)
FAR = NOON + timedelta(days=1)


def slots(due: list[float], *, next_at: datetime | None = None, until: datetime = FAR, burst: int = 1) -> list[float]:
    reserved = reserve(
        [NOON + at * SECOND for at in due],
        next_at=next_at,
        now=NOON,
        interval=SECOND,
        tolerance=tolerance_of(burst, SECOND),
        until=until,
    )
    return [(slot - NOON) / SECOND for slot in reserved.slots]


def test_jobs_that_are_due_at_once_are_spaced_evenly():
    assert slots([0, 0, 0]) == [0, 1, 2]


def test_jobs_that_are_slower_than_the_rate_run_when_they_are_due():
    assert slots([0, 5, 5, 9]) == [0, 5, 6, 9]


def test_what_is_overdue_runs_from_now_on():
    assert slots([-50, -40]) == [0, 1]


def test_after_a_while_of_none_a_burst_goes_at_once():
    assert slots([0, 0, 0, 0], burst=3) == [0, 0, 0, 1]


def test_what_was_reserved_before_comes_first():
    assert slots([0, 3, 9], next_at=NOON + 7 * SECOND) == [7, 8, 9]


def test_what_lies_beyond_reach_gets_no_slot_and_costs_nothing():
    reserved = reserve(
        [NOON] * 5, next_at=None, now=NOON, interval=SECOND, tolerance=timedelta(0), until=NOON + 2 * SECOND
    )

    assert len(reserved.slots) == 3
    assert reserved.next_at == NOON + 3 * SECOND
    assert reserve([NOON], next_at=FAR, now=NOON, interval=SECOND, tolerance=SECOND, until=NOON) == Reservation((), FAR)


@pytest.mark.parametrize(("ahead", "room"), [(-5, 3), (0, 3), (1, 2), (2, 1), (2.5, 0), (9, 0)])
def test_the_room_shrinks_as_the_theoretical_arrival_time_runs_ahead(ahead: float, room: int):
    next_at = NOON + ahead * SECOND

    assert room_at(next_at, now=NOON, interval=SECOND, tolerance=tolerance_of(3, SECOND)) == room


def test_an_interval_is_the_inverse_of_a_rate():
    assert interval_of(4) == timedelta(milliseconds=250)
    assert interval_of(100_000) == timedelta(microseconds=10)
