"""What every ledger keeps of a job in the hands of its owner: ended by its target, let run now, moved to another id."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.domain.instants import HOUR, MILLISECOND, SECOND
from functions.domain.jobs.claims import LEDGER_LIFE, MOVED_LIFE, LedgerRow
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import job_id_of, moved_identity
from functions.domain.lifecycle import Event, State
from functions.ports.ledger import Applied, Claimed, Ledger, Refused
from testkit.builders import NOON, a_dead_letter, a_timer
from tests.contract.conftest import LedgerSubject

YEAR = timedelta(days=365)
LEASE = NOON + 15 * SECOND


class TestHeartbeats:
    def test_a_hold_after_a_heartbeat_keeps_the_longer_lease(self, ledger: Ledger):
        timer = a_claimed(ledger)
        ledger.extend(job_id_of(timer.job), fence=1, lease_until=NOON + HOUR, now=NOON)

        assert hold(ledger, timer, lease_until=LEASE) == Applied()

        row = row_of(ledger, timer)
        assert (row.lease_until, bool(row.held)) == (NOON + HOUR, True)

    def test_a_row_of_a_job_that_runs_before_its_time_outlives_that_time(self, ledger_subject: LedgerSubject):
        ledger, timer = ledger_subject.ledger, an_early_timer()
        claim(ledger, timer)

        ledger.extend(job_id_of(timer.job), fence=1, lease_until=LEASE + HOUR, now=NOON)

        assert ledger_subject.expires_at(timer.job.key) >= NOON + YEAR + LEDGER_LIFE


class TestCompletions:
    def test_a_running_attempt_without_a_record_succeeds_and_stays_its_worker_s(self, ledger: Ledger):
        timer = a_claimed(ledger)

        assert complete(ledger, timer, result="3") == Applied()

        row = row_of(ledger, timer)
        assert (row.state, row.result, row.owner, row.fence) == (State.SUCCEEDED, "3", "me", 1)
        settled = ledger.settle(timer, Event.SUCCEED, fence=1, owner="me", now=NOON)
        assert settled == Applied()

    def test_an_attempt_with_a_record_is_not_ended_past_it(self, ledger: Ledger):
        timer = a_claimed(ledger)
        hold(ledger, timer)

        answer = complete(ledger, timer)

        assert answer == Refused(row_of(ledger, timer))
        assert row_of(ledger, timer).state is State.RUNNING

    def test_a_stale_fence_ends_nothing(self, ledger: Ledger):
        timer = a_claimed(ledger)

        assert complete(ledger, timer, fence=2) == Refused(row_of(ledger, timer))
        assert complete(ledger, a_timer()) == Refused(None)

    def test_a_repeated_completion_meets_the_first(self, ledger: Ledger):
        timer = a_claimed(ledger)
        complete(ledger, timer, result="1")

        answer = complete(ledger, timer, result="2")

        assert isinstance(answer, Refused)
        assert answer.row is not None
        assert (answer.row.state, answer.row.fence, answer.row.result) == (State.SUCCEEDED, 1, "1")

    def test_a_completed_row_keeps_the_first_400_characters_of_its_result(self, ledger: Ledger):
        timer = a_claimed(ledger)

        complete(ledger, timer, result="é" * 1_000)

        assert row_of(ledger, timer).result == "é" * 400

    def test_a_completed_row_says_where_its_whole_result_is(self, ledger: Ledger):
        timer = a_claimed(ledger)

        ledger.complete(job_id_of(timer.job), fence=1, result="1", whole="digest.500", now=NOON)

        assert row_of(ledger, timer).whole == "digest.500"

    def test_a_completed_row_outlives_the_time_of_its_job(self, ledger_subject: LedgerSubject):
        ledger, timer = ledger_subject.ledger, an_early_timer()
        claim(ledger, timer)

        complete(ledger, timer)

        assert ledger_subject.expires_at(timer.job.key) >= NOON + YEAR + LEDGER_LIFE


class TestRetriesThatAreHastened:
    def test_a_retry_comes_due_earlier(self, ledger: Ledger):
        timer = a_retried(ledger)

        assert hasten(ledger, timer) == Applied()

        row = row_of(ledger, timer)
        assert (row.state, row.attempt, row.due_at) == (State.RETRYING, 1, NOON + SECOND)
        assert claim(ledger, replace(timer, due_at=NOON + SECOND - MILLISECOND)) == Refused(row)
        assert claim(ledger, replace(timer, due_at=NOON + SECOND)) == Claimed(fence=2)

    def test_the_message_of_its_old_time_may_still_be_the_first(self, ledger: Ledger):
        timer = a_retried(ledger)
        hasten(ledger, timer)

        assert claim(ledger, timer) == Claimed(fence=2)

    def test_a_retry_that_was_changed_since_is_left(self, ledger: Ledger):
        timer = a_retried(ledger)
        seen = row_of(ledger, timer)
        hasten(ledger, timer, owner="first")

        answer = hasten(ledger, timer, due_at=NOON + 2 * SECOND, row=seen, owner="second")

        assert answer == Refused(row_of(ledger, timer))
        assert row_of(ledger, timer).due_at == NOON + SECOND

    def test_a_hastening_whose_answer_was_lost_recognises_itself(self, ledger: Ledger):
        timer = a_retried(ledger)
        seen = row_of(ledger, timer)
        hasten(ledger, timer, row=seen, owner="op")

        assert hasten(ledger, timer, row=seen, owner="op") == Applied()

    @pytest.mark.parametrize("attempt", [1, 3])
    def test_only_the_very_next_attempt_is_hastened(self, ledger: Ledger, attempt: int):
        timer = a_retried(ledger)

        assert isinstance(hasten(ledger, replace(timer, attempt=attempt)), Refused)

    def test_an_attempt_that_has_begun_is_left(self, ledger: Ledger):
        timer = a_retried(ledger)
        seen = row_of(ledger, timer)
        claim(ledger, timer)

        assert hasten(ledger, timer, row=seen) == Refused(row_of(ledger, timer))

    def test_a_settle_that_is_made_once_more_does_not_put_it_off_again(self, ledger: Ledger):
        timer = a_retried(ledger)
        hasten(ledger, timer)

        answer = ledger.settle(timer, Event.RETRY, fence=1, owner="me", now=NOON)

        assert isinstance(answer, Refused)
        assert row_of(ledger, timer).due_at == NOON + SECOND

    def test_a_row_outlives_the_retry_s_own_time(self, ledger_subject: LedgerSubject):
        timer = a_retried(ledger_subject.ledger)

        hasten(ledger_subject.ledger, timer)

        assert ledger_subject.expires_at(timer.job.key) >= timer.due_at + LEDGER_LIFE


class TestMoves:
    @pytest.mark.parametrize("is_registered", [False, True])
    def test_a_job_that_waits_goes_on_under_another_id(self, ledger_subject: LedgerSubject, is_registered: bool):
        ledger, old, new = ledger_subject.ledger, a_timer(due_at=NOON + HOUR), a_timer(due_at=NOON + 2 * HOUR)
        old_id = str(job_id_of(old.job))
        if is_registered:
            ledger.register(old.job, job_id=old_id, fingerprint="f", owner="api", now=NOON)

        assert move(ledger, old, new) == Applied()

        assert row_of(ledger, old) == LedgerRow(
            state=State.MOVED,
            owner="op",
            due_at=NOON + HOUR,
            job_id=old_id,
            fingerprint="f" if is_registered else "",
            moved_to=str(job_id_of(new.job)),
            updated_at=NOON,
        )
        assert ledger_subject.timers.get(job_id_of(new.job)) == new
        assert ledger.get(new.job.key) is None

    def test_every_message_of_the_old_job_is_refused(self, ledger: Ledger):
        old = a_timer()
        move(ledger, old, a_timer())

        assert claim(ledger, old) == Refused(row_of(ledger, old))
        assert ledger.attempt(old, Event.ATTEMPT, owner="w", now=NOON) == Refused(row_of(ledger, old))

    def test_a_second_move_is_refused_and_leaves_no_timer(self, ledger_subject: LedgerSubject):
        ledger, old, first, second = ledger_subject.ledger, a_timer(), a_timer(), a_timer()
        move(ledger, old, first, owner="first")

        answer = move(ledger, old, second, owner="second")

        assert answer == Refused(row_of(ledger, old))
        assert row_of(ledger, old).moved_to == str(job_id_of(first.job))
        assert ledger_subject.timers.get(job_id_of(second.job)) is None

    def test_a_move_whose_answer_was_lost_recognises_itself(self, ledger: Ledger):
        old, new = a_timer(), a_timer()
        move(ledger, old, new)

        assert move(ledger, old, new) == Applied()

    def test_what_a_worker_has_had_is_not_moved(self, ledger_subject: LedgerSubject):
        ledger, new = ledger_subject.ledger, a_timer()
        released = a_claimed(ledger)
        ledger.settle(released, Event.RELEASE, fence=1, owner="me", now=NOON)

        for old in (a_claimed(ledger), a_retried(ledger), released):
            assert move(ledger, old, new) == Refused(row_of(ledger, old))
        assert ledger_subject.timers.get(job_id_of(new.job)) is None

    def test_what_is_to_be_cancelled_is_not_moved(self, ledger: Ledger):
        asked, cancelled = a_timer(), a_timer()
        ledger.register(asked.job, job_id="j1~x", fingerprint="f", owner="api", now=NOON)
        ledger.request_cancel(job_id_of(asked.job), row=row_of(ledger, asked), now=NOON)
        ledger.cancel(job_id_of(cancelled.job), owner="api", now=NOON)

        for old in (asked, cancelled):
            assert isinstance(move(ledger, old, a_timer()), Refused)

    def test_a_moved_job_is_not_cancelled(self, ledger: Ledger):
        old = a_timer()
        move(ledger, old, a_timer())

        assert ledger.cancel(job_id_of(old.job), owner="api", now=NOON) == Refused(row_of(ledger, old))

    @pytest.mark.parametrize(("old", "new"), [(YEAR, HOUR), (HOUR, YEAR)])
    def test_a_moved_row_outlives_both_times(self, ledger_subject: LedgerSubject, old: timedelta, new: timedelta):
        timer = a_timer(due_at=NOON + old)

        move(ledger_subject.ledger, timer, a_timer(due_at=NOON + new))

        assert ledger_subject.expires_at(timer.job.key) >= NOON + YEAR + MOVED_LIFE

    def test_the_row_of_the_first_job_points_to_the_newest_and_lives_on(self, ledger_subject: LedgerSubject):
        ledger = ledger_subject.ledger
        first, second, third = (a_timer(due_at=NOON + due) for due in (HOUR, 2 * HOUR, YEAR))
        ledger.register(first.job, job_id=str(job_id_of(first.job)), fingerprint="f", owner="api", now=NOON)
        move(ledger, first, second)
        before = row_of(ledger, first)

        assert move(ledger, second, third, now=NOON + HOUR, first=job_id_of(first.job)) == Applied()

        newest = str(job_id_of(third.job))
        assert row_of(ledger, first) == replace(before, moved_to=newest, updated_at=NOON + HOUR)
        assert row_of(ledger, second).moved_to == newest
        assert ledger_subject.expires_at(first.job.key) >= NOON + YEAR + MOVED_LIFE
        assert move(ledger, second, third, now=NOON + HOUR, first=job_id_of(first.job)) == Applied()

    def test_a_move_to_a_sooner_time_shortens_no_life_of_the_first_job_s_row(self, ledger_subject: LedgerSubject):
        ledger = ledger_subject.ledger
        first, second, third = (a_timer(due_at=NOON + due) for due in (YEAR, 2 * HOUR, HOUR))
        move(ledger, first, second)

        move(ledger, second, third, first=job_id_of(first.job))

        assert ledger_subject.expires_at(first.job.key) >= NOON + YEAR + MOVED_LIFE

    def test_the_row_of_the_first_job_is_renewed_for_the_job_that_it_points_to(self, ledger_subject: LedgerSubject):
        ledger = ledger_subject.ledger
        first = a_timer(due_at=NOON + HOUR)
        second = a_timer(due_at=NOON + 2 * HOUR, identity=moved_identity(first.job.identity, unique="2"))
        move(ledger, first, second)
        before = row_of(ledger, first)

        ledger.renew_first(second, now=NOON + YEAR)

        assert row_of(ledger, first) == before
        assert ledger_subject.expires_at(first.job.key) >= NOON + YEAR + MOVED_LIFE
        ledger.renew_first(second, now=NOON)
        assert ledger_subject.expires_at(first.job.key) >= NOON + YEAR + MOVED_LIFE

    @pytest.mark.parametrize("is_there", [False, True])
    def test_no_row_is_renewed_that_points_elsewhere(self, ledger_subject: LedgerSubject, is_there: bool):
        ledger = ledger_subject.ledger
        first = a_timer(due_at=NOON + HOUR)
        second, third = (
            a_timer(due_at=NOON + 2 * HOUR, identity=moved_identity(first.job.identity, unique=unique))
            for unique in ("2", "3")
        )
        if is_there:
            move(ledger, first, third)
        before = ledger_subject.expires_at(first.job.key) if is_there else None

        ledger.renew_first(second, now=NOON + YEAR)

        assert (ledger.get(first.job.key) is not None) is is_there
        if is_there:
            assert ledger_subject.expires_at(first.job.key) == before

    @pytest.mark.parametrize("is_there", [False, True])
    def test_nothing_is_moved_when_the_first_job_s_row_is_another_s_by_now(
        self, ledger_subject: LedgerSubject, is_there: bool
    ):
        ledger, first, second, third = ledger_subject.ledger, a_timer(), a_timer(), a_timer()
        if is_there:
            ledger.register(first.job, job_id=str(job_id_of(first.job)), fingerprint="f", owner="api", now=NOON)

        assert isinstance(move(ledger, second, third, first=job_id_of(first.job)), Refused)

        assert ledger.get(second.job.key) is None
        assert ledger_subject.timers.get(job_id_of(third.job)) is None


class TestJobsThatRunBeforeTheirTime:
    """They may have left a far row behind, whose message comes at their own time: it must meet a row."""

    def test_however_they_end(self, ledger_subject: LedgerSubject):
        ledger = ledger_subject.ledger
        ends = [started_once, claimed, settled, held, parked, dead]

        for end in ends:
            timer = an_early_timer()
            end(ledger, timer)
            assert ledger_subject.expires_at(timer.job.key) >= NOON + YEAR + LEDGER_LIFE, end.__name__


def an_early_timer() -> Timer:
    """Of a job that was to run in a year, and is let run now."""
    return replace(a_timer(due_at=NOON + YEAR), due_at=NOON)


def started_once(ledger: Ledger, timer: Timer) -> None:
    ledger.attempt(timer, Event.ATTEMPT, owner="me", now=NOON)


def claimed(ledger: Ledger, timer: Timer) -> None:
    claim(ledger, timer)


def settled(ledger: Ledger, timer: Timer) -> None:
    claim(ledger, timer)
    ledger.settle(timer, Event.SUCCEED, fence=1, owner="me", now=NOON)


def held(ledger: Ledger, timer: Timer) -> None:
    claim(ledger, timer)
    hold(ledger, timer)


def parked(ledger: Ledger, timer: Timer) -> None:
    ledger.park(timer, until=NOON + HOUR, now=NOON)


def dead(ledger: Ledger, timer: Timer) -> None:
    claim(ledger, timer)
    ledger.fail(a_dead_letter(timer), timer.job, fence=1, owner="me", now=NOON)


def a_claimed(ledger: Ledger) -> Timer:
    timer = a_timer()
    assert isinstance(claim(ledger, timer), Claimed)
    return timer


def a_retried(ledger: Ledger) -> Timer:
    """The next attempt of a job whose first has failed, in an hour."""
    timer = a_claimed(ledger)
    due_at = NOON + HOUR
    ledger.settle(replace(timer, due_at=due_at), Event.RETRY, fence=1, owner="me", now=NOON)
    return replace(timer, attempt=2, due_at=due_at)


def claim(ledger: Ledger, timer: Timer) -> Claimed | Refused:
    return ledger.claim(timer, owner="me", lease_until=LEASE, now=NOON)


def hold(ledger: Ledger, timer: Timer, *, lease_until: datetime = NOON + HOUR) -> Applied | Refused:
    return ledger.hold(timer, fence=1, owner="me", lease_until=lease_until, now=NOON)


def complete(ledger: Ledger, timer: Timer, *, fence: int = 1, result: str = "") -> Applied | Refused:
    return ledger.complete(job_id_of(timer.job), fence=fence, result=result, now=NOON)


def hasten(
    ledger: Ledger,
    timer: Timer,
    *,
    due_at: datetime = NOON + SECOND,
    row: LedgerRow | None = None,
    owner: str = "op",
) -> Applied | Refused:
    """From the row that was seen, or the row as it is now."""
    return ledger.hasten(replace(timer, due_at=due_at), row=row or row_of(ledger, timer), owner=owner, now=NOON)


def move(ledger: Ledger, old: Timer, new: Timer, **options: Any) -> Applied | Refused:
    return ledger.move(job_id_of(old.job), new, **{"owner": "op", "now": NOON, **options})


def row_of(ledger: Ledger, timer: Timer) -> LedgerRow:
    row = ledger.get(timer.job.key)
    assert row is not None
    return row
