"""What is promised holds after days, weeks and months: every store lets rows go at their ttl, and no hour sooner."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.api.dead_letters.replay import Replayed
from functions.api.jobs.submit import Accepted
from functions.domain.instants import DAY, EPOCH, HOUR, format_instant, to_seconds
from functions.domain.jobs.claims import MESSAGE_LIFE, MOVED_LIFE
from functions.domain.jobs.job_id import parse_job_id
from functions.domain.jobs.overlap import Overlap
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.lifecycle import State
from functions.domain.schedules.rules import Every
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.state import SkipReason
from functions.domain.tenants.plan import TenantPlan, TenantStatus
from functions.ports.targets import Failed, Invocation, Outcome, Pending, Succeeded
from testkit.builders import NOON, a_link, a_schedule, a_submission, a_template, a_wheel, every
from testkit.fakes.ready_queue import QueuedMessage
from testkit.observed import ObservedReadyQueue
from testkit.scheduler import pass_time
from tests.unit.test_replay import Operator
from tests.unit.test_rescheduler import editing

COARSE = a_wheel(bucket=timedelta(minutes=12), guard=timedelta(minutes=15), write_shards=1, scan_shards=1)
"""As wide as buckets may be: a scanner that passes over months has fewer of them to read."""

SLOTTED = [Overlap.FORBID, Overlap.BUFFER_ONE, Overlap.REPLACE]
ONCE = RetryPolicy(strategy=Strategy.FIXED, attempts=1)
FOR_A_MONTH = RetryPolicy(
    strategy=Strategy.FIXED, attempts=100, base=12 * HOUR, cap=12 * HOUR, max_age=timedelta(days=30)
)
SLOWLY = RetryPolicy(strategy=Strategy.FIXED, attempts=3, base=6 * HOUR, cap=6 * HOUR)


class LastFirst(ObservedReadyQueue):
    """A standard queue promises no order: what was sent last comes first."""

    def receive(self, limit: int = 10) -> list[QueuedMessage]:
        self.messages = dict(reversed(self.messages.items()))
        return super().receive(limit)


class Ages(Operator):
    """The scheduler on fakes, over so long that rows and messages expire."""

    def __init__(self) -> None:
        super().__init__(wheel=COARSE)
        self.ready = LastFirst(self.clock)

    def live(self, duration: timedelta) -> None:
        """Scanners tick and workers poll, and what has expired is gone at the end of each day."""
        end = self.clock.now() + duration
        while (now := self.clock.now()) < end:
            self.scan(0)
            pass_time(self, until=min(now + DAY, end))
            self.let_go()

    def lie_still(self, duration: timedelta) -> None:
        """No scanner ticks, and no worker polls."""
        self.clock.tick(duration)
        self.let_go()

    def let_go(self) -> None:
        """What the tables' ttls and the retention of the queues do, in the end."""
        now = self.clock.now()
        self.ledger.expire(now)
        self.rows.expire(now)
        for name in [name for name, held in self.ready.messages.items() if held.sent_at + MESSAGE_LIFE <= now]:
            del self.ready.messages[name]

    def begin(self, **definition: Any) -> Schedule:
        """A schedule whose first fire is at once."""
        schedule = a_schedule(**definition)
        self.store(schedule, link=a_link(self.clock.now()))
        assert self.materialiser.revive(schedule.uid)
        return schedule

    def row_key(self, accepted: Accepted) -> str:
        return parse_job_id(accepted.job_id).key

    def pause(self) -> None:
        self.plans.plans["acme"] = TenantPlan(status=TenantStatus.PAUSED, changed_at=self.clock.now())

    def resume(self) -> None:
        self.plans.plans["acme"] = TenantPlan(changed_at=self.clock.now())

    def fail_first(self, count: int) -> None:
        """The first so many calls fail."""

        def answer(_: str, __: Invocation) -> Outcome:
            return Failed("HTTP 500", "http_500") if len(self.calls) <= count else Succeeded()

        self.targets.answer = answer

    @property
    def outcomes(self) -> list[State]:
        return [ending.outcome for ending in self.trail.endings if not ending.is_repeated]


def from_noon(*, days: int) -> Every:
    """Every so many days, the first time at NOON."""
    return every(days=days, phase=(NOON - EPOCH) % timedelta(days=days))


@pytest.fixture
def world() -> Ages:
    return Ages()


class TestSlotsOfLongAgo:
    @pytest.mark.parametrize("overlap", SLOTTED)
    def test_a_monthly_run_has_succeeded_and_nothing_is_said_of_it_a_month_later(self, world: Ages, overlap: Overlap):
        world.fail_first(0)
        world.begin(rule=from_noon(days=30), overlap=overlap)

        world.live(91 * DAY)

        assert [call.scheduled_at for call in world.calls] == [NOON + number * 30 * DAY for number in range(4)]
        assert world.outcomes == [State.SUCCEEDED] * 4
        assert world.events("run_abandoned") == []

    @pytest.mark.parametrize("days", [13, 14, 15, 16])
    @pytest.mark.parametrize("overlap", SLOTTED)
    def test_whenever_the_row_of_the_last_run_goes_the_next_one_runs(self, world: Ages, overlap: Overlap, days: int):
        world.fail_first(0)
        world.begin(rule=from_noon(days=days), overlap=overlap)

        world.live((2 * days + 1) * DAY)

        assert world.outcomes == [State.SUCCEEDED] * 3

    @pytest.mark.parametrize("overlap", SLOTTED)
    def test_a_monthly_run_that_failed_is_replayed_after_the_next_one(self, world: Ages, overlap: Overlap):
        world.fail_first(1)
        world.begin(rule=from_noon(days=30), overlap=overlap, job=a_template(retry=ONCE))
        world.live(31 * DAY)
        [letter] = world.buried

        outcome = world.replay(letter)
        world.live(HOUR)

        assert isinstance(outcome, Replayed)
        assert [(call.scheduled_at, call.attempt, call.fence) for call in world.calls] == [
            (NOON, 1, 1),
            (NOON + 30 * DAY, 1, 1),
            (NOON, 3, 2),
        ]
        assert world.buried == []


class TestRunsThatAreLate:
    @pytest.mark.parametrize("days", [2, 13, 20, 45])
    @pytest.mark.parametrize("overlap", [Overlap.FORBID, Overlap.BUFFER_ONE])
    def test_a_pause_of_its_tenant_cancels_no_run_that_waits_for_its_retry(
        self, world: Ages, overlap: Overlap, days: int
    ):
        world.fail_first(1)
        world.begin(rule=from_noon(days=1), overlap=overlap, job=a_template(retry=SLOWLY))
        world.live(HOUR)
        world.pause()
        world.live(days * DAY)

        world.resume()
        world.live(DAY)

        assert State.CANCELLED not in world.outcomes
        assert [(call.attempt, call.fence) for call in world.calls if call.scheduled_at == NOON] == [(1, 1), (2, 2)]

    @pytest.mark.parametrize("days", [2, 6, 13])
    @pytest.mark.parametrize("overlap", [Overlap.FORBID, Overlap.BUFFER_ONE])
    def test_an_outage_cancels_no_run_that_waits_for_its_retry(self, world: Ages, overlap: Overlap, days: int):
        world.fail_first(1)
        world.begin(rule=from_noon(days=1), overlap=overlap, job=a_template(retry=SLOWLY))
        world.live(HOUR)
        world.lie_still(days * DAY)

        world.live(DAY)

        assert State.CANCELLED not in world.outcomes
        assert [(call.attempt, call.fence) for call in world.calls if call.scheduled_at == NOON] == [(1, 1), (2, 2)]

    def test_a_run_from_end_to_start_is_awaited_through_a_pause_of_a_month(self, world: Ages):
        world.fail_first(1)
        world.begin(rule=every(hours=2, from_end=True), job=a_template(retry=SLOWLY))
        world.live(HOUR)
        world.pause()
        world.live(30 * DAY)

        world.resume()
        world.live(HOUR)

        resumed_at = NOON + 30 * DAY + HOUR
        assert [call.scheduled_at for call in world.calls] == [NOON, NOON]
        world.live(3 * HOUR)
        assert [call.scheduled_at >= resumed_at for call in world.calls] == [False, False, True]

    def test_a_run_that_goes_on_by_itself_for_weeks_keeps_its_slot_while_it_is_heard_of(self, world: Ages):
        world.targets.answer = lambda *_: Pending()
        schedule = world.begin(rule=from_noon(days=1), overlap=Overlap.FORBID)
        world.receive_and_work()
        [call] = world.calls
        run = parse_job_id(call.job_id)
        for _ in range(40):
            world.outcome_reports().heartbeat(run, fence=1, lease=25 * HOUR)
            world.live(DAY)
        world.outcome_reports().complete(run, fence=1, result="")
        world.targets.answer = lambda *_: Succeeded()
        world.live(DAY)

        assert [call.scheduled_at for call in world.calls][:2] == [NOON, NOON + 40 * DAY]
        assert world.state(schedule).skips == {SkipReason.OVERLAP: 39}

    def test_a_run_that_is_never_heard_of_again_gives_its_slot_up_after_two_weeks_or_when_it_is_cancelled(
        self, world: Ages
    ):
        world.fail_first(1)
        schedule = world.begin(rule=from_noon(days=1), overlap=Overlap.FORBID, job=a_template(retry=SLOWLY))
        world.live(HOUR)
        world.rows.rows.clear()  # somebody has deleted its retry, and the alarm
        assert world.materialiser.revive(schedule.uid)
        world.live(13 * DAY)
        assert [call.scheduled_at for call in world.calls] == [NOON]

        world.live(3 * DAY)

        assert world.outcomes.count(State.CANCELLED) == 1
        assert len(world.events("run_abandoned")) == 1
        assert world.calls[1].scheduled_at == NOON + 15 * DAY

    def test_an_alarm_of_a_schedule_that_was_deleted_long_ago_is_nothing_to_its_successor(self, world: Ages):
        world.fail_first(0)
        schedule = a_schedule(rule=from_noon(days=40))
        world.store(schedule, link=a_link(NOON + 40 * DAY))
        assert world.materialiser.revive(schedule.uid)
        world.schedules.rows.clear()
        world.schedules.written.clear()
        world.live(31 * DAY)
        again = a_schedule(rule=from_noon(days=45))
        world.store(again, version=to_seconds(world.clock.now()), link=a_link(NOON + 45 * DAY))
        assert world.materialiser.revive(again.uid)

        world.live(20 * DAY)

        assert [call.scheduled_at for call in world.calls] == [NOON + 45 * DAY]


class TestIdempotencyKeys:
    """A key answers with its first job for as long as that waits or runs, and for 22 days after its end."""

    def test_of_a_job_that_was_moved_twice(self, world: Ages):
        world.fail_first(0)
        order = a_submission(due_at=NOON + DAY, idempotency_key="order-7")
        job_id = parse_job_id(world.submit(order).job_id)
        for days in (2, 118):
            job_id = world.rescheduler().change(job_id, moving(world, to=NOON + days * DAY)).job_id
        answers: list[tuple[str, State | None, bool]] = []

        for _ in range(4):
            world.live(30 * DAY)
            again = world.submit(order)
            answers.append((again.job_id, again.state, again.is_replay))

        assert answers == [(str(job_id), State.SCHEDULED, True)] * 3 + [(str(job_id), State.SUCCEEDED, True)]
        assert [call.scheduled_at for call in world.calls] == [NOON + 118 * DAY]

    def test_of_a_job_that_was_moved_and_goes_on_for_long_after_its_time(self, world: Ages):
        order = a_submission(due_at=NOON + DAY, idempotency_key="order-7", retry=FOR_A_MONTH)
        first = parse_job_id(world.submit(order).job_id)
        moved = world.rescheduler().change(first, moving(world, to=NOON + 2 * DAY))
        world.live(30 * DAY)
        assert (world.submit(order).job_id, world.submit(order).state) == (str(moved.job_id), State.RETRYING)
        world.pause()
        world.live(50 * DAY)
        world.is_mended = True
        world.resume()

        world.live(DAY)

        again = world.submit(order)
        assert (again.job_id, again.state, again.is_replay) == (str(moved.job_id), State.SUCCEEDED, True)
        world.live(24 * DAY)
        again = world.submit(order)
        assert (again.job_id, again.state, again.is_replay) == (str(moved.job_id), None, True)
        world.live(MOVED_LIFE - 20 * DAY)
        assert not world.submit(replace(order, due_at=world.clock.now() + HOUR)).is_replay

    def test_of_a_job_that_was_moved_and_waits_through_a_pause_of_months(self, world: Ages):
        world.fail_first(0)
        order = a_submission(due_at=NOON + DAY, idempotency_key="order-7")
        first = parse_job_id(world.submit(order).job_id)
        moved = world.rescheduler().change(first, moving(world, to=NOON + 2 * DAY))
        world.pause()
        world.live(MOVED_LIFE + 10 * DAY)

        again = world.submit(replace(order, due_at=world.clock.now() + HOUR))

        assert (again.job_id, again.state, again.is_replay) == (str(moved.job_id), State.SCHEDULED, True)
        world.resume()
        world.live(DAY)
        assert len(world.calls) == 1

    @pytest.mark.parametrize("days", [1, 730])
    def test_of_a_job_whenever_it_is_due(self, world: Ages, days: int):
        world.fail_first(0)
        order = a_submission(due_at=NOON + days * DAY, idempotency_key="order-7")
        first = world.submit(order)
        assert world.ledger.expiry[world.row_key(first)] == NOON + (days + 22) * DAY
        world.clock.tick((days - 1) * DAY)
        world.ledger.expire(world.clock.now())
        world.live(DAY + HOUR)

        assert (world.submit(order).job_id, world.submit(order).state) == (first.job_id, State.SUCCEEDED)
        world.live(21 * DAY)
        assert world.submit(order).is_replay
        world.live(DAY)
        assert not world.submit(replace(order, due_at=world.clock.now() + HOUR)).is_replay

    def test_of_a_job_that_is_tried_for_a_month(self, world: Ages):
        order = a_submission(due_at=NOON, idempotency_key="order-7", retry=FOR_A_MONTH)
        first = world.submit(order)
        for _ in range(3):
            world.live(13 * DAY)
            assert (world.submit(order).job_id, world.submit(order).is_replay) == (first.job_id, True)
        [letter] = world.buried
        assert letter.dead_at - NOON > 29 * DAY

    def test_of_a_job_that_is_replayed_when_its_row_had_expired(self, world: Ages):
        order = a_submission(due_at=NOON, idempotency_key="order-7", retry=ONCE)
        first = world.submit(order)
        world.live(25 * DAY)
        [letter] = world.buried
        world.is_mended = True

        world.replay(letter)
        world.live(10 * DAY)

        again = world.submit(order)
        assert (again.job_id, again.state, again.is_replay) == (first.job_id, State.SUCCEEDED, True)
        assert [call.fence for call in world.calls] == [1, 2]

    def test_of_a_job_whose_tenant_is_paused_for_two_months(self, world: Ages):
        world.fail_first(0)
        order = a_submission(due_at=NOON + DAY, idempotency_key="order-7")
        first = world.submit(order)
        world.pause()

        for _ in range(4):
            world.live(15 * DAY)
            assert (world.submit(order).job_id, world.submit(order).is_replay) == (first.job_id, True)

        world.resume()
        world.live(DAY)
        assert len(world.calls) == 1


class TestPausedJobs:
    @pytest.mark.parametrize("days", [1, 16, 40])
    @pytest.mark.parametrize("key", [None, "order-7"])
    def test_a_job_that_waits_for_its_tenant_is_found_and_cancelled(self, world: Ages, days: int, key: str | None):
        job_id = parse_job_id(world.submit(a_submission(due_at=NOON + DAY, idempotency_key=key)).job_id)
        world.pause()
        world.live(days * DAY + DAY)

        assert world.finder().find(job_id).state is State.SCHEDULED
        assert world.canceller().cancel(job_id)
        world.live(20 * DAY)
        world.resume()
        world.live(DAY)

        assert world.calls == []

    @pytest.mark.parametrize("days", [1, 16, 40])
    def test_a_retry_that_was_cancelled_while_its_tenant_is_paused_never_runs(self, world: Ages, days: int):
        job_id = parse_job_id(world.submit(a_submission(due_at=NOON, retry=SLOWLY)).job_id)
        world.live(HOUR)
        world.pause()
        world.live(days * DAY)

        assert world.canceller().cancel(job_id)
        world.live(40 * DAY)
        world.resume()
        world.live(DAY)

        assert [call.attempt for call in world.calls] == [1]


def moving(world: Ages, *, to: datetime) -> Any:
    return editing(world, run_at=format_instant(to))
