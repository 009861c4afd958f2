from datetime import timedelta
from typing import Any

import pytest

from functions.domain.instants import MILLISECOND
from functions.domain.jobs.claims import (
    ABSENT_IS_OVER,
    LEASE_MARGIN,
    LEDGER_LIFE,
    MAX_RESCUES,
    MESSAGE_LIFE,
    RENEW_AFTER,
    Again,
    Bury,
    ClaimDecision,
    Defer,
    Drop,
    LedgerRow,
    Rescue,
    Watch,
    deaths_of,
    decide_claim,
    expires_at,
    lease_of,
    may_claim,
)
from functions.domain.jobs.retry import MAX_BACKOFF, MIN_BACKOFF
from functions.domain.lifecycle import TERMINAL, State
from testkit.builders import LOCAL_WHEEL, NOON

SKEW = LOCAL_WHEEL.skew


@pytest.mark.parametrize(
    ("row", "attempt", "may"),
    [
        (None, 1, True),
        (LedgerRow(state=State.SCHEDULED), 1, True),
        (LedgerRow(state=State.SCHEDULED, attempt=2), 2, True),
        (LedgerRow(state=State.SCHEDULED, attempt=1), 2, True),
        (LedgerRow(state=State.SCHEDULED, attempt=2), 1, False),
        (LedgerRow(state=State.SCHEDULED, cancel_requested=True), 1, True),
        (LedgerRow(state=State.RETRYING, attempt=1), 2, True),
        (LedgerRow(state=State.RETRYING, attempt=1, due_at=NOON), 2, True),
        (LedgerRow(state=State.RETRYING, attempt=1, due_at=NOON + MILLISECOND), 2, False),
        (LedgerRow(state=State.RETRYING, attempt=2), 2, False),
        (LedgerRow(state=State.RETRYING, attempt=3), 2, False),
        (LedgerRow(state=State.RUNNING, attempt=1, owner="me"), 1, True),
        (LedgerRow(state=State.RUNNING, attempt=1, owner="me"), 2, False),
        (LedgerRow(state=State.RUNNING, attempt=1, owner="other"), 1, False),
        (LedgerRow(state=State.SUCCEEDED, attempt=1, owner="me"), 1, False),
        (LedgerRow(state=State.ATTEMPTED, attempt=1, owner="me"), 1, False),
    ],
)
def test_an_attempt_may_be_claimed_when_nobody_has_it_or_by_the_one_who_does(
    row: LedgerRow | None, attempt: int, may: bool
):
    assert may_claim(row, attempt=attempt, due_at=NOON, owner="me") is may


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_a_settled_row_drops_the_message(state: State):
    assert judge(LedgerRow(state=state)) == Drop(f"settled as {state}")


def test_a_row_that_was_free_when_the_claim_lost_is_tried_again():
    assert judge(None) == Again()
    assert judge(LedgerRow(state=State.SCHEDULED)) == Again()


def test_a_row_of_a_later_attempt_drops_the_message_even_when_its_lease_is_over():
    assert judge(a_running_row(attempt=2, lease_until=NOON - timedelta(days=1))) == Drop(
        "superseded by a later attempt"
    )
    assert judge(LedgerRow(state=State.RETRYING, attempt=1)) == Drop("superseded by a later attempt")
    assert judge(LedgerRow(state=State.SCHEDULED, attempt=2)) == Drop("superseded by a later attempt")


def test_a_live_lease_defers_until_it_is_over_by_the_skew():
    assert judge(a_running_row(lease_until=NOON + timedelta(seconds=9))) == Defer(
        NOON + timedelta(seconds=9, milliseconds=1) + SKEW
    )
    assert judge(a_running_row(lease_until=NOON - SKEW)) == Defer(NOON + timedelta(milliseconds=1))


def test_a_lease_that_is_over_by_more_than_the_skew_is_a_rescue():
    assert judge(a_running_row(lease_until=NOON - SKEW - MILLISECOND, fence=7)) == Rescue()


def test_a_later_attempt_rescues_an_abandoned_one_and_waits_for_a_live_one():
    assert judge(a_running_row(lease_until=NOON - timedelta(hours=1)), attempt=2) == Rescue()
    assert judge(a_running_row(lease_until=NOON), attempt=2) == Watch(NOON + MILLISECOND + SKEW, is_watchdog=False)
    assert judge(a_running_row(lease_until=NOON, held="{}"), attempt=2) == Watch(
        NOON + MILLISECOND + SKEW, is_watchdog=True
    )


def test_a_watchdog_that_comes_before_the_retry_is_dropped():
    retrying = LedgerRow(state=State.RETRYING, attempt=1, due_at=NOON + MILLISECOND)

    assert judge(retrying, attempt=2) == Drop("superseded by a later attempt")


def test_deaths_of_an_attempt_before_it_do_not_bury_a_later_one():
    row = a_running_row(rescue_count=MAX_RESCUES)

    assert judge(row, attempt=2) == Rescue()
    assert deaths_of(row, attempt=2) == 0
    assert deaths_of(row, attempt=1) == MAX_RESCUES + 1


def test_the_fourth_death_is_buried():
    assert isinstance(judge(a_running_row(rescue_count=MAX_RESCUES - 1)), Rescue)
    assert isinstance(judge(a_running_row(rescue_count=MAX_RESCUES)), Bury)


def test_a_job_that_was_asked_to_cancel_is_rescued_rather_than_buried():
    assert judge(a_running_row(rescue_count=MAX_RESCUES, cancel_requested=True)) == Rescue()


def test_a_live_lease_is_waited_for_even_after_three_rescues():
    assert isinstance(judge(a_running_row(rescue_count=MAX_RESCUES, lease_until=NOON)), Defer)


def test_a_lease_is_the_timeout_and_time_to_settle_in():
    assert lease_of(timedelta(seconds=30), now=NOON) == NOON + timedelta(seconds=30) + LEASE_MARGIN


def test_a_retry_comes_no_sooner_than_its_failed_attempt_has_settled():
    # It is placed first: a shorter gap would meet the lease of the attempt before.
    assert timedelta(seconds=1) <= MIN_BACKOFF < LEASE_MARGIN


def test_a_row_lives_22_days_longer_than_the_last_of_its_instants():
    day = timedelta(days=1)

    assert timedelta(days=22) == LEDGER_LIFE
    assert expires_at(now=NOON, due_at=None, lease_until=None) == NOON + LEDGER_LIFE
    assert expires_at(now=NOON, due_at=NOON + day, lease_until=None) == NOON + day + LEDGER_LIFE
    assert expires_at(now=NOON, due_at=NOON - day, lease_until=NOON + 2 * day) == NOON + 2 * day + LEDGER_LIFE


def test_a_row_outlives_every_message_that_could_meet_it():
    # Also that of a second far row, which has waited until putting it anew would have met the ledger.
    assert LEDGER_LIFE >= RENEW_AFTER + MESSAGE_LIFE + MAX_BACKOFF


def test_what_is_absent_is_over_only_when_no_message_can_come_any_more():
    assert MESSAGE_LIFE < ABSENT_IS_OVER <= LEDGER_LIFE


def judge(row: LedgerRow | None, *, attempt: int = 1) -> ClaimDecision:
    return decide_claim(row, attempt=attempt, due_at=NOON, owner="me", now=NOON, skew=SKEW)


def a_running_row(**overrides: Any) -> LedgerRow:
    fields: dict[str, Any] = {"attempt": 1, "fence": 1, "owner": "w", "lease_until": NOON - timedelta(hours=1)}
    return LedgerRow(state=State.RUNNING, **{**fields, **overrides})
