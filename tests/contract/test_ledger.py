"""What every ledger keeps: the fake, the adapter on moto, and the adapter on AWS's own engine."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from functions.domain.far_ring.asked_record import encode_asked
from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.jobs.claims import LEDGER_LIFE, MESSAGE_LIFE, LedgerRow
from functions.domain.jobs.job import Job, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.past_attempts import PastAttempt, read_attempts, with_attempt
from functions.domain.jobs.retry import MAX_BACKOFF
from functions.domain.lifecycle import Event, State
from functions.ports.dead_letters import DeadLetter
from functions.ports.ledger import Applied, Cancelled, Claimed, Ledger, Refused
from testkit.builders import LOCAL_WHEEL, NOON, a_dead_letter, a_job, a_timer
from tests.contract.conftest import ON_DYNAMODB, LedgerSubject

LEASE = timedelta(seconds=15)
SKEW = LOCAL_WHEEL.skew


def test_a_job_without_a_row_has_none(ledger: Ledger):
    assert ledger.get("acme#nobody") is None


def test_starts_of_an_attempt_without_a_row_are_counted_and_are_no_row(ledger: Ledger):
    timer = a_timer()
    for _ in range(2):
        ledger.note_start(timer, now=NOON)

    assert (ledger.starts_of(timer), ledger.starts_of(a_next(timer)), ledger.starts_of(a_timer())) == (2, 0, 0)
    assert ledger.get(timer.job.key) is None


def test_a_start_that_is_taken_back_does_not_count_and_requeues_are_counted_beside_it(ledger: Ledger):
    timer = a_timer()
    ledger.note_start(timer, now=NOON)
    ledger.note_start(timer, now=NOON, is_taken_back=True)

    assert [ledger.note_requeue(timer, now=NOON) for _ in range(2)] == [1, 2]
    assert ledger.starts_of(timer) == 0


def test_a_callback_is_registered_once_with_the_id_that_it_was_given_first(ledger: Ledger):
    job = a_job()
    first, second = str(job_id_of(job)), str(job_id_of(replace(job, scheduled_at=NOON + timedelta(hours=1))))

    for owner, job_id in (("me", first), ("me", first), ("you", second)):
        answer = ledger.register_callback(job, job_id=job_id, owner=owner, now=NOON)
        assert isinstance(answer, Refused) == (owner == "you")

    row = ledger.get(job.key)
    assert row is not None
    assert (row.state, row.job_id, row.fingerprint) == (State.SCHEDULED, first, "")


def test_a_registered_job_is_scheduled_with_its_id_and_its_fingerprint(ledger: Ledger):
    job = a_job(due_at=NOON + 5 * SECOND)

    answer = ledger.register(job, job_id=str(job_id_of(job)), fingerprint="f1", owner="me", now=NOON)

    assert isinstance(answer, Applied)
    assert ledger.get(job.key) == LedgerRow(
        state=State.SCHEDULED,
        owner="me",
        due_at=NOON + 5 * SECOND,
        job_id=str(job_id_of(job)),
        fingerprint="f1",
        updated_at=NOON,
    )


def test_a_second_registration_is_refused_with_the_first_row(ledger: Ledger):
    job = a_job()
    register(ledger, job, owner="first")

    answer = register(ledger, job, owner="second", fingerprint="other")

    assert isinstance(answer, Refused)
    assert answer.row == ledger.get(job.key)
    assert row_of(ledger, job).fingerprint == "f1"


def test_a_registration_whose_answer_was_lost_recognises_itself(ledger: Ledger):
    job = a_job()
    register(ledger, job, owner="me")

    assert isinstance(register(ledger, job, owner="me"), Applied)


def test_a_registration_repeated_after_a_cancel_does_not_bring_the_job_back(ledger: Ledger):
    job = a_job()
    register(ledger, job, owner="me")
    ledger.cancel(job_id_of(job), owner="canceller", now=NOON)

    answer = register(ledger, job, owner="me")

    assert isinstance(answer, Refused)
    assert row_of(ledger, job).state is State.CANCELLED


def test_a_claim_without_a_row_takes_the_first_fence(ledger: Ledger):
    timer = a_timer()

    answer = claim(ledger, timer, owner="me")

    assert answer == Claimed(fence=1, rescue_count=0)
    assert row_of(ledger, timer.job) == LedgerRow(
        state=State.RUNNING,
        attempt=1,
        fence=1,
        owner="me",
        due_at=timer.due_at,
        lease_until=NOON + LEASE,
        job_id=str(job_id_of(timer.job)),
        updated_at=NOON,
        asked=encode_asked(timer.job),
    )


def test_a_row_keeps_its_failed_attempts_and_those_of_dead_workers(ledger: Ledger):
    timer, past = a_timer(), PastAttempt(attempt=1, ended_at=NOON, error_class="http_500", error="500")
    claim(ledger, timer, owner="me")
    tried = with_attempt("", past, room=500)
    settle(ledger, timer.job, Event.RETRY, fence=1, owner="me", tried=tried)
    second = a_next(timer)

    claimed = claim(ledger, second, owner="dies")
    assert isinstance(claimed, Claimed)
    assert claimed.tried == tried
    later = NOON + 2 * LEASE + 2 * SKEW
    rescued = rescue(ledger, second, owner="next", now=later)

    assert isinstance(rescued, Claimed)
    died = PastAttempt(attempt=2, ended_at=NOON + LEASE, error_class="worker_died", error="its worker died")
    assert read_attempts(rescued.tried) == read_attempts(row_of(ledger, timer.job).tried) == [past, died]
    settle(ledger, timer.job, Event.SUCCEED, fence=2 + 1, owner="next")
    assert read_attempts(row_of(ledger, timer.job).tried) == [past, died]


def test_the_failed_attempts_of_a_job_that_failed_for_good_are_kept_with_its_end(ledger: Ledger):
    timer, past = a_timer(), PastAttempt(attempt=1, ended_at=NOON, error_class="http_400", error="400")
    claim(ledger, timer, owner="me")

    ledger.fail(a_dead_letter(timer), timer.job, fence=1, owner="me", now=NOON, tried=with_attempt("", past, room=500))

    assert read_attempts(row_of(ledger, timer.job).tried) == [past]


def test_a_claim_of_a_registered_job_keeps_its_fingerprint(ledger: Ledger):
    timer = a_timer()
    register(ledger, timer.job, owner="api")

    assert claim(ledger, timer, owner="me") == Claimed(fence=1)
    assert row_of(ledger, timer.job).fingerprint == "f1"


def test_a_claim_of_a_running_attempt_is_refused_with_the_row_it_found(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="first")

    answer = claim(ledger, timer, owner="second")

    assert isinstance(answer, Refused)
    assert answer.row == ledger.get(timer.job.key)
    assert row_of(ledger, timer.job).owner == "first"


def test_a_claim_is_refused_even_when_the_lease_it_meets_is_long_over(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="first")

    answer = claim(ledger, timer, owner="second", now=NOON + timedelta(days=1))

    assert isinstance(answer, Refused)


def test_a_claim_whose_answer_was_lost_recognises_itself(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="me")

    answer = claim(ledger, timer, owner="me")

    assert isinstance(answer, Claimed)
    assert answer.fence == row_of(ledger, timer.job).fence


def test_an_owner_s_claim_of_another_attempt_is_refused(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="me")

    assert isinstance(claim(ledger, a_next(timer), owner="me"), Refused)


def test_a_retrying_job_is_claimed_by_a_higher_attempt_with_a_higher_fence(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="first")
    settle(ledger, timer.job, Event.RETRY, fence=1, owner="first")

    assert claim(ledger, a_next(timer), owner="second") == Claimed(fence=2)


@pytest.mark.parametrize("attempt", [1, 2])
def test_a_retrying_job_refuses_an_attempt_that_is_not_higher(ledger: Ledger, attempt: int):
    timer = a_timer(attempt=2)
    claim(ledger, timer, owner="first")
    settle(ledger, timer.job, Event.RETRY, fence=1, owner="first")

    answer = claim(ledger, a_next(timer, attempt=attempt), owner="second")

    assert isinstance(answer, Refused)
    assert answer.row is not None
    assert answer.row.state is State.RETRYING


def test_a_rescue_takes_an_attempt_whose_lease_is_over_and_counts_it(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="dead")

    answer = rescue(ledger, timer, owner="me", now=NOON + LEASE + SKEW + MILLISECOND)

    assert answer == Claimed(fence=2, rescue_count=1)
    row = row_of(ledger, timer.job)
    assert (row.owner, row.fence, row.rescue_count, row.lease_until) == (
        "me",
        2,
        1,
        NOON + LEASE + SKEW + MILLISECOND + LEASE,
    )


def test_a_lease_is_broken_only_when_it_is_over_by_more_than_the_skew(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="slow")

    answer = rescue(ledger, timer, owner="me", now=NOON + LEASE + SKEW)

    assert isinstance(answer, Refused)
    assert row_of(ledger, timer.job).owner == "slow"


def test_a_rescue_is_refused_when_the_fence_has_grown_since_it_was_seen(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="dead")
    seen = row_of(ledger, timer.job)
    over = NOON + LEASE + SKEW + SECOND
    rescue(ledger, timer, row=seen, owner="quick", now=over)

    answer = rescue(ledger, timer, row=seen, owner="late", now=over + LEASE + SKEW + SECOND)

    assert answer == Refused(ledger.get(timer.job.key))
    assert row_of(ledger, timer.job).owner == "quick"


def test_a_rescue_is_refused_when_the_attempt_was_released_since_it_was_seen(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="slow")
    seen = row_of(ledger, timer.job)
    settle(ledger, timer.job, Event.RELEASE, fence=1, owner="slow")

    answer = rescue(ledger, timer, row=seen, owner="me", now=NOON + timedelta(days=1))

    assert answer == Refused(ledger.get(timer.job.key))
    assert row_of(ledger, timer.job).state is State.SCHEDULED


def test_a_rescue_of_a_row_that_is_gone_is_refused_and_writes_none(ledger: Ledger):
    timer = a_timer()
    seen = LedgerRow(state=State.RUNNING, attempt=1, fence=1, lease_until=NOON)

    assert rescue(ledger, timer, row=seen, owner="me", now=NOON + timedelta(days=1)) == Refused(None)
    assert ledger.get(timer.job.key) is None


def test_a_lower_attempt_does_not_rescue_a_higher_one(ledger: Ledger):
    timer = a_timer(attempt=2)
    claim(ledger, timer, owner="dead")

    answer = rescue(ledger, a_next(timer, attempt=1), owner="me", now=NOON + timedelta(days=1))

    assert isinstance(answer, Refused)


def test_a_higher_attempt_rescues_a_lower_one(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="silent")

    answer = rescue(ledger, a_next(timer), owner="watchdog", now=NOON + timedelta(days=1))

    assert answer == Claimed(fence=2, rescue_count=0)
    assert row_of(ledger, timer.job).attempt == 2


def test_a_rescue_whose_answer_was_lost_takes_the_same_fence_and_counts_one_death(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="dead")
    seen = row_of(ledger, timer.job)
    over = NOON + LEASE + SKEW + SECOND

    answers = [rescue(ledger, timer, row=seen, owner="me", now=over) for _ in range(3)]

    assert answers == [Claimed(fence=2, rescue_count=1)] * 3
    row = row_of(ledger, timer.job)
    assert (row.fence, row.rescue_count, row.owner) == (2, 1, "me")


def test_every_death_of_an_attempt_counts(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="w0")

    answers = [rescue(ledger, timer, owner=f"w{day}", now=NOON + timedelta(days=day)) for day in (1, 2, 3)]

    assert answers == [Claimed(fence=day + 1, rescue_count=day) for day in (1, 2, 3)]


def test_the_claim_of_the_next_attempt_counts_rescues_from_none(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="dead")
    rescue(ledger, timer, owner="rescuer", now=NOON + timedelta(hours=1))
    settle(ledger, timer.job, Event.RETRY, fence=2, owner="rescuer")

    assert claim(ledger, a_next(timer), owner="me") == Claimed(fence=3, rescue_count=0)
    assert row_of(ledger, timer.job).rescue_count == 0


def test_fences_only_grow_through_claims_retries_releases_rescues_and_lost_answers(ledger: Ledger):
    first = a_timer()
    second = a_next(first)
    over = NOON + LEASE + SKEW + SECOND

    answers = [claim(ledger, first, owner="w1")]
    # Its answer was lost: it finds its own row, and the fence that its target may have been given stays.
    assert claim(ledger, first, owner="w1") == answers[0]
    settle(ledger, first.job, Event.RELEASE, fence=fence_of(answers[-1]), owner="w1")
    answers.append(claim(ledger, first, owner="w1"))
    settle(ledger, first.job, Event.RETRY, fence=fence_of(answers[-1]), owner="w1")
    answers.append(claim(ledger, second, owner="w2"))
    answers.append(rescue(ledger, second, owner="w3", now=over))
    settle(ledger, first.job, Event.RELEASE, fence=fence_of(answers[-1]), owner="w3")
    answers.append(claim(ledger, second, owner="w4"))

    fences = [fence_of(answer) for answer in answers]
    assert fences == sorted(set(fences))


def test_a_released_attempt_is_scheduled_and_keeps_its_number_and_its_fence(ledger: Ledger):
    timer = a_timer(attempt=2)
    claim(ledger, timer, owner="me")

    answer = settle(ledger, timer.job, Event.RELEASE, fence=1, owner="me", due_at=timer.due_at, now=NOON + SECOND)

    assert isinstance(answer, Applied)
    row = row_of(ledger, timer.job)
    assert (row.state, row.attempt, row.fence, row.due_at, row.updated_at) == (
        State.SCHEDULED,
        2,
        1,
        timer.due_at,
        NOON + SECOND,
    )


@pytest.mark.parametrize("attempt", [2, 3])
def test_a_released_attempt_is_claimed_again_at_once_or_by_a_later_one(ledger: Ledger, attempt: int):
    timer = a_timer(attempt=2)
    claim(ledger, timer, owner="first")
    settle(ledger, timer.job, Event.RELEASE, fence=1, owner="first")

    assert claim(ledger, a_next(timer, attempt=attempt), owner="second") == Claimed(fence=2)
    row = row_of(ledger, timer.job)
    assert (row.state, row.attempt, row.owner) == (State.RUNNING, attempt, "second")


def test_a_released_attempt_is_not_claimed_by_an_earlier_one(ledger: Ledger):
    timer = a_timer(attempt=2)
    claim(ledger, timer, owner="first")
    settle(ledger, timer.job, Event.RELEASE, fence=1, owner="first")

    answer = claim(ledger, a_next(timer, attempt=1), owner="second")

    assert answer == Refused(ledger.get(timer.job.key))
    assert row_of(ledger, timer.job).state is State.SCHEDULED


def test_a_released_attempt_cannot_be_settled_by_the_worker_that_gave_it_back(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="me")
    settle(ledger, timer.job, Event.RELEASE, fence=1, owner="me")

    assert isinstance(settle(ledger, timer.job, Event.SUCCEED, fence=1, owner="me"), Refused)
    assert isinstance(fail(ledger, a_dead_letter(timer), timer.job, fence=1, owner="me"), Refused)
    assert row_of(ledger, timer.job).state is State.SCHEDULED


def test_a_zombie_does_not_release_what_another_worker_has(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="zombie")
    rescue(ledger, timer, owner="rescuer", now=NOON + timedelta(hours=1))

    assert isinstance(settle(ledger, timer.job, Event.RELEASE, fence=1, owner="zombie"), Refused)
    assert row_of(ledger, timer.job).state is State.RUNNING


def test_a_released_attempt_is_cancelled_like_one_that_was_never_claimed(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="me")
    settle(ledger, timer.job, Event.RELEASE, fence=1, owner="me")

    assert isinstance(ledger.cancel(job_id_of(timer.job), owner="api", now=NOON), Applied)
    assert isinstance(claim(ledger, timer, owner="you"), Refused)


def test_a_released_attempt_that_was_rescued_is_claimed_as_if_it_had_not_been_taken(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="dead")
    rescue(ledger, timer, owner="rescuer", now=NOON + timedelta(hours=1))
    settle(ledger, timer.job, Event.RELEASE, fence=2, owner="rescuer")

    assert claim(ledger, timer, owner="me") == Claimed(fence=3, rescue_count=0)


def test_an_at_most_once_job_is_started_where_there_is_no_row(ledger: Ledger):
    timer = a_timer()

    assert isinstance(ledger.attempt(timer, Event.ATTEMPT, owner="me", now=NOON), Applied)
    row = row_of(ledger, timer.job)
    assert (row.state, row.attempt, row.owner, row.lease_until) == (State.ATTEMPTED, 1, "me", None)


def test_an_at_most_once_job_is_never_started_twice(ledger: Ledger):
    timer = a_timer()
    ledger.attempt(timer, Event.ATTEMPT, owner="first", now=NOON)

    answer = ledger.attempt(timer, Event.ATTEMPT, owner="second", now=NOON + timedelta(days=1))

    assert isinstance(answer, Refused)
    assert answer.row == ledger.get(timer.job.key)


def test_a_start_whose_answer_was_lost_recognises_itself(ledger: Ledger):
    timer = a_timer()
    ledger.attempt(timer, Event.ATTEMPT, owner="me", now=NOON)

    assert isinstance(ledger.attempt(timer, Event.ATTEMPT, owner="me", now=NOON), Applied)


def test_an_at_most_once_job_that_lapsed_is_never_started(ledger: Ledger):
    timer = a_timer()
    ledger.attempt(timer, Event.LAPSE, owner="first", now=NOON)

    answer = ledger.attempt(timer, Event.ATTEMPT, owner="first", now=NOON)

    assert isinstance(answer, Refused)
    assert row_of(ledger, timer.job).state is State.EXPIRED


def test_an_at_most_once_job_with_a_key_is_started_from_its_registered_row(ledger: Ledger):
    timer = a_timer()
    register(ledger, timer.job, owner="api")

    assert isinstance(ledger.attempt(timer, Event.ATTEMPT, owner="me", now=NOON), Applied)
    assert row_of(ledger, timer.job).fingerprint == "f1"


@pytest.mark.parametrize(
    ("event", "state"),
    [
        (Event.SUCCEED, State.SUCCEEDED),
        (Event.RETRY, State.RETRYING),
        (Event.RELEASE, State.SCHEDULED),
        (Event.EXPIRE, State.EXPIRED),
        (Event.WITHDRAW, State.CANCELLED),
    ],
)
def test_a_settled_attempt_keeps_what_became_of_it(ledger: Ledger, event: Event, state: State):
    timer = a_timer()
    claim(ledger, timer, owner="me")

    answer = ledger.settle(
        replace(timer, due_at=NOON + 9 * SECOND),
        event,
        fence=1,
        owner="me",
        now=NOON + SECOND,
        result='{"status":200}',
        error="it hurts",
    )

    assert isinstance(answer, Applied)
    row = row_of(ledger, timer.job)
    assert (row.state, row.due_at, row.updated_at) == (state, NOON + 9 * SECOND, NOON + SECOND)
    assert (row.result, row.error, row.fence, row.attempt) == ('{"status":200}', "it hurts", 1, 1)


def test_a_row_keeps_the_first_400_characters_of_a_result_and_of_an_error(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="me")

    settle(ledger, timer.job, Event.SUCCEED, fence=1, owner="me", result="é" * 401, error="x" * 5_000)

    row = row_of(ledger, timer.job)
    assert (row.result, row.error) == ("é" * 400, "x" * 400)


def test_a_row_says_where_its_whole_result_is(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="me")

    ledger.settle(timer, Event.SUCCEED, fence=1, owner="me", now=NOON, result="1", whole="digest.500")

    assert (row_of(ledger, timer.job).result, row_of(ledger, timer.job).whole) == ("1", "digest.500")


@pytest.mark.parametrize("event", [Event.RELEASE, Event.SUCCEED], ids=["release", "settle"])
def test_an_end_of_an_attempt_whose_answer_was_lost_recognises_itself(ledger: Ledger, event: Event):
    timer = a_timer()
    claim(ledger, timer, owner="me")
    settle(ledger, timer.job, event, fence=1, owner="me")

    assert isinstance(settle(ledger, timer.job, event, fence=1, owner="me"), Applied)


def test_a_zombie_s_settle_is_refused_by_the_fence(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="zombie")
    rescue(ledger, timer, owner="rescuer", now=NOON + timedelta(hours=1))

    answer = settle(ledger, timer.job, Event.SUCCEED, fence=1, owner="zombie")

    assert isinstance(answer, Refused)
    assert row_of(ledger, timer.job).state is State.RUNNING


def test_a_settle_with_another_s_token_is_refused(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="me")

    assert isinstance(settle(ledger, timer.job, Event.SUCCEED, fence=1, owner="thief"), Refused)


def test_a_settle_without_a_row_is_refused_with_none(ledger: Ledger):
    assert settle(ledger, a_job(), Event.SUCCEED, fence=1, owner="me") == Refused(None)


def test_a_settled_attempt_cannot_be_settled_as_something_else(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="me")
    settle(ledger, timer.job, Event.SUCCEED, fence=1, owner="me")

    assert isinstance(settle(ledger, timer.job, Event.RETRY, fence=1, owner="me"), Refused)
    assert row_of(ledger, timer.job).state is State.SUCCEEDED


def test_a_cancel_without_a_row_leaves_a_tombstone_with_the_job_s_id(ledger: Ledger):
    job = a_job(due_at=NOON + 7 * SECOND)

    answer = ledger.cancel(job_id_of(job), owner="me", now=NOON)

    assert answer == Cancelled()
    row = row_of(ledger, job)
    assert (row.state, row.job_id, row.due_at) == (State.CANCELLED, str(job_id_of(job)), job.scheduled_at)


def test_a_tombstone_stops_the_claim_of_every_attempt(ledger: Ledger):
    timer = a_timer()
    ledger.cancel(job_id_of(timer.job), owner="api", now=NOON)

    assert isinstance(claim(ledger, timer, owner="me"), Refused)
    assert isinstance(claim(ledger, a_next(timer, attempt=7), owner="me"), Refused)
    assert isinstance(ledger.attempt(timer, Event.ATTEMPT, owner="me", now=NOON), Refused)


def test_a_cancel_of_a_retrying_job_keeps_its_fence_and_its_error(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="me")
    settle(ledger, timer.job, Event.RETRY, fence=1, owner="me", error="it hurts")

    assert isinstance(ledger.cancel(job_id_of(timer.job), owner="api", now=NOON), Applied)
    row = row_of(ledger, timer.job)
    assert (row.state, row.fence, row.attempt, row.error) == (State.CANCELLED, 1, 1, "it hurts")


def test_a_cancel_of_a_running_job_is_refused_with_its_row(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="me")

    answer = ledger.cancel(job_id_of(timer.job), owner="api", now=NOON)

    assert isinstance(answer, Refused)
    assert answer.row is not None
    assert (answer.row.state, answer.row.fence) == (State.RUNNING, 1)


@pytest.mark.parametrize("is_asked", [False, True], ids=["silent", "asked to cancel"])
def test_a_run_that_is_given_up_is_cancelled_with_its_fence_and_nobody_goes_on_with_it(ledger: Ledger, is_asked: bool):
    timer = a_timer()
    claim(ledger, timer, owner="dead")
    ledger.hold(timer, fence=1, owner="dead", lease_until=NOON + LEASE, now=NOON)
    if is_asked:
        request_cancel(ledger, timer.job)
    seen = row_of(ledger, timer.job)
    later = NOON + timedelta(days=15)

    assert give_up(ledger, timer.job, row=seen, owner="me", now=later) == Cancelled()

    row = row_of(ledger, timer.job)
    assert (row.state, row.fence, row.attempt, row.held, row.updated_at) == (State.CANCELLED, 1, 1, "", later)
    assert row.error == "abandoned"
    assert isinstance(claim(ledger, a_next(timer, attempt=2), owner="you", now=later), Refused)
    assert isinstance(rescue(ledger, timer, row=seen, owner="you", now=later), Refused)
    assert isinstance(settle(ledger, timer.job, Event.SUCCEED, fence=1, owner="dead"), Refused)
    assert isinstance(ledger.complete(job_id_of(timer.job), fence=1, result="", now=later), Refused)


def test_giving_up_whose_answer_was_lost_is_no_second_and_another_s_is_refused(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="dead")
    seen = row_of(ledger, timer.job)
    give_up(ledger, timer.job, row=seen, owner="first")

    assert give_up(ledger, timer.job, row=seen, owner="first") == Cancelled()
    assert isinstance(give_up(ledger, timer.job, row=seen, owner="second"), Refused)


@pytest.mark.parametrize("what", ["extended", "rescued", "parked", "succeeded", "asked to cancel"])
def test_a_run_is_not_given_up_by_whoever_saw_it_before_it_was_heard_of_again(ledger: Ledger, what: str):
    timer, later = a_timer(), NOON + timedelta(hours=1)
    claim(ledger, timer, owner="dead")
    seen = row_of(ledger, timer.job)
    match what:
        case "extended":
            ledger.extend(job_id_of(timer.job), fence=1, lease_until=later + LEASE, now=later)
        case "rescued":
            rescue(ledger, timer, owner="you", now=later)
        case "parked":
            ledger.park(timer, until=later, now=later)
        case "succeeded":
            settle(ledger, timer.job, Event.SUCCEED, fence=1, owner="dead")
        case _:
            request_cancel(ledger, timer.job, now=later)
    left = ledger.get(timer.job.key)

    assert give_up(ledger, timer.job, row=seen, owner="me", now=later) == Refused(left)
    assert ledger.get(timer.job.key) == left


def test_a_second_cancel_finds_the_job_cancelled_and_one_whose_answer_was_lost_is_no_second(ledger: Ledger):
    job = a_job()
    ledger.cancel(job_id_of(job), owner="first", now=NOON)

    assert ledger.cancel(job_id_of(job), owner="first", now=NOON) == Cancelled()
    assert ledger.cancel(job_id_of(job), owner="second", now=NOON) == Cancelled(is_repeated=True)


def test_a_requested_cancel_refuses_the_retry_and_lets_every_other_end_through(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="me")

    asked = request_cancel(ledger, timer.job)
    refused = settle(ledger, timer.job, Event.RETRY, fence=1, owner="me")

    assert isinstance(asked, Applied)
    assert isinstance(refused, Refused)
    assert refused.row is not None
    assert refused.row.cancel_requested
    assert isinstance(settle(ledger, timer.job, Event.WITHDRAW, fence=1, owner="me"), Applied)
    assert row_of(ledger, timer.job).state is State.CANCELLED


def test_a_running_job_may_succeed_although_its_cancel_was_requested(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="me")
    request_cancel(ledger, timer.job)

    assert isinstance(settle(ledger, timer.job, Event.SUCCEED, fence=1, owner="me"), Applied)


def test_a_cancel_is_requested_of_a_running_row_and_changes_nothing_else(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="me")
    seen = row_of(ledger, timer.job)

    answer = request_cancel(ledger, timer.job, now=NOON + SECOND)

    assert isinstance(answer, Applied)
    assert row_of(ledger, timer.job) == replace(seen, cancel_requested=True, updated_at=NOON + SECOND)


def test_a_cancel_is_requested_of_a_registered_row_and_changes_nothing_else(ledger: Ledger):
    job = a_job()
    register(ledger, job, owner="api")
    seen = row_of(ledger, job)

    answer = request_cancel(ledger, job, now=NOON + SECOND)

    assert isinstance(answer, Applied)
    assert row_of(ledger, job) == replace(seen, cancel_requested=True, updated_at=NOON + SECOND)


def test_a_cancel_that_is_requested_again_finds_itself(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="me")
    seen = row_of(ledger, timer.job)

    assert isinstance(request_cancel(ledger, timer.job, row=seen), Applied)
    assert isinstance(request_cancel(ledger, timer.job, row=seen), Applied)


@pytest.mark.parametrize(
    ("begin", "change"),
    [
        (
            lambda ledger, timer: register(ledger, timer.job, owner="api"),
            lambda ledger, timer: claim(ledger, timer, owner="me"),
        ),
        (
            lambda ledger, timer: claim(ledger, timer, owner="me"),
            lambda ledger, timer: settle(ledger, timer.job, Event.SUCCEED, fence=1, owner="me"),
        ),
        (
            lambda ledger, timer: claim(ledger, timer, owner="dead"),
            lambda ledger, timer: rescue(ledger, timer, owner="rescuer", now=NOON + timedelta(hours=1)),
        ),
    ],
    ids=["registered row that was claimed", "running row that was settled", "running row that was rescued"],
)
def test_a_cancel_is_not_requested_of_a_row_that_has_changed_since(
    ledger: Ledger, begin: Callable[[Ledger, Timer], Any], change: Callable[[Ledger, Timer], Any]
):
    timer = a_timer()
    begin(ledger, timer)
    seen = row_of(ledger, timer.job)
    change(ledger, timer)

    answer = request_cancel(ledger, timer.job, row=seen)

    assert answer == Refused(ledger.get(timer.job.key))
    assert not row_of(ledger, timer.job).cancel_requested


def test_a_cancel_is_not_requested_of_a_released_row_that_was_claimed_and_released_since(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="first")
    settle(ledger, timer.job, Event.RELEASE, fence=1, owner="first")
    seen = row_of(ledger, timer.job)
    claim(ledger, timer, owner="second")
    settle(ledger, timer.job, Event.RELEASE, fence=2, owner="second")

    assert isinstance(request_cancel(ledger, timer.job, row=seen), Refused)


@pytest.mark.parametrize("seen", [State.SCHEDULED, State.RUNNING])
def test_a_cancel_is_not_requested_of_a_row_that_is_gone(ledger: Ledger, seen: State):
    job = a_job()

    answer = request_cancel(ledger, job, row=LedgerRow(state=seen, fence=int(seen is State.RUNNING)))

    assert answer == Refused(None)
    assert ledger.get(job.key) is None


def test_a_requested_cancel_survives_a_rescue_which_learns_of_it(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="dead")
    request_cancel(ledger, timer.job)

    answer = rescue(ledger, timer, owner="me", now=NOON + timedelta(hours=1))

    assert answer == Claimed(fence=2, rescue_count=1, cancel_requested=True)
    assert row_of(ledger, timer.job).cancel_requested


def test_a_claim_learns_of_the_cancel_that_was_requested_of_a_registered_row(ledger: Ledger):
    timer = a_timer()
    register(ledger, timer.job, owner="api")
    request_cancel(ledger, timer.job)

    assert claim(ledger, timer, owner="me") == Claimed(fence=1, cancel_requested=True)


def test_a_claim_learns_of_the_cancel_that_was_requested_before_a_release(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="first")
    request_cancel(ledger, timer.job)
    settle(ledger, timer.job, Event.RELEASE, fence=1, owner="first")

    assert claim(ledger, timer, owner="second") == Claimed(fence=2, cancel_requested=True)


def test_a_skipped_fire_is_settled_with_its_reason_where_there_is_no_row(ledger: Ledger):
    timer = a_timer()

    answer = skip(ledger, timer, owner="me", reason="overlap: another run", now=NOON + SECOND)

    assert answer == Applied()
    assert row_of(ledger, timer.job) == LedgerRow(
        state=State.SKIPPED,
        owner="me",
        due_at=timer.due_at,
        job_id=str(job_id_of(timer.job)),
        error="overlap: another run",
        updated_at=NOON + SECOND,
    )


def test_a_released_fire_is_skipped_and_keeps_its_attempt_and_its_fence(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="first")
    settle(ledger, timer.job, Event.RELEASE, fence=1, owner="first")

    assert skip(ledger, timer, owner="me") == Applied()
    row = row_of(ledger, timer.job)
    assert (row.state, row.attempt, row.fence, row.owner) == (State.SKIPPED, 1, 1, "me")


def test_a_registered_job_that_is_skipped_keeps_its_fingerprint(ledger: Ledger):
    timer = a_timer()
    register(ledger, timer.job, owner="api")

    assert skip(ledger, timer, owner="me") == Applied()
    assert row_of(ledger, timer.job).fingerprint == "f1"


def test_a_skipped_fire_is_never_claimed(ledger: Ledger):
    timer = a_timer()
    skip(ledger, timer, owner="me")

    for attempt in (1, 2):
        answer = claim(ledger, a_next(timer, attempt=attempt), owner="another")
        assert answer == Refused(row_of(ledger, timer.job))


def test_a_fire_that_runs_is_not_skipped(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="runs")
    met = row_of(ledger, timer.job)

    assert skip(ledger, timer, owner="me") == Refused(met)
    assert skip(ledger, timer, owner="runs") == Refused(met)
    assert row_of(ledger, timer.job) == met


def test_a_fire_that_waits_for_its_next_attempt_is_not_skipped(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="runs")
    settle(ledger, timer.job, Event.RETRY, fence=1, owner="runs")
    met = row_of(ledger, timer.job)

    assert skip(ledger, timer, owner="me") == Refused(met)
    assert row_of(ledger, timer.job) == met


def test_a_skip_whose_answer_was_lost_recognises_itself(ledger: Ledger):
    timer = a_timer()
    skip(ledger, timer, owner="me")

    assert skip(ledger, timer, owner="me") == Applied()


def test_a_second_message_of_a_skipped_fire_learns_that_it_is_settled(ledger: Ledger):
    timer = a_timer()
    skip(ledger, timer, owner="first", reason="paused")
    met = row_of(ledger, timer.job)

    assert skip(ledger, timer, owner="second", reason="overlap") == Refused(met)
    assert row_of(ledger, timer.job) == met


def test_a_row_keeps_the_first_400_characters_of_the_reason_for_a_skip(ledger: Ledger):
    timer = a_timer()

    skip(ledger, timer, owner="me", reason="x" * 401)

    assert row_of(ledger, timer.job).error == "x" * 400


@pytest.mark.parametrize("due_at", [NOON - timedelta(days=1), NOON + timedelta(days=1)])
def test_a_skipped_row_lives_15_days_from_its_skip_and_its_due_time(ledger_subject: LedgerSubject, due_at: datetime):
    timer = a_timer(due_at=due_at)

    skip(ledger_subject.ledger, timer, owner="me")

    assert lives_until(ledger_subject, timer.job, max(NOON, due_at))


def test_a_failed_job_and_its_dead_letter_come_about_together(ledger_subject: LedgerSubject):
    ledger, timer = ledger_subject.ledger, a_timer(attempt=3)
    claim(ledger, timer, owner="me")
    letter = a_dead_letter(timer)

    answer = fail(ledger, letter, timer.job, fence=1, owner="me", now=NOON + SECOND)

    assert isinstance(answer, Applied)
    row = row_of(ledger, timer.job)
    assert (row.state, row.error, row.attempt, row.fence) == (State.FAILED, "it hurts", 3, 1)
    assert (row.due_at, row.updated_at) == (timer.due_at, NOON + SECOND)
    assert ledger_subject.letters() == [letter]


@pytest.mark.parametrize("dynamodb", ON_DYNAMODB, indirect=True)
def test_a_job_whose_dead_letter_cannot_be_kept_has_not_failed(ledger_subject: LedgerSubject):
    ledger, timer = ledger_subject.ledger, a_timer()
    claim(ledger, timer, owner="me")
    seen = row_of(ledger, timer.job)
    longer_than_a_key_may_be = replace(a_dead_letter(timer), identity="x" * 1_100)

    with pytest.raises(ClientError):
        fail(ledger, longer_than_a_key_may_be, timer.job, fence=1, owner="me")
    with pytest.raises(ClientError):
        bury(ledger, longer_than_a_key_may_be, timer.job, row=seen, owner="me")

    assert row_of(ledger, timer.job) == seen
    assert ledger_subject.letters() == []


def test_a_failure_whose_answer_was_lost_applies_once(ledger_subject: LedgerSubject):
    ledger, timer = ledger_subject.ledger, a_timer()
    claim(ledger, timer, owner="me")
    letter = a_dead_letter(timer)
    fail(ledger, letter, timer.job, fence=1, owner="me")
    row = row_of(ledger, timer.job)

    assert isinstance(fail(ledger, letter, timer.job, fence=1, owner="me"), Applied)
    assert row_of(ledger, timer.job) == row
    assert ledger_subject.letters() == [letter]


def test_a_zombie_s_failure_is_refused_by_the_fence_and_leaves_no_dead_letter(ledger_subject: LedgerSubject):
    ledger, timer = ledger_subject.ledger, a_timer()
    claim(ledger, timer, owner="zombie")
    rescue(ledger, timer, owner="rescuer", now=NOON + timedelta(hours=1))

    answer = fail(ledger, a_dead_letter(timer), timer.job, fence=1, owner="zombie")

    assert answer == Refused(ledger.get(timer.job.key))
    assert row_of(ledger, timer.job).owner == "rescuer"
    assert ledger_subject.letters() == []


def test_a_failure_of_what_is_settled_is_refused_and_leaves_no_dead_letter(ledger_subject: LedgerSubject):
    ledger, timer = ledger_subject.ledger, a_timer()
    claim(ledger, timer, owner="me")
    settle(ledger, timer.job, Event.SUCCEED, fence=1, owner="me")

    answer = fail(ledger, a_dead_letter(timer), timer.job, fence=1, owner="me")

    assert answer == Refused(ledger.get(timer.job.key))
    assert row_of(ledger, timer.job).state is State.SUCCEEDED
    assert ledger_subject.letters() == []


def test_a_failure_without_a_row_is_refused_with_none_and_leaves_no_dead_letter(ledger_subject: LedgerSubject):
    timer = a_timer()

    answer = fail(ledger_subject.ledger, a_dead_letter(timer), timer.job, fence=1, owner="me")

    assert answer == Refused(None)
    assert ledger_subject.letters() == []


def test_a_job_whose_cancel_was_requested_may_fail(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="me")
    request_cancel(ledger, timer.job)

    assert isinstance(fail(ledger, a_dead_letter(timer), timer.job, fence=1, owner="me"), Applied)
    assert row_of(ledger, timer.job).state is State.FAILED


def test_a_failed_row_keeps_the_first_400_characters_of_its_error_and_the_dead_letter_more(
    ledger_subject: LedgerSubject,
):
    ledger, timer = ledger_subject.ledger, a_timer()
    claim(ledger, timer, owner="me")
    letter = replace(a_dead_letter(timer), error="é" * 1_000)

    fail(ledger, letter, timer.job, fence=1, owner="me")

    assert row_of(ledger, timer.job).error == "é" * 400
    assert ledger_subject.letters() == [letter]


def test_a_burial_without_a_row_settles_the_job_as_failed_and_keeps_its_dead_letter(ledger_subject: LedgerSubject):
    ledger, timer = ledger_subject.ledger, a_timer()
    letter = a_dead_letter(timer)

    answer = bury(ledger, letter, timer.job, row=None, owner="me")

    assert isinstance(answer, Applied)
    assert row_of(ledger, timer.job) == LedgerRow(
        state=State.FAILED,
        attempt=1,
        owner="me",
        due_at=timer.due_at,
        error="it hurts",
        job_id=str(job_id_of(timer.job)),
        updated_at=NOON,
    )
    assert ledger_subject.letters() == [letter]


@pytest.mark.parametrize("event", [None, Event.RETRY, Event.RELEASE])
def test_a_burial_keeps_the_attempt_and_the_fence_of_the_row_that_it_found(
    ledger_subject: LedgerSubject, event: Event | None
):
    ledger, timer = ledger_subject.ledger, a_timer(attempt=2)
    claim(ledger, timer, owner="dead")
    if event is not None:
        settle(ledger, timer.job, event, fence=1, owner="dead")
    letter = a_dead_letter(timer)

    answer = bury(ledger, letter, timer.job, row=row_of(ledger, timer.job), owner="me")

    assert isinstance(answer, Applied)
    row = row_of(ledger, timer.job)
    assert (row.state, row.attempt, row.fence, row.error) == (State.FAILED, 2, 1, "it hurts")
    assert ledger_subject.letters() == [letter]


def test_a_retry_that_is_buried_unclaimed_is_the_attempt_of_its_row(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="worker")
    settle(ledger, timer.job, Event.RETRY, fence=1, owner="worker")

    bury(ledger, a_dead_letter(replace(timer, attempt=2)), timer.job, row=row_of(ledger, timer.job), owner="me")

    row = row_of(ledger, timer.job)
    assert (row.state, row.attempt, row.fence) == (State.FAILED, 2, 1)
    assert isinstance(claim(ledger, replace(timer, attempt=2), owner="late"), Refused)


def test_a_burial_of_a_registered_job_keeps_its_fingerprint(ledger: Ledger):
    timer = a_timer()
    register(ledger, timer.job, owner="api")

    assert isinstance(bury(ledger, a_dead_letter(timer), timer.job, row=row_of(ledger, timer.job), owner="me"), Applied)
    assert row_of(ledger, timer.job).fingerprint == "f1"


def test_a_burial_is_refused_when_a_worker_has_claimed_the_job_since_and_leaves_no_dead_letter(
    ledger_subject: LedgerSubject,
):
    ledger, timer = ledger_subject.ledger, a_timer()
    claim(ledger, timer, owner="worker")

    answer = bury(ledger, a_dead_letter(timer), timer.job, row=None, owner="me")

    assert answer == Refused(ledger.get(timer.job.key))
    assert row_of(ledger, timer.job).state is State.RUNNING
    assert ledger_subject.letters() == []


def test_a_burial_is_refused_when_a_worker_has_claimed_the_registered_job_since(ledger_subject: LedgerSubject):
    ledger, timer = ledger_subject.ledger, a_timer()
    register(ledger, timer.job, owner="api")
    seen = row_of(ledger, timer.job)
    claim(ledger, timer, owner="worker")

    assert isinstance(bury(ledger, a_dead_letter(timer), timer.job, row=seen, owner="me"), Refused)
    assert row_of(ledger, timer.job).state is State.RUNNING
    assert ledger_subject.letters() == []


def test_a_burial_is_refused_when_the_attempt_was_rescued_since(ledger_subject: LedgerSubject):
    ledger = ledger_subject.ledger
    timer, seen = a_job_whose_worker_died(ledger)
    rescue(ledger, timer, owner="rescuer", now=NOON + timedelta(hours=1))

    answer = bury(ledger, a_dead_letter(timer), timer.job, row=seen, owner="me")

    assert isinstance(answer, Refused)
    assert row_of(ledger, timer.job).owner == "rescuer"
    assert ledger_subject.letters() == []


def test_a_burial_of_a_row_that_is_gone_is_refused_and_leaves_no_dead_letter(ledger_subject: LedgerSubject):
    timer = a_timer()
    seen = LedgerRow(state=State.RUNNING, attempt=1, fence=1, lease_until=NOON)

    assert bury(ledger_subject.ledger, a_dead_letter(timer), timer.job, row=seen, owner="me") == Refused(None)
    assert ledger_subject.letters() == []


def test_a_burial_whose_answer_was_lost_applies_once(ledger_subject: LedgerSubject):
    ledger = ledger_subject.ledger
    timer, seen = a_job_whose_worker_died(ledger)
    letter = a_dead_letter(timer)
    bury(ledger, letter, timer.job, row=seen, owner="me")
    buried = row_of(ledger, timer.job)

    assert isinstance(bury(ledger, letter, timer.job, row=seen, owner="me"), Applied)
    assert row_of(ledger, timer.job) == buried
    assert ledger_subject.letters() == [letter]


def test_two_burials_of_the_same_row_leave_the_dead_letter_of_the_first(ledger_subject: LedgerSubject):
    ledger = ledger_subject.ledger
    timer, seen = a_job_whose_worker_died(ledger)
    first = a_dead_letter(timer)
    bury(ledger, first, timer.job, row=seen, owner="first")

    answer = bury(ledger, replace(first, dead_at=NOON + SECOND), timer.job, row=seen, owner="second")

    assert isinstance(answer, Refused)
    assert ledger_subject.letters() == [first]


def test_rows_are_found_by_their_keys_and_missing_ones_left_out(ledger: Ledger):
    jobs = [a_job() for _ in range(120)]
    for job in jobs[:105]:
        register(ledger, job, owner="api")

    rows = ledger.get_many([job.key for job in [*jobs, *jobs[:3]]])

    assert set(rows) == {job.key for job in jobs[:105]}
    assert rows[jobs[104].key] == ledger.get(jobs[104].key)


def test_no_keys_find_no_rows(ledger: Ledger):
    assert ledger.get_many([]) == {}


def test_instants_are_kept_to_the_millisecond_and_never_earlier(ledger: Ledger):
    timer = a_timer(due_at=datetime(2027, 3, 1, 12, 0, 0, 1, tzinfo=UTC))

    claim(ledger, timer, owner="me")

    assert row_of(ledger, timer.job).due_at == NOON + MILLISECOND


FAR = NOON + timedelta(days=400)


def test_a_registered_row_lives_15_days_longer_than_its_due_time(ledger_subject: LedgerSubject):
    job = a_job(due_at=FAR)

    register(ledger_subject.ledger, job, owner="api")

    assert lives_until(ledger_subject, job, FAR)


def test_a_row_lives_15_days_longer_than_its_lease(ledger_subject: LedgerSubject):
    timer = a_timer()

    claim(ledger_subject.ledger, timer, owner="me", now=NOON + timedelta(hours=2))

    assert lives_until(ledger_subject, timer.job, NOON + timedelta(hours=2) + LEASE)


def test_a_rescue_renews_the_life_of_a_row(ledger_subject: LedgerSubject):
    timer = a_timer()
    claim(ledger_subject.ledger, timer, owner="dead")

    rescue(ledger_subject.ledger, timer, owner="me", now=NOON + timedelta(days=3))

    assert lives_until(ledger_subject, timer.job, NOON + timedelta(days=3) + LEASE)


def test_an_attempted_row_lives_15_days_from_its_start(ledger_subject: LedgerSubject):
    timer = a_timer()

    ledger_subject.ledger.attempt(timer, Event.ATTEMPT, owner="me", now=NOON + timedelta(days=1))

    assert lives_until(ledger_subject, timer.job, NOON + timedelta(days=1))


@pytest.mark.parametrize("event", [Event.SUCCEED, Event.EXPIRE, Event.WITHDRAW, Event.RELEASE])
def test_a_settled_row_lives_15_days_from_its_end(ledger_subject: LedgerSubject, event: Event):
    timer = a_timer()
    claim(ledger_subject.ledger, timer, owner="me")

    settle(ledger_subject.ledger, timer.job, event, fence=1, owner="me", now=NOON + timedelta(days=2))

    assert lives_until(ledger_subject, timer.job, NOON + timedelta(days=2))


def test_a_failed_row_lives_15_days_from_its_end(ledger_subject: LedgerSubject):
    timer = a_timer()
    claim(ledger_subject.ledger, timer, owner="me")

    fail(ledger_subject.ledger, a_dead_letter(timer), timer.job, fence=1, owner="me", now=NOON + timedelta(days=2))

    assert lives_until(ledger_subject, timer.job, NOON + timedelta(days=2))


def test_a_requested_cancel_does_not_shorten_the_life_of_a_row(ledger_subject: LedgerSubject):
    job = a_job(due_at=FAR)
    register(ledger_subject.ledger, job, owner="api")

    request_cancel(ledger_subject.ledger, job)

    assert lives_until(ledger_subject, job, FAR)


def test_a_retrying_row_lives_15_days_longer_than_its_next_attempt(ledger_subject: LedgerSubject):
    timer = a_timer()
    claim(ledger_subject.ledger, timer, owner="me")

    settle(ledger_subject.ledger, timer.job, Event.RETRY, fence=1, owner="me", due_at=NOON + timedelta(hours=12))

    assert lives_until(ledger_subject, timer.job, NOON + timedelta(hours=12))


def test_a_tombstone_lives_15_days_longer_than_the_due_time(ledger_subject: LedgerSubject):
    job = a_job(due_at=FAR)

    ledger_subject.ledger.cancel(job_id_of(job), owner="api", now=NOON)

    assert outlives(ledger_subject, job, FAR)


def test_a_tombstone_outlives_the_next_attempt_that_it_stops(ledger_subject: LedgerSubject):
    timer = a_timer()
    claim(ledger_subject.ledger, timer, owner="me")
    settle(ledger_subject.ledger, timer.job, Event.RETRY, fence=1, owner="me", due_at=NOON + timedelta(hours=12))

    ledger_subject.ledger.cancel(job_id_of(timer.job), owner="api", now=NOON + SECOND)

    assert outlives(ledger_subject, timer.job, NOON + timedelta(hours=12))


def test_a_buried_row_lives_15_days_from_its_burial(ledger_subject: LedgerSubject):
    timer = a_timer()

    bury(ledger_subject.ledger, a_dead_letter(timer), timer.job, row=None, owner="me", now=NOON + timedelta(days=14))

    assert lives_until(ledger_subject, timer.job, NOON + timedelta(days=14))


def test_a_buried_row_lives_15_days_longer_than_the_attempt_that_is_buried(ledger_subject: LedgerSubject):
    timer = a_timer()
    following = Timer(job=timer.job, due_at=NOON + timedelta(hours=12), attempt=2)
    claim(ledger_subject.ledger, timer, owner="me")
    settle(ledger_subject.ledger, timer.job, Event.RETRY, fence=1, owner="me", due_at=following.due_at)
    seen = row_of(ledger_subject.ledger, timer.job)

    bury(ledger_subject.ledger, a_dead_letter(following), timer.job, row=seen, owner="me")

    assert lives_until(ledger_subject, timer.job, following.due_at)


def test_a_buried_row_outlives_every_message_of_the_next_attempt(ledger_subject: LedgerSubject):
    timer = a_timer()
    claim(ledger_subject.ledger, timer, owner="me")
    settle(ledger_subject.ledger, timer.job, Event.RETRY, fence=1, owner="me", due_at=NOON + MAX_BACKOFF)
    seen = row_of(ledger_subject.ledger, timer.job)

    bury(ledger_subject.ledger, a_dead_letter(timer), timer.job, row=seen, owner="me")

    assert ledger_subject.expires_at(timer.job.key) > NOON + MAX_BACKOFF + MESSAGE_LIFE


def end_collected(
    ledger: Ledger, timer: Timer, event: Event = Event.DELIVER, *, owner: str = "me", **given: Any
) -> Applied | Refused:
    return ledger.end_collected(timer, event, owner=owner, now=NOON, **given)


def test_an_attempt_that_was_made_with_others_ends_by_one_write(ledger: Ledger):
    timer = a_timer()

    assert end_collected(ledger, timer, result='{"release":"b-1"}') == Applied()

    row = row_of(ledger, timer.job)
    assert (row.state, row.attempt, row.result, row.job_id, row.fence) == (
        State.SUCCEEDED,
        1,
        '{"release":"b-1"}',
        str(job_id_of(timer.job)),
        0,
    )
    assert row.asked == encode_asked(timer.job)


def test_only_the_first_end_of_such_an_attempt_stands(ledger: Ledger):
    timer = a_timer()
    following = a_next(timer)

    assert end_collected(ledger, timer, Event.RETURN, following=following, error="503", tried="1") == Applied()
    assert end_collected(ledger, timer, Event.RETURN, following=following, error="503", tried="1") == Applied()
    assert isinstance(end_collected(ledger, timer, owner="zombie"), Refused)

    row = row_of(ledger, timer.job)
    assert (row.state, row.attempt, row.due_at, row.error, row.tried) == (
        State.RETRYING,
        1,
        following.due_at,
        "503",
        "1",
    )


def test_the_next_attempt_ends_after_a_retry_and_not_before_it_is_due(ledger: Ledger):
    timer = a_timer()
    following = a_next(timer)
    end_collected(ledger, timer, Event.RETURN, following=following)

    assert isinstance(end_collected(ledger, replace(following, due_at=following.due_at - MILLISECOND)), Refused)
    assert end_collected(ledger, following) == Applied()

    assert row_of(ledger, timer.job).attempt == 2


@pytest.mark.parametrize("event", [Event.DELIVER, Event.RETURN])
def test_what_has_ended_or_was_cancelled_ends_in_no_release(ledger: Ledger, event: Event):
    ended, cancelled, running = a_timer(), a_timer(), a_timer()
    end_collected(ledger, ended)
    ledger.cancel(job_id_of(cancelled.job), owner="caller", now=NOON)
    claim(ledger, running, owner="worker")

    for timer in (ended, cancelled, running):
        assert isinstance(end_collected(ledger, timer, event, owner="late"), Refused)

    assert row_of(ledger, cancelled.job).state is State.CANCELLED
    assert row_of(ledger, running.job).state is State.RUNNING


def test_a_job_that_was_registered_or_parked_ends_with_others_and_keeps_its_fingerprint(ledger: Ledger):
    timer = a_timer()
    register(ledger, timer.job, owner="api")
    ledger.park(timer, until=NOON + LEASE, now=NOON, flow="acme#+0123456789abcdef")

    assert row_of(ledger, timer.job).waits_for == "acme#+0123456789abcdef"
    assert end_collected(ledger, timer) == Applied()
    assert row_of(ledger, timer.job).fingerprint == "f1"


def test_a_tombstone_says_what_its_job_waited_for(ledger: Ledger):
    timer = a_timer()
    ledger.park(timer, until=NOON + LEASE, now=NOON, flow="acme#+0123456789abcdef")

    answer = ledger.cancel(job_id_of(timer.job), owner="caller", now=NOON)

    assert isinstance(answer, Cancelled)
    assert answer.waited_for == "acme#+0123456789abcdef"


def a_next(timer: Timer, *, attempt: int | None = None) -> Timer:
    """The timer of another attempt of the same job."""
    return Timer(job=timer.job, due_at=timer.due_at + SECOND, attempt=attempt or timer.attempt + 1)


def register(ledger: Ledger, job: Job, *, owner: str, fingerprint: str = "f1") -> Applied | Refused:
    return ledger.register(job, job_id=str(job_id_of(job)), fingerprint=fingerprint, owner=owner, now=NOON)


def claim(ledger: Ledger, timer: Timer, *, owner: str, now: datetime = NOON) -> Claimed | Refused:
    return ledger.claim(timer, owner=owner, lease_until=now + LEASE, now=now)


def rescue(
    ledger: Ledger, timer: Timer, *, row: LedgerRow | None = None, owner: str, now: datetime
) -> Claimed | Refused:
    """By the row that was seen, or the row as it is now."""
    seen = row or row_of(ledger, timer.job)
    return ledger.rescue(timer, row=seen, owner=owner, lease_until=now + LEASE, now=now)


def request_cancel(
    ledger: Ledger, job: Job, *, row: LedgerRow | None = None, now: datetime = NOON
) -> Applied | Refused:
    """Of the row that was seen, or the row as it is now."""
    return ledger.request_cancel(job_id_of(job), row=row or row_of(ledger, job), now=now)


def give_up(ledger: Ledger, job: Job, *, row: LedgerRow, owner: str, now: datetime = NOON) -> Cancelled | Refused:
    return ledger.give_up(job_id_of(job), row=row, reason="abandoned", owner=owner, now=now)


def a_job_whose_worker_died(ledger: Ledger) -> tuple[Timer, LedgerRow]:
    """And its row."""
    timer = a_timer()
    claim(ledger, timer, owner="dead")
    return timer, row_of(ledger, timer.job)


def skip(ledger: Ledger, timer: Timer, *, owner: str, reason: str = "", now: datetime = NOON) -> Applied | Refused:
    return ledger.skip(timer, reason=reason, owner=owner, now=now)


def fail(
    ledger: Ledger, letter: DeadLetter, job: Job, *, fence: int, owner: str, now: datetime = NOON
) -> Applied | Refused:
    return ledger.fail(letter, job, fence=fence, owner=owner, now=now)


def bury(
    ledger: Ledger, letter: DeadLetter, job: Job, *, row: LedgerRow | None, owner: str, now: datetime = NOON
) -> Applied | Refused:
    return ledger.bury(letter, job, row=row, owner=owner, now=now)


def settle(ledger: Ledger, job: Job, event: Event, *, fence: int, owner: str, **options: Any) -> Applied | Refused:
    timer = Timer(job=job, due_at=options.pop("due_at", NOON))
    return ledger.settle(timer, event, fence=fence, owner=owner, **{"now": NOON, **options})


def row_of(ledger: Ledger, job: Job) -> LedgerRow:
    row = ledger.get(job.key)
    assert row is not None
    return row


def fence_of(answer: Claimed | Refused) -> int:
    assert isinstance(answer, Claimed)
    return answer.fence


def lives_until(subject: LedgerSubject, job: Job, instant: datetime) -> bool:
    """Whether the row's ttl is 22 days after this instant, to the whole second after."""
    return timedelta(0) <= subject.expires_at(job.key) - (instant + LEDGER_LIFE) <= SECOND


def outlives(subject: LedgerSubject, job: Job, instant: datetime) -> bool:
    """Whether the row lives at least 22 days longer than this instant."""
    return subject.expires_at(job.key) >= instant + LEDGER_LIFE
