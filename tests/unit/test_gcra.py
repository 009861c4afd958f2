"""The generic cell rate algorithm."""

from datetime import timedelta

import pytest

from functions.domain.gcra import interval_of, room_at, tolerance_of
from functions.domain.instants import SECOND
from testkit.builders import NOON


@pytest.mark.parametrize(("ahead", "room"), [(-5, 3), (0, 3), (1, 2), (2, 1), (2.5, 0), (9, 0)])
def test_the_room_shrinks_as_the_theoretical_arrival_time_runs_ahead(ahead: float, room: int):
    next_at = NOON + ahead * SECOND

    assert room_at(next_at, now=NOON, interval=SECOND, tolerance=tolerance_of(3, SECOND)) == room


def test_an_interval_is_the_inverse_of_a_rate():
    assert interval_of(4) == timedelta(milliseconds=250)
    assert interval_of(100_000) == timedelta(microseconds=10)
