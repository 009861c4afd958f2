"""Jobs of tenants that are paused, closed or deleted: their worker asks before it claims them."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.domain.instants import HOUR, MINUTE, SECOND
from functions.domain.jobs.job import Delivery, Payload, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.lifecycle import Event, State
from functions.domain.schedules.state import SkipReason
from functions.domain.tenants.plan import TenantPlan, TenantStatus
from functions.ports.ready_queue import Rejected
from functions.ports.targets import Failed, Succeeded
from testkit.builders import LOCAL_WHEEL, NOON, a_schedule, a_submission, a_timer, an_occurrence_timer, every
from testkit.observed import CrashError
from testkit.scheduler import World, pass_time
from tests.unit.test_execute import a_message

SCHEDULE = a_schedule(rule=every(minutes=1))


@pytest.fixture
def world() -> World:
    """One whose tenant acme is paused."""
    world = World()
    put(world, TenantStatus.PAUSED)
    return world


def put(world: World, status: TenantStatus, *, since: datetime = NOON, **limits: Any) -> None:
    world.plans.plans["acme"] = TenantPlan(status=status, changed_at=since, **limits)


def parked(world: World) -> list[Timer]:
    """What waits in the far ring."""
    return [timer for timers in world.timers.puts for timer in timers]


class TestPaused:
    @pytest.mark.parametrize("delivery", Delivery)
    def test_a_job_waits_in_the_far_ring_without_an_attempt(self, world: World, delivery: Delivery):
        timer = a_timer(delivery=delivery)

        assert world.work(a_message(timer)) == []

        assert (world.calls, world.ready.sent) == ([], [])
        (waiting,) = parked(world)
        assert (waiting.job, waiting.attempt) == (timer.job, 1)
        assert waiting.due_at == NOON + LOCAL_WHEEL.guard + 10 * SECOND
        assert world.journal.counts == {"parked_by_pause": 1}

    def test_its_ledger_row_says_until_when(self, world: World):
        timer = a_timer()

        world.work(a_message(timer))

        row = world.row(timer.job)
        assert (row.state, row.attempt, row.parked_until) == (State.SCHEDULED, 0, parked(world)[0].due_at)

    def test_jobs_do_not_come_back_in_one_bucket(self, world: World):
        for number in range(10):
            world.jitter = number / 10
            world.work(a_message(a_timer(), f"p{number}"))

        dues = [timer.due_at for timer in parked(world)]
        assert len(set(dues)) == 10
        assert max(dues) - min(dues) > LOCAL_WHEEL.bucket / 2

    def test_nothing_else_is_asked(self, world: World):
        timer = a_timer(payload=Payload(pointer="jobs/acme/gone"))

        world.work(a_message(timer))

        assert (world.breaker_store.reads, world.permits.writes) == (0, 0)
        assert [waiting.job for waiting in parked(world)] == [timer.job]

    def test_a_retry_waits_with_its_attempt_and_its_backoff(self, world: World):
        timer = a_timer(attempt=3, backoff=MINUTE)

        world.work(a_message(timer))

        (waiting,) = parked(world)
        assert (waiting.attempt, waiting.backoff) == (3, MINUTE)

    def test_everybody_is_paused_at_once(self):
        world = World()
        world.plans.everybody = TenantPlan(status=TenantStatus.PAUSED)

        world.work(a_message(a_timer(), "a"), a_message(a_timer(tenant="globex"), "g"))

        assert {timer.job.tenant for timer in parked(world)} == {"acme", "globex"}
        assert world.calls == []

    def test_other_tenants_run(self, world: World):
        world.work(a_message(a_timer(tenant="globex")))

        assert len(world.calls) == 1

    def test_a_job_runs_once_after_a_pause_of_hours(self, world: World):
        put(world, TenantStatus.ACTIVE)
        world.submit(a_submission(due_at=NOON + SECOND))
        put(world, TenantStatus.PAUSED)
        pass_time(world, until=NOON + 3 * HOUR)
        assert world.calls == []

        put(world, TenantStatus.ACTIVE, since=world.clock.now())
        pass_time(world, until=world.clock.now() + 15 * MINUTE)

        assert [call.attempt for call in world.calls] == [1]
        assert world.journal.counts["parked_by_pause"] == 1

    def test_no_policy_ends_a_job_for_a_pause(self, world: World):
        timer = a_timer(retry=RetryPolicy(max_age=SECOND))
        world.clock.tick(timedelta(days=20))

        world.work(a_message(timer))

        assert (world.row(timer.job).state, world.buried) == (State.SCHEDULED, [])

    def test_a_pause_is_no_part_of_the_age_that_a_policy_counts(self, world: World):
        timer = a_timer(
            due_at=NOON, retry=RetryPolicy(strategy=Strategy.FIXED, attempts=2, base=SECOND, max_age=MINUTE)
        )
        world.work(a_message(timer))
        world.clock.tick(HOUR)
        put(world, TenantStatus.ACTIVE, since=NOON + HOUR - 10 * SECOND)
        world.targets.answer = lambda *_: Failed("503")

        world.work(a_message(parked(world)[0]))

        assert world.row(timer.job).state is State.RETRYING
        (retry,) = world.ready.sent
        assert retry.age_at(retry.due_at) == 11 * SECOND

    @pytest.mark.parametrize(
        ("active_since", "state"),
        [(NOON - 10 * SECOND, State.RETRYING), (NOON - 2 * HOUR, State.FAILED)],
        ids=[
            "came due during the pause and counts no age for it",
            "came due after the pause and counts its age as ever",
        ],
    )
    def test_what_came_due_before_it_was_promoted(self, active_since: datetime, state: State):
        world = World()
        timer = a_timer(due_at=NOON - HOUR, retry=RetryPolicy(attempts=2, base=SECOND, max_age=MINUTE))
        put(world, TenantStatus.ACTIVE, since=active_since)
        world.targets.answer = lambda *_: Failed("503")

        world.work(a_message(timer))

        assert world.row(timer.job).state is state

    def test_a_job_that_has_expired_meanwhile_expires_when_it_would_run(self, world: World):
        timer = a_timer(expires_at=NOON + SECOND)
        world.work(a_message(timer))
        world.clock.tick(HOUR)
        world.work(a_message(parked(world)[0]))
        assert world.row(timer.job).state is State.SCHEDULED
        put(world, TenantStatus.ACTIVE)

        world.work(a_message(parked(world)[0]))

        assert (world.row(timer.job).state, world.calls) == (State.EXPIRED, [])

    @pytest.mark.parametrize("ends", [Event.SUCCEED, Event.WITHDRAW])
    def test_a_job_that_has_ended_does_not_wait_for_the_end_of_the_pause(self, world: World, ends: Event):
        timer = a_timer()
        world.ledger.claim(timer, owner="w", lease_until=NOON, now=NOON)
        world.ledger.settle(timer, ends, fence=1, owner="w", now=NOON)

        assert world.work(a_message(timer)) == []
        assert parked(world) == []
        assert world.journal.counts == {"duplicates_dropped": 1}

    def test_a_job_that_is_cancelled_during_the_pause_does_not_run(self, world: World):
        timer = a_timer()
        world.work(a_message(timer))
        world.ledger.cancel(job_id_of(timer.job), owner="op", now=NOON)
        put(world, TenantStatus.ACTIVE)
        world.clock.tick(HOUR)

        world.work(a_message(parked(world)[0]))

        assert world.calls == []

    def test_a_ledger_that_fails_makes_no_copy_of_each_receive(self, world: World):
        def fail(*_: object, **__: object) -> None:
            raise CrashError

        world.ledger.park = fail  # pyright: ignore[reportAttributeAccessIssue]

        assert [world.work(a_message(a_timer())) for _ in range(3)] == [["m1"]] * 3
        assert parked(world) == []

    def test_a_job_that_can_be_placed_nowhere_comes_back(self, world: World):
        world.timers.unwritten = lambda _: True
        world.ready.refuses = lambda timer: Rejected(timer, "no answer", is_permanent=False)

        assert world.work(a_message(a_timer())) == ["m1"]

    def test_plans_that_cannot_be_read_return_the_message(self, world: World):
        timer = a_timer()

        def fail(_: str) -> TenantPlan:
            raise CrashError

        world.plans.of = fail  # pyright: ignore[reportAttributeAccessIssue]

        assert world.worker().execute([a_message(timer)], ends_at=NOON + MINUTE) == ["m1"]
        assert (world.calls, world.ledger.rows) == ([], {})


class TestDeleted:
    @pytest.mark.parametrize("status", [TenantStatus.DELETING, TenantStatus.DELETED])
    @pytest.mark.parametrize("delivery", Delivery)
    def test_a_job_is_forgotten_without_a_claim_or_a_call(self, delivery: Delivery, status: TenantStatus):
        world = World()
        put(world, status)
        timer = a_timer(delivery=delivery)

        assert world.work(a_message(timer)) == []

        assert (world.calls, world.ledger.rows, world.ready.sent, parked(world)) == ([], {}, [], [])
        assert world.journal.counts == {"forgotten": 1}
        assert world.events("job_forgotten") == [{"job_id": str(job_id_of(timer.job)), "tenant": "acme"}]

    def test_its_payload_goes_with_it(self):
        world = World()
        put(world, TenantStatus.DELETED)
        timer = a_timer()
        pointer = world.payloads.put(timer.job, '"large"')

        world.work(a_message(replace(timer, job=replace(timer.job, payload=Payload(pointer=pointer)))))

        assert world.payloads.get(pointer) is None

    def test_the_payload_of_a_schedule_is_not_the_fires_to_forget(self):
        world = World()
        put(world, TenantStatus.DELETED)
        timer = an_occurrence_timer(SCHEDULE)
        pointer = world.payloads.put_for_schedule(SCHEDULE.uid, '"large"')

        world.work(a_message(replace(timer, job=replace(timer.job, payload=Payload(pointer=pointer)))))

        assert world.payloads.get(pointer) == '"large"'
        assert world.journal.counts == {"forgotten": 1}


class TestDraining:
    @pytest.fixture
    def world(self) -> World:
        """One whose tenant acme is being closed since noon."""
        world = World()
        world.store(SCHEDULE)
        put(world, TenantStatus.DRAINING, since=NOON)
        return world

    def test_a_job_that_was_taken_in_before_runs(self, world: World):
        timer = a_timer()

        world.work(a_message(timer))

        assert world.row(timer.job).state is State.SUCCEEDED

    def test_a_fire_before_the_end_runs(self, world: World):
        timer = an_occurrence_timer(SCHEDULE, fire_at=NOON - SECOND)

        world.work(a_message(timer))

        assert world.row(timer.job).state is State.SUCCEEDED

    @pytest.mark.parametrize("late", [timedelta(0), SECOND])
    def test_a_fire_after_it_is_skipped_and_its_schedule_is_reported(self, world: World, late: timedelta):
        timer = an_occurrence_timer(SCHEDULE, fire_at=NOON + late)
        world.clock.tick(late)

        assert world.work(a_message(timer)) == []

        assert world.calls == []
        row = world.row(timer.job)
        assert (row.state, row.error) == (State.SKIPPED, "draining: its tenant is being closed")
        assert world.state(SCHEDULE).skips == {SkipReason.DRAINING: 1}

    def test_a_fire_that_has_begun_comes_to_its_end(self, world: World):
        timer = an_occurrence_timer(SCHEDULE, fire_at=NOON, attempt=2)

        world.work(a_message(timer))

        assert world.row(timer.job).state is State.SUCCEEDED

    def test_a_fire_runs_again_when_its_tenant_is_active_again(self, world: World):
        put(world, TenantStatus.ACTIVE, since=NOON)
        timer = an_occurrence_timer(SCHEDULE, fire_at=NOON)

        world.work(a_message(timer))

        assert len(world.calls) == 1

    def test_a_pause_that_ends_keeps_what_a_drain_would_skip(self, world: World):
        put(world, TenantStatus.PAUSED, since=NOON)
        world.targets.answer = lambda *_: Succeeded()

        world.work(a_message(an_occurrence_timer(SCHEDULE, fire_at=NOON)))

        assert world.state(SCHEDULE).skips == {}
        assert len(parked(world)) == 1
