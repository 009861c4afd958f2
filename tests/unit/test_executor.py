"""Operations carried on, with the real scanner and worker behind them."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from functions.domain.errors import Undecodable
from functions.domain.instants import HOUR, MILLISECOND, MINUTE, SECOND
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job import Delivery, Job, Payload, Priority, Timer
from functions.domain.jobs.job_id import job_id_of, parse_job_id
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.jobs.submission import Submission, submission_of
from functions.domain.lifecycle import State
from functions.domain.operations.operation import Operation, OperationKind, OperationState, Progress, Shift
from functions.domain.tenants.plan import TenantPlan
from functions.operations import executor as work
from functions.operations import export
from functions.operations.executor import ENOUGH_FAILURES, LEASE, MOST_FAILURES, STEP
from functions.ports.ready_queue import Rejected
from functions.ports.targets import Failed, Pending, Succeeded
from testkit.builders import (
    NOON,
    a_filter,
    a_job,
    a_submission,
    a_timer,
    a_wheel,
    an_alarm,
    an_occurrence_timer,
    an_operation,
)
from testkit.observed import DeathError
from testkit.scheduler import World, pass_time

LATER = NOON + HOUR
END = LATER + 5 * MINUTE
TAG = "team:billing"
EVERY_ACTION = list(OperationKind)
RETRIES = RetryPolicy(strategy=Strategy.FIXED, attempts=3, base=HOUR, cap=HOUR)
LARGE = json.dumps({str(number): f"{number * 7919 % 104_729:x}" for number in range(5_000)}, separators=(",", ":"))


@pytest.fixture
def world() -> World:
    return World(dates_rows=True)


class TestWhatIsMeant:
    @pytest.mark.parametrize("delivery", [Delivery.EXACTLY_ONCE, Delivery.AT_MOST_ONCE])
    def test_each_job_that_matches_is_cancelled_and_no_other(self, world: World, delivery: Delivery):
        meant = [placed(world, delivery=delivery, priority=priority) for priority in Priority]
        others = [
            placed(world, tags=("other",)),
            placed(world, tenant="umbrella"),
            placed(world, due_at=LATER + 20 * MINUTE),
        ]

        operation = carried_on(world, OperationKind.CANCEL)
        pass_time(world, until=LATER + HOUR)

        assert operation.state is OperationState.DONE
        assert (operation.progress.matched, operation.progress.done) == (4, 4)
        assert [world.row(timer.job).state for timer in meant] == [State.CANCELLED] * 4
        assert sorted(ran(world)) == sorted(timer.job.identity for timer in others)

    def test_it_walks_over_days_and_pages(self, world: World):
        meant = [placed(world, due_at=NOON + day * timedelta(days=1) + HOUR) for day in range(3)]
        meant += [placed(world) for _ in range(work.PAGE + 20)]

        operation = carried_on(world, OperationKind.CANCEL, due_until=None)

        assert operation.progress.examined == operation.progress.done == len(meant)
        assert {world.row(timer.job).state for timer in meant} == {State.CANCELLED}

    def test_a_tenant_without_far_rows_has_nothing_to_do(self, world: World):
        operation = carried_on(world, OperationKind.CANCEL)

        assert (operation.state, operation.progress.share, operation.progress.matched) == (OperationState.DONE, 1, 0)

    @pytest.mark.parametrize("action", EVERY_ACTION)
    def test_jobs_that_are_submitted_after_it_are_left_alone(self, world: World, action: OperationKind):
        operation = accepted(world, action)
        world.clock.tick(MILLISECOND)
        timer = placed(world)

        carry_on(world, operation)

        assert standing(world, operation).progress.matched == 0
        assert stored(world, timer) == timer
        assert world.ledger.rows == {}

    @pytest.mark.parametrize("action", EVERY_ACTION)
    def test_a_retry_that_is_placed_while_it_runs_is_left_alone(self, world: World, action: OperationKind):
        operation = accepted(world, action, due_from=NOON + 30 * MINUTE)
        world.clock.tick(SECOND)
        failed(world, due_at=world.clock.now())

        carry_on(world, operation)

        assert standing(world, operation).progress.matched == 0

    @pytest.mark.parametrize("action", EVERY_ACTION)
    def test_alarms_and_what_cannot_be_read_are_no_jobs(self, world: World, action: OperationKind):
        timer = placed(world, tags=("other",))
        world.rows.put_alarms([an_alarm(alarm_at=LATER)])
        world.rows.rows[timer.job.bucket, timer.job.shard]["2#acme#0000000000000#x"] = "{}"
        before = dict(world.rows.rows[timer.job.bucket, timer.job.shard])

        operation = carried_on(world, action)

        assert (operation.progress.examined, operation.progress.matched) == (3, 0)
        assert world.rows.rows[timer.job.bucket, timer.job.shard] == before

    def test_of_a_bucket_that_reaches_over_the_end_of_a_day_each_row_is_found_once(self):
        world = World(dates_rows=True, wheel=a_wheel(bucket=timedelta(seconds=7)))
        midnight = NOON + timedelta(hours=12)
        for second in (-3, -2, -1, 0, 1, 2):
            placed(world, due_at=midnight + second * SECOND)

        operation = carried_on(world, OperationKind.EXPORT, due_from=midnight - MINUTE, due_until=midnight + MINUTE)

        assert len(set(exported(world, operation))) == len(exported(world, operation)) == 6
        assert operation.progress.examined == 6


class TestCancelling:
    def test_a_job_that_is_promoted_meanwhile_is_stopped_by_its_tombstone(self, world: World):
        timer = placed(world)
        world.ready.send([timer])

        carried_on(world, OperationKind.CANCEL)
        pass_time(world, until=END)

        assert ran(world) == []

    def test_a_job_that_runs_is_asked_once_not_to_be_tried_again(self, world: World):
        timer = placed(world)
        world.ledger.claim(timer, owner="w", lease_until=LATER, now=NOON)
        first = carried_on(world, OperationKind.CANCEL)
        second = carried_on(world, OperationKind.CANCEL)

        assert (first.progress.done, second.progress.matched) == (1, 0)
        assert world.row(timer.job).cancel_requested

    @pytest.mark.parametrize("base", [2 * MINUTE, HOUR])
    def test_a_job_that_waits_for_its_next_attempt_is_cancelled_by_any_row(self, world: World, base: timedelta):
        timer = failed(world, due_at=NOON + 10 * MINUTE, retry=replace(RETRIES, base=base, cap=base))

        operation = carried_on(world, OperationKind.CANCEL)
        pass_time(world, until=NOON + 3 * HOUR)

        assert (operation.progress.matched, operation.progress.done) == (1, 1)
        assert world.row(timer.job).state is State.CANCELLED
        assert ran(world) == [timer.job.identity]

    def test_a_parked_job_is_cancelled(self, world: World):
        timer = parked(world)

        operation = carried_on(world, OperationKind.CANCEL)
        pass_time(world, until=NOON + 3 * HOUR)

        assert operation.progress.done == 1
        assert world.row(timer.job).state is State.CANCELLED
        assert ran(world) == []

    def test_a_replayed_job_is_cancelled_by_the_row_of_its_replay(self, world: World):
        timer = replayed(world)

        operation = carried_on(world, OperationKind.CANCEL)

        assert operation.progress.done == 1
        assert world.row(timer.job).state is State.CANCELLED

    def test_a_retry_of_a_fire_is_cancelled(self, world: World):
        timer = an_occurrence_timer(fire_at=LATER, attempt=2)
        world.ledger.rows[timer.job.key] = LedgerRow(state=State.RETRYING, attempt=1, fence=1, due_at=LATER)
        world.placer.place([timer])

        operation = carried_on(world, OperationKind.CANCEL, tag="", schedule_id="nightly")

        assert operation.progress.done == 1
        assert world.row(timer.job).state is State.CANCELLED

    def test_an_at_least_once_job_loses_its_row(self, world: World):
        timer = placed(world, delivery=Delivery.AT_LEAST_ONCE)
        world.clock.tick(MINUTE)

        operation = carried_on(world, OperationKind.CANCEL)
        pass_time(world, until=END)

        assert operation.progress.done == 1
        assert stored(world, timer) is None
        assert ran(world) == []

    def test_an_at_least_once_job_that_is_near_is_refused_and_runs(self, world: World):
        timer = placed(world, delivery=Delivery.AT_LEAST_ONCE, due_at=NOON + 160 * SECOND)
        world.clock.tick(MINUTE)

        operation = carried_on(world, OperationKind.CANCEL)
        pass_time(world, until=END)

        assert operation.progress.refused == {"too_late": 1}
        (example,) = operation.progress.examples
        assert (example.job_id, example.code) == (str(job_id_of(timer.job)), "too_late")
        assert "only while it is far from due" in example.detail
        assert ran(world) == [timer.job.identity]

    def test_each_job_is_reported_in_the_audit_line_of_its_page(self, world: World):
        timers = [placed(world), placed(world)]

        operation = carried_on(world, OperationKind.CANCEL)

        (line,) = world.events("operation_acted")
        assert line == {
            "operation": operation.operation_id,
            "tenant": "acme",
            "action": "cancel",
            "caller": "ann",
            "dry_run": False,
            "jobs": sorted(str(job_id_of(timer.job)) for timer in timers),
        }
        (end,) = world.events("operation_ended")
        assert (end["state"], end["matched"], end["done"], end["refused"]) == ("done", 2, 2, {})


class TestRescheduling:
    @pytest.mark.parametrize("by", [30 * MINUTE, -30 * MINUTE])
    def test_each_job_runs_once_at_its_new_time_and_keeps_its_payload(self, world: World, by: timedelta):
        small = placed(world, payload=Payload(text='{"n":7}'))
        world.submit(a_submission(due_at=LATER + MINUTE, payload=LARGE, tags=(TAG,)))

        operation = carried_on(world, OperationKind.RESCHEDULE, shift=Shift(by=by))
        pass_time(world, until=NOON + 3 * HOUR)

        assert operation.progress.done == 2
        assert [call.scheduled_at for call in world.calls] == [LATER + by, LATER + MINUTE + by]
        assert [payload for _, _, payload, _ in world.targets.effects] == ['{"n":7}', LARGE]
        assert world.row(small.job).state is State.MOVED
        assert world.payloads.objects == {}

    def test_what_it_has_moved_ahead_of_itself_is_not_moved_again(self, world: World):
        placed(world)
        # Whoever asked has the faster clock: what is moved seems older than the operation.
        operation = accepted(
            world, OperationKind.RESCHEDULE, shift=Shift(by=HOUR), created_at=NOON + SECOND, due_until=NOON + 5 * HOUR
        )

        carry_on(world, operation)
        pass_time(world, until=NOON + 5 * HOUR)

        assert standing(world, operation).progress.done == 1
        assert [call.scheduled_at for call in world.calls] == [LATER + HOUR]

    def test_what_it_has_moved_and_its_owner_has_changed_since_is_not_moved_again(self, world: World):
        timer = placed(world)
        # Whoever asked has the faster clock: what its owner changes seems older than the operation.
        operation = accepted(
            world,
            OperationKind.RESCHEDULE,
            shift=Shift(by=HOUR),
            created_at=NOON + 5 * SECOND,
            due_until=NOON + 5 * HOUR,
        )

        def change_and_die(call: str) -> None:
            if call == "ledger.move":
                world.rescheduler().change(job_id_of(timer.job), paid_otherwise)
                raise DeathError

        with pytest.raises(DeathError):
            world.watched(after=change_and_die).operate()
        world.clock.tick(LEASE + world.wheel.skew + SECOND)
        carry_on(world, operation)
        pass_time(world, until=NOON + 5 * HOUR)

        assert [call.scheduled_at for call in world.calls] == [LATER + HOUR]
        assert [payload for _, _, payload, _ in world.targets.effects] == ['"changed"']

    def test_what_a_turn_that_died_has_moved_is_found_done_although_its_row_is_read_too_early(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ):
        timer = placed(world)
        operation = accepted(world, OperationKind.RESCHEDULE)

        def die(call: str) -> None:
            if call == "ledger.move":
                raise DeathError

        with pytest.raises(DeathError):
            world.watched(after=die).operate()
        monkeypatch.setattr(world.ledger, "get_many", lambda _: {})
        world.clock.tick(LEASE + world.wheel.skew + SECOND)
        carry_on(world, operation)

        progress = standing(world, operation).progress
        assert (progress.matched, progress.done, progress.refused) == (1, 1, {})
        assert parse_job_id(world.row(timer.job).moved_to).due_at == LATER + HOUR

    def test_jobs_are_spread_by_their_identities(self, world: World):
        timers = [placed(world) for _ in range(20)]
        shift = Shift(to=NOON + 2 * HOUR, spread=HOUR)

        carried_on(world, OperationKind.RESCHEDULE, shift=shift)

        moved = {timer.job.identity: world.row(timer.job).moved_to for timer in timers}
        assert {identity: parse_job_id(text).due_at for identity, text in moved.items()} == {
            timer.job.identity: shift.due_at(timer.job) for timer in timers
        }

    def test_a_time_that_is_too_near_is_refused(self, world: World):
        timer = placed(world)

        operation = carried_on(world, OperationKind.RESCHEDULE, shift=Shift(by=-58 * MINUTE))

        assert operation.progress.refused == {"too_near": 1}
        assert stored(world, timer) == timer

    @pytest.mark.parametrize(
        ("job", "code"),
        [
            ({"delivery": Delivery.AT_LEAST_ONCE}, "not_changeable"),
            ({"due_at": NOON + 170 * SECOND}, "too_late"),
        ],
    )
    def test_what_a_single_request_would_not_change_is_refused(self, world: World, job: dict[str, Any], code: str):
        timer = placed(world, **job)

        operation = carried_on(world, OperationKind.RESCHEDULE)

        assert (operation.progress.matched, operation.progress.refused) == (1, {code: 1})
        assert stored(world, timer) == timer

    def test_a_retry_is_refused_and_runs_at_its_own_time(self, world: World):
        timer = failed(world)

        operation = carried_on(world, OperationKind.RESCHEDULE)
        pass_time(world, until=NOON + 3 * HOUR)

        assert operation.progress.refused == {"too_late": 1}
        assert ran(world) == [timer.job.identity] * 2

    def test_a_job_that_somebody_moves_meanwhile_is_left_where_it_is(self, world: World):
        timer = placed(world)
        operation = accepted(world, OperationKind.RESCHEDULE)

        def move(call: str) -> None:
            if call == "ledger.get" and world.ledger.get(timer.job.key) is None:
                moved = replace(timer, job=a_job(due_at=NOON + 2 * HOUR), due_at=NOON + 2 * HOUR)
                world.ledger.move(job_id_of(timer.job), moved, owner="other", now=NOON)

        world.watched(before=move).operate()
        pass_time(world, until=NOON + 4 * HOUR)

        assert standing(world, operation).progress.refused == {"moved": 1}
        assert [call.scheduled_at for call in world.calls] == [NOON + 2 * HOUR]


SLOW = TenantPlan(submission_rate=0.05, submission_burst=4)
"""Three jobs a minute."""


class TestTheRateOfItsTenant:
    @pytest.mark.parametrize(
        ("action", "asked"),
        [(OperationKind.RUN_NOW, {"rate": 100}), (OperationKind.RESCHEDULE, {"shift": Shift(by=timedelta(days=1))})],
    )
    def test_what_makes_work_takes_from_it_a_turn_at_a_time(
        self, world: World, action: OperationKind, asked: dict[str, Any]
    ):
        world.plans.plans["acme"] = SLOW
        for _ in range(12):
            placed(world)
        operation = accepted(world, action, **asked)

        done: list[int] = []
        while not standing(world, operation).state.is_over:
            world.operate(time_limit=SECOND)
            done.append(standing(world, operation).progress.done)
            world.clock.tick(MINUTE)

        assert done == [4, 7, 10, 12]
        progress = standing(world, operation).progress
        assert (progress.matched, progress.examined, progress.refused, progress.failures) == (12, 12, {}, 0)

    @pytest.mark.parametrize(
        ("action", "asked"),
        [(OperationKind.RUN_NOW, {"rate": 100}), (OperationKind.RESCHEDULE, {"shift": Shift(by=timedelta(days=1))})],
    )
    def test_a_turn_goes_on_as_fast_as_the_rate_lets_it(
        self, world: World, action: OperationKind, asked: dict[str, Any]
    ):
        world.plans.plans["acme"] = TenantPlan(submission_rate=10, submission_burst=1)
        for _ in range(12):
            placed(world)
        operation = accepted(world, action, **asked)
        begun_at = world.clock.now()

        world.operate()

        progress = standing(world, operation).progress
        assert (progress.done, progress.matched, progress.examined, progress.refused) == (12, 12, 12, {})
        assert timedelta(seconds=1.1) <= world.clock.now() - begun_at < timedelta(seconds=2)

    def test_a_turn_does_not_wait_longer_than_it_lasts_or_its_lease_bears(self, world: World):
        world.plans.plans["acme"] = TenantPlan(submission_rate=0.01, submission_burst=1)
        for _ in range(3):
            placed(world)
        operation = accepted(world, OperationKind.RUN_NOW, rate=100)
        begun_at = world.clock.now()

        world.operate(time_limit=timedelta(minutes=14))

        assert standing(world, operation).progress.done == 1
        assert world.clock.now() == begun_at

    @pytest.mark.parametrize("action", [OperationKind.CANCEL, OperationKind.EXPORT])
    def test_what_makes_none_does_not(self, world: World, action: OperationKind):
        world.plans.plans["acme"] = SLOW
        for _ in range(12):
            placed(world)

        assert carried_on(world, action).progress.done == 12
        assert world.rates.writes == 0

    def test_jobs_that_are_refused_do_not_hold_up_those_behind_them(self, world: World):
        world.plans.plans["acme"] = SLOW
        for number in range(12):
            delivery = Delivery.AT_LEAST_ONCE if number < 8 else Delivery.EXACTLY_ONCE
            placed(world, identity=f"job-{number:02}", delivery=delivery)

        progress = carried_on(world, OperationKind.RUN_NOW).progress

        assert (progress.done, progress.refused) == (4, {"not_changeable": 8})

    def test_a_dry_run_makes_nothing(self, world: World):
        world.plans.plans["acme"] = SLOW
        placed(world)

        carried_on(world, OperationKind.RUN_NOW, dry_run=True)

        assert world.rates.writes == 0


class TestRunningNow:
    def test_jobs_run_at_their_rate_from_now_on(self, world: World):
        timers = [placed(world) for _ in range(10)]

        operation = carried_on(world, OperationKind.RUN_NOW, rate=2)

        assert operation.progress.done == 10
        assert [sent.due_at for sent in world.ready.sent] == [NOON + number * SECOND / 2 for number in range(10)]
        pass_time(world, until=END)
        assert sorted(ran(world)) == sorted(timer.job.identity for timer in timers)
        assert max(at for at, *_ in world.targets.effects) < NOON + MINUTE

    @pytest.mark.parametrize("rate", [1, 7, 1_000])
    def test_none_is_ever_put_back_into_the_far_ring(self, world: World, rate: float):
        for _ in range(260):
            placed(world)
        operation = accepted(world, OperationKind.RUN_NOW, rate=rate)

        while not standing(world, operation).state.is_over:
            sent = len(world.ready.sent)
            world.operate()  # woken, and woken again
            world.operate()
            latest = max((timer.due_at for timer in world.ready.sent[sent:]), default=NOON)
            assert latest <= world.clock.now() + work.AHEAD * 1.5
            world.clock.tick(MINUTE)

        assert standing(world, operation).progress.done == 260
        instants = sorted(timer.due_at for timer in world.ready.sent)
        assert all(later - sooner >= SECOND / rate for sooner, later in pairwise(instants))
        assert sum(len(rows) for rows in world.rows.rows.values()) == 0

    def test_a_wheel_with_the_smallest_guard_keeps_them_near(self):
        wheel = a_wheel(bucket=SECOND, skew=timedelta(0), guard=timedelta(seconds=91))
        world = World(dates_rows=True, wheel=wheel)
        for _ in range(100):
            placed(world)
        operation = accepted(world, OperationKind.RUN_NOW, rate=1)

        world.operate()

        assert max(timer.due_at for timer in world.ready.sent) >= NOON + work.AHEAD
        assert standing(world, operation).progress.done == len(world.ready.sent)

    def test_a_retry_is_hastened_and_keeps_its_attempt(self, world: World):
        timer = failed(world)

        operation = carried_on(world, OperationKind.RUN_NOW)
        pass_time(world, until=NOON + 3 * HOUR)

        assert (operation.progress.matched, operation.progress.done) == (1, 1)
        assert [call.attempt for call in world.calls] == [1, 2]
        assert world.targets.effects[1][0] < NOON + 20 * MINUTE
        assert world.row(timer.job).state is State.SUCCEEDED

    def test_a_job_that_fails_meanwhile_is_not_tried_again_ahead_of_its_time(self, world: World):
        timer = placed(world, retry=RETRIES)
        placed(world, due_at=LATER + 3 * MINUTE)
        operation = accepted(world, OperationKind.RUN_NOW, due_until=NOON + 3 * HOUR)
        world.operate(time_limit=SECOND)
        world.targets.answer = lambda *_: Failed("busy")
        world.receive_and_work()
        world.targets.answer = lambda *_: Succeeded()

        carry_on(world, operation)
        pass_time(world, until=NOON + 30 * MINUTE)

        assert ran(world).count(timer.job.identity) == 1

    def test_a_job_that_comes_sooner_by_itself_is_refused(self, world: World):
        placed(world, due_at=LATER)
        world.clock.tick(HOUR - SECOND)

        operation = carried_on(world, OperationKind.RUN_NOW, progress=Progress(due_at=LATER))

        assert operation.progress.refused == {"too_late": 1}

    def test_a_parked_job_is_refused_and_waits_on(self, world: World):
        timer = parked(world)

        operation = carried_on(world, OperationKind.RUN_NOW)

        assert operation.progress.refused == {"too_late": 1}
        assert stored(world, timer, at=NOON + 40 * MINUTE) is not None

    @pytest.mark.parametrize(
        "job", [{"delivery": Delivery.AT_LEAST_ONCE}, {"identity": "nightly:2027-03-01T13:00:00.000Z"}]
    )
    def test_what_a_single_request_would_not_run_is_refused(self, world: World, job: dict[str, Any]):
        timer = placed(world, **job)

        operation = carried_on(world, OperationKind.RUN_NOW)

        assert operation.progress.refused == {"not_changeable": 1}
        assert stored(world, timer) == timer


class TestExporting:
    def test_each_job_that_waits_is_a_line_with_its_payload(self, world: World):
        small = placed(world, payload=Payload(text='{"n":7}'))
        large = world.submit(a_submission(due_at=LATER + MINUTE, payload=LARGE, tags=(TAG,)))

        operation = carried_on(world, OperationKind.EXPORT)

        (lines,) = world.exports.parts.values()
        first, second = map(json.loads, lines)
        assert (operation.progress.parts, operation.progress.done) == (1, 2)
        assert first == {
            "id": str(job_id_of(small.job)),
            "tenant": "acme",
            "state": "scheduled",
            "attempt": 1,
            "due_at": "2027-03-01T13:00:00.000Z",
            "target": "https://example.com/hook",
            "scheduled_at": "2027-03-01T13:00:00.000Z",
            "delivery": "exactly_once",
            "retry": {"strategy": "fixed", "attempts": 3, "base": "PT10S", "cap": "PT10M"},
            "timeout": "PT10S",
            "tags": [TAG],
            "payload": {"n": 7},
        }
        assert (second["id"], second["payload"]) == (large.job_id, json.loads(LARGE))
        assert len(world.ready.sent) == 0
        assert world.ledger.rows == {}

    def test_a_payload_that_is_gone_is_left_out(self, world: World):
        world.submit(a_submission(due_at=LATER, payload=LARGE, tags=(TAG,)))
        world.payloads.objects.clear()

        operation = carried_on(world, OperationKind.EXPORT)

        assert operation.progress.done == 1
        assert all("payload" not in json.loads(line) for line in world.exports.parts["acme", operation.operation_id, 1])

    def test_a_job_without_a_payload_has_none(self, world: World):
        placed(world, payload=Payload())

        operation = carried_on(world, OperationKind.EXPORT)

        assert all("payload" not in json.loads(line) for line in world.exports.parts["acme", operation.operation_id, 1])

    def test_a_job_that_has_several_rows_is_exported_by_the_last(self, world: World):
        timer = failed(world, due_at=NOON + 10 * MINUTE)

        operation = carried_on(world, OperationKind.EXPORT, due_until=NOON + 2 * HOUR)

        (lines,) = world.exports.parts.values()
        (answer,) = map(json.loads, lines)
        assert (answer["id"], answer["state"], answer["attempt"]) == (str(job_id_of(timer.job)), "retrying", 2)
        assert answer["due_at"] > "2027-03-01T13:10"
        assert operation.progress.matched == 1

    def test_a_job_that_is_parked_meanwhile_is_exported_with_the_time_that_it_has_now(self, world: World):
        timer = placed(world, due_at=NOON + 10 * MINUTE)
        operation = accepted(world, OperationKind.EXPORT, due_until=NOON + 30 * MINUTE)
        world.clock.tick(10 * MINUTE)
        world.settler().park(timer, until=NOON + 50 * MINUTE, reason="down")

        carry_on(world, operation)

        (lines,) = world.exports.parts.values()
        assert [json.loads(line)["due_at"] for line in lines] == ["2027-03-01T12:50:00.000Z"]

    def test_what_runs_or_has_run_is_not_exported(self, world: World):
        running, done = placed(world), placed(world)
        world.ledger.claim(running, owner="w", lease_until=LATER, now=NOON)
        world.ledger.cancel(job_id_of(done.job), owner="w", now=NOON)

        operation = carried_on(world, OperationKind.EXPORT)

        assert (operation.progress.examined, operation.progress.matched, operation.progress.parts) == (2, 0, 0)
        assert world.exports.parts == {}

    def test_a_job_whose_target_goes_on_by_itself_is_not_found_by_its_watchdog(self, world: World):
        timer = placed(world, due_at=NOON)
        world.targets.answer = lambda *_: Pending()
        world.receive_and_work()
        world.outcome_reports().heartbeat(job_id_of(timer.job), fence=1, lease=HOUR)
        world.clock.tick(MINUTE)
        world.receive_and_work()
        assert [watchdog.attempt for watchdog in world.timers.puts[-1]] == [2]

        for action in (OperationKind.EXPORT, OperationKind.RUN_NOW, OperationKind.RESCHEDULE):
            assert carried_on(world, action, due_until=NOON + 3 * HOUR).progress.matched == 0
        assert carried_on(world, OperationKind.CANCEL, due_until=NOON + 3 * HOUR).progress.done == 1
        assert world.row(timer.job).cancel_requested

    def test_what_is_large_is_cut_into_parts(self, world: World, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(export, "PART_SIZE", 1_000)
        timers = [placed(world, due_at=LATER + number * MINUTE / 8) for number in range(24)]

        operation = carried_on(world, OperationKind.EXPORT)

        assert operation.progress.parts == len(world.exports.parts) > 1
        assert sorted(exported(world, operation)) == sorted(str(job_id_of(timer.job)) for timer in timers)


class TestDryRuns:
    @pytest.mark.parametrize("action", EVERY_ACTION)
    def test_it_counts_and_shows_what_is_selected_and_changes_nothing(self, world: World, action: OperationKind):
        timers = [placed(world) for _ in range(30)]
        timers.append(failed(world, due_at=NOON + 10 * MINUTE))
        before = (dict(world.ledger.rows), {key: dict(rows) for key, rows in world.rows.rows.items()})
        sent = len(world.ready.sent)

        operation = carried_on(world, action, dry_run=True, due_until=NOON + 2 * HOUR)

        assert (operation.state, operation.progress.matched, operation.progress.done) == (OperationState.DONE, 31, 0)
        shown = {example.job_id for example in operation.progress.examples}
        assert shown < {str(job_id_of(timer.job)) for timer in timers}
        assert len(shown) == 20
        assert (world.ledger.rows, world.rows.rows, len(world.ready.sent)) == (*before, sent)
        assert world.exports.parts == {}
        assert world.events("operation_acted") == []


class TestTurns:
    def test_a_turn_that_runs_out_of_time_is_followed_by_one_that_goes_on(self, world: World):
        timers = [placed(world, due_at=LATER + number * MINUTE) for number in range(5)]
        operation = accepted(world, OperationKind.CANCEL)
        slow = world.watched(before=lambda call: world.clock.tick(SECOND if call == "ledger.cancel" else MILLISECOND))

        report = slow.operate(time_limit=2 * SECOND)
        first = standing(world, operation)

        assert (report.worked, report.ended, report.jobs) == (1, 0, 2)
        assert (first.state, first.lease_until, first.progress.done) == (OperationState.RUNNING, None, 2)
        assert 0 < first.progress.share < 1
        assert slow.operate().ended == 1
        assert standing(world, operation).progress.done == 5
        assert {world.row(timer.job).state for timer in timers} == {State.CANCELLED}

    def test_open_operations_share_the_time_and_the_oldest_comes_first(self, world: World):
        for number in range(10):
            placed(world, due_at=LATER + number * MINUTE)
        operations = [
            accepted(world, OperationKind.EXPORT, created_at=NOON + number * MILLISECOND, tenant=tenant)
            for number, tenant in enumerate(["umbrella", "acme", "acme"])
        ]
        slow = world.watched(before=lambda call: world.clock.tick(SECOND if call == "ledger.get_many" else timedelta()))

        report = slow.operate(time_limit=10 * SECOND)

        assert [standing(world, each).state for each in operations] == [
            OperationState.DONE,
            OperationState.RUNNING,
            OperationState.RUNNING,
        ]
        assert [standing(world, each).progress.done for each in operations] == [0, 4, 4]
        assert (report.worked, report.ended) == (3, 1)

    def test_what_is_left_when_the_time_is_over_waits_for_the_next_tick(self, world: World):
        placed(world)
        first, second = (
            accepted(world, OperationKind.CANCEL),
            accepted(world, OperationKind.EXPORT, created_at=NOON + SECOND),
        )
        slow = world.watched(before=lambda call: world.clock.tick(SECOND if call == "ledger.cancel" else timedelta()))

        slow.operate(time_limit=SECOND)

        assert standing(world, first).progress.done == 1
        assert standing(world, second).state is OperationState.WAITING

    def test_progress_is_recorded_every_few_seconds(self, world: World):
        for number in range(10):
            placed(world, due_at=LATER + number * MINUTE)
        operation = accepted(world, OperationKind.CANCEL)
        steps: list[tuple[int, datetime | None]] = []

        def note(call: str) -> None:
            if call == "operations.save":
                at = standing(world, operation)
                steps.append((at.progress.done, at.lease_until))

        slow = world.watched(before=lambda call: world.clock.tick(STEP / 2 if call == "ledger.cancel" else timedelta()))
        slow.watched(after=note).operate()

        assert [done for done, _ in steps] == [2, 4, 6, 8, 10]
        assert [lease_until for _, lease_until in steps] == [NOON + LEASE + number * STEP for number in range(1, 6)]

    def test_an_operation_that_somebody_carries_on_is_left_to_him(self, world: World):
        timer = placed(world)
        operation = accepted(world, OperationKind.CANCEL)
        held(world, operation, until=NOON + LEASE)
        world.clock.tick(LEASE + world.wheel.skew)

        assert world.operate().worked == 0
        world.clock.tick(MILLISECOND)
        assert world.operate().ended == 1
        assert world.row(timer.job).state is State.CANCELLED

    @pytest.mark.parametrize("action", [OperationKind.CANCEL, OperationKind.EXPORT])
    def test_a_turn_whose_lease_was_lost_stops_and_records_nothing(self, world: World, action: OperationKind):
        for number in range(10):
            placed(world, due_at=LATER + number * MINUTE)
        operation = accepted(world, action)
        calls: list[str] = []

        def stall(call: str) -> None:
            calls.append(call)
            if calls.count("ledger.get_many") == 3 and call == "ledger.get_many":
                world.clock.tick(LEASE + world.wheel.skew + SECOND)
                held(world, operation, until=world.clock.now() + LEASE)

        before = standing(world, operation).progress
        report = world.watched(before=stall).operate(time_limit=HOUR)

        assert (report.ended, standing(world, operation).owner) == (0, "other")
        assert standing(world, operation).progress == before
        assert calls.count("ledger.get_many") == 3
        assert world.exports.parts == {}

    def test_a_part_is_not_put_over_that_of_the_turn_that_has_taken_over(self, world: World):
        timers = [placed(world, due_at=LATER + number * MINUTE) for number in range(4)]
        operation = accepted(world, OperationKind.EXPORT)
        calls: list[str] = []

        def stall(call: str) -> None:
            calls.append(call)
            if calls.count("ledger.get_many") == 2 and call == "ledger.get_many":
                world.clock.tick(LEASE + world.wheel.skew + SECOND)
                world.operate()

        world.watched(before=stall).operate(time_limit=HOUR)

        assert standing(world, operation).state is OperationState.DONE
        assert sorted(exported(world, operation)) == sorted(str(job_id_of(timer.job)) for timer in timers)

    def test_two_operators_at_once_do_it_to_each_job_once(self, world: World):
        for number in range(6):
            placed(world, due_at=LATER + number * MINUTE)
        operation = accepted(world, OperationKind.RESCHEDULE)
        has_stalled: list[bool] = []

        def stall(call: str) -> None:
            if call == "ledger.move" and not has_stalled:
                has_stalled.append(True)
                world.clock.tick(LEASE + world.wheel.skew + SECOND)
                world.operate()

        world.watched(before=stall).operate()
        pass_time(world, until=NOON + 3 * HOUR)

        assert standing(world, operation).state is OperationState.DONE
        assert [call.scheduled_at for call in world.calls] == [LATER + HOUR + number * MINUTE for number in range(6)]


class TestStopping:
    def test_an_operation_that_was_stopped_before_it_began_does_nothing(self, world: World):
        timer = placed(world)
        operation = accepted(world, OperationKind.CANCEL)
        world.operations.stop("acme", operation.operation_id)

        world.operate()

        assert standing(world, operation).state is OperationState.STOPPED
        assert standing(world, operation).ended_at == NOON
        assert stored(world, timer) == timer

    def test_it_ends_at_its_next_step_with_what_it_has_done(self, world: World):
        for number in range(6):
            placed(world, due_at=LATER + number * MINUTE)
        operation = accepted(world, OperationKind.CANCEL)

        def stop(call: str) -> None:
            world.clock.tick(STEP if call == "ledger.cancel" else timedelta())
            if call == "ledger.cancel" and len(world.ledger.rows) == 2:
                world.operations.stop("acme", operation.operation_id)

        report = world.watched(before=stop).operate()

        assert (report.ended, report.jobs) == (1, 3)
        assert standing(world, operation).state is OperationState.STOPPED
        assert standing(world, operation).progress.done == 3
        assert 0 < standing(world, operation).progress.share < 1

    @pytest.mark.parametrize("action", [OperationKind.CANCEL, OperationKind.RUN_NOW])
    def test_it_ends_although_each_of_its_turns_is_short(self, world: World, action: OperationKind):
        for _ in range(200):
            placed(world)
        operation = accepted(world, action, rate=1)

        def stop(call: str) -> None:
            world.clock.tick(SECOND if call == "ledger.get_many" else timedelta())
            if call == "ledger.get_many":
                world.operations.stop("acme", operation.operation_id)

        world.watched(before=stop).operate(time_limit=SECOND)

        assert standing(world, operation).state is OperationState.STOPPED
        assert 0 < standing(world, operation).progress.done < 200

    def test_what_was_exported_until_then_is_kept(self, world: World):
        for number in range(6):
            placed(world, due_at=LATER + number * MINUTE)
        operation = accepted(world, OperationKind.EXPORT)

        def stop(call: str) -> None:
            if call == "ledger.get_many":
                world.clock.tick(STEP)
                world.operations.stop("acme", operation.operation_id)

        world.watched(before=stop).operate()

        assert standing(world, operation).state is OperationState.STOPPED
        assert len(exported(world, operation)) == standing(world, operation).progress.done == 1


class TestFailing:
    def test_an_error_ends_a_turn_and_the_next_goes_on_from_the_last_step(self, world: World):
        timers = [placed(world, due_at=LATER + number * MINUTE) for number in range(5)]
        operation = accepted(world, OperationKind.CANCEL)

        failing(world, lambda call: call == "ledger.cancel" and len(world.ledger.rows) == 3).operate()
        first = standing(world, operation)

        assert (first.state, first.lease_until) == (OperationState.RUNNING, None)
        assert first.progress.failures == 1
        assert first.progress.error.startswith("OSError at functions.services.jobs.canceller:")
        assert first.progress.done == 3
        assert world.journal.counts["operation_failures"] == 1
        (line,) = world.events("operation_failed")
        assert (line["operation"], line["error"]) == (operation.operation_id, first.progress.error)
        assert world.operate().ended == 1
        last = standing(world, operation).progress
        assert (last.done, last.failures, last.error) == (5, 1, "")
        assert {world.row(timer.job).state for timer in timers} == {State.CANCELLED}

    @pytest.mark.parametrize("action", EVERY_ACTION)
    @pytest.mark.parametrize(
        "call", ["timers.days", "timers.read_owned", "ledger.get_many", "ledger.get", "exports.put", "ready.send"]
    )
    def test_a_store_that_fails_turn_after_turn_ends_it_and_one_that_comes_back_does_not(
        self, action: OperationKind, call: str
    ):
        for turns in (MOST_FAILURES - 1, MOST_FAILURES):
            world = World(dates_rows=True)
            placed(world)
            operation = accepted(world, action)
            for _ in range(turns):
                failing(world, lambda made: made == call).operate()
                world.clock.tick(MINUTE)
            is_used = standing(world, operation).progress.failures > 0
            world.operate()

            expected = OperationState.FAILED if is_used and turns == MOST_FAILURES else OperationState.DONE
            assert standing(world, operation).state is expected
            assert bool(standing(world, operation).progress.error) is (expected is OperationState.FAILED)

    def test_turns_that_fail_after_they_have_done_something_go_on_for_ever(self, world: World):
        for number in range(MOST_FAILURES + 5):
            placed(world, due_at=LATER + number * MINUTE)
        operation = accepted(world, OperationKind.CANCEL, due_until=LATER + HOUR)

        for turn in range(1, MOST_FAILURES + 5):
            failing(world, lambda call, turn=turn: call == "ledger.cancel" and len(world.ledger.rows) == turn).operate()
            assert standing(world, operation).progress.failures == 1
        world.operate()

        assert standing(world, operation).progress.done == MOST_FAILURES + 5

    def test_a_turn_that_goes_well_begins_the_count_of_failures_anew(self, world: World):
        for number in range(5):
            placed(world, due_at=LATER + number * MINUTE, tags=("other",))
        operation = accepted(world, OperationKind.CANCEL)
        failing(world, lambda call: call == "timers.days").operate()
        assert standing(world, operation).progress.failures == 1

        slow = world.watched(before=lambda call: world.clock.tick(SECOND if call == "timers.days" else timedelta()))
        slow.operate(time_limit=SECOND)

        assert not standing(world, operation).state.is_over
        assert (standing(world, operation).progress.failures, standing(world, operation).progress.error) == (0, "")

    def test_an_operation_that_cannot_be_read_does_not_hold_up_the_others(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ):
        placed(world)
        broken, healthy = (
            accepted(world, OperationKind.EXPORT),
            accepted(world, OperationKind.CANCEL, created_at=NOON + SECOND),
        )
        take = world.operations.take

        def take_safely(tenant: str, operation_id: str, **lease: Any) -> Operation | None:
            if operation_id == broken.operation_id:
                raise Undecodable("not an operation")
            return take(tenant, operation_id, **lease)

        monkeypatch.setattr(world.operations, "take", take_safely)
        report = world.operate()

        assert report.ended == 1
        assert standing(world, healthy).state is OperationState.DONE
        (line,) = world.events("operation_failed")
        assert line["operation"] == broken.operation_id
        assert world.journal.counts["operation_failures"] == 1

    def test_an_operation_that_fails_does_not_hold_up_the_others(self, world: World):
        placed(world)
        first, second = (
            accepted(world, OperationKind.CANCEL),
            accepted(world, OperationKind.EXPORT, created_at=NOON + SECOND),
        )

        failing(world, lambda call: call == "ledger.cancel").operate()

        assert standing(world, first).progress.failures == 1
        assert standing(world, second).state is OperationState.DONE

    def test_what_an_error_says_is_reported_to_nobody(self, world: World):
        placed(world)
        operation = accepted(world, OperationKind.CANCEL)

        failing(world, lambda call: call == "ledger.cancel", text="x" * 10_000).operate()

        assert "xx" not in standing(world, operation).progress.error
        assert "xx" not in str(world.journal.events)

    @pytest.mark.parametrize("beside", [0, 5])
    def test_a_job_that_cannot_be_stored_does_not_hold_up_the_others(self, world: World, beside: int):
        unplaceable = placed(world)
        world.ready.refuses = refusing(lambda timer: timer.job.identity == unplaceable.job.identity)
        others = [placed(world) for _ in range(beside)] + [placed(world, due_at=LATER + MINUTE) for _ in range(5)]
        operation = accepted(world, OperationKind.RUN_NOW)

        turns = carry_on(world, operation)

        assert turns <= ENOUGH_FAILURES + 2
        assert standing(world, operation).state is OperationState.DONE
        progress = standing(world, operation).progress
        assert (progress.matched, progress.done, progress.refused) == (len(others) + 1, len(others), {"not_placed": 1})
        (example,) = progress.examples
        assert (example.job_id, example.code) == (str(job_id_of(unplaceable.job)), "not_placed")
        assert stored(world, unplaceable) == unplaceable
        pass_time(world, until=NOON + 50 * MINUTE)
        assert sorted(ran(world)) == sorted(timer.job.identity for timer in others)

    def test_a_queue_that_takes_nothing_ends_it_before_most_jobs_are_refused(self, world: World):
        for number in range(14):
            placed(world, due_at=LATER + number * MINUTE)
        world.ready.refuses = refusing(lambda _: True)
        operation = accepted(world, OperationKind.RUN_NOW)

        turns = carry_on(world, operation)

        assert turns == MOST_FAILURES
        assert standing(world, operation).state is OperationState.FAILED
        assert "throttled" in standing(world, operation).progress.error
        assert standing(world, operation).progress.refused == {"not_placed": MOST_FAILURES - ENOUGH_FAILURES}

    def test_a_queue_that_comes_back_in_time_costs_no_job(self, world: World):
        for number in range(14):
            placed(world, due_at=LATER + number * MINUTE)
        world.ready.refuses = refusing(lambda _: True)
        operation = accepted(world, OperationKind.RUN_NOW)
        for _ in range(ENOUGH_FAILURES):
            world.operate()
            world.clock.tick(MINUTE)

        world.ready.refuses = refusing(lambda _: False)
        carry_on(world, operation)

        assert standing(world, operation).progress.refused == {}
        assert standing(world, operation).progress.done == 14

    @pytest.mark.parametrize("call", ["ledger.get_many", "ledger.get", "ready.send", "timers.delete"])
    def test_instants_that_were_given_stay_given_when_a_turn_fails(self, world: World, call: str):
        for number in range(50):
            placed(world, due_at=LATER + number * SECOND / 2)
        operation = accepted(world, OperationKind.RUN_NOW, rate=1)

        failing(world, lambda made: made == call and len(world.ready.sent) >= 30).operate()
        carry_on(world, operation)

        instants = sorted(timer.due_at for timer in world.ready.sent)
        assert all(later - sooner >= SECOND for sooner, later in pairwise(instants))
        assert len(instants) in (50, 51)  # one may have been sent by the turn that failed


def placed(world: World, *, due_at: datetime = LATER, **job: Any) -> Timer:
    """A job that waits in the wheel."""
    timer = a_timer(due_at=due_at, **{"tags": (TAG,), **job})
    world.placer.place([timer])
    return timer


def failed(world: World, *, due_at: datetime = NOON, retry: RetryPolicy = RETRIES) -> Timer:
    """A job whose first attempt has failed, right before its next one waits."""
    timer = placed(world, due_at=due_at, retry=retry)
    if due_at > world.clock.now():
        world.ready.send([timer])  # by the scanner
        world.clock.tick(due_at - world.clock.now())
    world.targets.answer = lambda *_: Failed("busy")
    world.receive_and_work()
    world.targets.answer = lambda *_: Succeeded()
    assert world.row(timer.job).state is State.RETRYING
    return timer


def parked(world: World) -> Timer:
    """A job that was due in ten minutes from noon, and waits half an hour more for its destination."""
    timer = placed(world, due_at=NOON + 10 * MINUTE)
    world.clock.tick(10 * MINUTE)
    world.settler().park(timer, until=NOON + 40 * MINUTE, reason="down")
    return timer


def replayed(world: World) -> Timer:
    """A job whose replay waits in the far ring."""
    timer = placed(world, due_at=NOON)
    world.ledger.rows[timer.job.key] = LedgerRow(state=State.FAILED, attempt=1, fence=1)
    replay = timer.replayed(due_at=LATER)
    world.ledger.replay(replay, far=replay, job_id=str(job_id_of(timer.job)), fence=1, owner="r", now=NOON)
    world.placer.place([replay])
    return replay


def accepted(
    world: World,
    action: OperationKind,
    *,
    tenant: str = "acme",
    tag: str = TAG,
    schedule_id: str = "",
    due_from: datetime = NOON - HOUR,
    due_until: datetime | None = LATER + 15 * MINUTE,
    **asked: Any,
) -> Operation:
    """An open operation."""
    wanted = a_filter(tenant=tenant, tag=tag, schedule_id=schedule_id, due_from=due_from, due_until=due_until)
    operation = an_operation(action, wanted=wanted, **{"created_at": world.clock.now(), **asked})
    assert world.operations.create(operation) is None
    return operation


def carry_on(world: World, operation: Operation) -> int:
    """Tick it until it is over; how many turns that took."""
    for turn in range(1, 60):
        world.operate()
        if standing(world, operation).state.is_over:
            return turn
        world.clock.tick(MINUTE)
    raise AssertionError("it does not end")


def carried_on(world: World, action: OperationKind, **asked: Any) -> Operation:
    """An operation that has ended."""
    operation = accepted(world, action, **asked)
    carry_on(world, operation)
    return standing(world, operation)


def standing(world: World, operation: Operation) -> Operation:
    found = world.operations.get(operation.tenant, operation.operation_id)
    assert found is not None
    return found


def held(world: World, operation: Operation, *, until: datetime) -> None:
    """Somebody else carries it on."""
    taken = world.operations.take(
        operation.tenant,
        operation.operation_id,
        owner="other",
        lease_until=until,
        now=world.clock.now(),
        skew=world.wheel.skew,
    )
    assert taken is not None


def stored(world: World, timer: Timer, *, at: datetime | None = None) -> Timer | None:
    """What stands in the far ring of a job that is due then."""
    job_id = job_id_of(timer.job)
    if at is not None:
        job_id = replace(job_id, due_at=at, bucket=world.wheel.bucket_of(at))
    return world.rows.get(job_id)


def exported(world: World, operation: Operation) -> list[str]:
    """The ids of the jobs in its parts."""
    parts = range(1, standing(world, operation).progress.parts + 1)
    lines = [line for part in parts for line in world.exports.parts["acme", operation.operation_id, part]]
    return [json.loads(line)["id"] for line in lines]


def ran(world: World) -> list[str]:
    """The identities of the jobs that have called their targets."""
    return [parse_job_id(call.job_id).identity for call in world.calls]


def failing(world: World, fails: Callable[[str], bool], *, text: str = "") -> World:
    """A store fails at some calls."""

    def fail(call: str) -> None:
        if fails(call):
            raise OSError(text or f"{call} has failed")

    return world.watched(before=fail)


def refusing(refuses: Callable[[Timer], bool]) -> Callable[[Timer], Rejected | None]:
    """A queue that does not take some messages."""
    return lambda timer: Rejected(timer, "throttled", is_permanent=False) if refuses(timer) else None


def paid_otherwise(job: Job, _: str | None) -> Submission:
    """As its owner changes it: another payload at the same time."""
    return replace(submission_of(job, due_at=job.scheduled_at), payload='"changed"')
