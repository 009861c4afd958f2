from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.domain.errors import InvalidSchedule, ScheduleBusy
from functions.domain.instants import HOUR, MILLISECOND, to_seconds
from functions.domain.schedules.changes import activated, stopped
from functions.domain.schedules.load import LoadLimits
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.state import ScheduleState, Status
from functions.ports.schedules import StoredSchedule
from functions.services.schedules.changer import Change, Edit
from testkit.builders import NOON, a_link, a_schedule, an_occurrence_timer, every
from testkit.fakes import InMemoryScheduleStore
from testkit.scheduler import World

MINUTELY = a_schedule(rule=every(minutes=1))
FIRST = to_seconds(NOON)
"""The version of a schedule that is created at noon."""


@pytest.fixture
def world() -> World:
    return World()


def test_a_schedule_is_created_where_there_is_none(world: World):
    stored, state = world.changer.change(MINUTELY.uid, puts(MINUTELY))

    assert stored == StoredSchedule(
        schedule=MINUTELY, version=FIRST, status=Status.ACTIVE, created_at=NOON, changed_at=NOON
    )
    assert state is not None
    assert (state.version, state.link) == (FIRST, a_link(NOON + timedelta(minutes=1)))
    assert world.schedules.get(MINUTELY.uid) == (stored, state)


def test_a_changed_schedule_keeps_the_instant_of_its_creation(world: World):
    world.changer.change(MINUTELY.uid, puts(MINUTELY))
    world.clock.tick(HOUR)

    stored, _ = world.changer.change(MINUTELY.uid, puts(replace(MINUTELY, max_runs=3)))

    assert stored is not None
    assert (stored.version, stored.created_at, stored.changed_at) == (FIRST + 1, NOON, NOON + HOUR)
    assert world.schedules.get(MINUTELY.uid)[0] == stored


def test_a_rule_that_changes_nothing_writes_nothing(world: World):
    found = world.changer.change(MINUTELY.uid, puts(MINUTELY))

    assert world.changer.change(MINUTELY.uid, lambda *_: None) == found
    assert world.changer.change("acme#nobody", lambda *_: None) == (None, None)


def test_a_rule_may_refuse(world: World):
    def refuse(*_: object) -> Change | None:
        raise InvalidSchedule("never fires")

    with pytest.raises(InvalidSchedule):
        world.changer.change(MINUTELY.uid, refuse)
    assert world.schedules.rows == {}


def test_a_change_that_loses_is_decided_again_from_what_it_found(world: World):
    world.changer.change(MINUTELY.uid, puts(MINUTELY))
    world.schedules = Contested(world.schedules, times=3)

    stored, state = world.changer.change(MINUTELY.uid, puts(replace(MINUTELY, max_runs=3)))

    assert stored is not None
    assert state is not None
    assert (stored.version, state.version, state.note) == (FIRST + 4, FIRST + 4, "another's")
    assert world.schedules.get(MINUTELY.uid) == (stored, state)


def test_a_schedule_that_keeps_changing_is_busy(world: World):
    world.changer.change(MINUTELY.uid, puts(MINUTELY))
    world.schedules = Contested(world.schedules, times=99)

    with pytest.raises(ScheduleBusy, match="nightly"):
        world.changer.change(MINUTELY.uid, puts(replace(MINUTELY, max_runs=3)))


def test_a_change_whose_answer_was_lost_finds_itself_and_changes_nothing_again(world: World):
    world.schedules = LosingTheAnswer(world.schedules)

    def put_unless_there(stored: StoredSchedule | None, state: ScheduleState | None, now: datetime) -> Change | None:
        return None if stored is not None and stored.schedule == MINUTELY else puts(MINUTELY)(stored, state, now)

    stored, state = world.changer.change(MINUTELY.uid, put_unless_there)

    assert stored is not None
    assert state is not None
    assert (stored.version, state.version) == (FIRST, FIRST)


@pytest.mark.parametrize("early", [timedelta(microseconds=1), timedelta(microseconds=999), MILLISECOND, timedelta(0)])
def test_a_fire_in_the_millisecond_of_a_change_is_decided_by_one_version(world: World, early: timedelta):
    world.changer.change(MINUTELY.uid, puts(MINUTELY))
    fire_at = NOON + HOUR
    world.clock.tick(HOUR - early)

    world.changer.change(MINUTELY.uid, puts(replace(MINUTELY, max_runs=9)))

    state = world.state(MINUTELY)
    assert state.link is not None
    of_the_old = an_occurrence_timer(MINUTELY, fire_at=fire_at, version=FIRST).job.occurrence
    assert of_the_old is not None
    assert state.may_run(of_the_old) is (state.link.at != fire_at)


def puts(schedule: Schedule) -> Edit:
    """A rule that puts a schedule in the place of whatever there is."""

    def rule(stored: StoredSchedule | None, state: ScheduleState | None, now: datetime) -> Change | None:
        before = stored.schedule if stored else None
        note = state.note if state else ""
        return Change(schedule, activated(schedule, before=before, state=state, now=now, note=note))

    return rule


class Contested(InMemoryScheduleStore):
    """A store in which somebody else changes the schedule first, so many times."""

    def __init__(self, store: InMemoryScheduleStore, *, times: int) -> None:
        self.__dict__.update(store.__dict__)
        self._left = times

    def change(
        self, new: StoredSchedule, state: ScheduleState, *, seen: ScheduleState | None, **limits: LoadLimits
    ) -> bool:
        if self._left and seen is not None:
            self._left -= 1
            other = stopped(Status.PAUSED, before=new.schedule, state=seen, now=NOON, note="another's")
            paused = replace(new, version=other.version, status=other.status)
            assert super().change(paused, other, seen=seen)
        return super().change(new, state, seen=seen, **limits)


class LosingTheAnswer(InMemoryScheduleStore):
    """A store whose first change is made, and its repeat by the SDK refused."""

    def __init__(self, store: InMemoryScheduleStore) -> None:
        self.__dict__.update(store.__dict__)

    def change(self, *args: Any, **options: Any) -> bool:
        super().change(*args, **options)
        return super().change(*args, **options)
