from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.jobs.claims import LEDGER_LIFE, MESSAGE_LIFE, LedgerRow
from functions.domain.jobs.overlap import Overlap
from functions.domain.lifecycle import State
from functions.domain.schedules.slots import SILENCE, Turn, is_abandoned, turn_of, wait_of
from functions.domain.schedules.state import SkipReason
from testkit.builders import LOCAL_WHEEL, NOON

SKEW = LOCAL_WHEEL.skew
LONG_AGO = NOON - 10 * SILENCE
OVER = NOON - SILENCE - SKEW


@pytest.mark.parametrize(
    ("row", "since"),
    [
        (None, OVER),
        (LedgerRow(state=State.RUNNING, lease_until=OVER, due_at=LONG_AGO, updated_at=LONG_AGO), LONG_AGO),
        (LedgerRow(state=State.SCHEDULED, due_at=OVER, updated_at=LONG_AGO), LONG_AGO),
        (LedgerRow(state=State.SCHEDULED, due_at=LONG_AGO, updated_at=OVER), LONG_AGO),
        (LedgerRow(state=State.SCHEDULED, due_at=LONG_AGO, updated_at=LONG_AGO), OVER),
        (LedgerRow(state=State.RETRYING, due_at=OVER, updated_at=LONG_AGO), LONG_AGO),
        (LedgerRow(state=State.RETRYING, due_at=OVER, updated_at=LONG_AGO), None),
        (LedgerRow(state=State.SCHEDULED, due_at=LONG_AGO, updated_at=LONG_AGO, parked_until=OVER), LONG_AGO),
    ],
    ids=["no row", "running", "due", "just written", "just in the slot", "retrying", "retrying in no slot", "parked"],
)
def test_a_run_is_abandoned_fourteen_days_and_the_skew_after_the_last_that_was_heard_of_it(
    row: LedgerRow | None, since: datetime | None
):
    assert not abandoned(row, since=since, now=NOON)
    assert abandoned(row, since=since, now=NOON + MILLISECOND)


def test_a_run_whose_lease_holds_is_not_abandoned_however_long_ago_it_took_the_slot():
    row = LedgerRow(state=State.RUNNING, lease_until=NOON, due_at=LONG_AGO, updated_at=LONG_AGO)

    assert not abandoned(row, since=LONG_AGO, now=NOON)


def test_a_run_that_waits_for_its_next_attempt_is_not_abandoned():
    row = LedgerRow(state=State.RETRYING, due_at=NOON + timedelta(hours=3), updated_at=LONG_AGO)

    assert not abandoned(row, since=LONG_AGO, now=NOON + timedelta(hours=3))


def test_a_run_that_was_asked_to_cancel_is_waited_for_only_as_long_as_its_lease():
    row = LedgerRow(state=State.RUNNING, lease_until=NOON, updated_at=NOON, cancel_requested=True)

    assert not abandoned(row, since=NOON, now=NOON + SKEW)
    assert abandoned(row, since=NOON, now=NOON + SKEW + MILLISECOND)


def test_the_row_of_a_run_that_has_begun_is_there_for_longer_than_silence_lasts():
    assert SILENCE + timedelta(minutes=1) < LEDGER_LIFE
    assert SILENCE >= MESSAGE_LIFE


def test_who_never_took_the_slot_and_has_no_row_is_abandoned():
    assert abandoned(None, since=None, now=NOON)


@pytest.mark.parametrize(
    ("waited", "wait"),
    [
        (-SECOND, 2 * SECOND),
        (timedelta(0), 2 * SECOND),
        (8 * SECOND, 2 * SECOND),
        (40 * SECOND, 10 * SECOND),
        (timedelta(minutes=4), timedelta(minutes=1)),
        (timedelta(days=3), timedelta(minutes=1)),
    ],
)
def test_a_buffered_fire_asks_again_after_a_quarter_of_what_it_has_waited(waited: timedelta, wait: timedelta):
    assert wait_of(waited=waited) == wait


@given(waited=st.timedeltas(timedelta(0), timedelta(days=14)))
def test_a_buffered_fire_asks_again_within_a_minute_and_not_at_once(waited: timedelta):
    assert timedelta(seconds=2) <= wait_of(waited=waited) <= timedelta(minutes=1)


def abandoned(row: LedgerRow | None, **options: Any) -> bool:
    return is_abandoned(row, skew=SKEW, **options)


EARLIER, LATER = NOON - SECOND, NOON + SECOND


@pytest.mark.parametrize("overlap", Overlap)
def test_a_fire_runs_where_no_run_has_the_slot_and_no_other_waits(overlap: Overlap):
    assert turn_of(overlap, NOON, running=None, waiting=None) is Turn.RUN


@pytest.mark.parametrize(
    ("overlap", "turn"),
    [
        (Overlap.ALLOW, Turn.RUN),
        (Overlap.FORBID, SkipReason.OVERLAP),
        (Overlap.BUFFER_ONE, Turn.WAIT),
        (Overlap.REPLACE, Turn.REPLACE),
    ],
)
def test_what_a_fire_does_beside_an_earlier_run_is_its_policy(overlap: Overlap, turn: Turn | SkipReason):
    assert turn_of(overlap, NOON, running=EARLIER, waiting=None) is turn


def test_a_fire_does_not_replace_a_later_one():
    assert turn_of(Overlap.REPLACE, NOON, running=LATER, waiting=None) is SkipReason.REPLACED


@pytest.mark.parametrize("running", [None, EARLIER])
def test_where_another_fire_waits_none_goes_before_it(running: datetime | None):
    assert turn_of(Overlap.BUFFER_ONE, NOON, running=running, waiting=EARLIER) is SkipReason.BUFFER_FULL
