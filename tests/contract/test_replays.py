"""What every ledger makes of the replay of a job that has failed for good."""

from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

import pytest
from botocore.exceptions import ClientError

from functions.domain.instants import SECOND
from functions.domain.jobs.job import Payload, Timer
from functions.domain.jobs.job_id import attempt_id, job_id_of
from functions.domain.lifecycle import Event, State
from functions.ports.ledger import Applied, Cancelled, Claimed, Ledger, Refused
from testkit.builders import LOCAL_WHEEL, NOON, a_dead_letter, a_timer
from tests.contract.conftest import ON_DYNAMODB, LedgerSubject

LATER = NOON + timedelta(hours=1)


def test_a_failed_job_goes_on_with_an_attempt_of_a_number_that_no_watchdog_has(ledger: Ledger):
    timer = failed(ledger)

    assert isinstance(replay(ledger, timer), Applied)

    row = ledger.get(timer.job.key)
    assert row is not None
    assert (row.state, row.attempt, row.due_at, row.owner) == (State.RETRYING, 4, LATER, "operator")
    assert isinstance(claim(ledger, timer.replayed(due_at=LATER)), Claimed)


def test_its_far_row_is_put_by_the_same_write(ledger_subject: LedgerSubject):
    ledger, timer = ledger_subject.ledger, failed(ledger_subject.ledger)
    far = timer.replayed(due_at=LATER + SECOND)

    assert isinstance(replay(ledger, timer, far=far), Applied)

    assert far_row(ledger_subject, far) == far
    assert isinstance(claim(ledger, far), Claimed)


def test_one_that_is_refused_puts_no_far_row(ledger_subject: LedgerSubject):
    ledger, timer = ledger_subject.ledger, failed(ledger_subject.ledger)
    replay(ledger, timer)
    assert isinstance(claim(ledger, timer.replayed(due_at=LATER)), Claimed)
    far = timer.replayed(due_at=LATER + SECOND)

    assert isinstance(replay(ledger, timer, far=far), Refused)

    assert far_row(ledger_subject, far) is None


@pytest.mark.parametrize("dynamodb", ON_DYNAMODB, indirect=True)
def test_a_job_whose_far_row_cannot_be_kept_is_not_replayed(ledger: Ledger):
    timer = failed(ledger)
    row = ledger.get(timer.job.key)
    larger_than_a_row_may_be = Payload(text=f'"{Random(7).randbytes(400_000).hex()}"')
    far = timer.replayed(due_at=LATER)

    with pytest.raises(ClientError):
        replay(ledger, timer, far=replace(far, job=replace(far.job, payload=larger_than_a_row_may_be)))

    assert ledger.get(timer.job.key) == row


def test_its_row_keeps_the_budget_that_it_was_given_whatever_comes_after(ledger: Ledger):
    timer = failed(ledger)
    row = ledger.get(timer.job.key)
    assert row is not None
    assert (row.spent, row.counted_from) == (0, None)

    replay(ledger, timer)
    again = timer.replayed(due_at=LATER)
    ledger.park(again, until=LATER + SECOND, now=LATER)
    taken = claim(ledger, again)
    assert isinstance(taken, Claimed)
    ledger.settle(replace(timer, due_at=LATER + SECOND), Event.RETRY, fence=taken.fence, owner="worker", now=LATER)

    row = ledger.get(timer.job.key)
    assert row is not None
    assert (row.state, row.spent, row.counted_from) == (State.RETRYING, 4, LATER)


def test_a_job_whose_row_has_expired_goes_on_too(ledger: Ledger):
    timer = a_timer(attempt=3)

    assert isinstance(replay(ledger, timer), Applied)

    row = ledger.get(timer.job.key)
    assert row is not None
    assert (row.state, row.attempt, row.job_id) == (State.RETRYING, 4, str(job_id_of(timer.job)))


def test_the_attempts_before_it_are_not_claimed_any_more(ledger: Ledger):
    timer = failed(ledger)
    replay(ledger, timer)

    for attempt in (2, 3, 4):
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
    assert (answer.row.state, answer.row.attempt, answer.row.due_at) == (State.RETRYING, 4, LATER)
    assert isinstance(claim(ledger, timer.replayed(due_at=LATER)), Claimed)


def test_what_has_gone_on_is_not_replayed_again(ledger: Ledger):
    timer = failed(ledger)
    replay(ledger, timer)
    taken = claim(ledger, timer.replayed(due_at=LATER))
    assert isinstance(taken, Claimed)

    for end in (None, Event.SUCCEED):
        if end is not None:
            ledger.settle(replace(timer, due_at=LATER), end, fence=taken.fence, owner="worker", now=LATER)
        answer = replay(ledger, timer)
        assert isinstance(answer, Refused)
        assert answer.row is not None
        assert answer.row.attempt == 5


def test_a_replay_that_has_failed_again_is_not_replayed_by_the_dead_letter_before_it(ledger: Ledger):
    timer = failed(ledger)
    replay(ledger, timer)
    second = timer.replayed(due_at=LATER)
    fail(ledger, second)

    assert isinstance(replay(ledger, timer), Refused)
    assert isinstance(replay(ledger, second), Applied)


def test_a_replayed_job_can_be_cancelled(ledger: Ledger):
    timer = failed(ledger)
    replay(ledger, timer)

    assert ledger.cancel(job_id_of(timer.job), owner="me", now=NOON) == Cancelled(asked_for=LATER)
    assert isinstance(replay(ledger, timer), Refused)


@pytest.mark.parametrize("attempt", [3, 4])
def test_a_stale_message_of_the_attempts_before_it_is_not_parked_either(ledger: Ledger, attempt: int):
    timer = failed(ledger)
    replay(ledger, timer)
    row = ledger.get(timer.job.key)

    stale = replace(timer, attempt=attempt, due_at=LATER)

    assert ledger.park(stale, until=LATER + SECOND, now=LATER) == Refused(row)


def test_what_may_have_gone_on_before_needs_its_row(ledger: Ledger):
    expired, there = a_timer(attempt=3), failed(ledger)

    assert replay(ledger, expired, needs_row=True) == Refused(None)
    assert ledger.get(expired.job.key) is None
    assert isinstance(replay(ledger, there, needs_row=True), Applied)


@pytest.mark.parametrize("is_replayed", [False, True])
def test_a_row_of_another_job_of_the_same_key_is_left_alone(ledger: Ledger, *, is_replayed: bool):
    timer = failed(ledger)
    if is_replayed:
        replay(ledger, timer)
    row = ledger.get(timer.job.key)
    before = replace(timer.job, scheduled_at=NOON - timedelta(days=20))

    answer = replay(ledger, timer, job_id=str(job_id_of(before)))

    assert answer == Refused(row)
    assert ledger.get(timer.job.key) == row


def test_a_tombstone_is_not_lifted(ledger: Ledger):
    timer = a_timer(attempt=3)
    ledger.cancel(job_id_of(timer.job), owner="op", now=NOON)
    row = ledger.get(timer.job.key)

    assert replay(ledger, timer) == Refused(row)
    assert ledger.get(timer.job.key) == row


def test_a_job_that_ends_with_a_dead_letter_has_the_id_of_its_dead_letter(ledger: Ledger):
    timer = a_timer(attempt=3)
    asked_before = replace(timer.job, scheduled_at=NOON - SECOND)
    ledger.park(Timer(job=asked_before, due_at=NOON), until=LATER, now=NOON)

    row = ledger.get(timer.job.key)
    assert row is not None
    assert row.job_id == str(job_id_of(asked_before))
    assert (
        ledger.bury(
            a_dead_letter(timer, dead_at=timer.due_at, error="HTTP 500"), timer.job, row=row, owner="scanner", now=NOON
        )
        == Applied()
    )

    row = ledger.get(timer.job.key)
    assert row is not None
    assert row.job_id == str(job_id_of(timer.job))


def test_a_row_that_begins_anew_goes_on_with_the_fences_that_the_dead_letter_knows(ledger: Ledger):
    known, unknown = a_timer(attempt=3), a_timer(attempt=3)

    replay(ledger, known, fence=7)
    replay(ledger, unknown, fence=0)

    assert claim(ledger, known.replayed(due_at=LATER)) == Claimed(fence=8)
    assert claim(ledger, unknown.replayed(due_at=LATER)) == Claimed(fence=1)


def test_a_row_that_is_there_keeps_its_own_fence(ledger: Ledger):
    timer = failed(ledger)

    replay(ledger, timer, fence=7)

    assert claim(ledger, timer.replayed(due_at=LATER)) == Claimed(fence=2)


def test_a_replay_whose_fence_is_not_known_can_be_buried(ledger: Ledger):
    timer = a_timer(attempt=3)
    replay(ledger, timer, fence=0)

    answer = ledger.bury(
        a_dead_letter(timer, dead_at=timer.due_at, error="HTTP 500"),
        timer.job,
        row=ledger.get(timer.job.key),
        owner="scanner",
        now=LATER,
    )

    assert isinstance(answer, Applied)


def test_a_replay_is_stopped_as_it_was_seen_and_may_be_stopped_again(ledger: Ledger):
    timer = failed(ledger)
    replay(ledger, timer)
    seen = ledger.get(timer.job.key)

    for _ in range(2):
        assert ledger.cancel(job_id_of(timer.job), owner="op", now=NOON, row=seen) == Cancelled(asked_for=LATER)

    assert isinstance(claim(ledger, timer.replayed(due_at=LATER)), Refused)


def test_a_replay_that_has_gone_on_since_it_was_seen_is_not_stopped(ledger: Ledger):
    timer = failed(ledger)
    replay(ledger, timer)
    seen = ledger.get(timer.job.key)
    taken = claim(ledger, timer.replayed(due_at=LATER))
    assert isinstance(taken, Claimed)
    ledger.settle(replace(timer, due_at=LATER), Event.RETRY, fence=taken.fence, owner="worker", now=LATER)
    row = ledger.get(timer.job.key)

    assert ledger.cancel(job_id_of(timer.job), owner="op", now=LATER, row=seen) == Refused(row)
    assert ledger.get(timer.job.key) == row


def failed(ledger: Ledger) -> Timer:
    """A job whose third attempt was its last."""
    timer = a_timer(attempt=3)
    fail(ledger, timer)
    return timer


def fail(ledger: Ledger, timer: Timer) -> None:
    taken = claim(ledger, timer)
    assert isinstance(taken, Claimed)
    answer = ledger.fail(
        a_dead_letter(timer, dead_at=timer.due_at, error="HTTP 500"),
        timer.job,
        fence=taken.fence,
        owner="worker",
        now=timer.due_at,
    )
    assert isinstance(answer, Applied)


def claim(ledger: Ledger, timer: Timer, *, owner: str = "worker") -> Claimed | Refused:
    return ledger.claim(timer, owner=owner, lease_until=timer.due_at + 15 * SECOND, now=timer.due_at)


def replay(
    ledger: Ledger,
    timer: Timer,
    *,
    due_at: datetime = LATER,
    owner: str = "operator",
    fence: int = 0,
    needs_row: bool = False,
    job_id: str = "",
    far: Timer | None = None,
) -> Applied | Refused:
    replayed = timer.replayed(due_at=due_at)
    return ledger.replay(
        replayed,
        far=far or replayed,
        job_id=job_id or str(job_id_of(timer.job)),
        fence=fence,
        owner=owner,
        now=NOON,
        needs_row=needs_row,
    )


def far_row(subject: LedgerSubject, timer: Timer) -> Timer | None:
    return subject.timers.get(attempt_id(job_id_of(timer.job), timer.due_at, wheel=LOCAL_WHEEL))
