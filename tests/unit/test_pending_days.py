"""A job is counted out of those that wait on the day on which it was counted in, however it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta

import pytest

from functions.api.jobs.submit import Accepted
from functions.domain.far_ring.timer_record import decode_timer, encode_timer
from functions.domain.jobs.job import Delivery
from functions.domain.jobs.job_id import JobId, job_id_of, parse_job_id
from functions.domain.jobs.overlap import Overlap
from functions.domain.tenants.plan import TenantPlan, TenantStatus
from functions.ports.dead_letters import DeadLetter
from testkit.builders import NOON, a_job, a_schedule, a_submission, a_timer, an_occurrence_timer
from testkit.observed import DeathError
from testkit.scheduler import World
from tests.unit.test_quota import Limited
from tests.unit.test_replay import ONCE, Operator

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
TODAY = NOON.date()
CAPPED = TenantPlan(execution_rate=1)


def waiting(world: World) -> dict[date, int]:
    """What is stored of acme once all has been written."""
    world.clock.tick(2 * MINUTE)
    world.tally.flush()
    return {day: count for (_, day), count in world.waiting.rows.items() if count}


def hand_in(world: Limited, due_at: datetime) -> JobId:
    (accepted,) = world.hand_in(a_submission(due_at=due_at))
    assert isinstance(accepted, Accepted)
    return parse_job_id(accepted.job_id)


def fail_fire(world: Operator) -> DeadLetter:
    schedule = a_schedule(job=replace(a_schedule().job, retry=ONCE), overlap=Overlap.FORBID)
    world.store(schedule)
    (letter,) = world.fail(an_occurrence_timer(schedule).job)
    return letter


def fail_job(world: Operator) -> DeadLetter:
    world.waiting.add("acme", TODAY, 1)
    (letter,) = world.fail(a_job(retry=ONCE))
    return letter


class TestReplays:
    @pytest.fixture
    def world(self) -> Operator:
        world = Operator()
        world.plans.plans["acme"] = TenantPlan(max_pending=9)
        return world

    @pytest.mark.parametrize("fail", [fail_fire, fail_job])
    def test_one_waits_until_it_has_ended(self, world: Operator, fail: Callable[[Operator], DeadLetter]):
        letter = fail(world)
        assert waiting(world) == {}
        world.is_mended = True

        world.replay(letter)
        assert waiting(world) == {TODAY: 1}
        world.run()

        assert waiting(world) == {}

    @pytest.mark.parametrize("fail", [fail_fire, fail_job])
    def test_one_that_is_cancelled_waits_no_more(self, world: Operator, fail: Callable[[Operator], DeadLetter]):
        letter = fail(world)
        world.clock.tick(DAY)
        world.replay(letter)
        assert waiting(world) == {TODAY + DAY: 1}
        assert letter.timer is not None

        assert world.canceller().cancel(job_id_of(letter.timer.job))

        assert waiting(world) == {}

    @pytest.mark.parametrize("fail", [fail_fire, fail_job])
    def test_one_that_is_repeated_is_counted_once(self, world: Operator, fail: Callable[[Operator], DeadLetter]):
        letter = fail(world)
        with pytest.raises(DeathError):
            world.dying("letters.delete", "before").replay(letter.letter_id, caller="ann")
        world.is_mended = True

        world.replay(letter)
        assert waiting(world) == {TODAY: 1}
        world.run()

        assert waiting(world) == {}

    def test_one_that_keeps_no_row_is_counted_once_too(self, world: Operator):
        world.waiting.add("acme", TODAY, 1)
        (letter,) = world.fail(a_job(retry=ONCE, delivery=Delivery.AT_LEAST_ONCE))
        with pytest.raises(DeathError):
            world.dying("ready.send", "before").replay(letter.letter_id, caller="ann")
        world.is_mended = True

        world.replay(letter)
        world.run()

        assert waiting(world) == {}


class TestPauses:
    @pytest.fixture
    def world(self) -> Limited:
        world = Limited()
        world.plans.plans["acme"] = CAPPED
        world.quota = world.a_process()
        return world

    def pause_for_a_day(self, world: Limited) -> None:
        world.plans.plans["acme"] = replace(CAPPED, status=TenantStatus.PAUSED)
        world.receive_and_work()
        world.clock.tick(DAY)
        world.plans.plans["acme"] = replace(CAPPED, changed_at=world.clock.now())
        for _ in range(40):
            for shard in range(world.wheel.scan_shards):
                world.scan(shard)
            world.receive_and_work()
            world.clock.tick(MINUTE)

    def test_a_job_that_waits_through_one_leaves_the_day_of_its_own_time(self, world: Limited):
        hand_in(world, NOON + HOUR / 120)
        world.clock.tick(MINUTE)

        self.pause_for_a_day(world)

        assert len(world.calls) == 1
        assert waiting(world) == {}

    def test_a_job_that_its_owner_ran_now_before_leaves_that_day(self, world: Limited):
        world.rescheduler().run_now(hand_in(world, NOON + 9 * DAY))

        self.pause_for_a_day(world)

        assert len(world.calls) == 1
        assert waiting(world) == {}

    def test_a_replay_leaves_the_day_for_which_it_was_asked(self):
        timer = a_timer(attempt=2).replayed(due_at=NOON + DAY)

        parked = timer.excused(since=NOON + DAY, until=NOON + 9 * DAY).excused(
            since=NOON + 9 * DAY, until=NOON + 10 * DAY
        )

        assert (parked.counted_from, parked.asked_for) == (NOON + 10 * DAY, NOON + DAY)
        assert decode_timer(encode_timer(parked), tenant="acme").asked_for == NOON + DAY
        assert parked.replayed(due_at=NOON + 12 * DAY).asked_for == NOON + 12 * DAY

    def test_a_fire_that_its_schedule_decided_was_never_counted(self, world: Limited):
        timer = an_occurrence_timer(a_schedule())

        assert timer.excused(since=NOON, until=NOON + DAY).asked_for is None
        # As the release before wrote one that waited.
        assert replace(timer, counted_from=NOON + DAY).asked_for is None


class TestCancels:
    def test_a_job_that_its_owner_ran_now_leaves_this_day(self):
        world = Limited()
        job_id = hand_in(world, NOON + 3 * DAY)
        world.rescheduler().run_now(job_id)
        assert waiting(world) == {TODAY: 1}

        assert world.canceller().cancel(job_id)

        assert waiting(world) == {}

    def test_a_job_that_waits_leaves_the_day_of_its_own_time(self):
        world = Limited()
        job_id = hand_in(world, NOON + 3 * DAY)
        assert waiting(world) == {(NOON + 3 * DAY).date(): 1}

        assert world.canceller().cancel(job_id)

        assert waiting(world) == {}

    def test_a_fire_that_has_not_been_placed_was_never_counted(self):
        world = Limited()
        schedule = a_schedule()
        world.store(schedule)

        assert world.canceller().cancel(job_id_of(an_occurrence_timer(schedule, fire_at=NOON + DAY).job))

        assert waiting(world) == {}
