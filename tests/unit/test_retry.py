import random
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from functions.domain.errors import InvalidJob
from functions.domain.instants import MILLISECOND, MINUTE, SECOND
from functions.domain.jobs.retry import MAX_AGE, MAX_INTERVALS, MIN_BACKOFF, Jitter, RetryPolicy, Strategy, spread

EVERY_KIND = [
    *(RetryPolicy(strategy=strategy) for strategy in Strategy),
    RetryPolicy.of_intervals([2 * SECOND, MINUTE]),
]
"""A policy of each strategy, and one of intervals."""


@pytest.mark.parametrize(
    ("strategy", "gaps"),
    [
        (Strategy.FIXED, [2, 2, 2, 2, 2]),
        (Strategy.LINEAR, [2, 4, 6, 8, 10]),
        (Strategy.EXPONENTIAL, [2, 4, 8, 10, 10]),
    ],
)
def test_the_gap_grows_as_its_strategy_says_up_to_its_cap(strategy: Strategy, gaps: list[int]):
    policy = RetryPolicy(strategy=strategy, base=2 * SECOND, cap=10 * SECOND)

    found = [policy.backoff(attempt=attempt, previous=timedelta(0), jitter=0.5) for attempt in range(1, 6)]

    assert found == [gap * SECOND for gap in gaps]


@pytest.mark.parametrize(
    ("previous", "jitter", "gap"),
    [(0, 0.0, 2), (0, 0.99, 2), (2, 0.0, 2), (2, 0.5, 4), (4, 0.5, 7), (600, 0.9, 60)],
)
def test_decorrelated_jitter_draws_between_the_base_and_thrice_the_last_gap(previous: int, jitter: float, gap: float):
    policy = RetryPolicy(strategy=Strategy.DECORRELATED_JITTER, base=2 * SECOND, cap=60 * SECOND)

    assert policy.backoff(attempt=1, previous=previous * SECOND, jitter=jitter) == gap * SECOND


def test_intervals_follow_each_other_and_the_last_one_is_repeated():
    policy = RetryPolicy.of_intervals([MINUTE, 5 * MINUTE, 30 * MINUTE], attempts=6)

    gaps = [policy.backoff(attempt=attempt, previous=SECOND, jitter=0.9) for attempt in range(1, 6)]

    assert gaps == [MINUTE, 5 * MINUTE, 30 * MINUTE, 30 * MINUTE, 30 * MINUTE]


def test_intervals_need_not_grow_and_no_cap_cuts_them():
    policy = RetryPolicy.of_intervals([timedelta(hours=12), SECOND])

    assert [policy.backoff(attempt=each, previous=SECOND, jitter=0) for each in (1, 2)] == list(policy.intervals)


def test_a_job_has_an_attempt_more_than_intervals_unless_it_asks_for_another_number():
    intervals = [MINUTE, 5 * MINUTE, 30 * MINUTE]

    assert RetryPolicy.of_intervals(intervals).attempts == 4
    assert RetryPolicy.of_intervals(intervals, attempts=2).attempts == 2


def test_what_a_release_without_intervals_reads_of_them_is_a_gap_between_the_shortest_and_the_longest():
    policy = RetryPolicy.of_intervals([5 * MINUTE, MINUTE, 30 * MINUTE])

    assert (policy.strategy, policy.base, policy.cap) == (Strategy.DECORRELATED_JITTER, MINUTE, 30 * MINUTE)


@pytest.mark.parametrize("policy", EVERY_KIND, ids=str)
def test_a_gap_stays_as_it_is_unless_a_jitter_is_asked_for(policy: RetryPolicy):
    assert policy.jitter is None
    assert policy.jittered(7 * SECOND, jitter=0.3) == 7 * SECOND


@pytest.mark.parametrize("policy", EVERY_KIND, ids=str)
@pytest.mark.parametrize(("jitter", "least", "mean"), [(Jitter.FULL, 0, 0.5), (Jitter.EQUAL, 0.5, 0.75)])
def test_full_jitter_draws_from_all_of_a_gap_and_equal_jitter_from_its_upper_half(
    policy: RetryPolicy, jitter: Jitter, least: float, mean: float
):
    chance, gap = random.Random(7), timedelta(hours=1)
    policy = RetryPolicy(strategy=policy.strategy, base=policy.base, intervals=policy.intervals, jitter=jitter)

    shares = sorted(policy.jittered(gap, jitter=chance.random()) / gap for _ in range(10_000))

    assert shares[0] >= least
    assert shares[0] == pytest.approx(least, abs=0.01)
    assert shares[-1] <= 1
    assert shares[-1] == pytest.approx(1, abs=0.01)
    assert sum(shares) / len(shares) == pytest.approx(mean, abs=0.01)
    assert max(later - earlier for earlier, later in pairwise(shares)) < 0.01


def test_the_jitter_of_a_decorrelated_gap_is_not_the_chance_that_the_gap_was_drawn_with():
    chance, policy = random.Random(7), RetryPolicy(base=SECOND, cap=timedelta(hours=1), jitter=Jitter.FULL)
    drawn = [chance.random() for _ in range(10_000)]
    long_gaps = [number for number in drawn if number > 0.9]

    shares = [policy.jittered(timedelta(hours=1), jitter=number) / timedelta(hours=1) for number in long_gaps]

    assert sum(shares) / len(shares) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("jitter", Jitter)
def test_no_jitter_brings_an_attempt_before_the_one_that_failed_is_settled(jitter: Jitter):
    policy = RetryPolicy(strategy=Strategy.FIXED, base=SECOND, jitter=jitter)

    assert policy.jittered(SECOND, jitter=0.0) == MIN_BACKOFF


@pytest.mark.parametrize(("wait", "longest"), [(0, 1), (1, 2), (10, 11), (60, 66), (43_200, 47_520)])
def test_what_a_target_asked_for_is_spread_over_a_tenth_of_it_or_a_second(wait: int, longest: int):
    assert spread(wait * SECOND, jitter=0.0) == wait * SECOND
    assert spread(wait * SECOND, jitter=1.0) == longest * SECOND


@pytest.mark.parametrize("strategy", Strategy)
def test_the_last_attempt_there_can_be_has_a_gap_too(strategy: Strategy):
    policy = RetryPolicy(strategy=strategy, attempts=100, base=MIN_BACKOFF, cap=timedelta(hours=12))

    assert policy.backoff(attempt=99, previous=timedelta(hours=12), jitter=0.99) <= policy.cap


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("retry.attempts", {"attempts": 0}),
        ("retry.attempts", {"attempts": 101}),
        ("retry.base", {"base": -SECOND}),
        ("retry.base", {"base": timedelta(0)}),
        ("retry.base", {"base": MIN_BACKOFF - timedelta(milliseconds=1)}),
        ("retry.base", {"base": timedelta(hours=13), "cap": timedelta(hours=13)}),
        ("retry.cap", {"cap": SECOND}),
        ("retry.cap", {"cap": timedelta(hours=12, seconds=1)}),
        ("retry.max_age", {"max_age": MIN_BACKOFF - timedelta(milliseconds=1)}),
        ("retry.max_age", {"max_age": MAX_AGE + timedelta(milliseconds=1)}),
        ("retry.intervals", {"intervals": (SECOND, MIN_BACKOFF - MILLISECOND)}),
        ("retry.intervals", {"intervals": (timedelta(hours=12, milliseconds=1),)}),
        ("retry.intervals", {"intervals": (SECOND,) * (MAX_INTERVALS + 1)}),
    ],
)
def test_a_policy_that_could_outlive_its_ledger_row_or_meet_its_own_lease_or_never_end_is_refused(
    field: str, fields: dict[str, Any]
):
    with pytest.raises(InvalidJob) as refused:
        RetryPolicy(**fields)

    assert refused.value.field == field


@pytest.mark.parametrize("max_age", [MIN_BACKOFF, MAX_AGE, None])
def test_a_policy_may_go_on_for_a_second_or_for_a_month_or_as_long_as_it_has_attempts(max_age: timedelta | None):
    assert RetryPolicy(max_age=max_age).max_age == max_age
