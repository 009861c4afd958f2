import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NoReturn, TypeVar, cast

import pytest

from functions.domain.far_ring.timer_record import decode_envelope, encode_envelope
from functions.domain.instants import HOUR, MILLISECOND, SECOND
from functions.domain.jobs.claims import LEASE_MARGIN, MAX_RESCUES, LedgerRow
from functions.domain.jobs.job import Delivery, Payload, Precision, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.overlap import Overlap
from functions.domain.lifecycle import TERMINAL, Event, State
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.state import Cut, SkipReason, Status
from functions.domain.targets.error_classes import NOT_CALLED
from functions.domain.wheel import Ring
from functions.ports.dead_letters import DeadLetter
from functions.ports.ledger import Applied, Refused
from functions.ports.ready_queue import Receipt, Rejected
from functions.ports.targets import Failed, Succeeded
from functions.worker.message import Message
from testkit.builders import NOON, a_link, a_schedule, a_template, a_timer, an_occurrence_timer, every
from testkit.fakes import FakeClock, InMemoryDeadLetters, InMemoryLedger
from testkit.observed import CrashError, DeathError, Watched
from testkit.scheduler import TIME_LIMIT, World


@pytest.fixture
def world() -> World:
    return World()


def test_a_due_job_is_claimed_run_and_settled_with_what_its_target_said(world: World):
    timer = a_timer(payload=Payload(text='{"n":7}'))
    world.targets.answer = lambda *_: Succeeded('{"status":204}')

    assert world.work(a_message(timer)) == []

    row = world.row(timer.job)
    assert (row.state, row.attempt, row.fence, row.result) == (State.SUCCEEDED, 1, 1, '{"status":204}')
    assert [(target, payload) for _, target, payload, _ in world.targets.effects] == [
        ("https://example.com/hook", '{"n":7}')
    ]


def test_a_target_gets_all_it_needs_to_deduplicate_and_to_refuse_a_stale_attempt(world: World):
    timer = a_timer(attempt=2, due_at=NOON, timeout=timedelta(seconds=10))

    world.work(a_message(timer))

    invocation = world.calls[0]
    assert (invocation.job_id, invocation.tenant, invocation.idempotency_key) == (
        str(job_id_of(timer.job)),
        "acme",
        timer.job.key,
    )
    assert (invocation.attempt, invocation.fence, invocation.scheduled_at) == (2, 1, NOON)
    assert invocation.deadline == NOON + timedelta(seconds=10)


def test_a_job_is_noted_with_its_lag_the_time_of_its_target_and_its_outcome(world: World):
    timer = a_timer()
    world.clock.tick(timedelta(milliseconds=250))

    def answer_after_a_while(*_: object) -> Succeeded:
        world.clock.tick(timedelta(milliseconds=40))
        return Succeeded()

    world.targets.answer = answer_after_a_while
    world.work(a_message(timer))

    assert world.journal.values == {"lag_ms": [250.0], "late": [0.0], "target_ms": [40]}
    assert world.journal.counts == {"attempts": 1, "succeeded": 1}
    assert world.events("job_settled")[0]["outcome"] == "succeeded"


def test_one_bad_job_does_not_return_the_others_of_its_batch(world: World):
    good, bad, after = a_timer(), a_timer(), a_timer()
    world.targets.answer = lambda _, invocation: _raise() if invocation.idempotency_key == bad.job.key else Succeeded()

    returned = world.work(a_message(good, "m1"), a_message(bad, "m2"), a_message(after, "m3"))

    assert returned == ["m2"]
    assert [world.row(timer.job).state for timer in (good, bad, after)] == [
        State.SUCCEEDED,
        State.SCHEDULED,
        State.SUCCEEDED,
    ]
    assert world.journal.counts["returned"] == 1


@pytest.mark.parametrize("body", ["hello", "{}", '{"v":1,"t":"acme","j":[{"i":"x"}]}', '{"v":1,"t":"acme","j":[]}'])
def test_a_foreign_message_is_a_dead_letter_at_its_first_receive_and_gone(world: World, body: str):
    foreign = replace(a_message(a_timer()), body=body, message_id="m1", seen_at=NOON)

    assert world.work(foreign, a_message(a_timer(), "m2")) == []
    assert world.work(foreign) == []

    (letter,) = world.buried
    assert (letter.tenant, letter.identity, letter.raw, letter.dead_at) == ("?", "m1", body, NOON)
    assert letter.error_class == "undecodable"
    assert len(world.targets.effects) == 1
    assert world.events("message_undecodable")[0] == {"message_id": "m1", "dead_letter": str(letter.letter_id)}
    assert world.journal.counts["dead_lettered"] == 2


def test_a_foreign_message_that_cannot_be_kept_comes_back(world: World):
    broken = world.worker(dead_letters=_Full())
    foreign = replace(a_message(a_timer()), body="hello", message_id="m1")

    assert broken.execute([foreign], ends_at=NOON + HOUR) == ["m1"]


class _Full(InMemoryDeadLetters):
    def put(self, letter: DeadLetter) -> None:
        raise ConnectionError


def test_a_message_of_a_newer_version_comes_back_for_a_worker_that_can_read_it(world: World):
    newer = replace(a_message(a_timer()), body='{"v":2,"t":"acme","j":[1]}', message_id="m1")

    assert world.work(newer) == ["m1"]

    assert world.buried == []
    assert str(world.events("job_returned")[0]["error"]).startswith(
        "NewerVersion at functions.domain.far_ring.timer_record:"
    )


def test_a_message_that_was_received_before_runs_alone_after_the_rest_of_its_batch(world: World):
    timers = [a_timer(identity=f"j{number}") for number in range(4)]
    side_by_side: list[int] = []

    def run_side_by_side(jobs: Sequence[Callable[[], None]]) -> None:
        side_by_side.append(len(jobs))
        for job in jobs:
            job()

    worker = replace(world.worker(), side_by_side=run_side_by_side)
    counts = [3, 1, 2, 1]
    messages = [
        a_message(timer, f"m{number}", receive_count=count)
        for number, (timer, count) in enumerate(zip(timers, counts, strict=True))
    ]

    worker.execute(messages, ends_at=NOON + timedelta(minutes=1))

    assert side_by_side == [2]
    assert [call.idempotency_key for call in world.calls] == ["acme#j1", "acme#j3", "acme#j2", "acme#j0"]


def test_an_envelope_of_several_jobs_runs_each(world: World):
    timers = [a_timer(), a_timer()]
    message = replace(a_message(timers[0]), body=encode_envelope(timers))

    assert world.work(message) == []
    assert [world.row(timer.job).state for timer in timers] == [State.SUCCEEDED, State.SUCCEEDED]


def test_an_empty_batch_returns_nothing(world: World):
    assert world.work() == []


class TestTime:
    def test_a_message_more_than_two_seconds_early_is_placed_again_unclaimed(self, world: World):
        timer = a_timer(due_at=NOON + timedelta(seconds=2, milliseconds=1))

        assert world.work(a_message(timer)) == []

        assert world.ready.sent == [timer]
        assert world.ledger.get(timer.job.key) is None
        assert world.calls == []
        assert world.events("came_early")[0]["early_ms"] == 2001

    def test_a_message_hours_early_goes_back_to_the_far_ring(self, world: World):
        timer = a_timer(due_at=NOON + timedelta(hours=3), attempt=2)

        world.work(a_message(timer))

        assert world.rows.get(job_id_of(timer.job)) == timer
        assert world.ready.sent == []

    @pytest.mark.parametrize("early", [timedelta(seconds=2), timedelta(milliseconds=1)])
    def test_a_message_up_to_two_seconds_early_is_held_until_its_instant(self, world: World, early: timedelta):
        timer = a_timer(due_at=NOON + early)

        world.work(a_message(timer))

        assert [ran_at for ran_at, *_ in world.targets.effects] == [NOON + early]
        assert world.journal.values["lag_ms"] == [0.0]
        assert "early" not in world.journal.counts

    def test_an_exact_job_is_sent_early_and_runs_at_its_very_instant(self, world: World):
        timer = a_timer(due_at=NOON + timedelta(seconds=7, milliseconds=300), precision=Precision.EXACT)
        world.placer.place([timer])
        world.clock.tick(timedelta(seconds=6))

        world.receive_and_work()

        assert [ran_at for ran_at, *_ in world.targets.effects] == [timer.due_at]

    def test_an_early_message_that_cannot_be_placed_again_is_returned(self, world: World):
        timer = a_timer(due_at=NOON + timedelta(seconds=30))
        world.ready.refuses = lambda timer: Rejected(timer, "throttled", is_permanent=False)

        assert world.work(a_message(timer, "m1")) == ["m1"]

    @pytest.mark.parametrize("delivery", [Delivery.EXACTLY_ONCE, Delivery.AT_MOST_ONCE])
    def test_a_job_that_could_outlast_the_function_is_placed_again_unclaimed(self, world: World, delivery: Delivery):
        timer = a_timer(timeout=timedelta(seconds=20), delivery=delivery)

        assert work_until(world, timer, NOON + timedelta(seconds=20) + LEASE_MARGIN - MILLISECOND) == []

        assert world.ready.sent == [timer]
        assert world.ready.deferred == []
        assert world.ledger.get(timer.job.key) is None
        assert world.calls == []

    def test_waiting_for_time_counts_no_receive_and_so_never_makes_a_dead_letter(self, world: World):
        timer = a_timer(timeout=timedelta(seconds=20))
        world.placer.place([timer])
        for _ in range(2 * world.ready.max_receive_count):
            message = world.ready.receive()[0]
            assert message.receive_count == 1
            assert work_until(world, timer, world.clock.now() + timedelta(seconds=20)) == []
            world.ready.delete(message.message_id)

        assert world.receive_and_work() == []
        assert world.row(timer.job).state is State.SUCCEEDED

    def test_a_job_without_time_that_cannot_be_placed_again_is_returned(self, world: World):
        world.ready.refuses = lambda timer: Rejected(timer, "throttled", is_permanent=False)

        assert work_until(world, a_timer(timeout=timedelta(seconds=20)), NOON + timedelta(seconds=20)) == ["m1"]

    def test_an_at_least_once_job_without_time_comes_back_later_and_spread_because_its_receives_must_count(
        self, world: World
    ):
        timer = a_timer(timeout=timedelta(seconds=20), delivery=Delivery.AT_LEAST_ONCE)
        world.jitter = 0.5

        assert work_until(world, timer, NOON + timedelta(seconds=20)) == ["m1"]

        assert world.ready.deferred == [("m1", NOON + timedelta(seconds=11))]
        assert world.ready.sent == []
        assert world.calls == []

    def test_a_job_that_just_fits_into_the_function_s_time_is_run(self, world: World):
        timer = a_timer(timeout=timedelta(seconds=20))

        assert work_until(world, timer, NOON + timedelta(seconds=20) + LEASE_MARGIN) == []
        assert world.row(timer.job).state is State.SUCCEEDED

    def test_a_job_that_is_held_counts_the_wait_against_the_function_s_time(self, world: World):
        timer = a_timer(due_at=NOON + timedelta(seconds=2), timeout=timedelta(seconds=20))

        assert work_until(world, timer, NOON + timedelta(seconds=27) - MILLISECOND) == []
        assert world.calls == []
        assert world.ready.sent == [timer]


class TestWithoutARow:
    def test_a_job_that_comes_for_the_first_time_writes_nothing(self, world: World):
        timer = a_timer(delivery=Delivery.AT_LEAST_ONCE)

        assert world.work(a_message(timer)) == []

        assert world.ledger.starts_of(timer) == 0

    def test_a_start_of_one_whose_message_was_received_before_is_noted_before_its_target_is_called(self, world: World):
        timer = a_timer(delivery=Delivery.AT_LEAST_ONCE)
        noted: list[int] = []
        world.targets.answer = lambda *_: noted.append(world.ledger.starts_of(timer)) or Succeeded()

        assert world.work(a_message(timer, receive_count=2)) == []

        assert noted == [1]

    def test_a_start_whose_call_could_not_be_made_is_no_death(self, world: World):
        timer = a_timer(delivery=Delivery.AT_LEAST_ONCE)

        def unreachable(*_: object) -> NoReturn:
            raise ConnectionError

        world.targets.answer = unreachable

        assert world.work(a_message(timer, "m1", receive_count=2)) == ["m1"]
        assert world.ledger.starts_of(timer) == 0

    def test_one_whose_start_cannot_be_noted_comes_back_and_is_not_called(self, world: World):
        timer = a_timer(delivery=Delivery.AT_LEAST_ONCE)

        class Unreachable(InMemoryLedger):
            def note_start(self, timer: Timer, **_: Any) -> None:
                raise ConnectionError

        world.ledger = Unreachable(skew=world.wheel.skew, dead_letters=world.letters)

        assert world.work(a_message(timer, "m1", receive_count=2)) == ["m1"]
        assert world.calls == []


class TestClaims:
    def test_a_live_lease_defers_the_message_and_never_acknowledges_it(self, world: World):
        timer = a_timer()
        a_claim(world, timer, owner="another", lease_until=NOON + timedelta(seconds=15))

        assert world.work(a_message(timer, "m1")) == ["m1"]

        assert world.ready.deferred == [("m1", NOON + timedelta(seconds=15, milliseconds=1) + world.wheel.skew)]
        assert world.calls == []
        assert world.journal.counts == {"claims_lost": 1}

    def test_a_lease_that_is_over_by_less_than_the_skew_is_still_live(self, world: World):
        timer = a_timer()
        a_claim(world, timer, owner="another", lease_until=NOON - world.wheel.skew)

        assert world.work(a_message(timer, "m1")) == ["m1"]
        assert world.calls == []

    def test_an_abandoned_attempt_is_rescued_with_a_new_fence_and_counted(self, world: World):
        timer = a_timer()
        a_claim(world, timer, owner="dead", lease_until=NOON - timedelta(minutes=1))

        assert world.work(a_message(timer, receive_count=2)) == []

        row = world.row(timer.job)
        assert (row.state, row.fence, row.rescue_count) == (State.SUCCEEDED, 2, 1)
        assert world.calls[0].fence == 2
        assert world.journal.counts["rescues"] == 1

    def test_an_attempt_whose_workers_died_four_times_is_a_dead_letter_and_not_run(self, world: World):
        timer = a_timer()
        world.ledger.rows[timer.job.key] = a_row_running(rescue_count=MAX_RESCUES, error="boom")

        assert world.work(a_message(timer)) == []

        assert world.calls == []
        assert world.row(timer.job).state is State.FAILED
        assert [(letter.job_id, letter.error, letter.timer) for letter in world.buried] == [
            (str(job_id_of(timer.job)), "its worker died 4 times; last error: boom", timer)
        ]
        assert [letter.fence for letter in world.buried] == [a_row_running().fence]
        assert world.journal.counts == {"dead_lettered": 1, "failed": 1}

    def test_an_attempt_whose_row_changes_before_it_is_buried_comes_back_and_leaves_no_dead_letter(self, world: World):
        timer = a_timer()
        world.ledger.rows[timer.job.key] = a_row_running(rescue_count=MAX_RESCUES)

        class Contested(InMemoryLedger):
            def bury(self, letter: Any, job: Any, *, row: Any, **options: Any) -> Applied | Refused:
                self.rows[job.key] = a_row_running(fence=row.fence + 1)
                return super().bury(letter, job, row=row, **options)

        assert world.work(a_message(timer, "m1"), ledger=sharing(Contested, world.ledger)) == ["m1"]
        assert world.buried == []
        assert world.row(timer.job).state is State.RUNNING

    def test_each_attempt_may_be_rescued_as_often_as_the_first(self, world: World):
        timer = a_timer(attempt=2)
        world.ledger.rows[timer.job.key] = LedgerRow(state=State.RETRYING, attempt=1, fence=9, rescue_count=MAX_RESCUES)
        counted: list[int] = []
        world.targets.answer = lambda *_: counted.append(world.row(timer.job).rescue_count) or Succeeded()

        world.work(a_message(timer))

        assert counted == [0]
        assert world.calls[0].fence == 10

    def test_a_later_attempt_rescues_an_abandoned_lower_one(self, world: World):
        world.ledger.rows["acme#x"] = a_row_running()

        world.work(a_message(a_timer(identity="x", attempt=2)))

        assert (world.ledger.rows["acme#x"].state, world.ledger.rows["acme#x"].attempt) == (State.SUCCEEDED, 2)

    def test_a_job_that_kills_each_of_its_workers_ends_as_a_dead_letter(self, world: World):
        timer = a_timer()
        world.placer.place([timer])
        deaths = 0
        for _ in range(20):
            world.targets.answer = lambda *_: _die()
            try:
                world.receive_and_work()
            except DeathError:
                deaths += 1
            world.clock.tick(timedelta(minutes=2))

        assert deaths == 1 + MAX_RESCUES
        assert world.row(timer.job).state is State.FAILED
        assert len(world.buried) == 1
        assert world.ready.messages == {}

    @pytest.mark.parametrize("state", sorted(TERMINAL))
    def test_a_duplicate_of_a_settled_job_is_dropped(self, world: World, state: State):
        timer = a_timer()
        world.ledger.rows[timer.job.key] = LedgerRow(state=state, attempt=1)

        assert world.work(a_message(timer)) == []
        assert world.calls == []
        assert world.events("duplicate_dropped")[0]["reason"] == f"settled as {state}"

    def test_a_duplicate_of_an_attempt_that_was_retried_is_dropped(self, world: World):
        timer = a_timer()
        world.ledger.rows[timer.job.key] = LedgerRow(state=State.RETRYING, attempt=1, fence=1)

        assert world.work(a_message(timer)) == []
        assert world.calls == []

    def test_a_lower_attempt_is_dropped_while_a_higher_one_runs(self, world: World):
        timer = a_timer()
        world.ledger.rows[timer.job.key] = a_row_running(attempt=2, lease_until=NOON - timedelta(hours=1))

        assert world.work(a_message(timer)) == []
        assert world.row(timer.job).attempt == 2
        assert world.calls == []

    def test_a_claim_whose_answer_was_lost_still_runs_the_job(self, world: World):
        timer = a_timer()
        ledger = LosingAnswers(world.ledger, "claim")

        world.work(a_message(timer), ledger=ledger)

        assert world.row(timer.job).state is State.SUCCEEDED
        assert len(world.calls) == 1

    def test_two_deliveries_of_one_message_run_it_once(self, world: World):
        timer = a_timer()

        world.work(a_message(timer, "m1"), a_message(timer, "m2"))

        assert len(world.calls) == 1

    def test_an_attempt_with_too_little_of_its_lease_left_is_given_back_unstarted(self, world: World):
        timer = a_timer(timeout=timedelta(seconds=10))

        class Slow(InMemoryLedger):
            def claim(self, timer: Timer, **options: Any) -> Any:
                world.clock.tick(LEASE_MARGIN + MILLISECOND)
                return super().claim(timer, **options)

        assert world.work(a_message(timer, "m1"), ledger=sharing(Slow, world.ledger)) == ["m1"]

        assert world.calls == []
        assert world.row(timer.job).state is State.SCHEDULED


class TestReleases:
    def test_a_released_attempt_runs_when_its_message_comes_back_and_counts_as_no_death(self, world: World):
        timer = a_timer(attempt=2)
        world.targets.answer = lambda *_: _raise()
        world.work(a_message(timer, "m1"))
        released = world.row(timer.job)

        world.targets.answer = lambda *_: Succeeded()
        assert world.work(a_message(timer, "m1", receive_count=2)) == []

        assert (released.state, released.attempt, released.due_at) == (State.SCHEDULED, 2, NOON)
        row = world.row(timer.job)
        assert (row.state, row.attempt, row.rescue_count) == (State.SUCCEEDED, 2, 0)
        assert [call.fence for call in world.calls] == [1, 2]
        assert world.ready.deferred == []

    def test_a_duplicate_of_a_lower_attempt_does_not_take_a_released_one(self, world: World):
        world.targets.answer = lambda *_: _raise()
        world.work(a_message(a_timer(identity="x", attempt=2)))

        assert world.work(a_message(a_timer(identity="x", attempt=1), "m2")) == []

        assert len(world.calls) == 1
        assert world.events("duplicate_dropped")[0]["reason"] == "superseded by a later attempt"

    def test_a_released_job_can_be_cancelled(self, world: World):
        timer = a_timer()
        world.targets.answer = lambda *_: _raise()
        world.work(a_message(timer))

        assert world.canceller().cancel(job_id_of(timer.job))

        assert world.work(a_message(timer, receive_count=2)) == []
        assert world.row(timer.job).state is State.CANCELLED
        assert len(world.calls) == 1

    def test_a_release_that_fails_too_leaves_the_attempt_to_be_rescued(self, world: World):
        timer = a_timer()
        world.targets.answer = lambda *_: _raise()

        assert world.work(a_message(timer, "m1"), ledger=Crashing(world.ledger, "settle")) == ["m1"]
        assert world.row(timer.job).state is State.RUNNING
        assert world.events("not_released") == [{"job_id": str(job_id_of(timer.job)), "error": "CrashError"}]

        world.targets.answer = lambda *_: Succeeded()
        world.clock.tick(timedelta(minutes=1))
        assert world.work(a_message(timer, receive_count=2)) == []
        assert world.row(timer.job).rescue_count == 1

    def test_a_release_of_an_attempt_that_was_rescued_meanwhile_changes_nothing(self, world: World):
        timer = a_timer()

        def fail_late(*_: object) -> Succeeded:
            rescued(world, timer)
            return _raise()

        world.targets.answer = fail_late
        assert world.work(a_message(timer, "m1")) == ["m1"]

        row = world.row(timer.job)
        assert (row.state, row.owner) == (State.RUNNING, "rescuer")

    def test_an_attempt_whose_effect_has_happened_is_not_released_so_that_it_cannot_be_cancelled(self, world: World):
        timer = a_timer()

        class Unsettling(InMemoryLedger):
            def settle(self, timer: Timer, event: Event, **options: Any) -> Applied | Refused:
                if event is Event.SUCCEED:
                    raise CrashError
                return super().settle(timer, event, **options)

        assert world.work(a_message(timer, "m1"), ledger=sharing(Unsettling, world.ledger)) == ["m1"]

        assert world.row(timer.job).state is State.RUNNING
        assert not world.canceller().cancel(job_id_of(timer.job))

    @pytest.mark.parametrize("delivery", [Delivery.AT_LEAST_ONCE, Delivery.AT_MOST_ONCE])
    def test_only_an_exactly_once_job_has_an_attempt_to_give_back(self, world: World, delivery: Delivery):
        timer = a_timer(delivery=delivery)
        world.targets.answer = lambda *_: _raise()

        assert world.work(a_message(timer, "m1")) == ["m1"]

        states = [row.state for row in world.ledger.rows.values()]
        assert states == ([State.ATTEMPTED] if delivery is Delivery.AT_MOST_ONCE else [])


class TestRetries:
    def test_a_failed_attempt_is_placed_again_and_settled_as_retrying(self, world: World):
        timer = a_timer()
        world.targets.answer = lambda *_: Failed("HTTP 500")

        assert world.work(a_message(timer)) == []

        assert [(again.attempt, again.due_at, again.job) for again in world.ready.sent] == [
            (2, NOON + timedelta(seconds=10), timer.job)
        ]
        row = world.row(timer.job)
        assert (row.state, row.attempt, row.error) == (State.RETRYING, 1, "HTTP 500")
        assert row.due_at == NOON + timedelta(seconds=10)
        assert world.journal.counts == {"attempts": 1, "retried": 1}

    def test_a_retry_far_away_goes_to_the_far_ring(self, world: World):
        policy = replace(a_timer().job.retry, base=timedelta(hours=1), cap=timedelta(hours=1))
        timer = a_timer(retry=policy)
        world.targets.answer = lambda *_: Failed("HTTP 500")

        world.work(a_message(timer))

        bucket = world.wheel.bucket_of(NOON + timedelta(hours=1))
        assert len(world.rows.read(bucket, timer.job.shard, limit=10).rows) == 1
        assert world.ready.sent == []

    def test_a_crash_between_placing_the_retry_and_settling_loses_nothing(self, world: World):
        timer = a_timer()
        world.placer.place([timer])
        world.targets.answer = lambda *_: Failed("HTTP 500")

        world.receive_and_work(ledger=Crashing(world.ledger, "settle"))
        assert [again.attempt for again in world.ready.sent] == [1, 2]

        world.targets.answer = lambda *_: Succeeded()
        for _ in range(10):
            world.clock.tick(timedelta(minutes=2))
            world.receive_and_work()
        assert world.row(timer.job).state is State.SUCCEEDED
        assert world.ready.messages == {}

    def test_a_retry_that_cannot_be_placed_returns_the_message_and_gives_the_attempt_back(self, world: World):
        timer = a_timer()
        world.targets.answer = lambda *_: Failed("HTTP 500")
        world.ready.refuses = lambda timer: Rejected(timer, "throttled", is_permanent=False)

        assert world.work(a_message(timer, "m1")) == ["m1"]
        assert world.row(timer.job).state is State.SCHEDULED

    def test_an_exhausted_job_is_a_dead_letter_and_settled_as_failed(self, world: World):
        timer = a_timer(attempt=3)
        world.targets.answer = lambda *_: Failed("HTTP 500")

        assert world.work(a_message(timer)) == []

        assert [(letter.attempt, letter.error, letter.dead_at) for letter in world.buried] == [(3, "HTTP 500", NOON)]
        assert (world.row(timer.job).state, world.row(timer.job).error) == (State.FAILED, "HTTP 500")
        assert world.ready.sent == []
        assert world.journal.counts == {"attempts": 1, "dead_lettered": 1, "failed": 1}

    def test_a_job_that_could_not_be_settled_as_failed_has_no_dead_letter_yet(self, world: World):
        timer = a_timer(attempt=3)
        world.targets.answer = lambda *_: Failed("HTTP 500")

        assert world.work(a_message(timer, "m1"), ledger=Crashing(world.ledger, "fail")) == ["m1"]
        assert world.buried == []
        assert world.row(timer.job).state is State.SCHEDULED

        world.work(a_message(timer, "m1", receive_count=2))
        assert world.row(timer.job).state is State.FAILED
        assert len(world.buried) == 1

    def test_a_zombie_whose_last_attempt_fails_leaves_no_dead_letter(self, world: World):
        timer = a_timer(attempt=3)

        def fail_late(*_: object) -> Failed:
            rescued(world, timer)
            return Failed("HTTP 500")

        world.targets.answer = fail_late
        assert world.work(a_message(timer)) == ["m1"]  # whoever has its job may have it by this message

        assert world.buried == []
        assert (world.row(timer.job).state, world.row(timer.job).owner) == (State.RUNNING, "rescuer")
        assert world.events("settle_refused")[0]["fence"] == 1
        assert "dead_lettered" not in world.journal.counts

    def test_only_the_class_of_an_error_is_logged_because_what_a_target_says_may_be_secret(self, world: World):
        timer = a_timer(retry=replace(a_timer().job.retry, attempts=1))
        world.targets.answer = lambda *_: Failed("ValueError: card 4111 1111 1111 1111", "handler_error")

        world.work(a_message(timer))

        assert world.events("job_settled")[0]["error"] == "handler_error"
        assert "4111" not in str(world.journal.events)
        assert world.buried[0].error == "ValueError: card 4111 1111 1111 1111"

    def test_a_permanent_failure_is_not_tried_again(self, world: World):
        timer = a_timer()
        world.targets.answer = lambda *_: Failed("there is no handler 'x'", is_permanent=True)

        world.work(a_message(timer))

        assert world.ready.sent == []
        assert world.row(timer.job).state is State.FAILED
        assert len(world.buried) == 1

    def test_a_job_fails_as_often_as_its_policy_says_and_no_more(self, world: World):
        timer = a_timer()

        fail_each_time(world, timer)

        assert [call.attempt for call in world.calls] == [1, 2, 3]
        assert [call.fence for call in world.calls] == [1, 2, 3]
        assert world.row(timer.job).state is State.FAILED

    def test_a_zombie_s_settle_is_refused_and_noted(self, world: World):
        timer = a_timer()

        def slowly(_: str, invocation: object) -> Succeeded:
            rescued(world, timer)
            return Succeeded()

        world.targets.answer = slowly
        assert world.work(a_message(timer)) == ["m1"]  # whoever has its job may have it by this message

        assert world.row(timer.job).owner == "rescuer"
        assert world.events("settle_refused")[0]["fence"] == 1
        assert "succeeded" not in world.journal.counts

    def test_a_zombie_s_failure_costs_a_duplicate_message_and_no_state(self, world: World):
        timer = a_timer()

        def slowly(_: str, invocation: object) -> Failed:
            rescued(world, timer)
            return Failed("HTTP 500")

        world.targets.answer = slowly
        world.work(a_message(timer))

        assert world.row(timer.job).state is State.RUNNING
        assert world.row(timer.job).owner == "rescuer"


class TestCancelsAndExpiry:
    def test_a_running_job_that_was_asked_to_cancel_is_not_tried_again(self, world: World):
        timer = a_timer()

        def fail_while_cancelled(_: str, invocation: Any) -> Failed:
            world.ledger.request_cancel(job_id_of(timer.job), row=world.row(timer.job), now=NOON)
            return Failed("HTTP 500")

        world.targets.answer = fail_while_cancelled
        world.work(a_message(timer))
        world.targets.answer = lambda *_: Succeeded()
        world.clock.tick(timedelta(minutes=1))
        world.receive_and_work()

        assert world.row(timer.job).state is State.CANCELLED
        assert len(world.calls) == 1
        assert world.ready.messages == {}

    def test_a_running_job_that_was_asked_to_cancel_may_still_succeed(self, world: World):
        timer = a_timer()

        def succeed_while_cancelled(_: str, invocation: Any) -> Succeeded:
            world.ledger.request_cancel(job_id_of(timer.job), row=world.row(timer.job), now=NOON)
            return Succeeded()

        world.targets.answer = succeed_while_cancelled
        world.work(a_message(timer))

        assert world.row(timer.job).state is State.SUCCEEDED

    def test_a_rescue_of_a_job_that_was_asked_to_cancel_withdraws_it(self, world: World):
        timer = a_timer()
        world.ledger.rows[timer.job.key] = a_row_running(cancel_requested=True)

        assert world.work(a_message(timer)) == []

        assert world.calls == []
        assert world.row(timer.job).state is State.CANCELLED

    def test_a_job_that_was_asked_to_cancel_is_withdrawn_rather_than_buried(self, world: World):
        timer = a_timer()
        world.ledger.rows[timer.job.key] = a_row_running(cancel_requested=True, rescue_count=MAX_RESCUES)

        assert world.work(a_message(timer)) == []

        assert world.row(timer.job).state is State.CANCELLED
        assert world.buried == []

    @pytest.mark.parametrize(
        "row",
        [
            LedgerRow(state=State.SCHEDULED, cancel_requested=True),
            LedgerRow(state=State.SCHEDULED, attempt=1, fence=3, cancel_requested=True),
        ],
        ids=["registered", "released"],
    )
    def test_a_claim_of_a_job_that_was_asked_to_cancel_withdraws_it_and_forgets_its_payload(
        self, world: World, row: LedgerRow
    ):
        timer = a_stored(world, "1")
        world.ledger.rows[timer.job.key] = row

        assert world.work(a_message(timer)) == []

        assert world.calls == []
        assert world.row(timer.job).state is State.CANCELLED
        assert world.payloads.objects == {}
        assert world.journal.counts == {"cancelled": 1}

    def test_a_cancel_that_was_asked_for_before_a_release_holds_after_it(self, world: World):
        timer = a_timer()

        def fail_while_cancelled(*_: object) -> Succeeded:
            world.ledger.request_cancel(job_id_of(timer.job), row=world.row(timer.job), now=NOON)
            return _raise()

        world.targets.answer = fail_while_cancelled
        assert world.work(a_message(timer, "m1")) == ["m1"]
        assert world.work(a_message(timer, "m1", receive_count=2)) == []

        assert len(world.calls) == 1
        assert world.row(timer.job).state is State.CANCELLED

    def test_an_expired_job_settles_without_running(self, world: World):
        timer = a_timer(expires_at=NOON)

        assert world.work(a_message(timer)) == []

        assert world.calls == []
        assert world.row(timer.job).state is State.EXPIRED
        assert world.journal.counts == {"expired": 1}

    def test_a_job_runs_up_to_the_instant_before_it_expires(self, world: World):
        timer = a_timer(expires_at=NOON + MILLISECOND)

        world.work(a_message(timer))

        assert world.row(timer.job).state is State.SUCCEEDED


class TestDeliveries:
    def test_an_at_most_once_job_is_marked_before_it_runs_and_never_runs_twice(self, world: World):
        timer = a_timer(delivery=Delivery.AT_MOST_ONCE)
        states: list[State] = []
        world.targets.answer = lambda *_: states.append(world.row(timer.job).state) or Succeeded()

        world.work(a_message(timer, "m1"), a_message(timer, "m2"))
        world.work(a_message(timer, "m3", receive_count=2))

        assert states == [State.ATTEMPTED]
        assert len(world.calls) == 1
        assert world.calls[0].fence == 0
        assert world.row(timer.job).state is State.ATTEMPTED

    def test_an_at_most_once_job_whose_worker_dies_is_not_run_again(self, world: World):
        timer = a_timer(delivery=Delivery.AT_MOST_ONCE)
        world.targets.answer = lambda *_: _die()
        with pytest.raises(DeathError):
            world.work(a_message(timer))

        world.clock.tick(timedelta(days=1))
        assert world.work(a_message(timer, receive_count=2)) == []
        assert len(world.calls) == 1

    def test_an_at_most_once_job_that_fails_is_not_tried_again_and_forgets_its_payload(self, world: World):
        timer = a_stored(world, "1", delivery=Delivery.AT_MOST_ONCE)
        world.targets.answer = lambda *_: Failed("HTTP 500")

        assert world.work(a_message(timer)) == []

        assert world.ready.sent == []
        assert world.buried == []
        assert world.payloads.objects == {}
        assert world.journal.counts == {"attempts": 1, "failed": 1}

    def test_an_at_most_once_job_is_called_however_long_the_ledger_takes_to_answer(self, world: World):
        timer = a_timer(delivery=Delivery.AT_MOST_ONCE)

        assert world.work(a_message(timer), ledger=starting_slowly(world, 30 * SECOND)) == []

        assert len(world.calls) == 1
        assert world.calls[0].deadline == NOON + 30 * SECOND + timer.job.timeout
        assert world.journal.counts["succeeded"] == 1

    def test_an_at_most_once_job_for_which_no_time_is_left_after_its_start_is_reported_as_failed(self, world: World):
        timer = a_stored(world, "1", delivery=Delivery.AT_MOST_ONCE)

        assert world.work(a_message(timer), ledger=starting_slowly(world, TIME_LIMIT)) == []

        assert (world.calls, world.payloads.objects) == ([], {})
        assert world.row(timer.job).state is State.ATTEMPTED
        [ending] = world.trail.endings
        assert (ending.outcome, ending.error_class, ending.began_at) == (State.FAILED, NOT_CALLED, None)
        assert world.journal.counts == {"failed": 1}
        assert world.breaker_store.rows == {}
        assert world.work(a_message(timer, receive_count=2)) == []
        assert world.calls == []

    def test_an_expired_at_most_once_job_is_not_started(self, world: World):
        timer = a_timer(delivery=Delivery.AT_MOST_ONCE, expires_at=NOON)

        assert world.work(a_message(timer)) == []
        assert world.calls == []
        assert world.journal.counts == {"expired": 1}

    def test_an_at_most_once_job_that_lapsed_is_settled_as_expired_and_forgets_its_payload(self, world: World):
        timer = a_stored(world, "1", delivery=Delivery.AT_MOST_ONCE, expires_at=NOON)

        world.work(a_message(timer, "m1"), a_message(timer, "m2"))

        assert world.row(timer.job).state is State.EXPIRED
        assert world.payloads.objects == {}
        assert world.journal.counts == {"expired": 1, "duplicates_dropped": 1}

    def test_an_at_least_once_job_writes_nothing_to_the_ledger(self, world: World):
        timer = a_timer(delivery=Delivery.AT_LEAST_ONCE)

        assert world.work(a_message(timer)) == []

        assert world.ledger.rows == {}
        assert (world.calls[0].idempotency_key, world.calls[0].fence) == (timer.job.key, 0)

    def test_an_at_least_once_job_is_retried_and_buried_like_any_other(self, world: World):
        timer = a_timer(delivery=Delivery.AT_LEAST_ONCE)

        fail_each_time(world, timer)

        assert [call.attempt for call in world.calls] == [1, 2, 3]
        assert len(world.buried) == 1
        assert world.ledger.rows == {}

    def test_an_at_least_once_message_delivered_twice_runs_twice(self, world: World):
        timer = a_timer(delivery=Delivery.AT_LEAST_ONCE)

        world.work(a_message(timer, "m1"), a_message(timer, "m2"))

        assert len(world.calls) == 2


class TestPayloads:
    def test_a_payload_that_cannot_be_fetched_costs_no_claim(self, world: World):
        timer = a_stored(world, "1")
        worker = world.worker(payloads=Payloads(world, error=ConnectionError("S3")))

        assert worker.execute([a_message(timer, "m1")], ends_at=NOON + TIME_LIMIT) == ["m1"]
        assert world.ledger.rows == {}
        assert world.calls == []

        assert world.work(a_message(timer, "m1", receive_count=2)) == []
        assert (world.row(timer.job).state, world.row(timer.job).fence) == (State.SUCCEEDED, 1)

    def test_a_slow_payload_is_fetched_while_its_job_is_held(self, world: World):
        timer = a_stored(world, "1", due_at=NOON + 2 * SECOND)
        worker = world.worker(payloads=Payloads(world, takes=SECOND))

        worker.execute([a_message(timer)], ends_at=NOON + TIME_LIMIT)

        assert [ran_at for ran_at, *_ in world.targets.effects] == [NOON + 2 * SECOND]

    def test_a_slow_payload_takes_nothing_of_the_lease(self, world: World):
        timer = a_stored(world, "1", timeout=10 * SECOND)
        worker = world.worker(payloads=Payloads(world, takes=30 * SECOND))

        assert worker.execute([a_message(timer)], ends_at=NOON + TIME_LIMIT) == []
        assert world.calls[0].deadline == NOON + 40 * SECOND

    def test_a_packed_payload_is_unpacked_for_its_target(self, world: World):
        text = json.dumps(["the same words"] * 100)
        message = a_message(a_timer(payload=Payload(text=text)))
        assert decode_envelope(message.body)[0].job.payload.packed is not None

        world.work(message)

        assert [payload for _, _, payload, _ in world.targets.effects] == [text]

    def test_a_job_is_retried_with_its_payload_packed_as_it_came(self, world: World):
        message = a_message(a_timer(payload=Payload(text=json.dumps(["the same words"] * 100))))
        world.targets.answer = lambda *_: Failed("HTTP 500")

        world.work(message)

        assert world.ready.sent[0].job == decode_envelope(message.body)[0].job

    @pytest.mark.parametrize("delivery", Delivery)
    def test_a_payload_that_cannot_be_unpacked_is_no_reason_to_try_again(self, world: World, delivery: Delivery):
        timer = a_timer(payload=Payload(packed="hello"), delivery=delivery)

        assert world.work(a_message(timer, "m1")) == []

        assert world.targets.effects == []
        assert world.ready.sent == []
        assert world.events("job_settled")[0]["error"] == "payload_unreadable"
        if delivery is not Delivery.AT_MOST_ONCE:
            assert [letter.error_class for letter in world.buried] == ["payload_unreadable"]

    def test_a_payload_in_the_store_is_fetched_and_forgotten_when_its_job_has_succeeded(self, world: World):
        timer = a_stored(world, '{"large":true}')

        world.work(a_message(timer))

        assert [payload for _, _, payload, _ in world.targets.effects] == ['{"large":true}']
        assert world.payloads.objects == {}

    def test_a_payload_in_the_store_is_kept_for_the_next_attempt(self, world: World):
        timer = a_stored(world, "1")
        world.targets.answer = lambda *_: Failed("HTTP 500")

        world.work(a_message(timer))

        assert world.payloads.objects == {"acme/stored": "1"}

    def test_a_dead_letter_keeps_its_payload(self, world: World):
        timer = a_stored(world, "1", attempt=3)
        world.targets.answer = lambda *_: Failed("HTTP 500")

        world.work(a_message(timer))

        assert world.payloads.objects == {"acme/stored": "1"}

    def test_a_job_whose_payload_is_gone_fails_for_good(self, world: World):
        timer = a_stored(world, "1")
        world.payloads.objects.clear()

        assert world.work(a_message(timer)) == []

        assert world.calls == []
        assert (world.row(timer.job).state, world.row(timer.job).error) == (State.FAILED, "its payload is gone")
        assert len(world.buried) == 1

    def test_an_at_least_once_duplicate_whose_payload_is_gone_has_succeeded_before(self, world: World):
        timer = a_stored(world, "1", delivery=Delivery.AT_LEAST_ONCE)

        world.work(a_message(timer, "m1"), a_message(timer, "m2"))

        assert len(world.calls) == 1
        assert world.buried == []

    def test_a_replayed_at_least_once_job_whose_payload_is_gone_is_a_dead_letter(self, world: World):
        timer = a_stored(world, "1", delivery=Delivery.AT_LEAST_ONCE).replayed(due_at=NOON)
        world.payloads.objects.clear()

        assert world.work(a_message(timer)) == []

        assert world.calls == []
        assert [letter.error_class for letter in world.buried] == ["payload_gone"]

    def test_the_message_of_a_cancelled_job_takes_its_payload_along(self, world: World):
        timer = a_stored(world, "1")
        world.ledger.cancel(job_id_of(timer.job), owner="api", now=NOON)

        assert world.work(a_message(timer)) == []
        assert world.payloads.objects == {}

    def test_an_expired_job_forgets_its_payload(self, world: World):
        timer = a_stored(world, "1", expires_at=NOON)

        world.work(a_message(timer))

        assert world.payloads.objects == {}


class TestOccurrences:
    def test_a_target_is_given_the_payload_with_what_it_refers_to_of_its_fire(self, world: World):
        text = (
            '{"at":"{{tickwheel.fire_time}}","before":"{{tickwheel.previous_time}}","text":"no. {{tickwheel.index}}"}'
        )
        schedule = a_schedule(job=a_template(payload=Payload(text=text)))
        world.store(schedule)

        world.work(a_message(an_occurrence_timer(schedule, index=7)))

        assert [json.loads(payload or "") for _, _, payload, _ in world.targets.effects] == [
            {"at": "2027-03-01T12:00:00.000Z", "before": None, "text": "no. 7"}
        ]

    def test_a_payload_of_a_job_that_is_no_occurrence_is_left_as_it_is(self, world: World):
        world.work(a_message(a_timer(payload=Payload(text='"{{tickwheel.index}}"'))))

        assert [payload for _, _, payload, _ in world.targets.effects] == ['"{{tickwheel.index}}"']

    def test_the_next_attempt_has_the_payload_as_its_template_has_it(self, world: World):
        text = '"{{tickwheel.index}}"'
        schedule = a_schedule(job=a_template(payload=Payload(text=text)))
        world.store(schedule)
        world.targets.answer = lambda *_: Failed("HTTP 500")

        world.work(a_message(an_occurrence_timer(schedule)))

        assert world.ready.sent[0].job.payload == Payload(text=text)

    @pytest.mark.parametrize("delivery", Delivery)
    @pytest.mark.parametrize("status", [Status.PAUSED, Status.DELETED])
    def test_a_skipped_occurrence_does_not_call_its_target(self, world: World, delivery: Delivery, status: Status):
        schedule = a_schedule(job=a_template(delivery=delivery))
        world.store(schedule, status=status)
        timer = an_occurrence_timer(schedule)

        assert world.work(a_message(timer, "m1"), a_message(timer, "m2")) == []

        assert world.calls == []
        if delivery is Delivery.AT_LEAST_ONCE:
            assert world.ledger.rows == {}
        else:
            assert world.row(timer.job).state is State.SKIPPED
            assert world.state(schedule).skips == {SkipReason.PAUSED: 1}

    def test_an_occurrence_of_a_version_that_was_replaced_does_not_call_its_target(self, world: World):
        schedule = a_schedule()
        world.store(schedule, version=2, cuts=(Cut(1, NOON - HOUR), Cut(2, NOON - SECOND)))
        old, new = an_occurrence_timer(schedule, version=1), an_occurrence_timer(schedule, version=2)

        assert world.work(a_message(old, "m1"), a_message(new, "m2"), a_message(old, "m3")) == []

        assert len(world.calls) == 1
        assert world.row(new.job).state is State.SUCCEEDED

    def test_the_next_attempt_of_a_run_is_not_stopped_by_a_pause(self, world: World):
        schedule = a_schedule()
        world.store(schedule, status=Status.PAUSED)

        world.work(a_message(an_occurrence_timer(schedule, attempt=2)))

        assert len(world.calls) == 1

    def test_a_run_that_was_abandoned_is_rescued_although_its_schedule_was_paused_meanwhile(self, world: World):
        schedule = a_schedule()
        world.store(schedule, status=Status.PAUSED)
        timer = an_occurrence_timer(schedule)
        a_claim(world, timer, owner="dead", lease_until=NOON - HOUR)

        world.work(a_message(timer))

        assert world.row(timer.job).state is State.SUCCEEDED

    def test_whether_an_occurrence_may_run_is_decided_at_its_instant(self, world: World):
        schedule = a_schedule(rule=every(hours=1, phase=2 * SECOND))
        world.store(schedule)
        timer = an_occurrence_timer(schedule, fire_at=NOON + 2 * SECOND)
        pausing = Pausing(world, schedule)

        worker = world.worker(clock=pausing)
        assert worker.execute([a_message(timer)], ends_at=NOON + TIME_LIMIT) == []

        assert world.calls == []
        assert world.row(timer.job).state is State.SKIPPED

    def test_a_message_whose_schedule_cannot_be_asked_for_comes_back_unclaimed(self, world: World):
        schedule = a_schedule()
        world.store(schedule)
        timer = an_occurrence_timer(schedule)
        unreachable = Watched(world.schedules, "schedules", lambda _: _crash(), lambda _: None)
        occurrences = replace(world.occurrences(), schedules=cast("Any", unreachable))

        worker = world.worker(occurrences=occurrences)
        assert worker.execute([a_message(timer, "m1")], ends_at=NOON + TIME_LIMIT) == ["m1"]

        assert (world.calls, world.ledger.rows) == ([], {})

    @pytest.mark.parametrize("ending", ["succeeded", "failed", "expired", "cancelled"])
    def test_the_payload_of_a_template_in_the_store_is_kept_for_the_next_fire(self, world: World, ending: str):
        pointer = world.payloads.put_for_schedule("acme#nightly", '"{{tickwheel.index}}"')
        late = SECOND if ending == "expired" else None
        schedule = a_schedule(job=a_template(payload=Payload(pointer=pointer), expires_after=late))
        world.store(schedule)
        timer = an_occurrence_timer(schedule, attempt=3, index=4)
        world.targets.answer = lambda *_: Failed("HTTP 500") if ending == "failed" else Succeeded()
        if ending == "cancelled":
            world.ledger.cancel(job_id_of(timer.job), owner="api", now=NOON)
        world.clock.tick(SECOND)

        world.work(a_message(timer))

        assert world.row(timer.job).state == ending
        assert [payload for _, _, payload, _ in world.targets.effects] == ["4"] * (ending in ("succeeded", "failed"))
        assert world.payloads.objects == {pointer: '"{{tickwheel.index}}"'}

    def test_an_at_least_once_occurrence_whose_payload_is_gone_has_not_succeeded_before(self, world: World):
        schedule = a_schedule(
            job=a_template(payload=Payload(pointer="schedules/gone"), delivery=Delivery.AT_LEAST_ONCE)
        )
        world.store(schedule)

        world.work(a_message(an_occurrence_timer(schedule)))

        assert [letter.error for letter in world.buried] == ["its payload is gone"]

    def test_the_run_that_fails_once_too_often_pauses_its_schedule_and_the_next_does_not_run(self, world: World):
        schedule = a_schedule(pause_after_failures=2)
        world.store(schedule, link=a_link(NOON + HOUR))
        world.targets.answer = lambda *_: Failed("HTTP 400", is_permanent=True)
        fires = [an_occurrence_timer(schedule, fire_at=NOON - number * SECOND) for number in (3, 2, 1)]

        for fire in fires:
            world.work(a_message(fire))

        assert len(world.calls) == 2
        assert [world.row(fire.job).state for fire in fires] == [State.FAILED, State.FAILED, State.SKIPPED]
        assert world.state(schedule).status is Status.PAUSED

    def test_a_run_that_fails_and_is_tried_again_is_no_failure_yet(self, world: World):
        schedule = a_schedule(pause_after_failures=1)
        world.store(schedule)
        world.targets.answer = lambda *_: Failed("HTTP 500")

        world.work(a_message(an_occurrence_timer(schedule)))

        assert world.state(schedule).failures == frozenset()

    def test_a_run_whose_end_was_not_written_counts_as_one_failure_when_it_fails_again(self, world: World):
        schedule = a_schedule(pause_after_failures=2)
        world.store(schedule)
        timer = an_occurrence_timer(schedule)
        world.targets.answer = lambda *_: Failed("HTTP 400", is_permanent=True)

        assert world.work(a_message(timer, "m1"), ledger=Crashing(world.ledger, "fail")) == ["m1"]
        world.clock.tick(SECOND)
        assert world.work(a_message(timer, "m1", receive_count=2)) == []

        assert world.row(timer.job).state is State.FAILED
        assert world.state(schedule).failures == {timer.job.identity}

    def test_the_run_of_an_end_to_start_schedule_places_the_next_one_at_its_end(self, world: World):
        schedule = a_schedule(rule=every(minutes=10, from_end=True))
        world.store(schedule, link=a_link(is_awaited=True), fire_count=1)

        def succeed_slowly(*_: object) -> Succeeded:
            world.clock.tick(5 * SECOND)
            return Succeeded()

        world.targets.answer = succeed_slowly
        world.work(a_message(an_occurrence_timer(schedule)))

        assert world.state(schedule).link == a_link(NOON + timedelta(minutes=10, seconds=5), index=1, previous_at=NOON)

    @pytest.mark.parametrize("ending", ["failed", "expired", "cancelled"])
    def test_the_next_one_is_placed_too_when_a_run_ends_without_success(self, world: World, ending: str):
        late = SECOND if ending == "expired" else None
        schedule = a_schedule(rule=every(minutes=10, from_end=True), job=a_template(expires_after=late))
        world.store(schedule, link=a_link(is_awaited=True), fire_count=1)
        timer = an_occurrence_timer(schedule, attempt=3)
        world.targets.answer = lambda *_: Failed("HTTP 500")
        world.clock.tick(SECOND)
        if ending == "cancelled":
            world.ledger.rows[timer.job.key] = LedgerRow(state=State.SCHEDULED, cancel_requested=True)

        world.work(a_message(timer))

        assert world.row(timer.job).state == ending
        assert world.state(schedule).link == a_link(NOON + timedelta(minutes=10, seconds=1), index=1, previous_at=NOON)

    def test_a_run_whose_schedule_could_not_be_reported_of_its_end_has_its_effect_once(self, world: World):
        schedule = a_schedule(rule=every(minutes=10, from_end=True))
        world.store(schedule, link=a_link(is_awaited=True), fire_count=1)
        timer = an_occurrence_timer(schedule)
        world.timers.unwritten = lambda _: _crash()

        assert world.work(a_message(timer, "m1")) == ["m1"]
        assert world.work(a_message(timer, "m1", receive_count=2)) == []

        assert len(world.calls) == 1
        assert world.row(timer.job).state is State.SUCCEEDED

    def test_a_fire_that_is_forbidden_does_not_run_beside_another_and_the_one_after_does(self, world: World):
        schedule = a_schedule(overlap=Overlap.FORBID)
        world.store(schedule)
        first, second, third = (an_occurrence_timer(schedule, fire_at=NOON - n * SECOND) for n in (3, 2, 1))

        def meet_the_second(_: str, invocation: object) -> Succeeded:
            if len(world.calls) == 1:
                world.work(a_message(second, "m2"))
            return Succeeded()

        world.targets.answer = meet_the_second
        world.work(a_message(first, "m1"))
        world.work(a_message(third, "m3"))

        assert [world.row(timer.job).state for timer in (first, second, third)] == [
            State.SUCCEEDED,
            State.SKIPPED,
            State.SUCCEEDED,
        ]
        assert len(world.calls) == 2

    def test_a_fire_that_waits_for_another_run_runs_after_it(self, world: World):
        schedule = a_schedule(overlap=Overlap.BUFFER_ONE)
        world.store(schedule)
        first, second = (an_occurrence_timer(schedule, fire_at=NOON - n * SECOND) for n in (2, 1))

        def meet_the_second(*_: object) -> Succeeded:
            if len(world.calls) == 1:
                assert world.work(a_message(second, "m2")) == []
            return Succeeded()

        world.targets.answer = meet_the_second
        world.work(a_message(first, "m1"))
        assert world.ledger.get(second.job.key) is None
        world.clock.tick(2 * SECOND)
        world.receive_and_work()

        assert [call.scheduled_at for call in world.calls] == [first.due_at, second.due_at]
        assert world.row(second.job).attempt == 1

    def test_a_run_that_another_replaced_is_not_tried_again(self, world: World):
        schedule = a_schedule(overlap=Overlap.REPLACE)
        world.store(schedule)
        first, second = (an_occurrence_timer(schedule, fire_at=NOON - n * SECOND) for n in (2, 1))

        def fail_while_replaced(*_: object) -> Succeeded | Failed:
            if len(world.calls) == 1:
                world.work(a_message(second, "m2"))
                return Failed("HTTP 500")
            return Succeeded()

        world.targets.answer = fail_while_replaced
        world.work(a_message(first, "m1"))

        assert [world.row(timer.job).state for timer in (first, second)] == [State.CANCELLED, State.SUCCEEDED]


def test_a_retried_job_that_is_near_goes_near_and_its_ring_is_the_ready_queue(world: World):
    placements = world.placer.place([a_timer(due_at=NOON + SECOND)])

    assert [placement.ring for placement in placements] == [Ring.NEAR]


def work_until(world: World, timer: Timer, ends_at: datetime) -> list[str]:
    """Run message m1 in an invocation that ends then."""
    return world.worker().execute([a_message(timer, "m1")], ends_at=ends_at)


def a_message(timer: Timer, message_id: str = "m1", *, receive_count: int = 1) -> Message:
    """A message as a poller receives it."""
    return Message(
        message_id=message_id,
        body=encode_envelope([timer]),
        receipt=Receipt("arn:aws:sqs:us-east-1:1:ready", message_id),
        receive_count=receive_count,
    )


def a_claim(world: World, timer: Timer, *, owner: str, lease_until: datetime) -> None:
    world.ledger.claim(timer, owner=owner, lease_until=lease_until, now=lease_until - timedelta(seconds=15))


def rescued(world: World, timer: Timer) -> None:
    """An hour passes, and another worker rescues the attempt."""
    world.clock.tick(HOUR)
    row, now = world.row(timer.job), world.clock.now()
    world.ledger.rescue(timer, row=row, owner="rescuer", lease_until=now + HOUR, now=now)


def a_row_running(**overrides: Any) -> LedgerRow:
    """The row of an attempt that was abandoned long ago."""
    fields: dict[str, Any] = {
        "state": State.RUNNING,
        "attempt": 1,
        "fence": 4,
        "owner": "dead",
        "due_at": NOON,
        "lease_until": NOON - timedelta(hours=1),
    }
    return LedgerRow(**{**fields, **overrides})


def a_stored(world: World, text: str, *, attempt: int = 1, **overrides: Any) -> Timer:
    """A timer whose payload is in the store."""
    timer = a_timer(identity="stored", attempt=attempt, payload=Payload(pointer="acme/stored"), **overrides)
    world.payloads.objects["acme/stored"] = text
    return timer


Kind = TypeVar("Kind", bound=InMemoryLedger)


def sharing(kind: type[Kind], ledger: InMemoryLedger) -> Kind:
    """A ledger of a kind with the rows of another one."""
    new = kind(skew=timedelta(0))
    new.__dict__.update(ledger.__dict__)
    return new


class LosingAnswers(InMemoryLedger):
    """A ledger whose first answer to a method is lost: the caller sees a refusal by its own write."""

    def __init__(self, ledger: InMemoryLedger, method: str) -> None:
        self.__dict__.update(ledger.__dict__)
        self._method: Callable[..., Any] = getattr(ledger, method)
        setattr(self, method, self._lose)

    def _lose(self, *args: Any, **options: Any) -> Refused:
        self._method(*args, **options)
        del self.claim
        return Refused(self.get(args[0].job.key))


class Crashing(InMemoryLedger):
    """A ledger that fails whenever a method is called."""

    def __init__(self, ledger: InMemoryLedger, method: str) -> None:
        self.__dict__.update(ledger.__dict__)
        setattr(self, method, self._crash)

    def _crash(self, *_: Any, **__: Any) -> Applied:
        raise CrashError


def starting_slowly(world: World, takes: timedelta) -> InMemoryLedger:
    """A ledger that takes so long to write that a job is started."""

    class Slow(InMemoryLedger):
        def attempt(self, *args: Any, **options: Any) -> Applied | Refused:
            answer = super().attempt(*args, **options)
            world.clock.tick(takes)
            return answer

    return sharing(Slow, world.ledger)


class Payloads:
    """A payload store that takes its time, or fails."""

    def __init__(self, world: World, *, takes: timedelta = timedelta(0), error: Exception | None = None) -> None:
        self._world = world
        self._takes = takes
        self._error = error

    def put(self, job: Any, text: str) -> str:
        return self._world.payloads.put(job, text)

    def get(self, pointer: str) -> str | None:
        self._world.clock.tick(self._takes)
        if self._error is not None:
            raise self._error
        return self._world.payloads.get(pointer)

    def delete(self, pointer: str) -> None:
        self._world.payloads.delete(pointer)


class Pausing(FakeClock):
    """A clock that is waited on while a schedule is paused."""

    def __init__(self, world: World, schedule: Schedule) -> None:
        self._world = world
        self._schedule = schedule
        self.known_offset = timedelta(0)

    def now(self) -> datetime:
        return self._world.clock.now()

    def sleep(self, duration: timedelta) -> None:
        self._world.clock.sleep(duration)
        self._world.store(self._schedule, status=Status.PAUSED)


def _crash() -> NoReturn:
    raise CrashError


def _raise() -> Succeeded:
    raise RuntimeError("the worker has a fault")


def _die() -> Succeeded:
    raise DeathError


def fail_each_time(world: World, timer: Timer) -> None:
    """For longer than its policy goes on."""
    world.placer.place([timer])
    world.targets.answer = lambda *_: Failed("HTTP 500")
    for _ in range(10):
        world.receive_and_work()
        world.clock.tick(timedelta(seconds=11))
