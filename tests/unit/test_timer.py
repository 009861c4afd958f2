"""Which attempt follows an attempt, and when."""

import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from functions.domain.instants import MINUTE, SECOND
from functions.domain.jobs.job import Timer
from functions.domain.jobs.retry import MAX_BACKOFF, Jitter, RetryPolicy, Strategy
from testkit.builders import NOON, a_timer


def an_attempt(*, attempt: int = 1, spent: int = 0, **retry: Any) -> Timer:
    """An attempt of a job that was due at noon and is tried again a minute after each of two failures."""
    policy = RetryPolicy(**{"strategy": Strategy.FIXED, "attempts": 3, "base": MINUTE, **retry})
    return replace(a_timer(retry=policy, attempt=attempt), spent=spent)


def test_the_next_attempt_is_due_a_gap_after_the_failure_and_remembers_the_gap():
    timer = a_timer(retry=RetryPolicy(strategy=Strategy.DECORRELATED_JITTER, base=2 * SECOND), backoff=4 * SECOND)

    following = timer.next_attempt(failed_at=NOON + 5 * SECOND, jitter=0.5)

    assert following is not None
    assert (following.job, following.attempt) == (timer.job, 2)
    assert (following.due_at, following.backoff) == (NOON + 12 * SECOND, 7 * SECOND)


class TestNextAttempt:
    def test_there_are_as_many_attempts_as_the_policy_grants(self):
        assert an_attempt(attempt=2).next_attempt(failed_at=NOON, jitter=0) is not None
        assert an_attempt(attempt=3).next_attempt(failed_at=NOON, jitter=0) is None

    def test_spent_attempts_do_not_count(self):
        assert an_attempt(attempt=5, spent=3).next_attempt(failed_at=NOON, jitter=0) is not None
        assert an_attempt(attempt=6, spent=3).next_attempt(failed_at=NOON, jitter=0) is None

    def test_the_gap_grows_from_the_attempts_that_count(self):
        timer = an_attempt(attempt=4, spent=3, strategy=Strategy.LINEAR)

        assert due_after(timer) == MINUTE

    def test_a_failure_that_a_slow_clock_saw_makes_no_attempt_due_before_the_one_that_failed(self):
        timer = an_attempt(base=2 * SECOND, cap=2 * SECOND)

        following = timer.next_attempt(failed_at=NOON - 5 * SECOND, jitter=0)

        assert following is not None
        assert following.due_at == NOON

    @pytest.mark.parametrize(("failed_after", "is_granted"), [(9 * MINUTE, True), (9 * MINUTE + SECOND, False)])
    def test_no_attempt_is_due_later_than_the_age_of_the_policy(self, failed_after: timedelta, is_granted: bool):
        timer = an_attempt(max_age=10 * MINUTE)

        assert (timer.next_attempt(failed_at=NOON + failed_after, jitter=0) is not None) is is_granted

    def test_a_replayed_job_ages_from_its_replay(self):
        timer = an_attempt(max_age=10 * MINUTE).replayed(due_at=NOON + timedelta(days=3))

        assert timer.next_attempt(failed_at=timer.due_at + 9 * MINUTE, jitter=0) is not None
        assert timer.next_attempt(failed_at=timer.due_at + 10 * MINUTE, jitter=0) is None


class TestRetryAfter:
    def test_a_target_is_not_called_before_it_asks_to_be_and_the_gap_goes_on_from_the_policy_s(self):
        following = an_attempt().next_attempt(failed_at=NOON, jitter=0, retry_after=5 * MINUTE)

        assert following is not None
        assert (following.due_at, following.backoff) == (NOON + 5 * MINUTE, MINUTE)

    @pytest.mark.parametrize("retry_after", [timedelta(0), SECOND, None])
    def test_it_shortens_no_gap(self, retry_after: timedelta | None):
        assert due_after(an_attempt(), retry_after=retry_after) == MINUTE

    def test_it_counts_up_to_the_longest_gap_there_is(self):
        assert due_after(an_attempt(), retry_after=timedelta(days=400)) == MAX_BACKOFF

    def test_it_is_spread_over_a_tenth_of_it_and_never_shortened(self):
        dues = [due_after(an_attempt(), retry_after=10 * MINUTE, jitter=jitter) for jitter in (0.0, 0.5, 0.99)]

        assert dues == [10 * MINUTE, 10.5 * MINUTE, 10.99 * MINUTE]

    def test_a_thousand_jobs_that_were_told_the_same_date_come_back_one_by_one(self):
        chance = random.Random(7)

        dues = {due_after(an_attempt(), retry_after=10 * MINUTE, jitter=chance.random()) for _ in range(1_000)}

        seconds = Counter(due // SECOND for due in dues)
        assert set(seconds) == set(range(600, 660))
        assert max(seconds.values()) < 40

    def test_where_it_ends_at_the_age_of_the_policy_the_attempt_is_made_then(self):
        timer = an_attempt(max_age=10 * MINUTE)

        following = timer.next_attempt(failed_at=NOON, jitter=0.9, retry_after=9.5 * MINUTE)

        assert following is not None
        assert following.due_at == NOON + 10 * MINUTE

    def test_there_is_no_attempt_when_it_leads_beyond_the_age_of_the_policy(self):
        timer = an_attempt(max_age=10 * MINUTE)

        assert timer.next_attempt(failed_at=NOON, jitter=0, retry_after=10 * MINUTE) is not None
        assert timer.next_attempt(failed_at=NOON, jitter=0, retry_after=11 * MINUTE) is None


class TestWatchdog:
    def test_it_is_the_next_attempt_at_the_time_that_it_is_given(self):
        timer = replace(an_attempt(attempt=2), backoff=7 * SECOND)

        assert timer.watchdog(due_at=NOON + MINUTE) == replace(timer, attempt=3, due_at=NOON + MINUTE)

    def test_after_the_last_attempt_it_is_beyond_the_policy(self):
        assert an_attempt(attempt=2).watchdog(due_at=NOON).is_granted
        assert not an_attempt(attempt=3).watchdog(due_at=NOON).is_granted

    def test_no_attempt_follows_one_that_is_beyond_the_policy(self):
        beyond = an_attempt(attempt=3).watchdog(due_at=NOON)

        assert beyond.next_attempt(failed_at=NOON, jitter=0) is None

    def test_when_the_job_is_too_old_it_grants_no_attempt_and_its_policy_stays_what_it_was(self):
        timer = an_attempt(max_age=10 * MINUTE)

        young, old = (timer.watchdog(due_at=NOON + age) for age in (10 * MINUTE, 10 * MINUTE + SECOND))

        assert (young.is_granted, old.is_granted) == (True, False)
        assert not young.watching(due_at=NOON + 11 * MINUTE).is_granted
        assert old.job.retry == timer.job.retry
        assert old.replayed(due_at=NOON).is_granted

    def test_only_a_watchdog_grows_too_old_while_an_attempt_before_it_is_leased(self):
        timer = an_attempt(attempt=2, max_age=10 * MINUTE)

        assert timer.put_off(until=NOON + 11 * MINUTE, is_watchdog=False) == replace(timer, due_at=NOON + 11 * MINUTE)
        assert not timer.put_off(until=NOON + 11 * MINUTE, is_watchdog=True).is_granted


class TestReplay:
    def test_a_replayed_job_begins_a_new_budget_with_an_attempt_whose_number_no_watchdog_has(self):
        timer = replace(an_attempt(attempt=3), backoff=7 * SECOND)

        replayed = timer.replayed(due_at=NOON + MINUTE)

        assert (replayed.attempt, replayed.spent, replayed.backoff) == (5, 4, timedelta(0))
        assert replayed.attempt > timer.watchdog(due_at=NOON).attempt
        assert (replayed.due_at, replayed.counted_from) == (NOON + MINUTE, NOON + MINUTE)
        assert replayed.is_granted
        assert replayed.next_attempt(failed_at=NOON, jitter=0) is not None

    def test_it_does_not_expire_any_more_and_is_the_same_job_otherwise(self):
        timer = a_timer(expires_at=NOON + MINUTE)

        replayed = timer.replayed(due_at=NOON + timedelta(hours=1))

        assert replayed.job == replace(timer.job, expires_at=None)

    def test_a_second_replay_spends_the_attempts_of_the_first(self):
        again = an_attempt(attempt=3).replayed(due_at=NOON).replayed(due_at=NOON + MINUTE)

        assert (again.attempt, again.spent, again.counted_from) == (7, 6, NOON + MINUTE)


class TestJitter:
    @pytest.mark.parametrize(("jitter", "due"), [(None, 60), (Jitter.FULL, 15), (Jitter.EQUAL, 37.5)])
    def test_the_next_attempt_is_due_by_the_jitter_of_its_policy_and_remembers_the_gap_without_it(
        self, jitter: Jitter | None, due: float
    ):
        following = an_attempt(jitter=jitter).next_attempt(failed_at=NOON, jitter=0.25)

        assert following is not None
        assert (following.due_at - NOON, following.backoff) == (due * SECOND, MINUTE)

    def test_a_decorrelated_gap_goes_on_growing_from_what_it_was_before_its_jitter(self):
        timer = an_attempt(strategy=Strategy.DECORRELATED_JITTER, base=SECOND, jitter=Jitter.FULL)

        following = replace(timer, backoff=MINUTE).next_attempt(failed_at=NOON, jitter=0.75)

        assert following is not None
        assert following.backoff == SECOND + (3 * MINUTE - SECOND) * 0.75
        assert following.due_at - NOON == SECOND  # the lower digits of three quarters are none

    def test_attempts_after_a_replay_begin_with_the_first_interval_again(self):
        policy = RetryPolicy.of_intervals([MINUTE, 5 * MINUTE])

        assert due_after(replace(a_timer(retry=policy, attempt=5), spent=4)) == MINUTE
        assert due_after(replace(a_timer(retry=policy, attempt=6), spent=4)) == 5 * MINUTE


def due_after(timer: Timer, *, retry_after: timedelta | None = None, jitter: float = 0) -> timedelta:
    """How long after a failure the next attempt is due."""
    following = timer.next_attempt(failed_at=NOON, jitter=jitter, retry_after=retry_after)
    assert following is not None
    return following.due_at - NOON
