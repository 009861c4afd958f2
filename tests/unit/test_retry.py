from datetime import timedelta

import pytest

from functions.domain.errors import InvalidJob
from functions.domain.instants import SECOND
from functions.domain.jobs.retry import MAX_AGE, MIN_BACKOFF, RetryPolicy, Strategy


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
    ],
)
def test_a_policy_that_could_outlive_its_ledger_row_or_meet_its_own_lease_or_never_end_is_refused(
    field: str, fields: dict[str, timedelta]
):
    with pytest.raises(InvalidJob) as refused:
        RetryPolicy(**fields)  # pyright: ignore[reportArgumentType]  # each value fits its field

    assert refused.value.field == field


@pytest.mark.parametrize("max_age", [MIN_BACKOFF, MAX_AGE, None])
def test_a_policy_may_go_on_for_a_second_or_for_a_month_or_as_long_as_it_has_attempts(max_age: timedelta | None):
    assert RetryPolicy(max_age=max_age).max_age == max_age
