from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.domain.far_ring.cursor import ClassCursor, Cursors, OwnCursor, Position, SweepPosition, first_cursors
from functions.domain.instants import HOUR, MILLISECOND, MINUTE, SECOND, to_seconds
from functions.domain.jobs.claims import REQUEST_LIMIT
from functions.domain.jobs.job import Priority
from functions.domain.schedules.load import Load, Share
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.state import Status
from functions.domain.tenants.plan import TenantPlan, TenantStatus
from functions.ports.ready_queue import Rejected
from functions.sweeper import heal as healing
from functions.sweeper.heal import PASS_INTERVAL
from testkit.builders import NOON, a_link, a_schedule, every
from testkit.observed import DeathError
from testkit.scheduler import World

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
        assert world.state(MINUTELY).alarm_at == NOON + 3 * MINUTE
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

    def test_only_the_shard_of_an_alarm_says_whether_it_was_passed(self):
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
        begun(world, MINUTELY, alarm_at=None, changed_at=NOON, link=a_link(NOON + MINUTE))
        world.clock.tick(REQUEST_LIMIT + world.wheel.skew)

        assert world.heal().healed == 0

    def test_a_chain_that_was_never_placed_begins_by_the_sweep(self, world: World):
        begun(world, MINUTELY, alarm_at=None, changed_at=NOON, link=a_link(NOON + MINUTE))
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

        assert [report.seen for report in (first, second, third)] == [4, 4, 0]
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

        assert (report.seen, report.healed) == (0, 1)
        assert world.shards.swept() == elsewhere

    def test_a_sweep_that_dies_goes_on_behind_the_schedule_that_it_was_at(self, world: World):
        schedules = [replace(MINUTELY, schedule_id=f"s{number}") for number in range(8)]
        for schedule in schedules:
            begun(world, schedule)
        world.ready.dies_after = 45  # 13 a schedule: the fifth
        with pytest.raises(DeathError):
            world.heal()
        assert world.shards.swept() == SweepPosition(to_seconds(NOON), "acme#s3", "acme#s4", to_seconds(NOON))
        world.ready.dies_after = None

        # Perhaps the other one is still at it.
        world.clock.tick(healing.MOST_OF_A_SWEEP + world.wheel.skew - SECOND)
        assert world.heal().seen == 0
        world.clock.tick(SECOND)
        report = world.heal()

        assert (report.seen, report.healed) == (3, 3)
        assert [bool(world.state(schedule).fire_count) for schedule in schedules] == [*[True] * 4, False, *[True] * 3]
        (event,) = world.events("chain_set_aside")
        assert (event["schedule"], event["count"]) == ("acme#s4", 1)
        world.clock.tick(PASS_INTERVAL)
        world.heal()
        assert world.state(schedules[4]).fire_count > 0


def begun(world: World, schedule: Schedule, **state: Any) -> None:
    """A schedule whose alarm should have come due ten minutes before noon."""
    world.store(schedule, **{"link": a_link(RANG_AT), "alarm_at": RANG_AT, **state})


def scanned(world: World, until: datetime) -> None:
    """Both shards have been scanned up to the bucket of an instant."""
    record(world, first_cursors(world.wheel.bucket_of(until)))


def record(world: World, cursors: Cursors, *, shards: list[int] | None = None) -> None:
    for shard in shards or range(world.wheel.scan_shards):
        lease = world.shards.acquire(shard, owner="before", now=NOON, lease_until=NOON, skew=world.wheel.skew)
        assert lease is not None
        world.shards.checkpoint(lease, cursors, lease_until=None)


class TestSums:
    """What schedules count for is put right by the pass over them."""

    def load(self, world: World) -> Load:
        return world.schedules.load("acme")

    def test_a_schedule_of_a_version_that_did_not_count_is_counted_once(self, world: World):
        begun(world, MINUTELY, alarm_at=NOON + HOUR)
        begun(world, replace(MINUTELY, schedule_id="paused"), status=Status.PAUSED, link=None)
        assert self.load(world) == Load()

        assert world.heal().counted == 2
        assert self.load(world) == Load(2, 60)

        world.clock.tick(PASS_INTERVAL)
        assert world.heal().counted == 0
        assert self.load(world) == Load(2, 60)

    @pytest.mark.parametrize(
        ("state", "load"),
        [
            ({"link": None}, Load(1, 0)),
            ({"status": Status.PAUSED}, Load(1, 0)),
            ({"status": Status.DELETED, "link": None}, Load()),
            ({"share": Share(0, 7), "alarm_at": NOON + HOUR}, Load(1, 60)),
            ({"share": Share(1, 7, counted_by=1), "alarm_at": NOON + HOUR}, Load(1, 60)),
        ],
        ids=[
            "ended",
            "paused by itself",
            "deleted by another version",
            "changed by another version",
            "counted otherwise",
        ],
    )
    def test_what_a_schedule_does_not_count_for_any_more_is_given_back(
        self, world: World, state: dict[str, Any], load: Load
    ):
        begun(world, MINUTELY, **{"share": Share(1, 60), **state})

        assert world.heal().counted == 1
        assert self.load(world) == load
        assert world.state(MINUTELY).is_counted_right

    def test_a_schedule_that_a_newer_version_wrote_is_left_to_it(self, world: World):
        begun(world, MINUTELY, alarm_at=NOON + HOUR)
        begun(world, replace(MINUTELY, schedule_id="other"), alarm_at=NOON + HOUR)
        world.schedules.written[MINUTELY.uid] = '{"lunar":28}', world.schedules.written[MINUTELY.uid][1]

        assert world.heal().counted == 1
        assert self.load(world) == Load(1, 60)

    def test_nothing_is_counted_for_a_deleted_tenant(self, world: World):
        begun(world, MINUTELY, alarm_at=NOON + HOUR)
        world.plans.plans["acme"] = TenantPlan(status=TenantStatus.DELETING)

        assert world.heal().counted == 0
        assert self.load(world) == Load()

    def test_counting_takes_a_fifth_of_a_sweep_and_goes_on_in_the_next_pass(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ):
        for number in range(10):
            begun(world, replace(MINUTELY, schedule_id=f"s{number}"), alarm_at=NOON + HOUR)
        recount = world.schedules.recount

        def slowly(*args: Any, **options: Any) -> bool:
            world.clock.tick(SECOND)
            return recount(*args, **options)

        monkeypatch.setattr(world.schedules, "recount", slowly)

        first = world.heal(time_limit=20 * SECOND)
        assert (first.seen, first.counted) == (10, 4)
        world.clock.tick(PASS_INTERVAL)
        assert world.heal(time_limit=60 * SECOND).counted == 6
        assert self.load(world) == Load(10, 600)

    def test_a_store_that_fails_while_it_counts_keeps_no_chain_from_going_on(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(healing, "PAGE", 1)
        begun(world, replace(MINUTELY, schedule_id="a"), alarm_at=NOON + HOUR)
        begun(world, replace(MINUTELY, schedule_id="b"), share=Share(1, 60))

        def fails(*_: Any, **__: Any) -> bool:
            raise OSError("no route to the table")

        monkeypatch.setattr(world.schedules, "recount", fails)

        report = world.heal()

        assert (report.seen, report.healed, report.counted) == (2, 1, 0)
        (event,) = world.events("schedule_not_counted")
        assert event["schedule"] == "acme#a"
        assert str(event["error"]).startswith("OSError at ")
