"""Targets that answered 202: what they report to the API, with the real worker on the other side."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from functions.api.jobs.report_outcome import TARGET_FAILED, USUAL_LEASE
from functions.domain.errors import AlreadySettled, JobBusy, JobNotFound, NotHeld, StaleFence, TickwheelError
from functions.domain.instants import MINUTE, SECOND
from functions.domain.jobs.claims import LEASE_MARGIN, LedgerRow
from functions.domain.jobs.job import Delivery, Payload, Timer
from functions.domain.jobs.job_id import JobId, job_id_of, parse_job_id
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.lifecycle import Event, State
from functions.ports.targets import Failed, Invocation, Outcome, Pending, Succeeded
from testkit.builders import NOON, a_submission, a_timer
from testkit.observed import DeathError, Watched
from testkit.scheduler import World
from tests.unit.test_execute import a_message

TIMEOUT = timedelta(seconds=20)
ONCE = RetryPolicy(attempts=1)
LATER = RetryPolicy(strategy=Strategy.FIXED, attempts=3, base=timedelta(minutes=10))


@pytest.fixture
def world() -> World:
    world = World()
    world.targets.answer = lambda *_: Pending()
    return world


class TestHeartbeats:
    def test_a_heartbeat_prolongs_the_lease_by_the_timeout_of_the_job(self, world: World):
        timer = a_held(world)
        world.clock.tick(10 * SECOND)

        row = world.outcome_reports().heartbeat(job_id_of(timer.job), fence=1)

        assert row.lease_until == NOON + 10 * SECOND + TIMEOUT + LEASE_MARGIN
        assert world.row(timer.job).lease_until == row.lease_until

    def test_a_heartbeat_may_name_a_lease(self, world: World):
        timer = a_held(world)

        row = world.outcome_reports().heartbeat(job_id_of(timer.job), fence=1, lease=timedelta(hours=1))

        assert row.lease_until == NOON + timedelta(hours=1)

    def test_a_shorter_lease_shortens_nothing(self, world: World):
        timer = a_held(world)

        row = world.outcome_reports().heartbeat(job_id_of(timer.job), fence=1, lease=SECOND)

        assert row.lease_until == NOON + TIMEOUT + LEASE_MARGIN

    def test_a_heartbeat_before_the_worker_has_noted_the_attempt_keeps_the_lease_that_it_was_given(self, world: World):
        timer, leases = a_timer(timeout=TIMEOUT), []

        def answer(_: str, invocation: Invocation) -> Outcome:
            leases.append(world.outcome_reports().heartbeat(job_id_of(timer.job), fence=invocation.fence).lease_until)
            return Pending()

        world.targets.answer = answer
        world.work(a_message(timer))

        assert leases == [NOON + USUAL_LEASE]
        row = world.row(timer.job)
        assert (row.lease_until, bool(row.held)) == (NOON + USUAL_LEASE, True)

    @pytest.mark.parametrize("word", ["heartbeat", "complete", "fail"])
    def test_the_id_of_a_job_with_a_key_is_reported_from_the_row_that_is_read_anyway(self, world: World, word: str):
        job_id, reads = a_keyed_one(world), list[str]()
        before = world.ledger.rows[job_id.key]
        watched = watch(world, before=lambda call: reads.append(call) if call == "ledger.get" else None)
        outcome_reports = world.outcome_reports(ledger=watched)
        outcome_reports = replace(outcome_reports, known=replace(outcome_reports.known, ledger=watched))
        words: Any = {
            "heartbeat": partial(outcome_reports.heartbeat, lease=MINUTE),
            "complete": partial(outcome_reports.complete, result=""),
            "fail": partial(outcome_reports.fail, failure=Failed("no stock", TARGET_FAILED)),
        }

        with pytest.raises(JobNotFound):
            words[word](replace(job_id, due_at=job_id.due_at + SECOND), fence=1)
        assert world.ledger.rows[job_id.key] == before

        reads.clear()
        words[word](job_id, fence=1)
        # A failure looks what became of it.
        assert len(reads) == {"heartbeat": 0, "complete": 1, "fail": 2}[word]

    def test_a_heartbeat_says_that_a_cancel_was_requested(self, world: World):
        timer = a_held(world)
        world.canceller().cancel(job_id_of(timer.job))

        assert world.outcome_reports().heartbeat(job_id_of(timer.job), fence=1).cancel_requested

    def test_a_job_that_sends_heartbeats_runs_on_for_as_long_as_it_does(self, world: World):
        timer = a_held(world)
        for _ in range(60):
            world.clock.tick(10 * SECOND)
            world.receive_and_work()
            world.outcome_reports().heartbeat(job_id_of(timer.job), fence=1)

        assert world.row(timer.job).fence == 1
        assert len(world.calls) == 1

    def test_a_silent_job_is_taken_over_and_its_first_target_refused(self, world: World):
        timer = a_held(world)
        pass_time(world, MINUTE)

        assert world.row(timer.job).fence > 1
        with pytest.raises(StaleFence) as refused:
            world.outcome_reports().heartbeat(job_id_of(timer.job), fence=1)
        assert (refused.value.fence, refused.value.state) == (1, State.RUNNING)


class TestCompletions:
    def test_a_held_job_succeeds_with_its_result(self, world: World):
        timer = a_held(world, payload=Payload(pointer="acme/large"))

        complete(world, timer, result='{"sum":3}')

        row = world.row(timer.job)
        assert (row.state, row.result, row.held) == (State.SUCCEEDED, '{"sum":3}', "")
        assert world.journal.counts["succeeded"] == 1
        assert world.payloads.objects == {}

    def test_a_completion_may_be_repeated(self, world: World):
        timer = a_held(world)

        complete(world, timer, result="1")
        complete(world, timer, result="2")

        assert world.row(timer.job).result == "1"
        assert world.journal.counts["succeeded"] == 1

    def test_a_completion_before_the_worker_has_noted_the_attempt_is_noted_by_the_worker(self, world: World):
        timer = a_timer(timeout=TIMEOUT, payload=Payload(pointer="acme/large"))
        world.payloads.objects["acme/large"] = "1"

        def answer(*_: object) -> Outcome:
            complete(world, timer, result="3")
            return Pending()

        world.targets.answer = answer
        world.work(a_message(timer))

        row = world.row(timer.job)
        assert (row.state, row.result) == (State.SUCCEEDED, "3")
        assert world.journal.counts["succeeded"] == 1
        assert world.payloads.objects == {}

    def test_a_completion_that_meets_the_worker_s_note_tidies_up_itself(self, world: World):
        timer = a_timer(timeout=TIMEOUT, payload=Payload(pointer="acme/large"))
        world.payloads.objects["acme/large"] = "1"
        world.ledger.claim(timer, owner="w", lease_until=NOON + MINUTE, now=NOON)

        def note(call: str) -> None:
            if call == "ledger.complete":
                world.ledger.hold(timer, fence=1, owner="w", lease_until=NOON + MINUTE, now=NOON)

        outcome_reports = world.outcome_reports(ledger=watch(world, before=note))
        outcome_reports.complete(job_id_of(timer.job), fence=1, result="")

        assert world.row(timer.job).state is State.SUCCEEDED
        assert world.payloads.objects == {}

    def test_a_target_that_completes_and_then_answers_too_late_has_completed(self, world: World):
        timer = a_timer(timeout=TIMEOUT)

        def answer(*_: object) -> Outcome:
            complete(world, timer, result="3")
            return Failed("timed out", "timeout")

        world.targets.answer = answer
        world.work(a_message(timer))
        pass_time(world, MINUTE)

        assert world.row(timer.job).state is State.SUCCEEDED
        assert len(world.calls) == 1

    def test_a_target_that_completes_and_also_answers_with_success_has_completed_once(self, world: World):
        timer = a_timer(timeout=TIMEOUT)

        def answer(*_: object) -> Outcome:
            complete(world, timer, result="3")
            return Succeeded("4")

        world.targets.answer = answer
        world.work(a_message(timer))

        assert world.row(timer.job).state is State.SUCCEEDED
        assert world.journal.counts["succeeded"] == 1

    def test_a_completion_of_an_attempt_that_was_taken_over_is_refused(self, world: World):
        timer = a_held(world)
        pass_time(world, MINUTE)

        with pytest.raises(StaleFence):
            complete(world, timer)
        assert world.row(timer.job).state is State.RUNNING

    def test_a_watchdog_that_takes_over_while_a_completion_is_under_way_wins(self, world: World):
        timer = a_held(world)
        world.clock.tick(MINUTE)
        seen = world.row(timer.job)

        def take_over(call: str) -> None:
            if call == "ledger.settle":
                dog = timer.watchdog(due_at=NOON)
                now = world.clock.now()
                world.ledger.rescue(dog, row=seen, owner="dog", lease_until=now + MINUTE, now=now)

        with pytest.raises(StaleFence):
            world.outcome_reports(ledger=watch(world, before=take_over)).complete(
                job_id_of(timer.job), fence=1, result=""
            )
        assert world.row(timer.job).owner == "dog"

    def test_a_completion_counts_although_a_cancel_was_requested(self, world: World):
        timer = a_held(world)
        world.canceller().cancel(job_id_of(timer.job))

        complete(world, timer)

        assert world.row(timer.job).state is State.SUCCEEDED

    def test_a_completion_at_the_end_of_the_lease_counts_while_nobody_has_taken_over(self, world: World):
        timer = a_held(world)
        world.clock.tick(timedelta(hours=1))

        complete(world, timer)
        world.receive_and_work()

        assert world.row(timer.job).state is State.SUCCEEDED
        assert len(world.calls) == 1


class TestFailures:
    def test_a_failed_job_is_tried_again_as_its_policy_says(self, world: World):
        timer = a_held(world, retry=LATER)

        assert fail(world, timer) is State.RETRYING

        row = world.row(timer.job)
        assert (row.state, row.attempt, row.error) == (State.RETRYING, 1, "no stock")
        assert row.due_at == NOON + timedelta(minutes=10)
        assert world.journal.counts["retried"] == 1

    def test_the_watchdog_of_a_failed_attempt_does_not_run_the_next_before_its_time(self, world: World):
        timer = a_held(world, retry=LATER)
        fail(world, timer)

        pass_time(world, timedelta(minutes=9))
        assert len(world.calls) == 1
        pass_time(world, MINUTE + 10 * SECOND)

        assert [call.attempt for call in world.calls] == [1, 2]

    def test_a_target_may_ask_for_a_later_attempt(self, world: World):
        timer = a_held(world)

        fail(world, timer, retry_after=timedelta(hours=1))

        assert world.row(timer.job).due_at == NOON + timedelta(hours=1)

    @pytest.mark.parametrize("how", [{"retry": ONCE}, {"is_permanent": True}])
    def test_a_job_that_failed_for_good_leaves_a_dead_letter(self, world: World, how: dict[str, Any]):
        timer = a_held(world, **{name: value for name, value in how.items() if name == "retry"})

        assert fail(world, timer, is_permanent=how.get("is_permanent", False)) is State.FAILED

        assert world.row(timer.job).state is State.FAILED
        assert [(letter.error_class, letter.error) for letter in world.buried] == [(TARGET_FAILED, "no stock")]

    @pytest.mark.parametrize(("retry", "state"), [(LATER, State.RETRYING), (ONCE, State.FAILED)])
    def test_a_failure_may_be_repeated(self, world: World, retry: RetryPolicy, state: State):
        timer = a_held(world, retry=retry)

        assert [fail(world, timer), fail(world, timer)] == [state, state]

        assert len(world.ready.sent) + len(world.timers.puts) <= 2  # the watchdog, and the next attempt
        assert len(world.buried) <= 1

    def test_a_failure_whose_next_attempt_has_begun_meanwhile_is_answered_all_the_same(self, world: World):
        timer = a_held(world)

        def begin(call: str) -> None:
            if call == "ledger.settle":
                following = timer.watchdog(due_at=NOON + MINUTE)
                world.ledger.claim(following, owner="w", lease_until=NOON + 2 * MINUTE, now=NOON + MINUTE)

        outcome_reports = world.outcome_reports(ledger=watch(world, after=begin))

        state = outcome_reports.fail(job_id_of(timer.job), fence=1, failure=Failed("no stock"))

        assert state is State.RETRYING
        assert world.row(timer.job).fence == 2

    def test_a_repeated_failure_after_the_next_attempt_has_begun_is_stale(self, world: World):
        timer = a_held(world)
        fail(world, timer)
        pass_time(world, 20 * SECOND)

        with pytest.raises(StaleFence):
            fail(world, timer)
        assert len(world.calls) == 2

    @pytest.mark.parametrize(("retry", "end"), [(LATER, "settle"), (ONCE, "fail")])
    def test_of_two_failures_that_overlap_one_ends_the_attempt(self, world: World, retry: RetryPolicy, end: str):
        timer = a_held(world, retry=retry)
        states: list[State] = []

        def overlap(call: str) -> None:
            if call == f"ledger.{end}" and not states:
                states.append(State.ABSENT)
                world.clock.tick(SECOND)
                states[0] = fail(world, timer)
                world.clock.tick(SECOND)

        outcome_reports = world.outcome_reports(ledger=watch(world, before=overlap))
        states.append(outcome_reports.fail(job_id_of(timer.job), fence=1, failure=Failed("no stock", TARGET_FAILED)))

        assert states == [State.RETRYING if retry is LATER else State.FAILED] * 2
        assert len(world.buried) == (retry is ONCE)
        counts = world.journal.counts
        assert (counts.get("retried", 0), counts.get("failed", 0)) == (int(retry is LATER), int(retry is ONCE))
        assert [line.outcome for line in world.trail.endings if not line.is_repeated] == [State.FAILED] * (
            retry is ONCE
        )

    @pytest.mark.parametrize("tell", ["complete", "fail"])
    def test_a_job_that_changes_whenever_its_target_speaks_is_busy(self, world: World, tell: str):
        timer = a_held(world)
        mine = world.row(timer.job)

        def change(call: str) -> None:
            world.ledger.rows[timer.job.key] = mine if call == "ledger.get" else replace(mine, fence=2)

        outcome_reports, failure = (
            world.outcome_reports(ledger=watch(world, before=change)),
            Failed("no stock", TARGET_FAILED),
        )
        words: Any = {
            "fail": partial(outcome_reports.fail, failure=failure),
            "complete": partial(outcome_reports.complete, result=""),
        }
        with pytest.raises(JobBusy):
            words[tell](job_id_of(timer.job), fence=1)

    def test_of_two_completions_that_overlap_one_ends_the_attempt(self, world: World):
        timer = a_held(world)
        calls: list[str] = []

        def overlap(call: str) -> None:
            if call == "ledger.settle" and not calls:
                calls.append(call)
                complete(world, timer, result="1")

        outcome_reports = world.outcome_reports(ledger=watch(world, before=overlap))
        outcome_reports.complete(job_id_of(timer.job), fence=1, result="2")

        assert (world.row(timer.job).result, world.journal.counts["succeeded"]) == ("1", 1)

    def test_a_failed_job_whose_cancel_was_requested_is_cancelled(self, world: World):
        timer = a_held(world)
        world.canceller().cancel(job_id_of(timer.job))

        assert fail(world, timer) is State.CANCELLED
        assert fail(world, timer) is State.CANCELLED

        pass_time(world, MINUTE)
        assert world.row(timer.job).state is State.CANCELLED
        assert len(world.calls) == 1

    def test_a_failure_before_the_worker_has_noted_the_attempt_is_to_be_reported_again(self, world: World):
        timer = a_timer(timeout=TIMEOUT)
        world.ledger.claim(timer, owner="w", lease_until=NOON + MINUTE, now=NOON)

        with pytest.raises(NotHeld) as refused:
            fail(world, timer)
        assert refused.value.is_soon

    @pytest.mark.parametrize("call", ["ready.send", "ledger.settle"])
    @pytest.mark.parametrize("when", ["before", "after"])
    def test_a_failure_that_dies_on_its_way_is_finished_by_its_repetition(self, world: World, call: str, when: str):
        timer = a_held(world)

        def die(made: str) -> None:
            if made == call:
                raise DeathError

        ready, ledger = world.ready, world.ledger
        nothing: Callable[[str], None] = lambda _: None  # noqa: E731
        hooks = (die, nothing) if when == "before" else (nothing, die)
        world.ready = Watched(ready, "ready", *hooks)  # pyright: ignore[reportAttributeAccessIssue]
        with pytest.raises(DeathError):
            world.outcome_reports(ledger=Watched(ledger, "ledger", *hooks)).fail(  # pyright: ignore[reportArgumentType]
                job_id_of(timer.job), fence=1, failure=Failed("no stock")
            )
        world.ready = ready

        assert fail(world, timer) is State.RETRYING
        world.targets.answer = lambda *_: Succeeded()
        pass_time(world, MINUTE)

        assert world.row(timer.job).state is State.SUCCEEDED
        assert [call.attempt for call in world.calls] == [1, 2]

    def test_a_failure_that_died_and_is_not_repeated_costs_no_job(self, world: World):
        timer = a_held(world)

        def die(made: str) -> None:
            if made == "ledger.settle":
                raise DeathError

        with pytest.raises(DeathError):
            world.outcome_reports(ledger=watch(world, before=die)).fail(
                job_id_of(timer.job), fence=1, failure=Failed("no stock")
            )
        world.targets.answer = lambda *_: Succeeded()
        pass_time(world, 2 * MINUTE)

        assert world.row(timer.job).state is State.SUCCEEDED
        assert [call.attempt for call in world.calls] == [1, 2]


class TestRefusals:
    @pytest.fixture(params=["heartbeat", "complete", "fail"])
    def tell(self, request: pytest.FixtureRequest, world: World) -> Callable[[Timer], Any]:
        telling: dict[str, Callable[[Timer], Any]] = {
            "heartbeat": lambda timer: world.outcome_reports().heartbeat(job_id_of(timer.job), fence=1),
            "complete": lambda timer: complete(world, timer),
            "fail": lambda timer: fail(world, timer),
        }
        return telling[request.param]

    @pytest.mark.parametrize("delivery", [Delivery.AT_LEAST_ONCE, Delivery.AT_MOST_ONCE])
    def test_only_exactly_once_jobs_may_be_reported_later(self, tell: Callable[[Timer], Any], delivery: Delivery):
        with pytest.raises(NotHeld, match=f"is {delivery}: only the target of an exactly_once job") as refused:
            tell(a_timer(delivery=delivery))
        assert not refused.value.is_soon

    def test_a_job_that_nobody_has_claimed_is_not_found(self, tell: Callable[[Timer], Any]):
        with pytest.raises(JobNotFound):
            tell(a_timer())

    def test_a_job_that_waits_for_its_first_attempt_has_no_such_fence(self, world: World, tell: Callable[[Timer], Any]):
        timer = a_timer()
        world.ledger.register(timer.job, job_id="j1~x", fingerprint="f", owner="api", now=NOON)

        with pytest.raises(StaleFence, match="the job is scheduled"):
            tell(timer)

    @pytest.mark.parametrize("state", [State.EXPIRED, State.SKIPPED, State.MOVED])
    def test_a_settled_job_is_reported_with_its_state(self, world: World, tell: Callable[[Timer], Any], state: State):
        timer = a_timer()
        world.ledger.rows[timer.job.key] = LedgerRow(state=state, fence=1)

        with pytest.raises(AlreadySettled) as refused:
            tell(timer)
        assert refused.value.state == state

    @pytest.mark.parametrize(
        ("settled", "refused"), [(Event.SUCCEED, ["heartbeat", "fail"]), (Event.WITHDRAW, ["heartbeat", "complete"])]
    )
    def test_what_has_ended_otherwise_is_not_changed(self, world: World, settled: Event, refused: list[str]):
        timer = a_held(world)
        row = world.row(timer.job)
        world.ledger.settle(timer, settled, fence=1, owner=row.owner, now=NOON)
        tell: dict[str, Callable[[], object]] = {
            "heartbeat": lambda: world.outcome_reports().heartbeat(job_id_of(timer.job), fence=1),
            "complete": lambda: complete(world, timer),
            "fail": lambda: fail(world, timer),
        }
        before = world.row(timer.job)

        for name in refused:
            with pytest.raises(TickwheelError):
                tell[name]()
        assert world.row(timer.job) == before


def a_held(world: World, **overrides: Any) -> Timer:
    """A job whose target has answered 202."""
    timer = a_timer(timeout=TIMEOUT, **overrides)
    if timer.job.payload.pointer is not None:
        world.payloads.objects[timer.job.payload.pointer] = json.dumps(1)
    assert world.work(a_message(timer)) == []
    assert world.row(timer.job).held
    return timer


def a_keyed_one(world: World) -> JobId:
    """A job with an idempotency key whose target has answered 202."""
    accepted = world.submit(a_submission(due_at=NOON, idempotency_key="order-7"))
    world.receive_and_work()
    return parse_job_id(accepted.job_id)


def complete(world: World, timer: Timer, *, result: str = "") -> None:
    world.outcome_reports().complete(job_id_of(timer.job), fence=1, result=result)


def fail(world: World, timer: Timer, *, is_permanent: bool = False, retry_after: timedelta | None = None) -> State:
    failure = Failed("no stock", TARGET_FAILED, is_permanent=is_permanent, retry_after=retry_after)
    return world.outcome_reports().fail(job_id_of(timer.job), fence=1, failure=failure)


def pass_time(world: World, duration: timedelta) -> None:
    """Scanners tick each minute, and workers poll all the time."""
    end = world.clock.now() + duration
    while world.clock.now() < end:
        world.clock.tick(5 * SECOND)
        world.scan(0)
        world.scan(1)
        while any(message.visible_at <= world.clock.instant for message in world.ready.messages.values()):
            world.receive_and_work()


def watch(
    world: World, *, before: Callable[[str], None] = lambda _: None, after: Callable[[str], None] = lambda _: None
) -> Any:
    """The ledger, with something that happens at some of its calls."""
    return Watched(world.ledger, "ledger", before, after)
