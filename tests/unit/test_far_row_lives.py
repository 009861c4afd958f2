"""Whatever stands still, for however long docs/restore.md allows, no row of a job goes before it was read; a schedule needs none."""

from __future__ import annotations

from copy import deepcopy
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.domain.far_ring.schedule_alarm import ALARM_LIFE
from functions.domain.far_ring.timer_key import is_alarm_key
from functions.domain.instants import DAY, HOUR, MINUTE
from functions.domain.jobs.claims import MESSAGE_LIFE, RENEW_AFTER, TIMER_LIFE
from functions.domain.jobs.job import Delivery
from functions.domain.schedules.schedule import Schedule
from functions.scanner.rewind import Rewinder
from testkit.builders import NOON, a_link, a_schedule, a_submission
from testkit.scheduler import pass_time
from tests.unit.test_horizons import Ages, from_noon

OUTAGES = [2, 4, 10, 13]
"""Days."""

DELIVERIES = list(Delivery)

FIRST_DUE = NOON + HOUR


class Stage(Ages):
    """The scheduler on fakes, whose targets answer, and whose tables let go of a row at the second of its ttl."""

    def __init__(self) -> None:
        super().__init__()
        self.fail_first(0)
        self.scan(0)  # a shard that nobody has ever scanned begins a day back

    def submit_one(self, delivery: Delivery, *, due_at: datetime = FIRST_DUE, tenant: str = "acme") -> None:
        self.submit(a_submission(due_at=due_at, delivery=delivery, tenant=tenant))

    def waits(self, schedule: Schedule, *, first: datetime) -> None:
        """A schedule with an alarm in the far ring."""
        self.store(schedule, link=a_link(first))
        assert self.materialiser.revive(schedule.uid)
        assert self.alarm_count == 1

    @property
    def alarm_count(self) -> int:
        return sum(is_alarm_key(key) for rows in self.rows.rows.values() for key in rows)

    def recover(self, duration: timedelta) -> None:
        """Scanners, sweepers and workers run again; nothing is let go of, as after a restore."""
        ends_at = self.clock.now() + duration
        while self.clock.now() < ends_at:
            self.scan(0)
            self.heal()
            pass_time(self, until=min(ends_at, self.clock.now() + 6 * MINUTE))

    def runs(self) -> list[datetime]:
        """For when its target was called."""
        return sorted(call.scheduled_at for call in self.calls)

    def copy(self) -> dict[str, Any]:
        """What point-in-time recovery would restore the tables to, as of now."""
        return deepcopy({name: vars(getattr(self, name)) | {} for name in ("ledger", "rows", "shards", "schedules")})

    def restore(self, copied: dict[str, Any]) -> None:
        """Every table as it was; time to live is not on."""
        for name, state in copied.items():
            kept = {key: value for key, value in state.items() if isinstance(value, dict | set | str | tuple)}
            vars(getattr(self, name)).update(kept)


@pytest.fixture
def world() -> Stage:
    return Stage()


@pytest.mark.parametrize("delivery", DELIVERIES)
@pytest.mark.parametrize("days", OUTAGES)
class TestJobs:
    def test_whatever_came_due_while_the_whole_stage_stood_still_runs_when_it_is_back(
        self, world: Stage, delivery: Delivery, days: int
    ):
        world.submit_one(delivery)
        world.submit_one(delivery, due_at=NOON + days * DAY - HOUR)
        world.lie_still(days * DAY)

        world.live(DAY)

        assert world.runs() == [FIRST_DUE, NOON + days * DAY - HOUR]

    def test_what_was_promoted_and_lost_its_message_is_there_for_a_rewind(
        self, world: Stage, delivery: Delivery, days: int
    ):
        world.submit_one(delivery)
        world.live(2 * HOUR)
        world.submit_one(delivery, due_at=NOON + 3 * HOUR)
        world.clock.tick(HOUR - MINUTE)
        assert world.scan(0).sent == 1
        world.ready.messages.clear()  # somebody has purged the queue
        world.clock.tick(days * DAY)
        world.let_go()
        world.scan(0)
        assert world.runs() == [FIRST_DUE]

        world.build(Rewinder).rewind(NOON)
        world.live(2 * HOUR)

        again = [FIRST_DUE] if delivery is Delivery.AT_LEAST_ONCE else []
        assert world.runs() == [FIRST_DUE, *again, NOON + 3 * HOUR]

    def test_a_job_of_a_tenant_that_was_paused_before_the_outage_waits_through_both(
        self, world: Stage, delivery: Delivery, days: int
    ):
        world.submit_one(delivery)
        world.pause()
        world.live(RENEW_AFTER - DAY)
        world.lie_still(min(days * DAY, RENEW_AFTER))

        world.live(DAY)
        world.resume()
        world.live(DAY)

        assert world.runs() == [FIRST_DUE]


@pytest.mark.parametrize("days", [1, 30])
def test_a_job_that_was_put_long_before_its_time_has_its_row_until_then(world: Stage, days: int):
    world.submit_one(Delivery.EXACTLY_ONCE, due_at=NOON + days * DAY)

    world.live(days * DAY + HOUR)

    assert world.runs() == [NOON + days * DAY]


@pytest.mark.parametrize("days", [4, 10])
def test_the_bucket_audit_finds_a_job_whose_message_was_lost_days_ago(world: Stage, days: int):
    world.scan(0)
    world.sweep()
    world.submit_one(Delivery.EXACTLY_ONCE)
    world.clock.tick(HOUR)
    assert world.scan(0).sent == 1
    world.ready.messages.clear()
    world.clock.tick(days * DAY)
    world.let_go()
    world.scan(0)

    stragglers = sum(world.sweep(time_limit=HOUR).stragglers for _ in range(3))
    world.live(HOUR)

    assert (stragglers, world.runs()) == (1, [FIRST_DUE])


class TestSchedules:
    @pytest.mark.parametrize("days", [2, 4, 10, 20, 40])
    def test_a_chain_goes_on_after_an_outage_with_or_without_its_alarm(self, world: Stage, days: int):
        world.waits(schedule := a_daily(), first=NOON + DAY)
        world.lie_still(DAY + days * DAY - HOUR)
        assert world.alarm_count == (days * DAY - HOUR < ALARM_LIFE)

        world.recover(2 * DAY)

        assert world.runs() == [NOON + number * DAY for number in range(1, days + 3)]
        assert world.state(schedule).link is not None

    @pytest.mark.parametrize("days", [2, 5, 10])
    def test_a_chain_goes_on_after_a_pause_of_its_tenant(self, world: Stage, days: int):
        world.waits(a_daily(), first=NOON + DAY)
        world.pause()
        world.live(DAY + days * DAY - HOUR)
        world.resume()
        resumed_at = world.clock.now()

        world.recover(3 * DAY)

        after = [instant for instant in world.runs() if instant > resumed_at]
        assert after == [NOON + (days + number) * DAY for number in (1, 2, 3)]

    def test_a_rewind_over_alarms_that_are_gone_runs_no_fire_again(self, world: Stage):
        world.waits(a_daily(), first=NOON + DAY)
        for _ in range(6):
            world.recover(DAY)
            world.let_go()
        before = world.runs()

        world.build(Rewinder).rewind(NOON + DAY)
        world.recover(DAY)

        assert len(before) >= 5
        assert world.runs() == [NOON + number * DAY for number in range(1, len(before) + 2)]


class TestRestores:
    """Of the tables as they were at NOON, when somebody notices later than rows live."""

    def test_what_waited_runs_where_time_to_live_is_on_when_the_scanners_have_caught_up(self, world: Stage):
        self.restored(world, after=20 * DAY)

        world.recover(HOUR)
        world.let_go()

        assert world.runs() == [FIRST_DUE, NOON + DAY, NOON + 15 * DAY]

    def test_what_waited_is_lost_where_time_to_live_is_on_before(self, world: Stage):
        self.restored(world, after=20 * DAY)

        world.let_go()
        world.recover(HOUR)

        assert FIRST_DUE not in world.runs()
        assert NOON + DAY not in world.runs()

    @staticmethod
    def restored(world: Stage, *, after: timedelta) -> None:
        for due_at in (FIRST_DUE, NOON + DAY, NOON + 15 * DAY):
            world.submit_one(Delivery.EXACTLY_ONCE, due_at=due_at)
        copied = world.copy()
        world.rows.rows.clear()  # the harm
        world.clock.tick(after)
        world.restore(copied)


def a_daily() -> Schedule:
    return a_schedule(rule=from_noon(days=1))


def test_a_stage_may_stand_still_for_as_long_with_far_jobs_as_with_near_ones():
    assert TIMER_LIFE >= MESSAGE_LIFE
