from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from functions.domain.instants import DAY, HOUR, MILLISECOND, MINUTE, SECOND, to_seconds
from functions.domain.jobs.occurrence import Occurrence
from functions.domain.schedules.changes import activated, stopped
from functions.domain.schedules.firing import next_fire
from functions.domain.schedules.rules import CronRule
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.shifts import spread_of
from functions.domain.schedules.state import Cut, Link, ScheduleState, SkipReason, Status
from testkit.builders import NOON, a_link, a_schedule, a_state, every

MINUTELY = a_schedule(rule=every(minutes=1))
TEN_MINUTELY = a_schedule(rule=every(minutes=10))


class TestCreation:
    def test_a_new_schedule_begins_its_first_version_at_its_first_fire_after_now(self):
        state = activated(a_schedule(), before=None, state=None, now=NOON, note="new")

        first = to_seconds(NOON)
        assert state == ScheduleState(
            version=first,
            born=first,
            status=Status.ACTIVE,
            changed_at=NOON,
            note="new",
            cuts=(Cut(first, NOON),),
            link=a_link(NOON + HOUR),
        )

    def test_a_schedule_that_never_fires_after_now_has_no_link(self):
        assert activated(a_schedule(end=NOON), before=None, state=None, now=NOON).link is None

    def test_a_schedule_from_end_to_start_begins_an_interval_after_its_creation(self):
        schedule = a_schedule(rule=every(minutes=7, from_end=True))

        assert activated(schedule, before=None, state=None, now=NOON).link == a_link(NOON + 7 * MINUTE)

    def test_a_schedule_that_was_deleted_begins_anew_in_a_later_version(self):
        deleted = standing(
            version=4,
            status=Status.DELETED,
            link=None,
            fire_count=9,
            recent=(NOON - HOUR,),
            holder="run",
            holder_since=NOON,
            waiting="fire",
            waiting_since=NOON,
            failures=frozenset({"run"}),
            misfire_count=3,
            skips={SkipReason.MISSED: 3},
            last_skip=(SkipReason.MISSED, NOON),
        )

        state = activated(a_schedule(), before=None, state=deleted, now=NOON)

        assert state == ScheduleState(
            version=5,
            born=5,
            status=Status.ACTIVE,
            changed_at=NOON,
            cuts=(Cut(5, NOON),),
            link=a_link(NOON + HOUR),
        )


class TestReplacement:
    def test_a_new_version_decides_the_fires_after_its_change(self):
        state = replaced(TEN_MINUTELY, standing(fire_count=5, recent=(NOON - MINUTE, NOON), link=a_link(NOON + MINUTE)))

        assert (state.version, state.changed_at) == (2, NOON)
        assert state.cuts == (Cut(1, NOON - HOUR), Cut(2, NOON))
        assert state.link == a_link(NOON + 10 * MINUTE, index=5, previous_at=NOON)
        assert (state.alarm_at, state.fire_count) == (None, 5)

    def test_fires_that_were_placed_for_later_are_dropped_and_do_not_count(self):
        recent = tuple(NOON + number * MINUTE for number in range(-2, 3))
        before = standing(fire_count=5, recent=recent, link=a_link(NOON + 3 * MINUTE, index=5))

        state = replaced(TEN_MINUTELY, before)

        assert (state.fire_count, state.recent) == (3, recent[:3])
        assert state.link == a_link(NOON + 10 * MINUTE, index=3, previous_at=NOON)

    def test_a_fire_that_is_due_at_the_instant_of_the_change_is_not_dropped(self):
        before = standing(fire_count=1, recent=(NOON,), link=a_link(NOON + MINUTE))

        assert replaced(MINUTELY, before, now=NOON).fire_count == 1
        assert replaced(MINUTELY, before, now=NOON - MILLISECOND).fire_count == 0

    def test_more_placed_fires_than_are_remembered_are_dropped_all_the_same(self):
        seconds = a_schedule(rule=every(seconds=1), history=2)
        before = standing(
            fire_count=150, recent=(NOON + 148 * SECOND, NOON + 149 * SECOND), link=a_link(NOON + 150 * SECOND)
        )

        state = activated(TEN_MINUTELY, before=seconds, state=before, now=NOON)

        assert (state.fire_count, state.recent) == (1, ())

    def test_the_last_fires_of_a_chain_at_its_end_are_dropped_when_they_are_yet_to_come(self):
        recent = (NOON - MINUTE, NOON, NOON + MINUTE)
        before = standing(fire_count=3, recent=recent, link=None)

        state = activated(TEN_MINUTELY, before=replace(MINUTELY, max_runs=3), state=before, now=NOON)

        assert (state.fire_count, state.recent) == (2, recent[:2])

    def test_a_version_never_begins_before_the_one_that_it_follows(self):
        ahead = NOON + 2 * MINUTE
        before = standing(changed_at=ahead, cuts=(Cut(1, ahead),), link=a_link(ahead + MINUTE), fire_count=7)

        state = replaced(MINUTELY, before, now=NOON)

        assert (state.changed_at, state.cuts[-1]) == (ahead, Cut(2, ahead))
        assert state.link == a_link(ahead + MINUTE, index=7)
        assert state.fire_count == 7

    def test_a_paused_schedule_has_placed_nothing(self):
        paused = standing(status=Status.PAUSED, link=None, fire_count=3, recent=(NOON - MINUTE,))

        assert replaced(MINUTELY, paused).fire_count == 3

    def test_a_schedule_that_has_had_its_runs_has_no_link(self):
        before = standing(fire_count=5, recent=(NOON,), link=a_link(NOON + MINUTE))

        assert replaced(a_schedule(max_runs=5), before).link is None
        assert replaced(a_schedule(max_runs=6), before).link is not None

    def test_what_fired_does_not_fire_again_because_a_delay_now_moves_it_behind_the_change(self):
        # Its spread of two hours is one of an hour and some minutes: noon would fire again after one.
        spread = a_schedule(spread=2 * HOUR)
        before = standing(fire_count=1, recent=(NOON,), link=a_link(NOON + HOUR, index=1))
        now = NOON + MINUTE

        state = activated(spread, before=a_schedule(), state=before, now=now)

        assert state.link is not None
        assert state.link.nominal_at == NOON + HOUR
        assert state.link.at > NOON + HOUR
        assert (state.link.index, state.link.previous_at) == (1, NOON)

    def test_a_schedule_of_seconds_gets_a_spread_of_a_day(self):
        # Named so that its delay is one of hours.
        before = a_schedule(schedule_id="s2", rule=every(seconds=1))
        spread = replace(before, spread=DAY)
        assert spread_of(spread) > 12 * HOUR

        after = activated(spread, before=before, state=standing(fire_count=1, recent=(NOON,)), now=NOON)

        assert after.link is not None
        assert (after.link.nominal_at, after.link.at) == (NOON + SECOND, NOON + SECOND + spread_of(spread))

    def test_without_what_fired_before_a_delayed_fire_is_the_first_after_the_change(self):
        spread = a_schedule(spread=2 * HOUR)

        state = activated(spread, before=None, state=None, now=NOON + MINUTE)

        assert state.link is not None
        assert state.link.nominal_at <= NOON

    def test_the_slot_and_the_counters_are_kept_and_the_failures_forgotten(self):
        before = standing(
            holder="run",
            waiting="fire",
            misfire_count=2,
            skips={SkipReason.OVERLAP: 1},
            last_skip=(SkipReason.OVERLAP, NOON),
            failures=frozenset({"a", "b"}),
        )

        state = replaced(MINUTELY, before)

        assert (state.holder, state.waiting, state.misfire_count) == ("run", "fire", 2)
        assert (state.skips, state.last_skip) == ({SkipReason.OVERLAP: 1}, (SkipReason.OVERLAP, NOON))
        assert state.failures == frozenset()


class TestEndToStart:
    SCHEDULE = a_schedule(rule=every(minutes=10, from_end=True))

    def test_a_run_that_goes_on_is_awaited_by_the_new_version(self):
        awaited = a_link(NOON - MINUTE, index=3, is_awaited=True)
        before = standing(fire_count=4, recent=(NOON - MINUTE,), link=awaited)
        longer = replace(self.SCHEDULE, rule=every(minutes=30, from_end=True))

        state = activated(longer, before=self.SCHEDULE, state=before, now=NOON)

        assert (state.link, state.fire_count) == (awaited, 4)

    def test_a_run_that_has_not_come_due_is_dropped_and_decided_anew(self):
        awaited = a_link(NOON + MINUTE, index=3, previous_at=NOON - HOUR, is_awaited=True)
        before = standing(fire_count=4, recent=(NOON - HOUR, NOON + MINUTE), link=awaited)

        state = activated(self.SCHEDULE, before=self.SCHEDULE, state=before, now=NOON)

        assert state.fire_count == 3
        assert state.link == a_link(NOON + 10 * MINUTE, index=3, previous_at=NOON - HOUR)

    def test_a_schedule_that_no_longer_waits_for_its_runs_goes_on_by_the_clock(self):
        before = standing(fire_count=1, recent=(NOON - MINUTE,), link=a_link(NOON - MINUTE, is_awaited=True))

        state = activated(MINUTELY, before=self.SCHEDULE, state=before, now=NOON)

        assert state.link == a_link(NOON + MINUTE, index=1, previous_at=NOON - MINUTE)

    def test_a_schedule_that_begins_to_wait_for_its_runs_fires_an_interval_after_the_change(self):
        before = standing(fire_count=1, recent=(NOON,), link=a_link(NOON + MINUTE))

        state = activated(self.SCHEDULE, before=MINUTELY, state=before, now=NOON)

        assert state.link == a_link(NOON + 10 * MINUTE, index=1, previous_at=NOON)


class TestPauses:
    @pytest.mark.parametrize("status", [Status.PAUSED, Status.DELETED])
    def test_nothing_follows_in_a_schedule_that_is_stopped(self, status: Status):
        before = standing(
            fire_count=2, recent=(NOON, NOON + MINUTE), link=a_link(NOON + 2 * MINUTE), alarm_at=NOON + 2 * MINUTE
        )

        state = stopped(status, before=MINUTELY, state=before, now=NOON, note="for the night")

        assert (state.version, state.status, state.note) == (2, status, "for the night")
        assert (state.link, state.alarm_at) == (None, None)
        assert (state.fire_count, state.recent) == (1, (NOON,))
        assert state.cuts[-1] == Cut(2, NOON)

    def test_nothing_of_a_deleted_schedule_runs_once_it_is_created_again(self):
        deleted = stopped(Status.DELETED, before=MINUTELY, state=standing(version=3), now=NOON)

        state = activated(MINUTELY, before=None, state=deleted, now=NOON + MINUTE)

        for version in (-4, -3, 1, 2, 3):
            for fire_at in (NOON - MINUTE, NOON, NOON + MINUTE, NOON + 2 * MINUTE):
                assert not state.may_run(an_occurrence(version, fire_at))
        assert state.may_run(an_occurrence(-5, NOON))

    @pytest.mark.parametrize(
        ("status", "awaits"), [(Status.PAUSED, True), (Status.DELETED, False)], ids=["paused", "deleted"]
    )
    def test_a_run_that_goes_on_is_awaited_through_a_pause(self, status: Status, *, awaits: bool):
        waiting = a_schedule(rule=every(minutes=10, from_end=True))
        awaited = a_link(NOON - MINUTE, is_awaited=True)
        before = standing(fire_count=1, recent=(NOON - MINUTE,), link=awaited)

        state = stopped(status, before=waiting, state=before, now=NOON)
        assert state.link == (awaited if awaits else None)
        begun_again = activated(waiting, before=waiting if awaits else None, state=state, now=NOON + MINUTE)
        assert begun_again.link == (awaited if awaits else a_link(NOON + 11 * MINUTE))

    def test_a_run_that_has_not_begun_is_not_awaited_through_a_pause(self):
        waiting = a_schedule(rule=every(minutes=10, from_end=True))
        before = standing(fire_count=1, recent=(NOON + MINUTE,), link=a_link(NOON + MINUTE, is_awaited=True))

        state = stopped(Status.PAUSED, before=waiting, state=before, now=NOON)

        assert (state.link, state.fire_count) == (None, 0)

    def test_a_resumed_schedule_goes_on_after_now_and_catches_nothing_up(self):
        paused = standing(version=2, status=Status.PAUSED, link=None, fire_count=5, recent=(NOON - HOUR,))

        state = activated(MINUTELY, before=MINUTELY, state=paused, now=NOON, note="on again")

        assert (state.version, state.status, state.note) == (3, Status.ACTIVE, "on again")
        assert state.link == a_link(NOON + MINUTE, index=5, previous_at=NOON - HOUR)

    def test_pausing_behind_a_clock_that_was_ahead_drops_only_what_was_placed(self):
        ahead = NOON + 2 * MINUTE
        before = standing(changed_at=ahead, link=a_link(ahead + MINUTE), fire_count=7)

        assert stopped(Status.PAUSED, before=MINUTELY, state=before, now=NOON).fire_count == 7


def an_occurrence(version: int, fire_at: datetime) -> Occurrence:
    return Occurrence(schedule_id="nightly", fire_at=fire_at, nominal_at=fire_at, version=version)


def replaced(schedule: Schedule, state: ScheduleState, **options: Any) -> ScheduleState:
    """The state of a minutely schedule that is replaced at noon."""
    return activated(schedule, before=MINUTELY, state=state, **{"now": NOON, **options})


def standing(*, link: Link | None = None, **state: Any) -> ScheduleState:
    return a_state(link=link, **state)


class TestFiresThatAreMovedBehindAChange:
    SPREAD = a_schedule(rule=CronRule("0 9 * * *"), spread=timedelta(hours=12))

    def test_what_has_fired_does_not_fire_again_however_many_changes_follow(self):
        plain = a_schedule(rule=CronRule("0 9 * * *"))
        fired_at = datetime(2027, 3, 1, 9, tzinfo=UTC)
        state = a_state(link=a_link(fired_at + DAY, index=1), recent=(fired_at,), fire_count=1)
        spread_at = next_fire(self.SPREAD, after=fired_at)
        assert spread_at is not None
        assert spread_at.at.date() == fired_at.date()

        once = activated(self.SPREAD, before=plain, state=state, now=fired_at + MINUTE)
        twice = activated(self.SPREAD, before=self.SPREAD, state=once, now=fired_at + 2 * MINUTE)

        for after in (once, twice):
            assert after.link is not None
            assert after.link.nominal_at == fired_at + DAY
            assert after.fire_count == 1

    @pytest.mark.parametrize("status", [Status.PAUSED, Status.DELETED])
    def test_a_schedule_that_cannot_be_computed_any_more_can_be_stopped(self, status: Status):
        broken = a_schedule(timezone="Europe/Atlantis")
        state = a_state(link=a_link(NOON + DAY), recent=(NOON - DAY,), fire_count=1)

        assert stopped(status, before=broken, state=state, now=NOON).status is status
        assert activated(a_schedule(), before=broken, state=state, now=NOON).link is not None
