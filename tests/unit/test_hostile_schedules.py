"""Schedules whose next fire takes more than anybody should wait for, stored already: what becomes of all the others.

However they came there. Here they are recognised by their names, and burn the processor or kill the process that computes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.domain.audit import ActionName
from functions.domain.far_ring.cursor import first_cursors
from functions.domain.instants import MINUTE, SECOND, from_seconds
from functions.domain.jobs.job import Priority
from functions.domain.schedules import changes as changing
from functions.domain.schedules import due_fires, firing
from functions.domain.schedules.fire_rates import share_of
from functions.domain.schedules.load import Share
from functions.domain.schedules.rules import Every
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.state import ASIDES_COUNT_FOR, Status
from functions.domain.tenants.plan import TenantPlan, TenantStatus
from functions.scanner import schedule_alarms
from functions.scanner.leases import LEASE
from functions.services.schedules import materialiser as materialising
from functions.services.schedules.materialiser import Carried, Chain
from functions.sweeper import heal as healing
from functions.sweeper.heal import MOST_OF_A_SWEEP, PASS_INTERVAL
from testkit.builders import NOON, a_schedule, a_template, a_timer, an_alarm, every
from testkit.observed import DeathError
from testkit.scheduler import World

FIRES_AT = NOON + 80 * SECOND
HOSTILE = "hostile"


@pytest.fixture
def world() -> World:
    """A shard that was scanned up to now."""
    world = World()
    scanned_until(world, NOON)
    return world


@pytest.fixture
def burns(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """To compute a fire of those that are hostile takes an hour."""
    with computed_by(monkeypatch, lambda: world.clock.burn(timedelta(hours=1))):
        yield


@pytest.mark.usefixtures("burns")
class TestThoseThatBurn:
    def test_all_timers_and_all_other_schedules_go_out_in_the_same_tick(self, world: World):
        stage = a_shard(world, hostile=12)

        report = world.scan()

        assert stage.sent_jobs() == stage.jobs
        assert report.sent == len(stage.jobs)
        assert stage.fire_counts() == [1] * len(stage.others)

    def test_they_cost_a_tick_no_more_than_three_shares(self, world: World):
        a_shard(world, hostile=200)

        world.scan()

        assert world.clock.used == 3 * materialising.SHARE
        assert world.events("alarms_left") == [{"tenant": "mallory", "count": 197}]

    def test_those_that_await_a_run_cost_a_tick_no_more_than_three_shares(self, world: World):
        stage = a_shard(world, hostile=0)
        for number in range(30):
            awaiting(world, f"{HOSTILE}-{number}")

        world.scan()

        assert world.clock.used == 3 * materialising.SHARE
        assert len(world.events("chain_set_aside")) == 3
        assert stage.fire_counts() == [1] * len(stage.others)

    def test_those_that_await_a_run_and_are_healed_together_cost_one_share(self, world: World):
        chains = [chain_of(world, awaiting(world, f"{HOSTILE}-{number}")) for number in range(5)]
        others = [chain_of(world, awaiting(world, "fine", tenant=tenant)) for tenant in ("mallory", "acme")]

        carried = world.materialiser.materialise([*chains, *others])

        assert world.clock.used == materialising.SHARE
        assert carried == [Carried.ASIDE, *[Carried.REFUSED] * 5, Carried.ON]

    def test_no_alarm_of_an_awaited_run_is_worked_out_when_the_time_is_over(self, world: World):
        chains = [chain_of(world, awaiting(world, f"{HOSTILE}-{number}", tenant=f"t{number}")) for number in range(5)]

        carried = world.materialiser.materialise(chains, ends_at=world.clock.monotonic() + 1)

        assert world.clock.used == materialising.SHARE
        assert carried == [Carried.ASIDE, *[Carried.REFUSED] * 4]

    def test_other_schedules_of_their_tenant_ring_too(self, world: World):
        stage = a_shard(world, hostile=2)
        mine = a_due_schedule(world, "mallory", "fine")

        world.scan()

        assert world.state(mine).fire_count == 1
        assert stage.fire_counts() == [1] * len(stage.others)

    def test_each_is_reported_and_paused_with_its_reason_after_the_third_time(self, world: World):
        stage = a_shard(world, hostile=1)
        world.scan()
        assert world.state(stage.hostile[0]).status is Status.ACTIVE

        for _ in range(2):
            pass_by(world)

        state = world.state(stage.hostile[0])
        assert state.status is Status.PAUSED
        assert state.note == (
            "paused after its next fire could not be found 3 times: takes too many steps to find what it fires next: "
            "name more days or times, use wider windows, or split it into schedules that are simpler"
        )
        events = world.events("chain_set_aside")
        assert [(line["schedule"], line["count"]) for line in events] == [
            ("mallory#hostile-0", count) for count in (1, 2, 3)
        ]
        assert world.journal.counts["chains_set_aside"] == 3
        assert world.journal.counts["schedules_paused"] == 1
        assert [(action.action, action.subject) for action in world.trail.actions] == [
            (ActionName.SCHEDULE_PAUSE, "hostile-0")
        ]

    def test_one_that_takes_too_much_to_count_keeps_no_other_from_being_healed_or_counted(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(healing, "PAGE", 1)
        slow, fine, lost = (
            a_due_schedule(world, tenant, "hourly", has_alarm=tenant != "lost") for tenant in ("a", "fine", "lost")
        )
        monkeypatch.setattr(
            healing, "share_of", counted_unless(slow, share_of, lambda: world.clock.burn(timedelta(hours=1)))
        )

        pass_by(world)

        assert world.clock.used == materialising.SHARE
        assert [world.state(each).is_counted_right for each in (slow, fine, lost)] == [False, True, True]
        assert world.state(lost).fire_count > 0

    def test_one_whose_share_cannot_be_found_by_a_fault_of_ours_is_reported_and_passed_over(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ):
        broken, fine = (a_due_schedule(world, tenant, "hourly") for tenant in ("a", "fine"))
        monkeypatch.setattr(healing, "share_of", counted_unless(broken, share_of, _fail))

        pass_by(world)

        assert world.state(fine).is_counted_right
        (event,) = world.events("schedule_not_counted")
        assert event["schedule"] == broken.uid

    def test_all_of_many_are_paused_in_the_end_while_the_sweep_heals_the_others(self, world: World):
        stage = a_shard(world, hostile=12)
        broken = [a_due_schedule(world, f"t{number}", "broken", has_alarm=False) for number in range(5)]
        world.scan()

        pass_by(world)
        assert [world.state(schedule).fire_count > 0 for schedule in broken] == [True] * 5
        # Three of a tenant in a pass, and three times each.
        for _ in range(3 * 12 // 3):
            pass_by(world)

        assert {world.state(schedule).status for schedule in stage.hostile} == {Status.PAUSED}
        used = world.clock.used
        pass_by(world)
        assert world.clock.used == used

    def test_one_that_was_set_aside_can_be_paused_replaced_and_deleted_without_working_it_out(self, world: World):
        stage = a_shard(world, hostile=1)
        world.scan()
        used = world.clock.used

        for status in (Status.PAUSED, Status.DELETED):
            state = world.state(stage.hostile[0])
            changing.stopped(status, before=stage.hostile[0], state=state, now=world.clock.now())
        after = changing.activated(
            a_schedule(tenant="mallory"),
            before=stage.hostile[0],
            state=world.state(stage.hostile[0]),
            now=world.clock.now(),
        )

        assert world.clock.used == used
        assert (after.asides, after.aside_at) == (0, None)

    def test_three_times_in_months_are_none_in_a_row(self, world: World):
        stage = a_shard(world, hostile=1)
        schedule = stage.hostile[0]

        for _ in range(5):
            world.asides.set_aside(schedule.uid, version=1, why="slow")
            world.clock.tick(ASIDES_COUNT_FOR)

        assert (world.state(schedule).status, world.state(schedule).asides) == (Status.ACTIVE, 1)

    def test_a_store_that_fails_keeps_nothing_from_going_on(self, world: World, monkeypatch: pytest.MonkeyPatch):
        stage = a_shard(world, hostile=3)
        monkeypatch.setattr(world.schedules, "note_aside", _fail)

        world.scan()

        assert stage.fire_counts() == [1] * len(stage.others)
        assert len(world.events("aside_not_noted")) == 3
        assert {line["count"] for line in world.events("chain_set_aside")} == {0}

    def test_in_a_tick_that_has_little_time_others_ring_first_in_the_next(self, world: World):
        stage = a_shard(world, hostile=12)

        world.scan(time_limit=3 * SECOND)
        assert stage.sent_jobs() == stage.jobs
        world.clock.tick(MINUTE)
        world.scan()

        assert stage.fire_counts() == [1] * len(stage.others)


class TestThoseThatKill:
    @pytest.fixture(autouse=True)
    def _kills(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        with computed_by(monkeypatch, _die):
            yield

    def test_all_timers_go_out_in_the_same_tick_and_all_other_schedules_in_the_next(self, world: World):
        stage = a_shard(world, hostile=12)

        assert tick(world) is None
        assert stage.sent_jobs() == stage.jobs
        assert tick(world) is None

        assert stage.fire_counts() == [1] * len(stage.others)
        assert stage.sent_jobs() == stage.jobs

    def test_the_tick_after_a_death_finds_the_schedule_and_goes_on_without_it(self, world: World):
        stage = a_shard(world, hostile=1)
        assert tick(world) is None
        assert tick(world) is None

        report = tick(world)

        assert report is not None
        assert report.stopped_by == ""
        (event,) = world.events("chain_set_aside")
        assert (event["schedule"], event["count"]) == ("mallory#hostile-0", 1)
        assert stage.fire_counts() == [1] * len(stage.others)

    def test_jobs_that_come_due_meanwhile_go_out_in_each_tick(self, world: World):
        a_shard(world, hostile=6)

        for number in range(6):
            timer = a_far_row(world, tenant=f"later-{number}", due_at=opens_now(world))
            tick(world)
            assert timer in world.ready.sent

        # The first death tells nothing; from then on each tells of one.
        assert [line["schedule"] for line in world.events("chain_set_aside")] == [
            f"mallory#hostile-{number}" for number in range(4)
        ]

    def test_only_a_tick_after_a_death_writes_before_each_alarm(self, world: World, monkeypatch: pytest.MonkeyPatch):
        stage = a_shard(world, hostile=0)
        writes = counted_checkpoints(world, monkeypatch)
        tick(world)
        assert len(writes) == 2  # before the alarms, and at the end

        for number in range(len(stage.others)):
            a_due_schedule(world, f"a{number}", "next", alarm_at=opens_now(world))
        hostile = a_due_schedule(world, "mallory", f"{HOSTILE}-x", alarm_at=opens_now(world))
        assert tick(world) is None
        writes.clear()
        assert tick(world) is None
        assert writes == [*[True] * len(stage.others), True]
        assert world.state(hostile).fire_count == 0

    def test_the_reason_of_one_that_only_kills_is_reported(self, world: World):
        stage = a_shard(world, hostile=1)
        for _ in range(3):
            tick(world)

        for _ in range(2):
            with pytest.raises(DeathError):
                pass_by(world)
            world.clock.tick(MOST_OF_A_SWEEP + world.wheel.skew)
            world.heal()

        state = world.state(stage.hostile[0])
        assert state.status is Status.PAUSED
        assert state.note == (
            "paused after its next fire could not be found 3 times: a process has died of it each time, "
            "so it takes far too long, or too much memory"
        )

    def test_the_sweep_heals_all_others_in_spite_of_them(self, world: World):
        stage = a_shard(world, hostile=0)
        a_due_schedule(world, "mallory", f"{HOSTILE}-x", has_alarm=False)
        broken = [a_due_schedule(world, f"t{number}", "broken", has_alarm=False) for number in range(5)]
        tick(world)
        with pytest.raises(DeathError):
            pass_by(world)
        world.clock.tick(MOST_OF_A_SWEEP + world.wheel.skew)

        world.heal()

        assert [world.state(schedule).fire_count > 0 for schedule in [*stage.others, *broken]] == [True] * 15


@pytest.mark.usefixtures("burns")
class TestOverTime:
    """What was set aside, after its rows have expired."""

    def test_a_paused_one_stays_paused_for_a_year_and_may_be_resumed(self, world: World):
        stage = a_shard(world, hostile=1)
        schedule = stage.hostile[0]
        world.scan()
        pass_by(world)
        pass_by(world)
        world.rows.rows.clear()
        world.clock.tick(timedelta(days=365))
        scanned_until(world, world.clock.now())

        world.heal()

        assert world.state(schedule).status is Status.PAUSED
        assert len(world.events("chain_set_aside")) == 3

    def test_one_whose_rows_have_expired_is_found_by_the_sweep(self, world: World):
        stage = a_shard(world, hostile=1)
        world.scan()
        world.rows.rows.clear()
        world.clock.tick(timedelta(days=31))

        for _ in range(3):
            pass_by(world)

        assert world.state(stage.hostile[0]).status is Status.PAUSED

    def test_one_of_a_deleted_tenant_is_left_alone(self, world: World):
        a_shard(world, hostile=1)
        world.scan()
        world.plans.plans["mallory"] = TenantPlan(status=TenantStatus.DELETED)
        used = world.clock.used

        pass_by(world)

        assert world.clock.used == used

    def test_one_that_has_got_well_goes_on(self, world: World, monkeypatch: pytest.MonkeyPatch):
        stage = a_shard(world, hostile=1)
        world.scan()
        monkeypatch.undo()

        pass_by(world)

        assert world.state(stage.hostile[0]).fire_count > 0


class Shard:
    """80 jobs of 80 tenants, ten schedules of ten others, and hostile ones of one, all due in one minute."""

    def __init__(self, world: World, *, hostile: int) -> None:
        self.world = world
        self.jobs = {a_far_row(world, tenant=f"t{number:02d}", due_at=FIRES_AT).job.key for number in range(80)}
        self.jobs |= {
            a_far_row(world, tenant="low", due_at=FIRES_AT, priority=priority).job.key for priority in Priority
        }
        self.hostile = [a_due_schedule(world, "mallory", f"{HOSTILE}-{number}") for number in range(hostile)]
        self.others = [a_due_schedule(world, f"z{number}", "nightly") for number in range(10)]

    def sent_jobs(self) -> set[str]:
        sent = [timer.job.key for timer in self.world.ready.sent if timer.job.key in self.jobs]
        assert len(sent) == len(set(sent))
        return set(sent)

    def fire_counts(self) -> list[int]:
        return [self.world.state(schedule).fire_count for schedule in self.others]


def a_shard(world: World, *, hostile: int) -> Shard:
    return Shard(world, hostile=hostile)


def a_due_schedule(
    world: World, tenant: str, schedule_id: str, *, has_alarm: bool = True, alarm_at: datetime = FIRES_AT
) -> Schedule:
    """A schedule of the shard with an alarm; without one it has lost it."""
    phase = (alarm_at - NOON) % timedelta(hours=1)
    schedule = a_schedule(tenant=tenant, schedule_id=schedule_id, rule=every(hours=1, phase=phase), job=a_template())
    alarm = an_alarm(schedule, alarm_at=alarm_at, shard=0)
    world.store(schedule, link=alarm.link, alarm_at=alarm.alarm_at)
    if has_alarm:
        world.rows.put_alarms([alarm])
    return schedule


def awaiting(world: World, schedule_id: str, *, tenant: str = "mallory") -> Schedule:
    """A schedule from end to start whose run goes on while its alarm comes due."""
    rule = Every(interval=timedelta(hours=1), from_end=True)
    schedule = a_schedule(tenant=tenant, schedule_id=schedule_id, rule=rule, job=a_template())
    alarm = an_alarm(schedule, alarm_at=FIRES_AT, shard=0)
    alarm = replace(alarm, link=replace(alarm.link, is_awaited=True))
    world.store(schedule, link=alarm.link, alarm_at=alarm.alarm_at)
    world.rows.put_alarms([alarm])
    return schedule


def chain_of(world: World, schedule: Schedule) -> Chain:
    stored, state = world.schedules.get(schedule.uid)
    assert stored is not None
    assert state is not None
    assert state.link is not None
    return Chain(stored, state.link)


def a_far_row(world: World, **overrides: Any) -> Any:
    timer = a_timer(**overrides)
    timer = replace(timer, job=replace(timer.job, shard=0))
    world.rows.put([timer])
    return timer


def tick(world: World) -> Any:
    """A tick, and the minute that it takes; None where it dies. The next has the shard: its lease is over by then."""
    assert LEASE + world.wheel.skew < MINUTE
    try:
        return world.scan()
    except DeathError:
        return None
    finally:
        world.clock.tick(MINUTE)


def opens_now(world: World) -> datetime:
    """The start of the last bucket that is open."""
    return from_seconds(world.wheel.horizon(now=world.clock.now()))


def pass_by(world: World) -> None:
    """The scanner passes what there is, and the sweep begins another pass."""
    world.clock.tick(PASS_INTERVAL)
    scanned_until(world, world.clock.now())
    world.heal()


def scanned_until(world: World, until: datetime) -> None:
    for shard in range(world.wheel.scan_shards):
        now = world.clock.now()
        lease = world.shards.acquire(shard, owner="before", now=now, lease_until=now, skew=-timedelta(days=1))
        assert lease is not None
        world.shards.checkpoint(lease, first_cursors(world.wheel.bucket_of(until)), lease_until=None)


def counted_checkpoints(world: World, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each says which alarm is handled next."""
    found: list[bool] = []
    checkpoint = world.shards.checkpoint

    def counted(*given: Any, **named: Any) -> bool:
        found.append(named.get("next_alarm") is not None)
        return checkpoint(*given, **named)

    monkeypatch.setattr(world.shards, "checkpoint", counted)
    return found


def counted_unless(
    exception: Schedule, share_of: Callable[..., Share | None], act: Callable[..., object]
) -> Callable[..., Share | None]:
    """How schedules are counted, but for one."""

    def counted(schedule: Schedule, *given: Any, **named: Any) -> Share | None:
        if schedule == exception:
            act()
        return share_of(schedule, *given, **named)

    return counted


class computed_by:  # noqa: N801  a context manager that reads as a sentence
    """The rules of hostile schedules do this instead."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
        self._patch = monkeypatch
        self._act = act

    def __enter__(self) -> None:
        for module, name in (
            (materialising, "decide"),
            (schedule_alarms, "next_fire"),
            (changing, "next_fire"),
            (changing, "fires"),
            (due_fires, "next_fire"),
            (firing, "next_fire"),
        ):
            self._patch.setattr(module, name, self._watched(getattr(module, name)))

    def __exit__(self, *_: object) -> None:
        self._patch.undo()

    def _watched(self, compute: Callable[..., Any]) -> Callable[..., Any]:
        def watched(schedule: Schedule, *given: Any, **named: Any) -> Any:
            if schedule.schedule_id.startswith(HOSTILE):
                self._act()
            return compute(schedule, *given, **named)

        return watched


def _die() -> None:
    raise DeathError


def _fail(*_: object, **__: object) -> int:
    raise ConnectionError
