"""What every ledger makes of the replay of a job that has failed for good."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from functions.domain.job import Timer
from functions.domain.job_id import job_id_of
from functions.domain.lifecycle import Event, State
from functions.ports import Applied, Claimed, DeadLetter, Ledger, Refused
from tests.builders import NOON, a_timer

SECOND = timedelta(seconds=1)
LATER = NOON + timedelta(hours=1)


def test_a_failed_job_goes_on_with_its_next_attempt(ledger: Ledger):
    timer = failed(ledger)

    assert isinstance(replay(ledger, timer), Applied)

    row = ledger.get(timer.job.key)
    assert row is not None
    assert (row.state, row.attempt, row.due_at, row.owner) == (State.RETRYING, 3, LATER, "operator")
    assert isinstance(claim(ledger, timer.replayed(due_at=LATER)), Claimed)


def test_a_job_whose_row_has_expired_goes_on_too(ledger: Ledger):
    timer = a_timer(attempt=3)

    assert isinstance(replay(ledger, timer), Applied)

    row = ledger.get(timer.job.key)
    assert row is not None
    assert (row.state, row.attempt, row.job_id) == (State.RETRYING, 3, str(job_id_of(timer.job)))


def test_the_attempts_before_it_are_not_claimed_any_more(ledger: Ledger):
    timer = failed(ledger)
    replay(ledger, timer)

    for attempt in (2, 3):
        assert isinstance(claim(ledger, replace(timer, attempt=attempt, due_at=LATER)), Refused)


@pytest.mark.parametrize("sooner", [timedelta(0), SECOND])
def test_a_replay_that_nobody_has_come_for_may_be_made_again_for_the_same_instant_or_a_sooner_one(
    ledger: Ledger, sooner: timedelta
):
    timer = failed(ledger)
    replay(ledger, timer)

    assert isinstance(replay(ledger, timer, due_at=LATER - sooner, owner="another"), Applied)

    for due_at in (LATER - sooner, LATER):
        taken = claim(ledger, timer.replayed(due_at=due_at), owner="me")
        assert isinstance(taken, Claimed), due_at


def test_a_replay_is_not_put_off_because_the_message_of_the_first_would_be_dropped(ledger: Ledger):
    timer = failed(ledger)
    replay(ledger, timer)

    answer = replay(ledger, timer, due_at=LATER + SECOND, owner="another")

    assert isinstance(answer, Refused)
    assert answer.row is not None
    assert (answer.row.state, answer.row.attempt, answer.row.due_at) == (State.RETRYING, 3, LATER)
    assert isinstance(claim(ledger, timer.replayed(due_at=LATER)), Claimed)


def test_what_has_gone_on_is_not_replayed_again(ledger: Ledger):
    timer = failed(ledger)
    replay(ledger, timer)
    taken = claim(ledger, timer.replayed(due_at=LATER))
    assert isinstance(taken, Claimed)

    for end in (None, Event.SUCCEED):
        if end is not None:
            ledger.settle(timer.job, end, fence=taken.fence, owner="worker", due_at=LATER, now=LATER)
        answer = replay(ledger, timer)
        assert isinstance(answer, Refused)
        assert answer.row is not None
        assert answer.row.attempt == 4


def test_a_replay_that_has_failed_again_is_not_replayed_by_the_letter_before_it(ledger: Ledger):
    timer = failed(ledger)
    replay(ledger, timer)
    second = timer.replayed(due_at=LATER)
    fail(ledger, second)

    assert isinstance(replay(ledger, timer), Refused)
    assert isinstance(replay(ledger, second), Applied)


def test_a_replayed_job_can_be_cancelled(ledger: Ledger):
    timer = failed(ledger)
    replay(ledger, timer)

    assert isinstance(ledger.cancel(job_id_of(timer.job), owner="me", now=NOON), Applied)
    assert isinstance(replay(ledger, timer), Refused)


def failed(ledger: Ledger) -> Timer:
    """A job whose third attempt was its last."""
    timer = a_timer(attempt=3)
    fail(ledger, timer)
    return timer


def fail(ledger: Ledger, timer: Timer) -> None:
    taken = claim(ledger, timer)
    assert isinstance(taken, Claimed)
    letter = DeadLetter(
        tenant=timer.job.tenant,
        identity=timer.job.identity,
        dead_at=timer.due_at,
        error="HTTP 500",
        attempt=timer.attempt,
        timer=timer,
    )
    answer = ledger.fail(letter, timer.job, fence=taken.fence, owner="worker", now=timer.due_at)
    assert isinstance(answer, Applied)


def claim(ledger: Ledger, timer: Timer, *, owner: str = "worker") -> Claimed | Refused:
    return ledger.claim(timer, owner=owner, lease_until=timer.due_at + 15 * SECOND, now=timer.due_at)


def replay(ledger: Ledger, timer: Timer, *, due_at: datetime = LATER, owner: str = "operator") -> Applied | Refused:
    return ledger.replay(timer.replayed(due_at=due_at), owner=owner, now=NOON)
