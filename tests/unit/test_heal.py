from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.domain.claims import REQUEST_LIMIT
from functions.domain.cursor import ClassCursor, Cursors, OwnCursor, Position, SweepPosition, first_cursors
from functions.domain.instants import MILLISECOND, SECOND, to_seconds
from functions.domain.job import Priority
from functions.domain.schedule import Schedule
from functions.domain.schedule_state import Status
from functions.ports import Rejected
from functions.sweeper import heal as healing
from functions.sweeper.heal import PASS_INTERVAL
from tests.builders import NOON, a_link, a_schedule, every
from tests.unit.world import DeathError, World

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
MINUTELY = a_schedule(rule=every(minutes=1))
RANG_AT = NOON - 10 * MINUTE
"""When an alarm rang, or should have."""


@pytest.fixture
def world() -> World:
    """Both shards have been scanned up to now."""
    world = World()
    scanned(world, NOON)
    return world


class TestBrokenChains:
    def test_a_chain_whose_alarm_was_passed_without_it_is_carried_on(self, world: World):
        begun(world, MINUTELY)

        report = world.heal()

        assert (report.seen, report.healed, report.refused) == (1, 1, 0)
        assert {timer.job.scheduled_at for timer in world.ready.sent} >= {RANG_AT, NOON, NOON + 2 * MINUTE}
        assert world.state(MINUTELY).rings_at == NOON + 3 * MINUTE
        assert world.events("schedule_healed") == [{"schedule": "acme#nightly"}]
        assert world.events("schedules_swept") == [{"seen": 1, "healed": 1, "refused": 0}]

    def test_a_chain_that_was_carried_on_is_whole(self, world: World):
        begun(world, MINUTELY)
        world.heal()
        sent = list(world.ready.sent)
        world.clock.tick(PASS_INTERVAL)

        assert world.heal().healed == 0
        assert world.ready.sent == sent

    @pytest.mark.parametrize(
        "at", [RANG_AT, RANG_AT - HOUR, RANG_AT + 59 * SECOND], ids=["at its bucket", "an hour behind", "in its bucket"]
    )
    def test_a_chain_whose_alarm_the_scanner_has_yet_to_pass_is_left_to_it(self, at: datetime):
        world = World()
        scanned(world, at)
        begun(world, MINUTELY)

        report = world.heal()

        assert (report.seen, report.healed) == (1, 0)
        assert (world.ready.sent, world.timers.alarms) == ([], [])

    def test_a_chain_whose_bucket_has_just_been_passed_is_carried_on(self):
        world = World()
        scanned(world, RANG_AT + MINUTE)
        begun(world, MINUTELY)

        assert world.heal().healed == 1

    @pytest.mark.parametrize("slow", Priority)
    def test_a_chain_is_left_to_the_scanner_while_any_class_is_behind_its_alarm(self, world: World, slow: Priority):
        behind = ClassCursor(Position(world.wheel.bucket_of(RANG_AT)))
        record(world, first_cursors(world.wheel.bucket_of(NOON)) | {slow: behind})
        begun(world, MINUTELY)

        assert world.heal().healed == 0

    def test_a_chain_is_left_to_the_scanner_while_a_tenant_s_own_cursor_is_behind_its_alarm(self, world: World):
        bucket = world.wheel.bucket_of
        own = ClassCursor(Position(bucket(NOON)), {"acme": OwnCursor(Position(bucket(RANG_AT)))})
        record(world, first_cursors(bucket(NOON)) | {Priority.NORMAL: own})
        begun(world, MINUTELY)

        assert world.heal().healed == 0

    def test_only_the_shard_of_an_alarm_tells_whether_it_was_passed(self):
        world = World()
        shard = world.wheel.shard_of("acme", "nightly")
        record(world, first_cursors(world.wheel.bucket_of(NOON)), shards=[1 - shard])
        begun(world, MINUTELY)
        assert world.heal().healed == 0

        record(world, first_cursors(world.wheel.bucket_of(NOON)), shards=[shard])
        world.clock.tick(PASS_INTERVAL)
        assert world.heal().healed == 1

    @pytest.mark.parametrize(
        "state",
        [
            {"status": Status.PAUSED},
            {"status": Status.DELETED},
            {"status": Status.DELETED, "link": None},
            {"link": None},
        ],
        ids=["paused", "deleted", "deleted at its end", "at its end"],
    )
    def test_a_chain_that_does_not_go_on_is_left_alone(self, world: World, state: dict[str, Any]):
        begun(world, MINUTELY, **state)

        report = world.heal()

        assert (report.seen, report.healed, report.refused) == (1, 0, 0)
        assert world.ready.sent == []

    def test_a_chain_that_was_never_placed_is_left_to_its_request_as_long_as_that_may_last(self, world: World):
        begun(world, MINUTELY, rings_at=None, changed_at=NOON, link=a_link(NOON + MINUTE))
        world.clock.tick(REQUEST_LIMIT + world.wheel.skew)

        assert world.heal().healed == 0

    def test_a_chain_that_was_never_placed_begins_by_the_sweep(self, world: World):
        begun(world, MINUTELY, rings_at=None, changed_at=NOON, link=a_link(NOON + MINUTE))
        world.clock.tick(REQUEST_LIMIT + world.wheel.skew + MILLISECOND)

        assert world.heal().healed == 1
        assert world.ready.sent[0].job.scheduled_at == NOON + MINUTE

    def test_a_chain_that_is_refused_is_tried_again_in_the_next_pass(self, world: World):
        begun(world, MINUTELY)
        world.ready.refuses = lambda timer: Rejected(timer, "throttled", is_permanent=False)
        report = world.heal()
        assert (report.healed, report.refused) == (0, 1)

        world.ready.refuses = lambda _: None
        world.clock.tick(PASS_INTERVAL)

        assert world.heal().healed == 1

    def test_a_definition_that_a_newer_tickwheel_wrote_holds_up_no_other(self, world: World):
        for name in ("a", "b", "c"):
            begun(world, replace(MINUTELY, schedule_id=name))
        world.schedules.written["acme#b"] = '{"lunar":28}', world.schedules.written["acme#b"][1]

        report = world.heal()

        assert (report.seen, report.healed, report.refused) == (3, 2, 1)
        assert [event["schedule"] for event in world.events("schedule_not_healed")] == ["acme#b"]


class TestPasses:
    def test_a_pass_is_recorded_when_it_is_done(self, world: World):
        begun(world, MINUTELY)

        world.heal()

        assert world.shards.swept() == SweepPosition(to_seconds(NOON), None)

    def test_a_pass_begins_no_sooner_than_five_minutes_after_the_one_before_began(self, world: World):
        world.heal()
        begun(world, MINUTELY)

        world.clock.tick(PASS_INTERVAL - SECOND)
        assert world.heal().seen == 0
        world.clock.tick(SECOND)
        assert world.heal().seen == 1

    def test_a_pass_goes_over_all_pages(self, world: World, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(healing, "PAGE", 3)
        for number in range(8):
            begun(world, replace(MINUTELY, schedule_id=f"s{number}"))

        report = world.heal()

        assert (report.seen, report.healed) == (8, 8)
        assert world.shards.swept() == SweepPosition(to_seconds(NOON), None)

    def test_a_sweep_ends_at_80_percent_of_its_time_limit_and_the_next_goes_on_behind_it(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(healing, "PAGE", 3)
        for number in range(8):
            begun(world, replace(MINUTELY, schedule_id=f"s{number}"))
        world.timers.put_takes = 2 * SECOND

        first = world.heal(time_limit=10 * SECOND)
        second = world.heal(time_limit=10 * SECOND)
        world.timers.put_takes = timedelta(0)
        third = world.heal()

        assert [report.seen for report in (first, second, third)] == [6, 2, 0]
        assert first.healed + second.healed == 8
        assert world.shards.swept() == SweepPosition(to_seconds(NOON), None)

    def test_a_sweep_without_time_does_nothing(self, world: World):
        begun(world, MINUTELY)

        assert world.heal(time_limit=timedelta(0)).seen == 0
        assert world.shards.swept() is None

    def test_a_sweep_stops_when_another_is_at_it(self, world: World, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(healing, "PAGE", 3)
        for number in range(8):
            begun(world, replace(MINUTELY, schedule_id=f"s{number}"))
        elsewhere = SweepPosition(to_seconds(NOON) - 1, "acme#s7")

        def overtake(_: object) -> bool:
            world.shards.sweep = elsewhere
            return False

        world.timers.unwritten = overtake
        report = world.heal()

        assert report.seen == 3
        assert world.shards.swept() == elsewhere

    def test_a_sweep_that_dies_is_repeated_from_the_page_it_was_at(self, world: World, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(healing, "PAGE", 3)
        for number in range(8):
            begun(world, replace(MINUTELY, schedule_id=f"s{number}"))
        world.ready.dies_after = 45  # 13 a schedule: within the second page
        with pytest.raises(DeathError):
            world.heal()
        assert world.shards.swept() == SweepPosition(to_seconds(NOON), "acme#s2")

        world.ready.dies_after = None
        report = world.heal()

        assert report.seen == 5
        states = [world.state(replace(MINUTELY, schedule_id=f"s{number}")) for number in range(8)]
        assert {state.fire_count for state in states} == {13}


def begun(world: World, schedule: Schedule, **state: Any) -> None:
    """A schedule whose alarm should have rung ten minutes before noon."""
    world.store(schedule, **{"link": a_link(RANG_AT), "rings_at": RANG_AT, **state})


def scanned(world: World, until: datetime) -> None:
    """Both shards have been scanned up to the bucket of an instant."""
    record(world, first_cursors(world.wheel.bucket_of(until)))


def record(world: World, cursors: Cursors, *, shards: list[int] | None = None) -> None:
    for shard in shards or range(world.wheel.scan_shards):
        lease = world.shards.acquire(shard, owner="before", now=NOON, lease_until=NOON, skew=world.wheel.skew)
        assert lease is not None
        world.shards.checkpoint(lease, cursors, lease_until=None)
