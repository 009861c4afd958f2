"""Jobs that are let run now, moved and edited, with the real scanner and worker behind them."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.api.http.requests import Rules
from functions.api.jobs.requests import patched
from functions.domain import errors
from functions.domain.instants import HOUR, MILLISECOND, MINUTE, SECOND, format_instant
from functions.domain.jobs.claims import ABSENT_IS_OVER, LEDGER_LIFE, REQUEST_LIMIT, LedgerRow
from functions.domain.jobs.job import Delivery, Timer
from functions.domain.jobs.job_id import JobId, job_id_of, parse_job_id
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.lifecycle import Event, State
from functions.ports.ready_queue import Rejected
from functions.ports.targets import Failed, Succeeded
from functions.services.jobs.rescheduler import Rescheduler, Waiting
from testkit.builders import NOON, a_job, a_submission, a_timer, an_occurrence_timer
from testkit.observed import DeathError, Watched
from testkit.scheduler import World, pass_time

YEAR = timedelta(days=365)
LATER = NOON + HOUR
LARGE = json.dumps({str(number): f"{number * 7919 % 104_729:x}" for number in range(5_000)}, separators=(",", ":"))
RETRIES = RetryPolicy(strategy=Strategy.FIXED, attempts=3, base=HOUR, cap=HOUR)


@pytest.fixture
def world() -> World:
    return World()


class TestRunningNow:
    def test_a_far_job_runs_at_once_and_keeps_its_id(self, world: World):
        timer = a_placed(world)

        waiting = run_now(world, timer)
        world.receive_and_work()

        assert waiting == Waiting(job_id_of(timer.job), NOON)
        assert world.row(timer.job).state is State.SUCCEEDED
        assert [(call.job_id, call.scheduled_at) for call in world.calls] == [(str(job_id_of(timer.job)), LATER)]
        assert world.rows.get(job_id_of(timer.job)) is None

    @pytest.mark.parametrize("delivery", [Delivery.EXACTLY_ONCE, Delivery.AT_MOST_ONCE])
    def test_it_does_not_run_again_at_its_own_time(self, world: World, delivery: Delivery):
        timer = a_placed(world, delivery=delivery)
        world.ready.send([timer])  # promoted in the same moment

        run_now(world, timer)
        pass_time(world, until=LATER + 5 * MINUTE)

        assert len(world.calls) == 1

    def test_two_at_once_run_it_once(self, world: World):
        timer = a_placed(world)
        row = world.rows.stored(job_id_of(timer.job))
        assert row is not None
        run_now(world, timer)
        world.rows.put([timer])  # the second has read the row before the first removed it

        run_now(world, timer)
        pass_time(world, until=NOON + MINUTE)

        assert len(world.calls) == 1

    def test_its_row_outlives_a_timer_that_it_may_have_left_behind(self, world: World):
        timer = a_placed(world, due_at=NOON + YEAR)

        run_now(world, timer)
        world.rows.put([timer])  # its removal was lost
        world.receive_and_work()

        assert world.ledger.expiry[timer.job.key] >= NOON + YEAR + LEDGER_LIFE

    def test_the_age_of_its_retries_counts_from_now(self, world: World):
        timer = a_placed(world, retry=replace(RETRIES, attempts=10, max_age=2 * HOUR), due_at=NOON + YEAR)
        world.targets.answer = lambda *_: Failed("busy")

        run_now(world, timer)
        pass_time(world, until=NOON + 5 * HOUR)

        assert len(world.calls) == 3

    def test_a_job_in_the_ready_queue_is_too_late_and_reported_when_it_is_due(self, world: World):
        timer = a_placed(world, due_at=NOON + MINUTE)

        with pytest.raises(errors.TooLate, match=r"due at 2027-03-01T12:01:00\.000Z, and is in the ready queue"):
            run_now(world, timer)

    def test_a_job_that_is_due_is_too_late(self, world: World):
        timer = a_placed(world)
        world.clock.tick(HOUR)

        with pytest.raises(errors.TooLate, match="as soon as a worker is free"):
            run_now(world, timer)

    def test_a_job_that_somebody_has_let_run_is_on_its_way(self, world: World):
        timer = a_placed(world)
        run_now(world, timer)

        with pytest.raises(errors.TooLate, match="somebody has let it run now"):
            run_now(world, timer)

    def test_a_job_whose_row_would_have_expired_is_not_found(self, world: World):
        with pytest.raises(errors.JobNotFound):
            run_now(world, a_timer(due_at=NOON - ABSENT_IS_OVER - MILLISECOND))

    def test_what_the_queue_does_not_take_stays_in_the_far_ring(self, world: World):
        timer = a_placed(world)
        world.ready.refuses = lambda timer: Rejected(timer, "throttled", is_permanent=False)

        with pytest.raises(errors.NotPlaced):
            run_now(world, timer)
        assert world.rows.get(job_id_of(timer.job)) == timer

    def test_a_cancel_after_it_stops_it(self, world: World):
        timer = a_placed(world)
        run_now(world, timer)

        assert world.canceller().cancel(job_id_of(timer.job))
        world.receive_and_work()

        assert world.calls == []

    @pytest.mark.parametrize("when", ["before", "after"])
    @pytest.mark.parametrize("call", ["ready.send", "timers.delete"])
    def test_a_death_on_the_way_runs_it_once_whether_it_is_asked_for_again_or_not(
        self, world: World, call: str, when: str
    ):
        timer = a_placed(world)

        with pytest.raises(DeathError):
            run_now(world, timer, rescheduler=dying(world, call, when=when))
        pass_time(world, until=LATER + 5 * MINUTE)

        assert world.row(timer.job).state is State.SUCCEEDED
        assert len(world.calls) == 1


class TestRunningARetryNow:
    def test_the_next_attempt_runs_at_once(self, world: World):
        timer = a_failed(world)

        waiting = run_now(world, timer)
        world.receive_and_work()

        assert waiting.state is State.RETRYING
        assert [call.attempt for call in world.calls] == [1, 2]
        assert world.row(timer.job).state is State.SUCCEEDED
        assert sum(len(rows) for rows in world.rows.rows.values()) == 0

    def test_the_age_of_its_retries_goes_on_counting_from_its_first_attempt(self, world: World):
        timer = a_failed(world)

        run_now(world, timer)

        assert [sent.counted_from for sent in world.ready.sent] == [None]

    def test_the_message_of_its_own_time_finds_nothing_to_do(self, world: World):
        timer = a_failed(world)
        following = world.timers.puts[-1][0]
        run_now(world, timer)
        world.rows.put([following])

        pass_time(world, until=NOON + HOUR + 5 * MINUTE)

        assert [call.attempt for call in world.calls] == [1, 2]

    def test_a_retry_that_is_near_is_too_late(self, world: World):
        timer = a_failed(world, retry=replace(RETRIES, base=MINUTE, cap=MINUTE))

        with pytest.raises(errors.TooLate, match="and is in the ready queue"):
            run_now(world, timer)

    def test_a_retry_that_begins_meanwhile_is_running(self, world: World):
        timer = a_failed(world)

        def begin(call: str) -> None:
            if call == "ledger.hasten":
                following = world.timers.puts[-1][0]
                world.ledger.claim(following, owner="w", lease_until=LATER, now=NOON)

        with pytest.raises(errors.TooLate, match="attempt 2 of it is running"):
            run_now(world, timer, rescheduler=watched(world, before=begin))

    def test_a_retry_that_was_changed_meanwhile_is_to_be_looked_at_again(self, world: World):
        timer = a_failed(world)

        def change(call: str) -> None:
            if call == "ledger.hasten":
                row = world.row(timer.job)
                world.ledger.rows[timer.job.key] = replace(row, due_at=NOON + 2 * HOUR)

        with pytest.raises(errors.TooLate, match="changed by somebody else"):
            run_now(world, timer, rescheduler=watched(world, before=change))
        assert len(world.ready.sent) == 0

    @pytest.mark.parametrize("when", ["before", "after"])
    @pytest.mark.parametrize("call", ["ledger.hasten", "ready.send", "timers.delete"])
    def test_a_death_on_the_way_loses_and_doubles_nothing(self, world: World, call: str, when: str):
        timer = a_failed(world)

        with pytest.raises(DeathError):
            run_now(world, timer, rescheduler=dying(world, call, when=when))
        pass_time(world, until=NOON + HOUR + 5 * MINUTE)

        assert [call.attempt for call in world.calls] == [1, 2]
        assert world.row(timer.job).state is State.SUCCEEDED


class TestMoving:
    @pytest.mark.parametrize("due_at", [NOON + 30 * MINUTE, NOON + 2 * HOUR])
    def test_a_job_that_is_moved_runs_once_at_its_new_time_under_a_new_id(self, world: World, due_at: datetime):
        timer = a_placed(world)

        moved = change(world, timer, run_at=format_instant(due_at))
        pass_time(world, until=NOON + 2 * HOUR + 5 * MINUTE)

        assert moved.job_id != job_id_of(timer.job)
        assert moved.due_at == moved.job_id.due_at == due_at
        assert [(call.job_id, call.scheduled_at) for call in world.calls] == [(str(moved.job_id), due_at)]
        assert world.targets.effects[0][0] >= due_at
        assert world.row(timer.job).state is State.MOVED

    def test_the_old_timer_finds_nothing_to_do(self, world: World):
        timer = a_placed(world)
        change(world, timer, delay=7_200)
        world.rows.put([timer])  # a write of its submission that was late

        pass_time(world, until=LATER + 5 * MINUTE)

        assert world.calls == []
        assert world.journal.counts["duplicates_dropped"] == 1

    def test_it_follows_from_id_to_id(self, world: World):
        timer = a_placed(world)
        first = change(world, timer, delay=7_200)
        second = change(world, timer, delay=10_800)

        found = world.finder().find(job_id_of(timer.job))

        assert len({job_id_of(timer.job), first.job_id, second.job_id}) == 3
        assert (found.job_id, found.state) == (second.job_id, State.SCHEDULED)
        pass_time(world, until=NOON + 4 * HOUR)
        assert [call.job_id for call in world.calls] == [str(second.job_id)]
        assert world.finder().find(job_id_of(timer.job)).state is State.SUCCEEDED

    def test_it_follows_only_so_many_moves_in_one_request(self, world: World):
        timer = a_placed(world)
        ids = [job_id_of(timer.job)]
        for second in range(1, 61):
            ids.append(world.rescheduler().change(ids[-1], editing(world, delay=3_600 + second)).job_id)

        found = world.finder().find(ids[1])

        assert found.state is State.MOVED
        assert found.row.moved_to
        assert world.finder().find(parse_job_id(found.row.moved_to)).state is State.SCHEDULED
        with pytest.raises(errors.Moved):
            world.rescheduler().change(ids[1], editing(world, delay=7_200))

    def test_from_the_id_that_a_job_was_submitted_with_it_is_one_step_to_the_newest(self, world: World):
        timer = a_placed(world)
        job_id = job_id_of(timer.job)
        for second in range(1, 61):
            job_id = world.rescheduler().change(job_id, editing(world, delay=3_600 + second)).job_id

        assert world.row(timer.job).moved_to == str(job_id)
        assert world.finder().find(job_id_of(timer.job)).job_id == job_id
        assert change(world, timer, delay=7_200).state is State.SCHEDULED

    @pytest.mark.parametrize("state", [None, State.SCHEDULED, State.SUCCEEDED])
    def test_a_job_whose_first_row_is_gone_or_another_s_is_moved_all_the_same(self, world: World, state: State | None):
        timer = a_placed(world)
        moved = change(world, timer, delay=7_200)
        del world.ledger.rows[timer.job.key]
        if state is not None:
            world.ledger.rows[timer.job.key] = LedgerRow(state=state, job_id=str(job_id_of(timer.job)))
        row = world.ledger.get(timer.job.key)

        again = world.rescheduler().change(moved.job_id, editing(world, delay=10_800))

        assert world.finder().find(moved.job_id).job_id == again.job_id
        assert world.ledger.get(timer.job.key) == row

    def test_a_cancel_under_the_old_id_cancels_the_new_one(self, world: World):
        timer = a_placed(world)
        moved = change(world, timer, delay=7_200)

        with pytest.raises(errors.Moved) as moved_error:
            world.canceller().cancel(job_id_of(timer.job))
        assert moved_error.value.moved_to == str(moved.job_id)
        assert world.canceller().cancel(moved.job_id)
        pass_time(world, until=NOON + 3 * HOUR)

        assert world.calls == []

    def test_a_moved_job_is_found_under_its_old_id_for_as_long_as_it_waits(self, world: World):
        timer = a_placed(world)
        change(world, timer, run_at=format_instant(NOON + YEAR))

        world.clock.tick(timedelta(days=100))
        world.ledger.expire(world.clock.now())

        assert world.finder().find(job_id_of(timer.job)).due_at == NOON + YEAR
        with pytest.raises(errors.Moved):
            world.canceller().cancel(job_id_of(timer.job))

    def test_a_used_idempotency_key_answers_with_the_job_that_it_is_now(self, world: World):
        submission = a_submission(due_at=LATER, idempotency_key="order-7")
        first = world.submit(submission)
        moved = world.rescheduler().change(parse_job_id(first.job_id), editing(world, delay=7_200))

        again = world.submit(submission)

        assert (again.job_id, again.due_at, again.is_replay) == (str(moved.job_id), moved.due_at, True)
        assert again.state is State.SCHEDULED
        pass_time(world, until=NOON + 3 * HOUR)
        assert len(world.calls) == 1
        assert world.submit(submission).state is State.SUCCEEDED

    def test_what_changes_nothing_leaves_a_job_its_id(self, world: World):
        timer = a_placed(world)

        assert change(world, timer) == Waiting(job_id_of(timer.job), LATER)
        assert change(world, timer, run_at=format_instant(LATER)) == Waiting(job_id_of(timer.job), LATER)
        assert world.ledger.rows == {}

    def test_a_repeated_move_is_the_same_one(self, world: World):
        timer = a_placed(world)

        first = change(world, timer, run_at=format_instant(NOON + 2 * HOUR))

        assert change(world, timer, run_at=format_instant(NOON + 2 * HOUR)) == first

    def test_two_moves_at_once_leave_one_job_with_both_changes(self, world: World):
        timer = a_placed(world)
        others: list[Waiting] = []

        def other(call: str) -> None:
            if call == "ledger.move" and not others:
                others.append(change(world, timer, timeout=5))

        last = change(world, timer, rescheduler=watched(world, before=other), delay=7_200)
        pass_time(world, until=NOON + 3 * HOUR)

        assert last.job_id != others[0].job_id
        assert [call.job_id for call in world.calls] == [str(last.job_id)]
        (row,) = [row for row in world.ledger.rows.values() if row.state is State.SUCCEEDED]
        assert row.job_id == str(last.job_id)

    @pytest.mark.parametrize("when", ["before", "after"])
    @pytest.mark.parametrize("call", ["ledger.move", "timers.delete", "payloads.put", "payloads.delete"])
    def test_a_death_on_the_way_runs_it_once_before_or_after_the_move(self, world: World, call: str, when: str):
        timer = a_large(world)

        with pytest.raises(DeathError):
            change(world, timer, rescheduler=dying(world, call, when=when), delay=7_200)
        pass_time(world, until=NOON + 3 * HOUR)

        assert len(world.calls) == 1
        is_moved = (call, when) not in {
            ("payloads.put", "before"),
            ("payloads.put", "after"),
            ("ledger.move", "before"),
        }
        assert world.calls[0].scheduled_at == (NOON + 2 * HOUR if is_moved else LATER)
        assert world.targets.effects[0][2] == LARGE

    @pytest.mark.parametrize("when", ["before", "after"])
    @pytest.mark.parametrize("call", ["ledger.move", "timers.delete", "payloads.put", "payloads.delete"])
    def test_a_move_that_died_is_finished_by_its_repetition(self, world: World, call: str, when: str):
        timer = a_large(world)
        run_at = format_instant(NOON + 2 * HOUR)
        with pytest.raises(DeathError):
            change(world, timer, rescheduler=dying(world, call, when=when), run_at=run_at)

        moved = change(world, timer, run_at=run_at)
        pass_time(world, until=NOON + 3 * HOUR)

        assert [(call.job_id, call.scheduled_at) for call in world.calls] == [(str(moved.job_id), NOON + 2 * HOUR)]

    def test_a_job_that_is_promoted_meanwhile_runs_once(self, world: World):
        timer = a_placed(world)
        world.ready.send([timer])  # a scanner whose clock is far ahead

        moved = change(world, timer, delay=7_200)
        pass_time(world, until=NOON + 3 * HOUR)

        assert [call.job_id for call in world.calls] == [str(moved.job_id)]

    def test_a_job_that_is_claimed_meanwhile_is_not_moved(self, world: World):
        timer = a_placed(world)

        def claim(call: str) -> None:
            if call == "ledger.move":
                world.ledger.claim(timer, owner="w", lease_until=LATER, now=NOON)

        with pytest.raises(errors.TooLate, match="attempt 1 of it is running"):
            change(world, timer, rescheduler=watched(world, before=claim), delay=7_200)
        assert sum(len(rows) for rows in world.rows.rows.values()) == 1

    def test_a_job_that_is_cancelled_meanwhile_is_not_moved_and_leaves_nothing(self, world: World):
        timer = a_large(world)

        def cancel(call: str) -> None:
            if call == "ledger.move":
                world.canceller().cancel(job_id_of(timer.job))

        with pytest.raises(errors.AlreadySettled) as refused:
            change(world, timer, rescheduler=watched(world, before=cancel), delay=7_200)
        assert refused.value.state == State.CANCELLED
        assert world.payloads.objects == {}
        pass_time(world, until=NOON + 3 * HOUR)
        assert world.calls == []

    def test_the_last_moment_of_a_change_is_before_any_scanner_may_open_a_bucket(self, world: World):
        reach = world.wheel.guard + world.wheel.skew + REQUEST_LIMIT
        timer = a_placed(world, due_at=NOON + reach)
        assert change(world, timer, delay=reach.total_seconds()).due_at == NOON + reach

        with pytest.raises(errors.InvalidJob, match="must be at least 190 s ahead") as refused:
            change(world, timer, delay=reach.total_seconds() - 1)
        assert refused.value.field == "run_at"
        world.clock.tick(MILLISECOND)
        with pytest.raises(errors.TooLate, match="can be changed until 190 s before that"):
            change(world, timer, delay=7_200)

    def test_a_move_that_took_too_long_is_followed_by_a_near_send(self, world: World):
        timer = a_placed(world)
        reach = world.wheel.guard + world.wheel.skew + REQUEST_LIMIT

        def stall(call: str) -> None:
            if call == "ledger.move":
                world.clock.tick(REQUEST_LIMIT + 3 * world.wheel.skew)

        moved = change(world, timer, rescheduler=watched(world, after=stall), delay=reach.total_seconds())

        assert [sent.job.identity for sent in world.ready.sent] == [moved.job_id.identity]
        pass_time(world, until=NOON + HOUR)
        assert len(world.calls) == 1

    def test_a_skewed_clock_moves_nothing(self, world: World):
        timer = a_placed(world)
        world.clock.known_offset = world.wheel.skew

        with pytest.raises(errors.NotPlaced, match="keep a far write safe"):
            change(world, timer, delay=7_200)
        assert world.ledger.rows == {}

    def test_a_running_job_cannot_be_moved(self, world: World):
        timer = a_placed(world)
        world.ledger.claim(timer, owner="w", lease_until=LATER, now=NOON)

        with pytest.raises(errors.TooLate, match="is running"):
            change(world, timer, delay=7_200)

    def test_a_job_that_has_failed_once_can_only_be_run_now_or_cancelled(self, world: World):
        timer = a_failed(world)

        with pytest.raises(errors.TooLate, match="attempt 1 of it has begun before: run it now, or cancel it"):
            change(world, timer, delay=7_200)

    def test_a_released_job_keeps_its_identity(self, world: World):
        timer = a_placed(world)
        world.ledger.claim(timer, owner="w", lease_until=LATER, now=NOON)
        world.ledger.settle(replace(timer, due_at=LATER), Event.RELEASE, fence=1, owner="w", now=NOON)

        with pytest.raises(errors.TooLate, match="attempt 1 of it has begun before"):
            change(world, timer, delay=7_200)

    @pytest.mark.parametrize("state", [State.SUCCEEDED, State.CANCELLED, State.FAILED])
    def test_a_settled_job_is_neither_moved_nor_run(self, world: World, state: State):
        timer = a_placed(world)
        world.ledger.rows[timer.job.key] = LedgerRow(state=state)

        for act in (lambda: change(world, timer, delay=7_200), lambda: run_now(world, timer)):
            with pytest.raises(errors.AlreadySettled):
                act()


class TestEditing:
    def test_only_what_is_named_changes(self, world: World):
        timer = a_placed(world, tags=("team:billing",))

        moved = change(world, timer, target="handler:other", timeout=5)

        job = job_of(world, moved.job_id)
        expected = replace(timer.job, target="handler:other", timeout=5 * SECOND)
        assert replace(job, identity=timer.job.identity) == expected
        pass_time(world, until=LATER + 5 * MINUTE)
        assert [(target, payload) for _, target, payload, _ in world.targets.effects] == [("handler:other", '{"n":1}')]

    def test_another_priority_is_another_queue(self, world: World):
        timer = a_placed(world)

        moved = change(world, timer, priority="critical")
        pass_time(world, until=LATER + 5 * MINUTE)

        assert moved.job_id.priority.name == "CRITICAL"
        assert [sent.job.priority.name for sent in world.ready.sent] == ["CRITICAL"]
        assert len(world.calls) == 1

    def test_a_payload_is_merged_with_the_one_that_it_changes(self, world: World):
        timer = a_placed(world)

        change(world, timer, payload={"m": 2})
        pass_time(world, until=LATER + 5 * MINUTE)

        assert world.targets.effects[0][2] == '{"n":1,"m":2}'

    def test_a_large_payload_moves_with_its_job_and_goes_with_its_end(self, world: World):
        timer = a_large(world)

        moved = change(world, timer, delay=7_200)
        assert list(world.payloads.objects) == [f"acme/{moved.job_id.identity}"]
        pass_time(world, until=NOON + 3 * HOUR)

        assert world.targets.effects[0][2] == LARGE
        assert world.payloads.objects == {}

    @pytest.mark.parametrize("payload", [None, [1]])
    def test_a_large_payload_that_is_replaced_goes(self, world: World, payload: Any):
        timer = a_large(world)

        change(world, timer, payload=payload)
        pass_time(world, until=LATER + 5 * MINUTE)

        assert world.targets.effects[0][2] == (None if payload is None else "[1]")
        assert world.payloads.objects == {}

    def test_a_payload_that_becomes_large_is_kept_apart(self, world: World):
        timer = a_placed(world)

        change(world, timer, payload=json.loads(LARGE))
        assert len(world.payloads.objects) == 1
        pass_time(world, until=LATER + 5 * MINUTE)

        assert json.loads(world.targets.effects[0][2] or "") == {"n": 1, **json.loads(LARGE)}
        assert world.payloads.objects == {}

    def test_the_message_of_the_old_job_leaves_the_payload_of_the_new_one(self, world: World):
        timer = a_large(world)
        moved = change(world, timer, delay=7_200)
        world.rows.put([timer])

        pass_time(world, until=LATER + 5 * MINUTE)

        assert list(world.payloads.objects) == [f"acme/{moved.job_id.identity}"]

    def test_a_payload_that_is_gone_belongs_to_a_job_that_goes_on_elsewhere(self, world: World):
        timer = a_large(world)
        world.payloads.objects.clear()

        with pytest.raises(errors.TooLate, match="look at it again"):
            change(world, timer, delay=7_200)

    def test_an_expiry_goes_with_the_time(self, world: World):
        timer = a_placed(world, expires_at=LATER + MINUTE)

        moved = change(world, timer, delay=7_200)

        assert job_of(world, moved.job_id).expires_at == NOON + 2 * HOUR + MINUTE


class TestKinds:
    def test_a_fire_of_a_schedule_is_not_run_but_its_schedule(self, world: World):
        timer = an_occurrence_timer(fire_at=LATER)
        world.rows.put([timer])

        with pytest.raises(
            errors.NotChangeable, match=r"fire of schedule nightly: run it with POST .*/nightly:trigger"
        ):
            run_now(world, timer)
        with pytest.raises(errors.NotChangeable, match=r"fire of schedule nightly: change it with PATCH .*/nightly$"):
            change(world, timer, delay=7_200)

    def test_an_at_least_once_job_is_to_be_submitted_again(self, world: World):
        timer = a_placed(world, delivery=Delivery.AT_LEAST_ONCE)

        for act in (lambda: change(world, timer, delay=7_200), lambda: run_now(world, timer)):
            with pytest.raises(errors.NotChangeable, match="cancel it and submit it again"):
                act()
        assert world.rows.get(job_id_of(timer.job)) == timer

    def test_an_at_most_once_job_is_moved_and_started_once(self, world: World):
        timer = a_placed(world, delivery=Delivery.AT_MOST_ONCE)

        change(world, timer, delay=7_200)
        world.rows.put([timer])
        pass_time(world, until=NOON + 3 * HOUR)

        assert [call.scheduled_at for call in world.calls] == [NOON + 2 * HOUR]


def test_a_job_that_changes_whenever_it_is_changed_is_busy(world: World):
    timer = a_placed(world)

    def meet_others(call: str) -> None:
        rows = world.ledger.rows
        if call == "ledger.move":
            rows[timer.job.key] = LedgerRow(state=State.RUNNING)
        elif call == "ledger.get":
            rows.pop(timer.job.key, None)

    with pytest.raises(errors.JobBusy):
        change(world, timer, rescheduler=watched(world, before=meet_others), payload=8)


def a_placed(world: World, *, due_at: datetime = LATER, **overrides: Any) -> Timer:
    timer = a_timer(due_at=due_at, **overrides)
    world.placer.place([timer])
    return timer


def a_large(world: World) -> Timer:
    """A far job whose payload is in the payload store."""
    job = a_job(due_at=LATER)
    accepted = world.submit(a_submission(due_at=LATER, payload=LARGE))
    found = world.rows.get(parse_job_id(accepted.job_id))
    assert found is not None
    assert found.job.payload.pointer is not None
    assert found.job.target == job.target
    return found


def a_failed(world: World, *, retry: RetryPolicy = RETRIES) -> Timer:
    """A job whose first attempt has failed, an hour before its next."""
    timer = a_placed(world, due_at=NOON, retry=retry)
    world.targets.answer = lambda *_: Failed("busy")
    world.receive_and_work()
    world.targets.answer = lambda *_: Succeeded()
    world.ready.sent.clear()
    assert world.row(timer.job).state is State.RETRYING
    return timer


def run_now(world: World, timer: Timer, *, rescheduler: Rescheduler | None = None) -> Waiting:
    return (rescheduler or world.rescheduler()).run_now(job_id_of(timer.job))


def change(world: World, timer: Timer, *, rescheduler: Rescheduler | None = None, **patch: Any) -> Waiting:
    return (rescheduler or world.rescheduler()).change(job_id_of(timer.job), editing(world, **patch))


def editing(world: World, **patch: Any) -> Callable[..., Any]:
    """What the route does with the body of a PATCH."""
    rules = Rules(now=world.clock.now(), allow_plain_http=False, max_timeout=MINUTE)
    return lambda job, payload: patched(job, payload, patch, rules)


def job_of(world: World, job_id: JobId) -> Any:
    timer = world.rows.get(job_id)
    assert timer is not None
    return timer.job


def watched(
    world: World, *, before: Callable[[str], None] = lambda _: None, after: Callable[[str], None] = lambda _: None
) -> Rescheduler:
    """Something happens at some of its calls."""
    whole = world.rescheduler()
    ports: dict[str, Any] = {
        name: Watched(getattr(whole, name), name, before, after) for name in ("ledger", "timers", "payloads")
    }
    placer = replace(whole.placer, ready=Watched(world.ready, "ready", before, after))  # pyright: ignore[reportArgumentType]
    return replace(whole, placer=placer, **ports)


def dying(world: World, call: str, *, when: str) -> Rescheduler:
    """Its process dies at a call."""

    def die(made: str) -> None:
        if made == call:
            raise DeathError

    return watched(world, before=die) if when == "before" else watched(world, after=die)
