"""What every ledger keeps: the fake, the adapter on moto, and the adapter on AWS's own engine."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from functions.domain.claims import LEDGER_LIFE, LedgerRow
from functions.domain.instants import MILLISECOND
from functions.domain.job import Job, Timer
from functions.domain.job_id import job_id_of
from functions.domain.lifecycle import Event, State
from functions.ports import Applied, Claimed, Ledger, Refused
from tests.builders import LOCAL_WHEEL, NOON, a_job, a_timer
from tests.contract.conftest import LedgerSubject

SECOND = timedelta(seconds=1)
LEASE = timedelta(seconds=15)
SKEW = LOCAL_WHEEL.skew


def test_a_job_without_a_row_has_none(ledger: Ledger):
    assert ledger.get("acme#nobody") is None


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
    ledger.cancel_registered(job_id_of(job), now=NOON)

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
    )


def test_a_claim_of_a_registered_job_keeps_its_fingerprint(ledger: Ledger):
    timer = a_timer()
    register(ledger, timer.job, owner="api")

    assert claim(ledger, timer, owner="me") == Claimed(fence=1)
    assert row_of(ledger, timer.job).fingerprint == "f1"


def test_a_claim_of_a_running_attempt_is_refused_with_the_row_it_met(ledger: Ledger):
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

    answer = rescue(ledger, timer, fence=1, owner="me", now=NOON + LEASE + SKEW + MILLISECOND)

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

    answer = rescue(ledger, timer, fence=1, owner="me", now=NOON + LEASE + SKEW)

    assert isinstance(answer, Refused)
    assert row_of(ledger, timer.job).owner == "slow"


def test_a_rescue_is_refused_when_the_fence_has_grown_since_it_was_seen(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="dead")
    over = NOON + LEASE + SKEW + SECOND
    rescue(ledger, timer, fence=1, owner="quick", now=over)

    answer = rescue(ledger, timer, fence=1, owner="late", now=over + LEASE + SKEW + SECOND)

    assert isinstance(answer, Refused)
    assert answer.row is not None
    assert answer.row.owner == "quick"


def test_a_lower_attempt_does_not_rescue_a_higher_one(ledger: Ledger):
    timer = a_timer(attempt=2)
    claim(ledger, timer, owner="dead")

    answer = rescue(ledger, a_next(timer, attempt=1), fence=1, owner="me", now=NOON + timedelta(days=1))

    assert isinstance(answer, Refused)


def test_a_higher_attempt_rescues_a_lower_one(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="silent")

    answer = rescue(ledger, a_next(timer), fence=1, owner="watchdog", now=NOON + timedelta(days=1))

    assert answer == Claimed(fence=2, rescue_count=1)
    assert row_of(ledger, timer.job).attempt == 2


def test_a_rescue_whose_answer_was_lost_recognises_itself(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="dead")
    over = NOON + LEASE + SKEW + SECOND
    rescue(ledger, timer, fence=1, owner="me", now=over)

    answer = rescue(ledger, timer, fence=1, owner="me", now=over)

    assert isinstance(answer, Claimed)
    assert answer.fence == row_of(ledger, timer.job).fence


def test_fences_only_grow_through_claims_retries_rescues_and_lost_answers(ledger: Ledger):
    first = a_timer()
    second = a_next(first)
    over = NOON + LEASE + SKEW + SECOND

    answers = [claim(ledger, first, owner="w1"), claim(ledger, first, owner="w1")]
    settle(ledger, first.job, Event.RETRY, fence=fence_of(answers[-1]), owner="w1")
    answers.append(claim(ledger, second, owner="w2"))
    answers.append(rescue(ledger, second, fence=fence_of(answers[-1]), owner="w3", now=over))
    answers.append(rescue(ledger, second, fence=fence_of(answers[-2]), owner="w3", now=over))

    fences = [fence_of(answer) for answer in answers]
    assert fences == sorted(set(fences))


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
        (Event.FAIL, State.FAILED),
        (Event.EXPIRE, State.EXPIRED),
        (Event.WITHDRAW, State.CANCELLED),
    ],
)
def test_a_settled_attempt_keeps_what_became_of_it(ledger: Ledger, event: Event, state: State):
    timer = a_timer()
    claim(ledger, timer, owner="me")

    answer = ledger.settle(
        timer.job,
        event,
        fence=1,
        owner="me",
        due_at=NOON + 9 * SECOND,
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

    settle(ledger, timer.job, Event.FAIL, fence=1, owner="me", result="é" * 401, error="x" * 5_000)

    row = row_of(ledger, timer.job)
    assert (row.result, row.error) == ("é" * 400, "x" * 400)


def test_a_settle_whose_answer_was_lost_recognises_itself(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="me")
    settle(ledger, timer.job, Event.SUCCEED, fence=1, owner="me")

    assert isinstance(settle(ledger, timer.job, Event.SUCCEED, fence=1, owner="me"), Applied)


def test_a_zombie_s_settle_is_refused_by_the_fence(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="zombie")
    rescue(ledger, timer, fence=1, owner="rescuer", now=NOON + timedelta(hours=1))

    answer = settle(ledger, timer.job, Event.SUCCEED, fence=1, owner="zombie")

    assert isinstance(answer, Refused)
    assert row_of(ledger, timer.job).state is State.RUNNING


def test_a_settle_with_another_s_token_is_refused(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="me")

    assert isinstance(settle(ledger, timer.job, Event.FAIL, fence=1, owner="thief"), Refused)


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

    assert isinstance(answer, Applied)
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


def test_a_second_cancel_finds_the_job_cancelled(ledger: Ledger):
    job = a_job()
    ledger.cancel(job_id_of(job), owner="first", now=NOON)

    assert isinstance(ledger.cancel(job_id_of(job), owner="second", now=NOON), Applied)


def test_a_requested_cancel_refuses_the_retry_and_lets_every_other_end_through(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="me")

    asked = ledger.request_cancel(job_id_of(timer.job), fence=1, now=NOON)
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
    ledger.request_cancel(job_id_of(timer.job), fence=1, now=NOON)

    assert isinstance(settle(ledger, timer.job, Event.SUCCEED, fence=1, owner="me"), Applied)


def test_a_cancel_is_requested_only_of_the_attempt_that_was_seen(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="me")

    answer = ledger.request_cancel(job_id_of(timer.job), fence=2, now=NOON)

    assert isinstance(answer, Refused)
    assert not row_of(ledger, timer.job).cancel_requested


def test_a_cancel_is_not_requested_of_a_job_without_a_row(ledger: Ledger):
    assert ledger.request_cancel(job_id_of(a_job()), fence=1, now=NOON) == Refused(None)


def test_a_requested_cancel_survives_a_rescue(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="dead")
    ledger.request_cancel(job_id_of(timer.job), fence=1, now=NOON)

    rescue(ledger, timer, fence=1, owner="me", now=NOON + timedelta(hours=1))

    assert row_of(ledger, timer.job).cancel_requested


def test_a_registered_job_is_marked_as_cancelled(ledger: Ledger):
    job = a_job()
    register(ledger, job, owner="api")

    ledger.cancel_registered(job_id_of(job), now=NOON + SECOND)

    row = row_of(ledger, job)
    assert (row.state, row.fingerprint, row.updated_at) == (State.CANCELLED, "f1", NOON + SECOND)


def test_a_job_that_was_never_registered_gets_no_row_by_its_cancel(ledger: Ledger):
    job = a_job()

    ledger.cancel_registered(job_id_of(job), now=NOON)

    assert ledger.get(job.key) is None


def test_a_burial_without_a_row_settles_the_job_as_failed(ledger: Ledger):
    job = a_job()

    answer = ledger.bury(job, row=None, owner="me", now=NOON, error="ten receives")

    assert isinstance(answer, Applied)
    row = row_of(ledger, job)
    assert (row.state, row.error, row.job_id) == (State.FAILED, "ten receives", str(job_id_of(job)))


def test_a_burial_is_refused_when_a_worker_has_claimed_the_job_since(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="worker")

    answer = ledger.bury(timer.job, row=None, owner="me", now=NOON, error="ten receives")

    assert isinstance(answer, Refused)
    assert answer.row is not None
    assert answer.row.state is State.RUNNING


def test_a_burial_is_refused_when_the_attempt_was_rescued_since(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="dead")
    seen = row_of(ledger, timer.job)
    rescue(ledger, timer, fence=1, owner="rescuer", now=NOON + timedelta(hours=1))

    answer = ledger.bury(timer.job, row=seen, owner="me", now=NOON, error="died")

    assert isinstance(answer, Refused)
    assert row_of(ledger, timer.job).owner == "rescuer"


def test_a_burial_whose_answer_was_lost_recognises_itself(ledger: Ledger):
    timer = a_timer()
    claim(ledger, timer, owner="dead")
    seen = row_of(ledger, timer.job)
    ledger.bury(timer.job, row=seen, owner="me", now=NOON, error="died")

    assert isinstance(ledger.bury(timer.job, row=seen, owner="me", now=NOON, error="died"), Applied)
    assert row_of(ledger, timer.job).fence == 1


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

    rescue(ledger_subject.ledger, timer, fence=1, owner="me", now=NOON + timedelta(days=3))

    assert lives_until(ledger_subject, timer.job, NOON + timedelta(days=3) + LEASE)


def test_an_attempted_row_lives_15_days_from_its_start(ledger_subject: LedgerSubject):
    timer = a_timer()

    ledger_subject.ledger.attempt(timer, Event.ATTEMPT, owner="me", now=NOON + timedelta(days=1))

    assert lives_until(ledger_subject, timer.job, NOON + timedelta(days=1))


@pytest.mark.parametrize("event", [Event.SUCCEED, Event.FAIL, Event.EXPIRE, Event.WITHDRAW])
def test_a_settled_row_lives_15_days_from_its_end(ledger_subject: LedgerSubject, event: Event):
    timer = a_timer()
    claim(ledger_subject.ledger, timer, owner="me")

    settle(ledger_subject.ledger, timer.job, event, fence=1, owner="me", now=NOON + timedelta(days=2))

    assert lives_until(ledger_subject, timer.job, NOON + timedelta(days=2))


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
    job = a_job()

    ledger_subject.ledger.bury(job, row=None, owner="me", now=NOON + timedelta(days=14), error="ten receives")

    assert lives_until(ledger_subject, job, NOON + timedelta(days=14))


def test_a_buried_row_outlives_the_next_attempt_that_it_stops(ledger_subject: LedgerSubject):
    timer = a_timer()
    claim(ledger_subject.ledger, timer, owner="me")
    settle(ledger_subject.ledger, timer.job, Event.RETRY, fence=1, owner="me", due_at=NOON + timedelta(hours=12))
    seen = row_of(ledger_subject.ledger, timer.job)

    ledger_subject.ledger.bury(timer.job, row=seen, owner="me", now=NOON, error="ten receives")

    assert outlives(ledger_subject, timer.job, NOON + timedelta(hours=12))


def a_next(timer: Timer, *, attempt: int | None = None) -> Timer:
    """The timer of another attempt of the same job."""
    return Timer(job=timer.job, due_at=timer.due_at + SECOND, attempt=attempt or timer.attempt + 1)


def register(ledger: Ledger, job: Job, *, owner: str, fingerprint: str = "f1") -> Applied | Refused:
    return ledger.register(job, job_id=str(job_id_of(job)), fingerprint=fingerprint, owner=owner, now=NOON)


def claim(ledger: Ledger, timer: Timer, *, owner: str, now: datetime = NOON) -> Claimed | Refused:
    return ledger.claim(timer, owner=owner, lease_until=now + LEASE, now=now)


def rescue(ledger: Ledger, timer: Timer, *, fence: int, owner: str, now: datetime) -> Claimed | Refused:
    return ledger.rescue(timer, fence=fence, owner=owner, lease_until=now + LEASE, now=now)


def settle(ledger: Ledger, job: Job, event: Event, *, fence: int, owner: str, **options: Any) -> Applied | Refused:
    values: dict[str, Any] = {"due_at": NOON, "now": NOON, **options}
    return ledger.settle(job, event, fence=fence, owner=owner, **values)


def row_of(ledger: Ledger, job: Job) -> LedgerRow:
    row = ledger.get(job.key)
    assert row is not None
    return row


def fence_of(answer: Claimed | Refused) -> int:
    assert isinstance(answer, Claimed)
    return answer.fence


def lives_until(subject: LedgerSubject, job: Job, instant: datetime) -> bool:
    """Whether the row's ttl is 15 days after this instant, to the whole second after."""
    return timedelta(0) <= subject.expires_at(job.key) - (instant + LEDGER_LIFE) <= SECOND


def outlives(subject: LedgerSubject, job: Job, instant: datetime) -> bool:
    """Whether the row lives at least 15 days longer than this instant."""
    return subject.expires_at(job.key) >= instant + LEDGER_LIFE
