"""What every ledger keeps of held attempts, of watchdogs, and of replays."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.domain.far_ring.timer_record import decode_timer
from functions.domain.instants import HOUR, MILLISECOND, SECOND
from functions.domain.jobs.claims import LEDGER_LIFE, LedgerRow
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.lifecycle import Event, State
from functions.ports.ledger import Applied, Claimed, Ledger, Refused
from testkit.builders import NOON, a_dead_letter, a_timer
from tests.contract.conftest import LedgerSubject
from tests.contract.test_ledger_control import a_claimed

LEASE = NOON + 15 * SECOND


def test_a_held_attempt_has_a_longer_lease_and_the_record_of_its_timer(ledger: Ledger):
    timer = a_held_timer(ledger)
    row = row_of(ledger, timer)

    assert (row.state, row.fence, row.lease_until) == (State.RUNNING, 1, NOON + HOUR)
    assert decode_timer(row.held, tenant="acme") == timer


def test_only_the_worker_that_has_an_attempt_holds_it(ledger: Ledger):
    timer = a_claimed(ledger)

    assert isinstance(hold(ledger, timer, owner="other"), Refused)
    assert isinstance(hold(ledger, timer, fence=2), Refused)
    ledger.settle(timer, Event.SUCCEED, fence=1, owner="me", now=NOON)
    answer = hold(ledger, timer)
    assert isinstance(answer, Refused)
    assert answer.row == row_of(ledger, timer)
    assert row_of(ledger, timer).held == ""


def test_a_hold_whose_answer_was_lost_recognises_itself(ledger: Ledger):
    timer = a_held_timer(ledger)

    assert hold(ledger, timer) == Applied()


def test_a_row_outlives_the_lease_of_a_held_attempt(ledger_subject: LedgerSubject):
    timer = a_claimed(ledger_subject.ledger)
    far = NOON + timedelta(days=1)

    hold(ledger_subject.ledger, timer, lease_until=far)
    assert ledger_subject.expires_at(timer.job.key) >= far + LEDGER_LIFE
    extend(ledger_subject.ledger, timer, lease_until=far + HOUR)
    assert ledger_subject.expires_at(timer.job.key) >= far + HOUR + LEDGER_LIFE


def test_a_lease_grows_with_its_fence_and_never_shrinks(ledger: Ledger):
    timer = a_held_timer(ledger)

    longer = extend(ledger, timer, lease_until=NOON + 2 * HOUR)
    shorter = extend(ledger, timer, lease_until=NOON + HOUR)

    assert isinstance(longer, LedgerRow)
    assert isinstance(shorter, LedgerRow)
    assert longer.lease_until == shorter.lease_until == row_of(ledger, timer).lease_until == NOON + 2 * HOUR


def test_a_stale_fence_prolongs_nothing(ledger: Ledger):
    timer = a_held_timer(ledger)

    answer = extend(ledger, timer, fence=2)

    assert isinstance(answer, Refused)
    assert answer.row == row_of(ledger, timer)
    assert row_of(ledger, timer).lease_until == NOON + HOUR


def test_a_settled_attempt_has_no_lease_to_prolong(ledger: Ledger):
    timer = a_held_timer(ledger)
    ledger.settle(timer, Event.SUCCEED, fence=1, owner="me", now=NOON)

    answer = extend(ledger, timer)

    assert isinstance(answer, Refused)
    assert answer.row is not None
    assert answer.row.state is State.SUCCEEDED
    assert isinstance(extend(ledger, a_timer()), Refused)


@pytest.mark.parametrize("lease_until", [NOON + 2 * HOUR, NOON + HOUR / 2])
def test_who_names_another_id_of_the_same_key_prolongs_nothing(ledger: Ledger, lease_until: datetime):
    timer = a_held_timer(ledger)
    job_id = job_id_of(timer.job)
    other = replace(job_id, due_at=job_id.due_at + HOUR)

    assert isinstance(extend(ledger, timer, lease_until=lease_until, job_id=other), Refused)
    assert row_of(ledger, timer).lease_until == NOON + HOUR
    assert isinstance(extend(ledger, timer, lease_until=lease_until, job_id=job_id), LedgerRow)


def test_who_needs_no_very_id_prolongs_the_lease_of_another_id_of_the_same_key(ledger: Ledger):
    timer = a_held_timer(ledger)
    job_id = job_id_of(timer.job)
    other = replace(job_id, due_at=job_id.due_at + HOUR)

    assert isinstance(extend(ledger, timer, job_id=other, needs_id=False), LedgerRow)
    assert row_of(ledger, timer).lease_until == NOON + 2 * HOUR


def test_a_heartbeat_learns_of_a_requested_cancel(ledger: Ledger):
    timer = a_held_timer(ledger)
    ledger.request_cancel(job_id_of(timer.job), row=row_of(ledger, timer), now=NOON)

    row = extend(ledger, timer, lease_until=NOON + 2 * HOUR)

    assert isinstance(row, LedgerRow)
    assert row.cancel_requested


def test_the_record_goes_with_the_attempt(ledger: Ledger):
    settled, retried, taken = (a_held_timer(ledger) for _ in range(3))

    ledger.settle(settled, Event.SUCCEED, fence=1, owner="me", now=NOON)
    ledger.settle(retried, Event.RETRY, fence=1, owner="me", now=NOON)
    watchdog = taken.watchdog(due_at=NOON + 2 * HOUR)
    seen = row_of(ledger, taken)
    answer = ledger.rescue(watchdog, row=seen, owner="dog", lease_until=NOON + 3 * HOUR, now=NOON + 2 * HOUR)

    assert answer == Claimed(fence=2, rescue_count=0)
    assert [row_of(ledger, timer).held for timer in (settled, retried, taken)] == ["", "", ""]


@pytest.mark.parametrize("event", [Event.SUCCEED, Event.RETRY])
def test_of_two_requests_that_end_a_held_attempt_one_does(ledger: Ledger, event: Event):
    timer = a_held_timer(ledger)

    answers = [
        ledger.settle(timer, event, fence=1, owner=owner, now=NOON, error=owner) for owner in ("one", "two", "one")
    ]

    assert [type(answer) for answer in answers] == [Applied, Refused, Applied]
    assert row_of(ledger, timer).error == "one"


def test_of_two_requests_that_fail_a_held_attempt_for_good_one_leaves_a_dead_letter(ledger_subject: LedgerSubject):
    timer = a_held_timer(ledger_subject.ledger)
    letters = [replace(a_dead_letter(timer), dead_at=NOON + number * SECOND) for number in range(2)]

    answers = [
        ledger_subject.ledger.fail(letter, timer.job, fence=1, owner=f"request {number}", now=NOON)
        for number, letter in enumerate(letters)
    ]

    assert [type(answer) for answer in answers] == [Applied, Refused]
    assert ledger_subject.letters() == letters[:1]


def test_a_watchdog_does_not_run_a_retry_before_its_time(ledger: Ledger):
    timer = a_held_timer(ledger)
    retry_at = NOON + 2 * HOUR
    ledger.settle(replace(timer, due_at=retry_at), Event.RETRY, fence=1, owner="me", now=NOON)

    early = claim(ledger, timer.watchdog(due_at=retry_at - MILLISECOND))
    in_time = claim(ledger, timer.watchdog(due_at=retry_at))

    assert isinstance(early, Refused)
    assert in_time == Claimed(fence=2, rescue_count=0)


def test_a_parked_attempt_is_scheduled_until_it_is_claimed(ledger: Ledger):
    timer = a_timer()

    assert park(ledger, timer, until=NOON + HOUR) == Applied()
    row = row_of(ledger, timer)
    assert (row.state, row.due_at, row.parked_until) == (State.SCHEDULED, timer.due_at, NOON + HOUR)
    assert row.job_id == str(job_id_of(timer.job))
    assert claim(ledger, timer) == Claimed(fence=1, rescue_count=0)


def test_a_parked_retry_stays_one_and_keeps_its_time(ledger: Ledger):
    timer = a_held_timer(ledger)
    ledger.settle(replace(timer, due_at=NOON + SECOND), Event.RETRY, fence=1, owner="me", now=NOON)

    park(ledger, timer.watchdog(due_at=NOON + SECOND), until=NOON + HOUR)

    row = row_of(ledger, timer)
    assert (row.state, row.due_at, row.parked_until) == (State.RETRYING, NOON + SECOND, NOON + HOUR)


def test_a_watchdog_is_parked_beside_the_attempt_that_it_watches(ledger: Ledger):
    timer = a_held_timer(ledger)
    before = row_of(ledger, timer)

    assert park(ledger, timer.watchdog(due_at=NOON), until=NOON + HOUR) == Applied()
    assert row_of(ledger, timer) == replace(before, parked_until=NOON + HOUR)


def test_what_is_settled_or_superseded_is_not_parked(ledger: Ledger):
    settled, retried, ahead = (a_claimed(ledger) for _ in range(3))
    ledger.settle(settled, Event.SUCCEED, fence=1, owner="me", now=NOON)
    ledger.settle(replace(retried, due_at=NOON + HOUR), Event.RETRY, fence=1, owner="me", now=NOON)
    ledger.settle(replace(ahead, due_at=NOON + HOUR), Event.RETRY, fence=1, owner="me", now=NOON)

    for timer in (settled, retried, ahead.watchdog(due_at=NOON)):
        before = row_of(ledger, timer)
        answer = park(ledger, timer, until=NOON + HOUR)
        assert isinstance(answer, Refused)
        assert answer.row == row_of(ledger, timer) == before


def test_a_row_outlives_the_message_of_a_parked_attempt(ledger_subject: LedgerSubject):
    timer = a_timer()
    far = NOON + timedelta(days=1)

    park(ledger_subject.ledger, timer, until=far)

    assert ledger_subject.expires_at(timer.job.key) >= far + LEDGER_LIFE


def test_a_replay_lets_a_failed_job_be_claimed_once_more(ledger: Ledger):
    timer = a_failed_timer(ledger)
    again = timer.replayed(due_at=NOON + HOUR)

    assert replay(ledger, again) == Applied()
    row = row_of(ledger, timer)
    assert (row.state, row.attempt, row.due_at) == (State.RETRYING, 2, NOON + HOUR)
    assert isinstance(claim(ledger, timer), Refused)
    assert isinstance(claim(ledger, timer.watchdog(due_at=NOON + 2 * HOUR)), Refused)
    assert claim(ledger, again) == Claimed(fence=2, rescue_count=0)


def test_a_replay_is_repeatable_until_somebody_has_claimed_it_and_runs_once(ledger: Ledger):
    timer = a_failed_timer(ledger)
    first, sooner = timer.replayed(due_at=NOON + HOUR), timer.replayed(due_at=NOON)

    assert replay(ledger, first) == Applied()
    assert replay(ledger, first, owner="another") == Applied()
    assert replay(ledger, sooner, owner="another") == Applied()
    assert isinstance(claim(ledger, sooner), Claimed)
    assert isinstance(claim(ledger, first, owner="another"), Refused)
    assert isinstance(replay(ledger, sooner), Refused)


def test_a_replay_is_not_put_off_by_another_whose_message_may_never_come(ledger: Ledger):
    timer = a_failed_timer(ledger)
    first, later = timer.replayed(due_at=NOON), timer.replayed(due_at=NOON + HOUR)
    replay(ledger, first)

    answer = replay(ledger, later, owner="another")

    assert isinstance(answer, Refused)
    assert answer.row == row_of(ledger, timer)
    assert isinstance(claim(ledger, first), Claimed)


def test_a_replay_of_what_has_not_failed_is_refused_with_the_row(ledger: Ledger):
    timer = a_claimed(ledger)

    answer = replay(ledger, timer.replayed(due_at=NOON))

    assert isinstance(answer, Refused)
    assert answer.row == row_of(ledger, timer)


def test_a_job_whose_row_has_expired_is_replayed_too(ledger: Ledger):
    timer = a_timer(attempt=5)
    again = timer.replayed(due_at=NOON)

    assert replay(ledger, again) == Applied()
    assert row_of(ledger, timer).attempt == 6
    assert isinstance(claim(ledger, again), Claimed)


def test_a_replay_forgets_a_cancel_that_came_too_late(ledger: Ledger):
    timer = a_claimed(ledger)
    ledger.request_cancel(job_id_of(timer.job), row=row_of(ledger, timer), now=NOON)
    fail(ledger, timer)

    again = timer.replayed(due_at=NOON)
    replay(ledger, again)

    assert claim(ledger, again) == Claimed(fence=2, rescue_count=0, cancel_requested=False)


def a_held_timer(ledger: Ledger) -> Timer:
    timer = a_claimed(ledger)
    assert hold(ledger, timer) == Applied()
    return timer


def a_failed_timer(ledger: Ledger) -> Timer:
    timer = a_claimed(ledger)
    fail(ledger, timer)
    return timer


def fail(ledger: Ledger, timer: Timer) -> None:
    row = row_of(ledger, timer)
    assert ledger.bury(a_dead_letter(timer), timer.job, row=row, owner="me", now=NOON) == Applied()


def replay(ledger: Ledger, timer: Timer, *, owner: str = "op") -> Applied | Refused:
    return ledger.replay(timer, far=timer, job_id=str(job_id_of(timer.job)), fence=0, owner=owner, now=NOON)


def claim(ledger: Ledger, timer: Timer, *, owner: str = "me") -> Claimed | Refused:
    return ledger.claim(timer, owner=owner, lease_until=LEASE, now=NOON)


def hold(ledger: Ledger, timer: Timer, **options: Any) -> Applied | Refused:
    given: dict[str, Any] = {"fence": 1, "owner": "me", "lease_until": NOON + HOUR, **options}
    return ledger.hold(timer, now=NOON, **given)


def park(ledger: Ledger, timer: Timer, *, until: datetime) -> Applied | Refused:
    return ledger.park(timer, until=until, now=NOON)


def extend(ledger: Ledger, timer: Timer, **options: Any) -> LedgerRow | Refused:
    given: dict[str, Any] = {"job_id": job_id_of(timer.job), "fence": 1, "lease_until": NOON + 2 * HOUR, **options}
    return ledger.extend(now=NOON, **given)


def row_of(ledger: Ledger, timer: Timer) -> LedgerRow:
    row = ledger.get(timer.job.key)
    assert row is not None
    return row
