from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from functions.domain.far_ring.schedule_alarm import ScheduleAlarm
from functions.domain.instants import HOUR, MILLISECOND, MINUTE, SECOND
from functions.domain.schedules.due_fires import ALARM_MARGIN
from functions.domain.schedules.rules import CronRule
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.state import ScheduleState, Status
from functions.ports.ready_queue import Rejected
from functions.ports.schedules import StoredSchedule
from functions.services.schedules.materialiser import Carried
from testkit.builders import NOON, a_link, a_schedule, a_state, a_stored_schedule, an_alarm, every
from testkit.fakes import InMemoryScheduleStore
from testkit.observed import Watched
from testkit.scheduler import World

ON, REFUSED = Carried.ON, Carried.REFUSED
HOURLY = a_schedule()
AHEAD = NOON + 80 * SECOND
"""When an alarm rings that the scanner meets at noon."""


@pytest.fixture
def world() -> World:
    return World()


def test_an_alarm_that_comes_due_on_time_reads_nothing_but_the_definition_of_its_schedule(world: World):
    schedule, alarm = ahead(world)
    calls: list[str] = []
    for name in ("schedules", "ledger"):
        setattr(world, name, Watched(getattr(world, name), name, calls.append, lambda _: None))

    assert world.schedule_alarms().handle([alarm]) == [ON]

    assert calls == ["schedules.definitions", "schedules.advance"]
    assert [timer.due_at for timer in world.ready.sent] == [AHEAD]
    assert world.state(schedule).link == a_link(AHEAD + HOUR, index=1, previous_at=AHEAD)
    assert [placed.alarm_at for placed in world.timers.alarms] == [AHEAD + HOUR]
    assert world.journal.counts["alarms_due"] == 1


def test_no_alarms_ring_for_nothing(world: World):
    assert world.schedule_alarms().handle([]) == []


@pytest.mark.parametrize("version", [1, 3])
def test_an_alarm_of_another_version_is_passed_without_a_fire(world: World, version: int):
    schedule, alarm = ahead(world, version=2)
    before = world.state(schedule)

    assert world.schedule_alarms().handle([replace(alarm, version=version)]) == [ON]

    assert world.ready.sent == []
    assert world.state(schedule) == before


@pytest.mark.parametrize("status", [Status.PAUSED, Status.DELETED])
def test_an_alarm_of_a_schedule_that_was_stopped_is_passed_without_a_fire(world: World, status: Status):
    _, alarm = ahead(world, status=status, link=None)

    assert world.schedule_alarms().handle([alarm]) == [ON]
    assert world.ready.sent == []


def test_an_alarm_without_a_definition_is_passed_and_reported_of(world: World):
    assert world.schedule_alarms().handle([an_alarm(version=7)]) == [ON]
    assert world.events("alarm_without_schedule") == [{"schedule": "acme#nightly", "version": 7}]


def test_a_definition_that_is_older_than_its_alarm_is_read_again(world: World):
    schedule, alarm = ahead(world, version=2)
    world.schedules = Stale(world.schedules, {schedule.uid: a_stored_schedule(version=1, schedule=schedule)})

    assert world.schedule_alarms().handle([alarm]) == [ON]
    assert [timer.due_at for timer in world.ready.sent] == [AHEAD]


@pytest.mark.parametrize("versions", [(1, 2), (2, 1)])
def test_a_definition_that_is_older_than_the_newest_of_its_alarms_is_read_again(
    world: World, versions: tuple[int, ...]
):
    schedule, alarm = ahead(world, version=2)
    world.schedules = Stale(world.schedules, {schedule.uid: a_stored_schedule(version=1, schedule=schedule)})

    assert world.schedule_alarms().handle([replace(alarm, version=version) for version in versions]) == [ON, ON]

    assert len(world.ready.sent) == 1
    assert world.state(schedule).fire_count == 1


def test_a_definition_that_is_not_to_be_seen_yet_is_read_again(world: World):
    _, alarm = ahead(world)
    world.schedules = Stale(world.schedules, {})

    assert world.schedule_alarms().handle([alarm]) == [ON]
    assert [timer.due_at for timer in world.ready.sent] == [AHEAD]


def test_an_alarm_that_comes_due_late_goes_on_where_the_state_says(world: World):
    schedule = a_schedule(rule=every(minutes=1))
    alarm = begun(world, schedule, an_alarm(schedule, alarm_at=NOON))
    moved_on = a_link(NOON + 10 * MINUTE, index=4, previous_at=NOON)
    world.store(schedule, version=2, link=moved_on, fire_count=4)
    world.clock.tick(MILLISECOND)

    assert world.schedule_alarms().handle([replace(alarm, version=2)]) == [ON]

    assert world.ready.sent == []
    assert [placed.link for placed in world.timers.alarms] == [moved_on]


def test_an_alarm_that_comes_due_at_the_very_instant_of_its_fire_is_on_time(world: World):
    alarm = begun(world, HOURLY, an_alarm(alarm_at=NOON))

    assert world.schedule_alarms().handle([alarm]) == [ON]
    assert [timer.due_at for timer in world.ready.sent] == [NOON]


def test_an_alarm_that_was_put_off_comes_due_for_what_was_missed(world: World):
    schedule = a_schedule(rule=every(minutes=1))
    alarm_at = NOON + 80 * SECOND
    link = a_link(NOON - 30 * MINUTE)
    alarm = begun(world, schedule, an_alarm(schedule, alarm_at=alarm_at, link=link))

    assert world.schedule_alarms().handle([alarm]) == [ON]

    assert len(world.ready.sent) == 33
    assert world.state(schedule).fire_count == 33


def test_an_alarm_that_was_put_off_places_nothing_once_the_state_has_gone_on_without_it(world: World):
    schedule = a_schedule(rule=every(minutes=1))
    alarm = begun(world, schedule, an_alarm(schedule, alarm_at=AHEAD, link=a_link(NOON - 30 * MINUTE)))
    assert world.materialiser.revive(schedule.uid) is ON
    sent = list(world.ready.sent)

    assert world.schedule_alarms().handle([alarm]) == [ON]
    assert world.ready.sent == sent


@pytest.mark.parametrize("state", [{"version": 2}, {"link": None}], ids=["replaced", "at its end"])
def test_a_late_alarm_whose_state_does_not_go_on_is_passed(world: World, state: dict[str, Any]):
    alarm = begun(world, HOURLY, an_alarm(alarm_at=NOON))
    # The definition was read before the change.
    world.schedules = Stale(world.schedules, {HOURLY.uid: a_stored_schedule(schedule=HOURLY)})
    world.store(HOURLY, **{"link": a_link(NOON + HOUR), "fire_count": 1, **state})
    world.clock.tick(MINUTE)

    assert world.schedule_alarms().handle([alarm]) == [ON]
    assert (world.ready.sent, world.timers.alarms) == ([], [])


def test_an_alarm_that_comes_due_twice_sends_its_fire_again_under_the_same_name(world: World):
    schedule, alarm = ahead(world)
    world.schedule_alarms().handle([alarm])
    after = world.state(schedule)

    assert world.schedule_alarms().handle([alarm]) == [ON]

    assert [timer.job.key for timer in world.ready.sent] == ["acme#nightly:2027-03-01T12:01:20.000Z"] * 2
    assert world.state(schedule) == after


def test_an_alarm_whose_next_fire_is_near_places_nothing_when_it_comes_due_again(world: World):
    schedule = a_schedule(rule=every(minutes=1, phase=20 * SECOND))
    alarm = begun(world, schedule, an_alarm(schedule, alarm_at=AHEAD))
    world.schedule_alarms().handle([alarm])
    sent, alarms, after = list(world.ready.sent), list(world.timers.alarms), world.state(schedule)
    world.clock.tick(30 * SECOND)

    assert world.schedule_alarms().handle([alarm]) == [ON]

    assert (world.ready.sent, world.timers.alarms, world.state(schedule)) == (sent, alarms, after)


def test_an_alarm_that_another_was_placed_for_goes_on_when_its_link_is_the_one_that_stands(world: World):
    # Whoever placed it died; whoever came next placed another for the same fire a little later, and recorded that.
    schedule = a_schedule(rule=every(minutes=1))
    link = a_link(NOON - 30 * MINUTE)
    alarm = begun(world, schedule, an_alarm(schedule, alarm_at=AHEAD, link=link), alarm_at=AHEAD + 3 * SECOND)

    assert world.schedule_alarms().handle([alarm]) == [ON]
    sent, alarms = list(world.ready.sent), list(world.timers.alarms)
    assert world.state(schedule).fire_count == len(sent) == 33

    assert world.schedule_alarms().handle([replace(alarm, alarm_at=AHEAD + 3 * SECOND)]) == [ON]
    assert (world.ready.sent, world.timers.alarms) == (sent, alarms)


@pytest.mark.parametrize("before", [None, {"version": 1, "link": a_link(NOON - HOUR)}], ids=["unseen", "older"])
def test_an_alarm_of_a_version_that_is_not_to_be_seen_yet_goes_on_at_its_own_link(
    world: World, before: dict[str, Any] | None
):
    schedule = a_schedule(rule=every(minutes=1, phase=20 * SECOND))
    alarm = begun(world, schedule, an_alarm(schedule, alarm_at=AHEAD, version=2), version=2)
    states = {} if before is None else {schedule.uid: a_state(**before)}
    world.schedules = Stale(world.schedules, {schedule.uid: a_stored_schedule(version=2, schedule=schedule)}, states)

    assert world.schedule_alarms().handle([alarm]) == [ON]

    assert [timer.due_at for timer in world.ready.sent] == [AHEAD, AHEAD + MINUTE]
    assert world.state(schedule).fire_count == 2


def test_a_schedule_that_cannot_be_computed_holds_up_no_other(world: World):
    lost = a_schedule(schedule_id="lost", timezone="Mars/Olympus", rule=CronRule("* * * * *"))
    schedule, alarm = ahead(world)
    alarms = [begun(world, lost, an_alarm(lost, alarm_at=AHEAD)), alarm]

    assert world.schedule_alarms().handle(alarms) == [Carried.BROKEN, ON]

    assert world.state(schedule).fire_count == 1
    assert [event["schedule"] for event in world.events("chain_broken")] == ["acme#lost"]


def test_an_alarm_whose_message_is_refused_must_ring_again_and_holds_up_no_other(world: World):
    schedules = [a_schedule(schedule_id=f"s{number}", rule=every(hours=1, phase=80 * SECOND)) for number in range(3)]
    alarms = [begun(world, schedule, an_alarm(schedule, alarm_at=AHEAD)) for schedule in schedules]
    world.ready.refuses = lambda timer: (
        Rejected(timer, "throttled", is_permanent=False) if "s1" in timer.job.identity else None
    )

    assert world.schedule_alarms().handle([an_alarm(version=9), *alarms]) == [ON, ON, REFUSED, ON]

    assert [world.state(schedule).fire_count for schedule in schedules] == [1, 0, 1]
    world.ready.refuses = lambda _: None
    assert world.schedule_alarms().handle([alarms[1]]) == [ON]
    assert world.state(schedules[1]).fire_count == 1


def test_of_the_alarms_of_one_schedule_only_that_of_its_version_comes_due(world: World):
    schedule, alarm = ahead(world, version=3)
    alarms = [replace(alarm, version=version) for version in (4, 2, 3, 1)]

    assert world.schedule_alarms().handle(alarms) == [ON] * 4

    assert len(world.ready.sent) == 1
    assert world.state(schedule).fire_count == 1


def test_an_alarm_of_a_fire_that_a_run_s_end_has_moved_places_nothing(world: World):
    # Somebody placed it, died before the record, and the run's end was written anew before the next one came.
    schedule = a_schedule(rule=every(minutes=10, from_end=True))
    alarm = an_alarm(schedule, alarm_at=AHEAD)
    later = a_link(AHEAD + 10 * MINUTE, index=1)
    begun(world, schedule, alarm, link=later, fire_count=1)

    assert world.schedule_alarms().handle([alarm]) == [ON]

    assert world.ready.sent == []
    assert world.state(schedule).fire_count == 1


def test_an_end_to_start_fire_comes_due_on_time(world: World):
    schedule = a_schedule(rule=every(minutes=10, from_end=True))
    alarm = begun(world, schedule, an_alarm(schedule, alarm_at=AHEAD))

    assert world.schedule_alarms().handle([alarm]) == [ON]
    assert [timer.due_at for timer in world.ready.sent] == [AHEAD]


def test_an_alarm_that_comes_due_for_a_run_that_has_not_ended_is_placed_again(world: World):
    schedule = a_schedule(rule=every(minutes=10, from_end=True))
    awaited = a_link(NOON - 10 * MINUTE, is_awaited=True)
    alarm = begun(world, schedule, an_alarm(schedule, alarm_at=NOON, link=awaited), fire_count=1)

    assert world.schedule_alarms().handle([alarm]) == [ON]

    assert world.ready.sent == []
    assert [(placed.alarm_at, placed.link) for placed in world.timers.alarms] == [
        (NOON + world.wheel.guard + ALARM_MARGIN, awaited)
    ]


class Stale(InMemoryScheduleStore):
    """A store whose definitions and states, unless asked for as of all writes before, are those of some moment before."""

    def __init__(
        self,
        store: InMemoryScheduleStore,
        before: dict[str, StoredSchedule],
        states: dict[str, ScheduleState] | None = None,
    ) -> None:
        self.__dict__.update(store.__dict__)
        self._before = before
        self._states = states

    def states(self, keys: Sequence[str]) -> dict[str, ScheduleState]:
        if self._states is None:
            return super().states(keys)
        return {key: self._states[key] for key in keys if key in self._states}

    def definitions(self, keys: Sequence[str], *, consistent: bool = False) -> dict[str, StoredSchedule]:
        if consistent:
            return super().definitions(keys, consistent=True)
        return {key: self._before[key] for key in keys if key in self._before}


def ahead(world: World, *, version: int = 1, **state: Any) -> tuple[Schedule, ScheduleAlarm]:
    """An hourly schedule whose fire comes due 80 seconds after noon, and its alarm."""
    schedule = a_schedule(rule=every(hours=1, phase=80 * SECOND))
    alarm = an_alarm(schedule, alarm_at=AHEAD, version=version)
    return schedule, begun(world, schedule, alarm, version=version, **state)


def begun(world: World, schedule: Schedule, alarm: ScheduleAlarm, **state: Any) -> ScheduleAlarm:
    """The alarm of a stored schedule whose state stands at the alarm's link."""
    world.store(schedule, **{"link": alarm.link, "alarm_at": alarm.alarm_at, **state})
    return alarm
