"""Which permits are free, and how long a job waits that found none."""

import heapq
import random
from datetime import timedelta

import pytest

from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.targets.concurrency import Crowd, free_permits, is_free, wait_for_permit
from functions.domain.wheel import FAR_MARGIN
from testkit.builders import LOCAL_WHEEL, NOON

SKEW = LOCAL_WHEEL.skew
GUARD = timedelta(seconds=155)
HOUR = 3_600


def test_a_permit_without_a_lease_is_free():
    assert is_free(None, now=NOON, skew=SKEW)


@pytest.mark.parametrize(("late", "is_over"), [(SKEW, False), (SKEW + MILLISECOND, True)])
def test_a_lease_is_over_only_after_skew(late: timedelta, is_over: bool):
    assert is_free(NOON, now=NOON + late, skew=SKEW) is is_over


def test_only_permits_below_the_limit_whose_lease_is_over_are_free():
    leases = {0: NOON, 2: NOON - SKEW - MILLISECOND, 4: NOON}

    assert free_permits(leases, limit=4, now=NOON, skew=SKEW, chance=0) == [1, 2, 3]


@pytest.mark.parametrize(("chance", "first"), [(0.0, 0), (0.34, 1), (0.99, 2)])
def test_those_who_look_begin_anywhere(chance: float, first: int):
    free = free_permits({}, limit=3, now=NOON, skew=SKEW, chance=chance)

    assert free[0] == first
    assert sorted(free) == [0, 1, 2]


def test_a_crowd_halves_in_a_minute():
    crowd = Crowd().grown(at=1_000)

    assert crowd.count == 1
    assert crowd.grown(at=1_000).count == 2
    assert crowd.grown(at=1_060).count == 1.5


def test_the_first_to_be_turned_away_waits_a_few_seconds():
    assert timedelta(seconds=1) <= wait_of(1, jitter=0) < wait_of(1, jitter=0.99) <= 6 * SECOND


def test_a_wait_grows_with_the_crowd_and_shrinks_with_the_limit():
    waits = [wait_of(count, jitter=0.5) for count in range(1, 200)]

    assert waits == sorted(waits)
    assert wait_of(40, limit=20, jitter=0.5) == wait_of(4, limit=2, jitter=0.5)


@pytest.mark.parametrize("jitter", [0.0, 0.5, 0.999])
def test_who_waits_in_a_large_crowd_waits_in_the_far_ring(jitter: float):
    near, far = wait_of(58, jitter=jitter), wait_of(59, jitter=jitter)

    assert near <= timedelta(seconds=90)
    assert far >= GUARD + FAR_MARGIN


def test_a_wait_is_bounded_and_spread_however_large_the_crowd():
    least, most = wait_of(1_000_000, jitter=0), wait_of(1_000_000, jitter=0.9999)

    assert least == GUARD + FAR_MARGIN
    assert timedelta(minutes=29) < most - least <= timedelta(minutes=30)


@pytest.mark.parametrize(("waiting", "most"), [(20, 0.5), (300, 1.4), (5_000, 9.1)])
def test_the_store_is_asked_for_few_of_those_who_wait(waiting: int, most: float):
    """All permits stay taken: each job is asked for whenever its wait is over."""
    numbers, crowd = random.Random(7), Crowd()
    comes_at, asked = [0.0] * waiting, 0
    while comes_at[0] < 2 * HOUR:
        asked += comes_at[0] > HOUR
        crowd = crowd.grown(at=comes_at[0])
        wait = wait_for_permit(crowd, limit=2, far=GUARD + FAR_MARGIN, jitter=numbers.random())
        heapq.heapreplace(comes_at, comes_at[0] + wait.total_seconds())

    assert most / 2 < asked / HOUR <= most


def wait_of(count: float, *, jitter: float, limit: int = 2) -> timedelta:
    return wait_for_permit(Crowd(count), limit=limit, far=GUARD + FAR_MARGIN, jitter=jitter)
