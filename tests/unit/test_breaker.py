from dataclasses import replace
from datetime import timedelta

import pytest

from functions.domain.errors import InvalidInput
from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.targets.breaker import (
    BREAKER_LIFE,
    MAX_OPEN_FOR,
    MIN_SMEAR,
    OPEN_FOR,
    Breaker,
    BreakerState,
    RecentCalls,
    Signal,
    opened,
    signal_of_failure,
)
from testkit.builders import LOCAL_WHEEL, NOON, a_breaker

SKEW = LOCAL_WHEEL.skew


def window(calls: str, *, every: float = 0.1) -> RecentCalls:
    """A window after these calls, `.` for a success and `x` for a failure, so many seconds apart."""
    made = RecentCalls()
    for number, call in enumerate(calls):
        made = made.with_call(failed=call == "x", at=number * every)
    return made


@pytest.mark.parametrize(
    ("calls", "trips"),
    [
        ("", False),
        ("xxxx", False),
        ("xxxxx", True),
        (".....xxxxx", True),
        ("." * 1_000 + "xxxxx", True),
        ("." * 1_000 + "xxxx.x", False),
        ("x.x.x.x.x", True),
        ("x.x.x.x.x.", True),
        ("x.x.x.x.x..", False),
        ("x..x..x..x..x..x..x", False),
    ],
)
def test_five_failures_in_a_row_or_among_half_of_the_calls_trip(calls: str, trips: bool):
    assert window(calls).trips is trips


def test_what_is_older_than_a_minute_counts_no_more():
    four = window("x.x.x.x")

    assert four.with_call(failed=True, at=54).trips
    assert not four.with_call(failed=True, at=60).trips


def test_a_row_of_failures_may_be_longer_than_a_minute():
    assert window("xxxxx", every=50).trips


def test_a_row_breaks_off_when_nothing_was_heard_for_a_minute():
    assert not window("xxxxx", every=70).trips


def test_a_window_stays_small_however_many_calls_it_has_seen():
    assert len(window("x." * 5_000).slices) == 12


@pytest.mark.parametrize("error_class", ["http_500", "timeout", "connection", "throttled", "access_denied", "error"])
def test_a_failure_of_the_destination_counts(error_class: str):
    assert signal_of_failure(error_class, is_its_own=False) is Signal.FAILS


def test_a_destination_that_refuses_just_this_job_works():
    assert signal_of_failure("http_422", is_its_own=True) is Signal.WORKS


@pytest.mark.parametrize("error_class", ["not_allowed", "refused_address", "handler_missing", "payload_gone"])
@pytest.mark.parametrize("is_its_own", [True, False])
def test_an_error_from_before_the_destination_says_nothing_about_it(error_class: str, is_its_own: bool):
    assert signal_of_failure(error_class, is_its_own=is_its_own) is Signal.UNKNOWN


def test_it_opens_for_half_a_minute():
    assert an_opened() == a_breaker(owner="me", until=NOON + timedelta(seconds=30), open_for=timedelta(seconds=30))


def test_what_the_destination_asks_for_is_a_floor_up_to_ten_minutes():
    assert an_opened(retry_after=timedelta(seconds=1)).until == NOON + OPEN_FOR
    assert an_opened(retry_after=timedelta(minutes=7)).until == NOON + timedelta(minutes=7)
    assert an_opened(retry_after=timedelta(hours=7)).until == NOON + MAX_OPEN_FOR


def test_it_stays_open_twice_as_long_after_each_probe_that_fails_up_to_ten_minutes():
    breaker, waits = an_opened(retry_after=timedelta(minutes=7)), []
    for _ in range(6):
        breaker = reopened(breaker)
        waits.append((breaker.until - NOON).total_seconds())

    assert waits == [60, 120, 240, 480, 600, 600]
    assert breaker.opened_at == NOON


def test_what_a_probe_was_reported_to_wait_is_a_floor_too_and_doubles_nothing():
    breaker = reopened(an_opened(), retry_after=timedelta(minutes=9))

    assert breaker.until == NOON + timedelta(minutes=9)
    assert breaker.open_for == 2 * OPEN_FOR
    assert reopened(breaker).until == NOON + 4 * OPEN_FOR


def test_an_open_one_is_probed_from_its_time_on():
    breaker = a_breaker(until=NOON)

    assert not breaker.may_be_probed(now=NOON - MILLISECOND, skew=SKEW)
    assert breaker.may_be_probed(now=NOON, skew=SKEW)


def test_a_probe_is_taken_over_when_its_lease_is_over_by_more_than_the_skew():
    breaker = a_breaker().probed(owner="probe", lease_until=NOON)

    assert (breaker.state, breaker.owner, breaker.until) == (BreakerState.HALF_OPEN, "probe", NOON)
    assert not breaker.may_be_probed(now=NOON + SKEW, skew=SKEW)
    assert breaker.may_be_probed(now=NOON + SKEW + MILLISECOND, skew=SKEW)


def test_a_probe_that_is_given_back_leaves_the_breaker_to_be_probed_at_once():
    breaker = replace(a_breaker(), open_for=8 * OPEN_FOR).probed(owner="probe", lease_until=NOON + SECOND)

    released = breaker.released(owner="me", now=NOON)

    assert released == replace(breaker, state=BreakerState.OPEN, owner="me", until=NOON)
    assert released.may_be_probed(now=NOON, skew=SKEW)


def test_parked_jobs_come_back_smeared_over_as_long_as_it_was_open():
    short, long = a_breaker(until=NOON, open_for=SECOND), a_breaker(until=NOON, open_for=MAX_OPEN_FOR)

    assert parked(short, jitter=0.0) == parked(long, jitter=0.0) == NOON
    assert parked(short, jitter=0.5) == NOON + MIN_SMEAR / 2
    assert parked(long, jitter=0.5) == NOON + MAX_OPEN_FOR / 2


def test_those_that_a_probe_keeps_waiting_come_back_at_the_end_of_its_lease():
    breaker = a_breaker().probed(owner="probe", lease_until=NOON)

    assert parked(breaker, jitter=0.0) == NOON
    assert parked(breaker, jitter=0.0, now=NOON) == NOON + SKEW + MILLISECOND
    assert parked(breaker, jitter=0.0, now=NOON + SECOND) == NOON + SKEW + MILLISECOND


def test_nothing_is_parked_for_the_past():
    now = NOON + timedelta(hours=1)

    assert parked(a_breaker(until=NOON), jitter=0.0, now=now) == now


def test_a_row_lives_a_day_longer_than_what_it_says():
    assert a_breaker(until=NOON).expires_at == NOON + BREAKER_LIFE


def test_a_naive_instant_is_refused_at_birth():
    with pytest.raises(InvalidInput, match="offset"):
        a_breaker(until=NOON.replace(tzinfo=None))


def an_opened(*, retry_after: timedelta | None = None) -> Breaker:
    return opened("acme", "https://example.com", owner="me", now=NOON, error_class="http_500", retry_after=retry_after)


def reopened(breaker: Breaker, *, retry_after: timedelta | None = None) -> Breaker:
    return breaker.reopened(owner="me", now=NOON, error_class="http_500", retry_after=retry_after)


def parked(breaker: Breaker, *, jitter: float, now=NOON - SECOND):
    return breaker.parked_until(now=now, skew=SKEW, jitter=jitter)
