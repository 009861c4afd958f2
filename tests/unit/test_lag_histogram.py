"""Percentiles of lag from counts in cells: never further from the exact ones than is promised."""

import math
from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.domain.instants import MILLISECOND
from functions.domain.stage.lag_histogram import (
    LARGEST,
    LAST_CELL,
    PERCENTILES,
    RELATIVE_ERROR,
    SMALLEST,
    cell_of,
    lag_in,
    percentile,
)

MICROSECOND = timedelta(microseconds=1)
# Spread over all magnitudes, and not over the hours alone.
lags = st.floats(min_value=-3, max_value=math.log10(LARGEST / MILLISECOND)).map(lambda power: MILLISECOND * 10**power)


def counted(found: list[timedelta]) -> Counter[int]:
    return Counter(cell_of(lag) for lag in found)


def exact(found: list[timedelta], thousandths: int) -> timedelta:
    """The smallest that so many thousandths do not exceed."""
    ordered = sorted(found)
    return next(lag for n, lag in enumerate(ordered, start=1) if n * 1_000 >= thousandths * len(ordered))


@given(st.lists(lags, min_size=1, max_size=200), st.sampled_from(sorted(PERCENTILES.values())))
def test_a_percentile_is_within_its_relative_error_of_the_exact_one(found: list[timedelta], thousandths: int):
    estimate = percentile(counted(found), thousandths)

    assert estimate is not None
    true = exact(found, thousandths)
    if true <= SMALLEST:
        assert estimate == SMALLEST
    else:
        assert abs(estimate - true) <= RELATIVE_ERROR * true + MICROSECOND


@given(lags)
def test_what_learns_of_a_cell_is_in_it(lag: timedelta):
    assert cell_of(lag_in(cell_of(lag))) == cell_of(lag)


@given(st.lists(lags, max_size=50), st.lists(lags, max_size=50))
def test_histograms_of_two_processes_add_up_to_that_of_both(one: list[timedelta], other: list[timedelta]):
    both = counted(one) + counted(other)

    assert [percentile(both, t) for t in PERCENTILES.values()] == [
        percentile(counted(one + other), t) for t in PERCENTILES.values()
    ]


def test_what_is_early_or_too_short_to_say_is_in_the_first_cell():
    assert {cell_of(lag) for lag in (timedelta(hours=-1), timedelta(0), SMALLEST)} == {0}
    assert cell_of(SMALLEST + MICROSECOND) == 1


def test_what_is_longer_than_a_day_is_reported_as_a_day():
    assert cell_of(LARGEST) == cell_of(timedelta(days=400)) == LAST_CELL == 92
    assert percentile({LAST_CELL: 1}, 500) == lag_in(LAST_CELL) <= LARGEST


def test_nothing_has_no_percentile():
    assert percentile({}, 500) is None


@pytest.mark.parametrize(("thousandths", "milliseconds"), [(500, 10), (950, 20), (990, 20), (999, 30)])
def test_ranks_are_the_nearest(thousandths: int, milliseconds: int):
    # A thousand attempts: 940 in cell 10, 59 in 20, one in 30.
    counts = {20: 59, 10: 940, 30: 1} if thousandths != 999 else {20: 58, 10: 940, 30: 2}

    assert percentile(counts, thousandths) == lag_in(milliseconds)
