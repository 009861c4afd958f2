import json
import random
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.api.jobs.submit import Accepted
from functions.domain.errors import InvalidJob, KeyReused, NotPlaced, TickwheelError
from functions.domain.far_ring import timer_record
from functions.domain.far_ring.timer_record import INLINE_LIMIT, unpack
from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.jobs.job import Delivery, Job, Payload, Precision, Priority, Timer
from functions.domain.jobs.job_id import job_id_of, parse_job_id
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.jobs.submission import PAST_GRACE, Submission, keyed_identity
from functions.domain.lifecycle import Event, State
from functions.domain.targets.flows import NamedFlow
from functions.domain.targets.options import Method, TargetOptions
from functions.domain.wheel import Ring
from functions.ports.ready_queue import Rejected
from functions.services.far_ring.placer import Placer
from testkit.builders import NOON, a_submission
from testkit.fakes import InMemoryLedger, InMemoryPayloadStore
from testkit.observed import CrashError
from testkit.scheduler import World

SOON = NOON + 30 * SECOND
LATER = NOON + timedelta(hours=1)


@pytest.fixture
def world() -> World:
    return World()


def test_a_near_job_is_in_the_ready_queue_when_it_is_accepted(world: World):
    accepted = world.submit(a_submission(due_at=SOON))

    assert (accepted.tenant, accepted.due_at, accepted.state) == ("acme", SOON, State.SCHEDULED)
    assert (accepted.ring, accepted.is_replay) == (Ring.NEAR, False)
    assert [str(job_id_of(timer.job)) for timer in world.ready.sent] == [accepted.job_id]


def test_a_far_job_is_found_by_the_id_that_was_answered(world: World):
    accepted = world.submit(a_submission(due_at=LATER))

    timer = world.rows.get(parse_job_id(accepted.job_id))
    assert accepted.ring is Ring.FAR
    assert timer is not None
    assert (timer.due_at, timer.attempt) == (LATER, 1)


def test_a_job_is_all_that_its_tenant_asked_for(world: World):
    submission = a_submission(
        tenant="globex",
        target="handler:invoice",
        payload='{"a":1}',
        due_at=LATER,
        priority=Priority.HIGH,
        delivery=Delivery.AT_LEAST_ONCE,
        precision=Precision.EXACT,
        retry=RetryPolicy(strategy=Strategy.LINEAR, attempts=7, base=SECOND, cap=2 * SECOND),
        timeout=timedelta(seconds=3),
        expires_after=timedelta(minutes=5),
    )

    job = placed(world, world.submit(submission)).job

    assert job == Job(
        tenant="globex",
        identity=job.identity,
        bucket=world.wheel.bucket_of(LATER),
        shard=world.wheel.shard_of("globex", job.identity),
        target="handler:invoice",
        payload=Payload(text='{"a":1}'),
        scheduled_at=LATER,
        priority=Priority.HIGH,
        delivery=Delivery.AT_LEAST_ONCE,
        precision=Precision.EXACT,
        retry=submission.retry,
        timeout=timedelta(seconds=3),
        expires_at=LATER + timedelta(minutes=5),
    )


def test_a_job_without_a_key_costs_no_ledger_row_and_is_a_new_one_each_time(world: World):
    first, second = world.submit(a_submission(due_at=SOON)), world.submit(a_submission(due_at=SOON))

    assert first.job_id != second.job_id
    assert world.ledger.rows == {}


def test_a_due_time_is_kept_to_the_millisecond_and_never_earlier(world: World):
    accepted = world.submit(a_submission(due_at=LATER + timedelta(microseconds=1)))

    assert accepted.due_at == LATER + MILLISECOND
    assert parse_job_id(accepted.job_id).due_at == accepted.due_at


def test_a_batch_answers_in_order_and_names_what_was_not_placed(world: World):
    world.ready.refuses = lambda timer: (
        Rejected(timer, "throttled", is_permanent=False) if timer.job.tenant == "unlucky" else None
    )

    answers = world.submitter().submit(
        [a_submission(due_at=SOON), a_submission(due_at=SOON, tenant="unlucky"), a_submission(due_at=LATER)]
    )

    assert isinstance(answers[0], Accepted)
    assert isinstance(answers[1], NotPlaced)
    assert answers[1].reasons == ["throttled"]
    assert isinstance(answers[2], Accepted)
    assert (answers[0].ring, answers[2].ring) == (Ring.NEAR, Ring.FAR)


def test_a_store_that_fails_for_one_job_of_a_batch_refuses_that_one_only(world: World):
    class Failing(InMemoryLedger):
        def register(self, job: Job, **options: Any) -> Any:
            if job.tenant == "unlucky":
                raise ConnectionError("10.0.0.7 has gone")
            return super().register(job, **options)

    world.ledger = Failing(skew=world.wheel.skew)
    answers = world.submitter().submit(
        [
            a_submission(due_at=SOON, idempotency_key="1"),
            a_submission(due_at=SOON, idempotency_key="2", tenant="unlucky"),
            a_submission(due_at=SOON),
        ]
    )

    assert [type(answer) for answer in answers] == [Accepted, NotPlaced, Accepted]
    assert isinstance(answers[1], NotPlaced)
    # Where its stores are is not a tenant's business; the log has it.
    assert answers[1].reasons == ["a store failed: ConnectionError"]
    (event,) = world.events("submission_failed")
    assert event["tenant"] == "unlucky"
    assert str(event["error"]).startswith("ConnectionError at functions.api.jobs.submit:")
    assert world.journal.counts == {"jobs_submitted": 2}


def test_a_payload_that_cannot_be_stored_refuses_its_job_only(world: World):
    submitter = replace(world.submitter(), payloads=FailingPayloads())

    answers = submitter.submit([a_submission(payload=noise(INLINE_LIMIT + 1)), a_submission()])

    assert [type(answer) for answer in answers] == [NotPlaced, Accepted]
    assert len(world.ready.sent) == 1


def test_each_refusal_of_a_batch_is_the_answer_of_its_own_job(world: World):
    world.submit(a_submission(due_at=SOON, idempotency_key="used"))

    answers = world.submitter().submit(
        [
            a_submission(due_at=SOON, idempotency_key="used", payload="7"),
            a_submission(due_at=NOON - timedelta(hours=1), idempotency_key="late"),
            a_submission(due_at=SOON, idempotency_key="used"),
        ]
    )

    assert [type(answer) for answer in answers] == [KeyReused, InvalidJob, Accepted]


def test_a_job_is_placed_with_its_options_and_tags(world: World):
    options = TargetOptions(method=Method.PUT, headers=(("X-Key", "hush"),), retry_codes=(404,))
    retry = RetryPolicy(max_age=timedelta(hours=6))

    for due_at in (SOON, LATER):
        job = placed(world, world.submit(a_submission(due_at=due_at, options=options, tags=("eu",), retry=retry))).job

        assert (job.options, job.tags, job.retry) == (options, ("eu",), retry)


def test_an_empty_batch_is_answered_with_nothing(world: World):
    assert world.submitter().submit([]) == []


def test_submissions_are_counted(world: World):
    world.submitter().submit([a_submission(), a_submission()])

    assert world.journal.counts == {"jobs_submitted": 2}


class TestKeys:
    def test_a_keyed_job_has_its_ledger_row_before_it_is_placed(self, world: World):
        accepted = world.submit(a_submission(due_at=SOON, idempotency_key="order-7"))

        row = world.ledger.rows[f"acme#{keyed_identity('acme', 'order-7')}"]
        assert (row.state, row.job_id, row.due_at) == (State.SCHEDULED, accepted.job_id, SOON)

    def test_the_same_key_answers_with_the_first_id_and_time_whatever_time_it_asks_for(self, world: World):
        first = world.submit(a_submission(due_at=LATER, idempotency_key="order-7"))
        world.clock.tick(timedelta(seconds=5))

        second = world.submit(a_submission(due_at=LATER + timedelta(days=30), idempotency_key="order-7"))

        assert second == replace(first, is_replay=True)
        assert [len(rows) for rows in world.rows.rows.values()] == [1]
        assert placed(world, first).due_at == LATER

    def test_a_crash_between_register_and_place_is_mended_by_the_next_submission_at_the_first_s_time(
        self, world: World
    ):
        submission = a_submission(due_at=LATER, idempotency_key="order-7", expires_after=timedelta(minutes=5))
        with pytest.raises(CrashError):
            replace(world.submitter(), placer=DyingPlacer(world)).submit([submission])
        assert world.rows.rows == {}

        accepted = world.submit(replace(submission, due_at=LATER + timedelta(hours=9)))

        timer = placed(world, accepted)
        assert (timer.due_at, timer.job.scheduled_at) == (LATER, LATER)
        assert timer.job.expires_at == LATER + timedelta(minutes=5)
        assert (accepted.due_at, accepted.is_replay) == (LATER, True)

    def test_a_repeated_submission_that_is_near_by_now_runs_once(self, world: World):
        submission = a_submission(due_at=SOON, idempotency_key="order-7")
        for _ in range(3):
            world.submit(submission)
            world.clock.tick(timedelta(seconds=11))

        world.receive_and_work()

        assert len(world.ready.sent) == 3
        assert len(world.calls) == 1

    def test_another_job_under_a_used_key_is_refused_with_the_first_id_and_places_nothing(self, world: World):
        first = world.submit(a_submission(due_at=SOON, idempotency_key="order-7"))

        refused = refusal(world, a_submission(due_at=SOON, idempotency_key="order-7", payload='{"other":true}'))

        assert isinstance(refused, KeyReused)
        assert refused.first_id == first.job_id
        assert len(world.ready.sent) == 1

    def test_another_job_under_a_used_key_leaves_the_first_one_s_stored_payload_alone(self, world: World):
        world.submit(a_submission(due_at=LATER, idempotency_key="order-7", payload=noise(INLINE_LIMIT + 1)))
        stored = dict(world.payloads.objects)

        refusal(world, a_submission(due_at=LATER, idempotency_key="order-7", payload=noise(INLINE_LIMIT + 2)))

        assert world.payloads.objects == stored

    def test_another_job_under_the_key_of_a_settled_one_is_refused_too(self, world: World):
        world.submit(a_submission(due_at=NOON, idempotency_key="order-7"))
        world.receive_and_work()

        assert isinstance(refusal(world, a_submission(idempotency_key="order-7", payload="7")), KeyReused)

    @pytest.mark.parametrize(
        "change",
        [
            {"target": "handler:other"},
            {"payload": None},
            {"priority": Priority.LOW},
            {"delivery": Delivery.AT_MOST_ONCE},
            {"precision": Precision.EXACT},
            {"retry": RetryPolicy(attempts=9)},
            {"timeout": timedelta(seconds=11)},
            {"expires_after": timedelta(days=1)},
            {
                "retry": RetryPolicy(
                    strategy=Strategy.FIXED, attempts=3, base=timedelta(seconds=10), max_age=timedelta(hours=1)
                )
            },
            {"options": TargetOptions(method=Method.PUT)},
            {"options": TargetOptions(headers=(("X-Key", "1"),))},
            {"options": TargetOptions(success_codes=(200,))},
            {"options": TargetOptions(retry_codes=(404,))},
            {"options": TargetOptions(is_async=True)},
            {"tags": ("eu",)},
            {"flows": (NamedFlow(key="stripe"),)},
        ],
    )
    def test_whatever_differs_but_the_time_makes_another_job(self, world: World, change: dict[str, Any]):
        world.submit(a_submission(due_at=SOON, idempotency_key="order-7"))

        assert isinstance(refusal(world, a_submission(due_at=SOON, idempotency_key="order-7", **change)), KeyReused)

    def test_another_value_of_a_header_makes_another_job_and_is_kept_as_a_hash_only(self, world: World):
        key, other = (TargetOptions(headers=(("X-Key", value),)) for value in ("hush", "hush!"))
        world.submit(a_submission(due_at=SOON, idempotency_key="order-7", options=key))

        assert isinstance(
            refusal(world, a_submission(due_at=SOON, idempotency_key="order-7", options=other)), KeyReused
        )
        assert "hush" not in repr(world.ledger.rows)

    def test_what_a_key_stands_for_is_the_same_as_before_there_were_options(self, world: World):
        world.submit(a_submission(due_at=SOON, idempotency_key="order-7"))

        # As it is stored: another one would refuse the repeats of every keyed job that waits.
        [row] = world.ledger.rows.values()
        assert row.fingerprint == "9d3ee4acd260e29a"

    @pytest.mark.parametrize("late", [PAST_GRACE, timedelta(0)])
    def test_a_new_key_may_be_due_up_to_a_minute_ago(self, world: World, late: timedelta):
        accepted = world.submit(a_submission(due_at=NOON - late, idempotency_key="order-7"))

        assert (accepted.due_at, accepted.ring) == (NOON - late, Ring.NEAR)

    def test_a_new_key_further_in_the_past_is_refused_and_leaves_no_row(self, world: World):
        refused = refusal(world, a_submission(due_at=NOON - PAST_GRACE - MILLISECOND, idempotency_key="order-7"))

        assert isinstance(refused, InvalidJob)
        assert (refused.field, refused.value) == ("run_at", "2027-03-01T11:58:59.999Z")
        assert str(refused) == "is in the past by more than 60 s: it is now 2027-03-01T12:00:00.000Z"
        assert world.ledger.rows == {}
        assert world.ready.sent == []

    def test_a_key_that_is_repeated_hours_after_its_time_answers_with_its_first_job(self, world: World):
        submission = a_submission(due_at=NOON, idempotency_key="order-7")
        first = world.submit(submission)
        world.receive_and_work()
        world.clock.tick(timedelta(hours=5))

        again = world.submit(submission)

        assert (again.job_id, again.state, again.is_replay) == (first.job_id, State.SUCCEEDED, True)

    def test_a_key_whose_first_submission_died_is_mended_hours_after_its_time(self, world: World):
        submission = a_submission(due_at=NOON, idempotency_key="order-7")
        with pytest.raises(CrashError):
            replace(world.submitter(), placer=DyingPlacer(world)).submit([submission])
        world.clock.tick(timedelta(hours=5))

        assert world.submit(submission).ring is Ring.NEAR
        world.receive_and_work()
        assert len(world.calls) == 1

    def test_a_settled_job_is_not_placed_again(self, world: World):
        submission = a_submission(due_at=NOON, idempotency_key="order-7")
        first = world.submit(submission)
        world.receive_and_work()

        again = world.submit(submission)

        assert (again.job_id, again.state, again.ring) == (first.job_id, State.SUCCEEDED, None)
        assert len(world.ready.sent) == 1

    def test_a_cancelled_job_is_not_placed_again(self, world: World):
        submission = a_submission(due_at=LATER, idempotency_key="order-7")
        first = world.submit(submission)
        world.canceller().cancel(parse_job_id(first.job_id))

        again = world.submit(submission)

        assert (again.state, again.ring) == (State.CANCELLED, None)
        assert world.rows.get(parse_job_id(first.job_id)) is None

    def test_a_job_that_is_under_way_is_not_placed_again(self, world: World):
        submission = a_submission(due_at=SOON, idempotency_key="order-7")
        timer = placed(world, world.submit(submission))
        world.ledger.claim(timer, owner="w", lease_until=LATER, now=NOON)
        assert world.submit(submission).state is State.RUNNING

        world.ledger.settle(replace(timer, due_at=LATER), Event.RETRY, fence=1, owner="w", now=NOON)
        assert world.submit(submission).state is State.RETRYING
        assert len(world.ready.sent) == 1

    def test_a_job_that_is_asked_to_cancel_is_not_placed_again(self, world: World):
        submission = a_submission(due_at=SOON, idempotency_key="order-7")
        timer = placed(world, world.submit(submission))
        row = world.row(timer.job)
        world.ledger.rows[timer.job.key] = replace(row, cancel_requested=True)

        again = world.submit(submission)

        assert (again.state, again.ring) == (State.SCHEDULED, None)
        assert len(world.ready.sent) == 1

    def test_a_released_job_is_placed_again_and_still_runs_once(self, world: World):
        submission = a_submission(due_at=NOON, idempotency_key="order-7")
        timer = placed(world, world.submit(submission))
        world.ledger.claim(timer, owner="w", lease_until=LATER, now=NOON)
        world.ledger.settle(timer, Event.RELEASE, fence=1, owner="w", now=NOON)

        assert world.submit(submission).ring is Ring.NEAR

        world.receive_and_work()
        assert len(world.calls) == 1

    def test_two_tenants_may_use_the_same_key(self, world: World):
        mine = world.submit(a_submission(idempotency_key="order-7"))
        theirs = world.submit(a_submission(idempotency_key="order-7", tenant="globex"))

        assert not theirs.is_replay
        assert mine.job_id != theirs.job_id

    def test_the_same_key_twice_in_a_batch_is_one_job(self, world: World):
        submission = a_submission(due_at=LATER, idempotency_key="order-7")

        first, second = world.submitter().submit([submission, submission])

        assert isinstance(first, Accepted)
        assert isinstance(second, Accepted)
        assert second == replace(first, is_replay=True)
        assert len(world.rows.rows) == 1


class TestRepeatedAtLeastOnceSubmissions:
    """No ledger stands between such a job's message and its target: a repeat must not write behind a cancel."""

    def test_a_near_one_is_placed_again(self, world: World):
        submission = an_at_least_once(due_at=SOON)
        first = world.submit(submission)
        world.clock.tick(timedelta(minutes=10))

        again = world.submit(submission)

        assert (again.job_id, again.ring, again.is_replay) == (first.job_id, Ring.NEAR, True)
        assert len(world.ready.sent) == 2

    def test_a_far_one_is_written_again_over_its_own_row(self, world: World):
        submission = an_at_least_once()
        first = world.submit(submission)

        assert world.submit(submission) == replace(first, is_replay=True)
        assert [len(rows) for rows in world.rows.rows.values()] == [1]

    def test_a_far_one_whose_first_submission_died_is_mended(self, world: World):
        submission = an_at_least_once()
        with pytest.raises(CrashError):
            replace(world.submitter(), placer=DyingPlacer(world)).submit([submission])

        assert placed(world, world.submit(submission)).due_at == LATER

    def test_a_far_one_that_is_cancelled_just_before_its_write_stays_cancelled(self, world: World):
        submission = an_at_least_once()
        job_id = parse_job_id(world.submit(submission).job_id)
        world.clock.tick(timedelta(minutes=10))

        def cancel() -> None:
            assert world.canceller().cancel(job_id)

        world.timers.before_put = cancel

        again = world.submit(submission)

        assert (again.state, again.ring, again.is_replay) == (State.CANCELLED, None, True)
        assert world.rows.get(job_id) is None

    def test_a_far_write_that_is_not_confirmed_is_not_accepted(self, world: World):
        submission = an_at_least_once()
        world.submit(submission)
        world.timers.unwritten = lambda _: True

        refused = refusal(world, submission)

        assert isinstance(refused, NotPlaced)
        assert refused.reasons == ["the timer store did not confirm the write"]

    def test_a_far_write_that_finished_late_is_followed_by_a_near_send(self, world: World):
        submission = an_at_least_once(due_at=NOON + world.wheel.guard + SECOND)
        world.submit(submission)
        world.timers.put_takes = 2 * SECOND

        assert world.submit(submission).ring is Ring.NEAR
        assert len(world.ready.sent) == 1

    def test_a_far_write_by_a_clock_that_is_skewed_is_not_accepted(self, world: World):
        submission = an_at_least_once()
        world.submit(submission)
        world.clock.known_offset = world.wheel.skew

        assert isinstance(refusal(world, submission), NotPlaced)


class TestPayloads:
    def test_a_large_payload_goes_to_the_store_and_the_job_points_at_it(self, world: World):
        large = noise(INLINE_LIMIT + 1)

        timer = placed(world, world.submit(a_submission(due_at=LATER, payload=large)))

        assert timer.job.payload.text is None
        assert timer.job.payload.pointer is not None
        assert world.payloads.get(timer.job.payload.pointer) == large

    def test_a_payload_at_the_limit_stays_with_the_job(self, world: World):
        payload = noise(INLINE_LIMIT)

        timer = placed(world, world.submit(a_submission(due_at=LATER, payload=payload)))

        assert timer.job.payload == Payload(text=payload)
        assert world.payloads.objects == {}

    def test_a_large_payload_that_compresses_well_stays_with_the_job(self, world: World):
        payload = '"' + "ab" * INLINE_LIMIT + '"'

        timer = placed(world, world.submit(a_submission(due_at=LATER, payload=payload)))

        assert timer.job.payload.packed is not None
        assert unpack(timer.job.payload) == payload
        assert world.payloads.objects == {}

    def test_a_job_without_a_payload_has_none(self, world: World):
        timer = placed(world, world.submit(a_submission(due_at=LATER, payload=None)))

        assert timer.job.payload == Payload()


def placed(world: World, accepted: Accepted) -> Timer:
    """The timer of an accepted job, wherever it went."""
    found = [timer for timer in world.ready.sent if str(job_id_of(timer.job)) == accepted.job_id]
    timer = found[-1] if found else world.rows.get(parse_job_id(accepted.job_id))
    assert timer is not None
    return timer


def refusal(world: World, submission: Submission) -> TickwheelError:
    answer = world.submitter().submit([submission])[0]
    assert isinstance(answer, TickwheelError)
    return answer


def an_at_least_once(**overrides: Any) -> Submission:
    return a_submission(
        **{"due_at": LATER, "idempotency_key": "order-7", "delivery": Delivery.AT_LEAST_ONCE, **overrides}
    )


def noise(size: int) -> str:
    """A JSON text of this size that does not compress."""
    printable = [letter for letter in map(chr, range(33, 127)) if letter not in '"\\']
    letters = random.Random(7).choices(printable, k=size - 2)
    return f'"{"".join(letters)}"'


class DyingPlacer(Placer):
    """A placer in front of which the process dies."""

    def __init__(self, world: World) -> None:
        super().__init__(wheel=world.wheel, clock=world.clock, timers=world.timers, ready=world.ready)

    def place(self, timers: Any) -> Any:
        raise CrashError


class FailingPayloads(InMemoryPayloadStore):
    """A payload store that does not answer."""

    def put(self, job: Job, text: str) -> str:
        raise ConnectionError


@pytest.mark.parametrize("due_at", [SOON, LATER])
def test_a_payload_is_packed_once_for_its_size_its_record_and_its_bill(
    world: World, due_at: datetime, monkeypatch: pytest.MonkeyPatch
):
    packed: list[bytes] = []
    compress = timer_record.zlib.compress
    monkeypatch.setattr(timer_record.zlib, "compress", lambda text, level: packed.append(text) or compress(text, level))
    text = json.dumps(["x" * 1_000])

    accepted = world.submit(a_submission(due_at=due_at, payload=text))

    assert packed == [text.encode()]
    sent = world.ready.sent[0] if due_at == SOON else world.rows.get(parse_job_id(accepted.job_id))
    assert sent is not None
    assert unpack(sent.job.payload) == text
