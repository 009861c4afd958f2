import itertools
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from functions.domain.instants import HOUR, MILLISECOND, MINUTE, SECOND
from functions.domain.jobs.claims import MESSAGE_LIFE, LedgerRow
from functions.domain.jobs.job import Delivery
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.occurrence import identity_of
from functions.domain.lifecycle import TERMINAL, State
from functions.domain.schedules.due_fires import ALARM_MARGIN, MOST_MISSED, first_link
from functions.domain.schedules.fire_figures import FireFigures, bucket_of
from functions.domain.schedules.rules import CronRule, Every
from functions.domain.schedules.schedule import Misfire, Schedule, WindowMode
from functions.domain.schedules.state import Link, SkipReason, Status
from functions.ports.ready_queue import Rejected
from functions.services.schedules.materialiser import Carried, Chain
from testkit.builders import NOON, a_link, a_schedule, a_template, a_window, an_occurrence_timer, every
from testkit.observed import CrashError, DeathError, Watched
from testkit.scheduler import World
from tests.short_run import one_in
from tests.unit.test_occurrences import heard_of

ON, REFUSED, BROKEN = Carried.ON, Carried.REFUSED, Carried.BROKEN
MINUTELY = a_schedule(rule=every(minutes=1))
WAITING = a_schedule(rule=every(minutes=10, from_end=True))
SOON_AFTER = a_schedule(rule=every(minutes=1, from_end=True))


@pytest.fixture
def world() -> World:
    return World()


class TestOrder:
    def test_near_fires_are_placed_before_the_alarm_and_the_alarm_before_the_record(self, world: World):
        begun(world, MINUTELY)
        calls = watched(world)

        assert revive(world, MINUTELY)

        assert calls == ["schedules.get", "ready.send", "timers.put_alarms", "schedules.advance"]

    def test_the_alarm_is_that_of_the_first_fire_that_is_far(self, world: World):
        begun(world, MINUTELY)

        revive(world, MINUTELY)

        assert fire_times(world) == [NOON, NOON + MINUTE, NOON + 2 * MINUTE]
        link = a_link(NOON + 3 * MINUTE, index=3, previous_at=NOON + 2 * MINUTE)
        assert [(alarm.alarm_at, alarm.version, alarm.link) for alarm in world.timers.alarms] == [(link.at, 1, link)]
        state = world.state(MINUTELY)
        assert (state.link, state.alarm_at, state.fire_count) == (link, link.at, 3)
        assert state.recent == (NOON, NOON + MINUTE, NOON + 2 * MINUTE)

    def test_a_fire_that_is_far_is_only_given_its_alarm(self, world: World):
        schedule = a_schedule()
        begun(world, schedule, link=a_link(NOON + HOUR))
        calls = watched(world)

        assert revive(world, schedule)

        assert calls == ["schedules.get", "timers.put_alarms", "schedules.advance"]
        assert world.state(schedule).alarm_at == NOON + HOUR

    def test_a_schedule_at_its_end_needs_no_alarm(self, world: World):
        schedule = replace(MINUTELY, max_runs=2)
        begun(world, schedule)
        calls = watched(world)

        assert revive(world, schedule)

        assert calls == ["schedules.get", "ready.send", "schedules.advance"]
        assert (world.state(schedule).link, world.state(schedule).alarm_at) == (None, None)

    def test_the_chains_of_many_schedules_are_carried_on_by_one_send_and_one_write(self, world: World):
        chains = [begun(world, a_schedule(schedule_id=f"s{number}", rule=every(minutes=1))) for number in range(7)]
        calls = watched(world)

        assert world.materialiser.materialise(chains) == [ON] * 7

        assert calls == ["ready.send", "timers.put_alarms", *["schedules.advance"] * 7]

    def test_nothing_to_carry_on_is_no_call(self, world: World):
        calls = watched(world)

        assert world.materialiser.materialise([]) == []
        assert calls == []

    @pytest.mark.parametrize(
        "state",
        [{"status": Status.PAUSED, "link": a_link()}, {"status": Status.DELETED}, {}],
        ids=["paused", "deleted", "at its end"],
    )
    def test_a_chain_that_does_not_go_on_is_left_alone(self, world: World, state: dict[str, Any]):
        world.store(MINUTELY, **state)
        calls = watched(world)

        assert revive(world, MINUTELY)
        assert calls == ["schedules.get"]

    def test_a_schedule_that_is_not_there_is_left_alone(self, world: World):
        assert revive(world, MINUTELY)

    def test_what_was_decided_is_counted(self, world: World):
        schedule = replace(MINUTELY, misfire=Misfire.SKIP)
        begun(world, schedule, link=a_link(NOON - 5 * MINUTE))

        revive(world, schedule)

        assert world.journal.counts == {"occurrences": 4, "misfires": 4, "skipped": 4}
        assert world.state(schedule).skips == {SkipReason.MISSED: 4}


CALLS = ["ready.send", "timers.put_alarms", "schedules.advance"]
INTERVALS = [timedelta(seconds=20), MINUTE, 7 * MINUTE]
EACH_DEATH = one_in(5, itertools.product(INTERVALS, [1, 2, 3], CALLS, ["before", "after"]))


class TestDeaths:
    @pytest.mark.parametrize("when", ["before", "after"])
    @pytest.mark.parametrize("call", CALLS)
    def test_a_death_at_any_call_loses_no_fire_once_the_chain_is_revived(self, world: World, call: str, when: str):
        begun(world, MINUTELY)
        dies(world, call, when=when)
        with pytest.raises(DeathError):
            revive(world, MINUTELY)

        world.clock.tick(SECOND)
        assert revive(world, MINUTELY)

        assert set(fire_times(world)) == {NOON, NOON + MINUTE, NOON + 2 * MINUTE}
        assert len({timer.job.key for timer in world.ready.sent}) == 3
        state = world.state(MINUTELY)
        assert state.link is not None
        assert [alarm.link for alarm in world.timers.alarms][-1] == state.link
        assert (state.link.at, state.alarm_at) == (NOON + 3 * MINUTE, NOON + 3 * MINUTE)
        assert (state.fire_count, state.skips) == (3, {})

    @pytest.mark.parametrize(("interval", "number", "call", "when"), EACH_DEATH)
    def test_whenever_a_scanner_dies_each_fire_of_its_schedules_has_its_effect_once(
        self, world: World, call: str, when: str, number: int, interval: timedelta
    ):
        schedules = [
            a_schedule(schedule_id=name, rule=Every(interval=interval), start=NOON + 5 * MINUTE)
            for name in ("one", "two", "three")
        ]
        for schedule in schedules:
            begun(world, schedule, link=a_link(NOON + 5 * MINUTE, index=0))
            assert revive(world, schedule)
        dies(world, call, when=when, number=number)

        deaths = live(world, 30 * MINUTE)

        assert deaths == 1
        for schedule in schedules:
            assert effects(world, schedule) == sorted(effects(world, schedule))
            assert_fired(world, schedule, NOON + 5 * MINUTE, interval, until=world.clock.now())

    @pytest.mark.parametrize("when", ["before", "after"])
    @pytest.mark.parametrize("call", CALLS)
    def test_whenever_its_creator_dies_a_schedule_begins_by_the_sweep(self, world: World, call: str, when: str):
        begun(world, MINUTELY, link=a_link(NOON + MINUTE), changed_at=NOON)
        dies(world, call, when=when)
        with pytest.raises(DeathError):
            revive(world, MINUTELY)

        live(world, 20 * MINUTE)

        assert_fired(world, MINUTELY, NOON + MINUTE, MINUTE, until=world.clock.now())

    def test_an_outage_of_hours_is_caught_up_fire_by_fire(self, world: World):
        schedule = a_schedule(rule=every(minutes=5))
        begun(world, schedule, link=a_link(NOON + 5 * MINUTE))
        assert revive(world, schedule)
        live(world, 12 * MINUTE)
        world.clock.tick(4 * HOUR)

        live(world, 30 * MINUTE)

        assert_fired(world, schedule, NOON + 5 * MINUTE, 5 * MINUTE, until=world.clock.now())

    def test_ticks_that_are_missed_leave_no_silence_behind(self, world: World):
        schedule = a_schedule(rule=every(minutes=5))
        begun(world, schedule, link=a_link(NOON + 5 * MINUTE))
        assert revive(world, schedule)
        world.clock.tick(9 * MINUTE)

        live(world, 30 * MINUTE)

        assert_fired(world, schedule, NOON + 5 * MINUTE, 5 * MINUTE, until=world.clock.now())


class TestRepeats:
    def test_a_step_that_is_repeated_places_the_same_fires_and_changes_no_state(self, world: World):
        chain = begun(world, MINUTELY)
        world.materialiser.materialise([chain])
        after = world.state(MINUTELY)

        assert world.materialiser.materialise([chain]) == [ON]

        assert world.state(MINUTELY) == after
        assert len(world.ready.sent) == 6
        assert len({timer.job.key for timer in world.ready.sent}) == 3
        assert len(alarm_keys(world)) == 1

    def test_the_same_chain_twice_in_one_call_is_recorded_once(self, world: World):
        chain = begun(world, MINUTELY)

        assert world.materialiser.materialise([chain, chain]) == [ON, ON]
        assert world.state(MINUTELY).fire_count == 3

    def test_a_chain_that_somebody_else_has_carried_on_further_is_left_there(self, world: World):
        chain = begun(world, MINUTELY)
        revive(world, MINUTELY)
        world.clock.tick(MINUTE)
        revive(world, MINUTELY)
        after = world.state(MINUTELY)

        assert world.materialiser.materialise([chain]) == [ON]
        assert world.state(MINUTELY) == after

    @pytest.mark.parametrize(
        "change", [{"version": 2}, {"version": 2, "status": Status.PAUSED, "link": None}], ids=["replaced", "paused"]
    )
    def test_a_version_that_another_has_followed_changes_nothing(self, world: World, change: dict[str, Any]):
        chain = begun(world, MINUTELY)
        world.store(MINUTELY, **{"link": a_link(NOON + HOUR), **change})
        after = world.state(MINUTELY)

        assert world.materialiser.materialise([chain]) == [ON]

        assert world.state(MINUTELY) == after
        assert {timer.job.occurrence and timer.job.occurrence.version for timer in world.ready.sent} == {1}

    def test_a_state_that_is_gone_is_nobody_s_to_carry_on(self, world: World):
        chain = begun(world, MINUTELY)
        del world.schedules.rows[MINUTELY.uid]

        assert world.materialiser.materialise([chain]) == [ON]

    def test_a_state_behind_its_alarm_is_brought_up_with_all_that_was_placed_for_it(self, world: World):
        # Its first step died after it had placed the alarm, and that alarm rings.
        chain = begun(world, MINUTELY)
        later = a_link(NOON + 3 * MINUTE, index=3, previous_at=NOON + 2 * MINUTE)
        world.clock.tick(2 * MINUTE)

        assert world.materialiser.materialise([replace(chain, link=later)]) == [ON]

        state = world.state(MINUTELY)
        assert state.link is not None
        assert (state.link.at, state.fire_count) == (NOON + 5 * MINUTE, 5)
        assert sorted(set(fire_times(world))) == [NOON + number * MINUTE for number in range(5)]

    def test_a_state_behind_its_alarm_that_cannot_be_brought_up_now_is_to_be_repeated(self, world: World):
        chain = begun(world, MINUTELY)
        before = world.state(MINUTELY)
        world.ready.refuses = lambda timer: (
            Rejected(timer, "throttled", is_permanent=False) if timer.job.scheduled_at == NOON else None
        )

        assert world.materialiser.materialise([replace(chain, link=a_link(NOON + 3 * MINUTE, index=3))]) == [REFUSED]
        assert world.state(MINUTELY) == before


class TestFigures:
    @pytest.mark.parametrize(("interval", "number", "call", "when"), EACH_DEATH)
    def test_whenever_a_scanner_dies_each_gap_is_counted_once(
        self, world: World, call: str, when: str, number: int, interval: timedelta
    ):
        schedule = a_schedule(rule=Every(interval=interval), start=NOON + 5 * MINUTE)
        begun(world, schedule, link=a_link(NOON + 5 * MINUTE))
        assert revive(world, schedule)
        dies(world, call, when=when, number=number)

        assert live(world, 30 * MINUTE) == 1

        state = world.state(schedule)
        assert state.fire_count > 2
        assert state.figures == FireFigures({bucket_of(interval): state.fire_count - 1})

    def test_two_scanners_that_carry_on_the_same_chain_count_its_gaps_once(self, world: World):
        chain = begun(world, MINUTELY, link=a_link(NOON + MINUTE))

        assert world.materialiser.materialise([chain, chain]) == [ON, ON]
        assert world.materialiser.materialise([chain]) == [ON]

        state = world.state(MINUTELY)
        assert (state.fire_count, state.figures) == (2, FireFigures({bucket_of(MINUTE): 1}))

    def test_gaps_of_a_step_that_died_before_it_recorded_are_counted_with_those_of_the_next(self, world: World):
        chain = begun(world, MINUTELY, link=a_link(NOON + MINUTE))
        later = a_link(NOON + 3 * MINUTE, index=2, previous_at=NOON + 2 * MINUTE)
        world.clock.tick(2 * MINUTE)

        assert world.materialiser.materialise([replace(chain, link=later)]) == [ON]

        state = world.state(MINUTELY)
        assert (state.fire_count, state.figures) == (4, FireFigures({bucket_of(MINUTE): 3}))

    def test_missed_fires_that_do_not_run_make_the_gap_between_those_that_do_longer(self, world: World):
        schedule = replace(MINUTELY, misfire=Misfire.SKIP)
        begun(world, schedule, link=a_link(NOON + MINUTE))
        assert revive(world, schedule)
        world.clock.tick(30 * MINUTE)

        assert revive(world, schedule)

        figures = world.state(schedule).figures
        assert figures == FireFigures({bucket_of(MINUTE): 4, bucket_of(27 * MINUTE): 1})

    def test_fires_that_waited_for_an_opening_are_counted(self, world: World):
        windows = (a_window("12:00", "12:02"),)
        schedule = a_schedule(rule=every(minutes=20), windows=windows, window_mode=WindowMode.DEFER, jitter=SECOND)
        begun(world, schedule, link=first_link(schedule, after=NOON - SECOND))

        assert revive(world, schedule)

        # The one of 12:00, and one for those that have waited since yesterday.
        state = world.state(schedule)
        assert state.fire_count == 2
        assert state.figures is not None
        assert state.figures.waits == 1
        assert state.figures.waited > 20 * MINUTE


class TestRefusals:
    def test_a_message_that_is_refused_for_now_leaves_the_state_to_be_repeated(self, world: World):
        chain = begun(world, MINUTELY)
        before = world.state(MINUTELY)
        world.ready.refuses = lambda timer: (
            Rejected(timer, "throttled", is_permanent=False) if timer.due_at == NOON + MINUTE else None
        )

        assert world.materialiser.materialise([chain]) == [REFUSED]

        assert world.state(MINUTELY) == before
        assert world.timers.alarms == []
        world.ready.refuses = lambda _: None
        assert revive(world, MINUTELY)
        assert set(fire_times(world)) == {NOON, NOON + MINUTE, NOON + 2 * MINUTE}
        assert world.state(MINUTELY).fire_count == 3

    def test_a_chain_that_is_refused_does_not_hold_up_another(self, world: World):
        other = replace(MINUTELY, schedule_id="other")
        chains = [begun(world, MINUTELY), begun(world, other)]
        world.ready.refuses = lambda timer: (
            Rejected(timer, "throttled", is_permanent=False) if "nightly" in timer.job.identity else None
        )

        assert world.materialiser.materialise(chains) == [REFUSED, ON]
        assert world.state(other).fire_count == 3

    def test_a_fire_that_the_queue_will_never_take_is_skipped_and_the_chain_goes_on(self, world: World):
        begun(world, MINUTELY)
        world.ready.refuses = lambda timer: (
            Rejected(timer, "too long", is_permanent=True) if timer.due_at == NOON + MINUTE else None
        )

        assert revive(world, MINUTELY)

        state = world.state(MINUTELY)
        assert state.skips == {SkipReason.REFUSED: 1}
        assert state.last_skip == (SkipReason.REFUSED, NOON + MINUTE)
        assert state.link is not None
        assert state.link.at == NOON + 3 * MINUTE
        assert fire_times(world) == [NOON, NOON + 2 * MINUTE]
        assert world.events("fire_refused") == [{"schedule": "acme#nightly", "fault": "too long"}]
        assert [(ending.due_at, ending.outcome, ending.reason) for ending in world.trail.endings] == [
            (NOON + MINUTE, State.SKIPPED, SkipReason.REFUSED)
        ]
        assert world.journal.counts["skipped"] == 1

    def test_an_alarm_that_is_not_written_is_tried_again_in_the_same_step(self, world: World):
        begun(world, MINUTELY)
        answers = iter([True, False])
        world.timers.unwritten = lambda _: next(answers)

        assert revive(world, MINUTELY)
        assert [alarm.alarm_at for alarm in world.timers.alarms] == [NOON + 3 * MINUTE]
        assert len(world.ready.sent) == 3

    def test_a_chain_whose_alarm_is_never_written_is_not_recorded(self, world: World):
        begun(world, MINUTELY)
        before = world.state(MINUTELY)
        world.timers.unwritten = lambda _: True

        assert not revive(world, MINUTELY)

        assert world.state(MINUTELY) == before
        assert set(fire_times(world)) == {NOON, NOON + MINUTE, NOON + 2 * MINUTE}

    def test_a_fire_whose_alarm_was_written_too_late_is_sent(self, world: World):
        fire_at = NOON + world.wheel.guard + SECOND
        schedule = a_schedule(rule=every(hours=1, phase=world.wheel.guard + SECOND))
        begun(world, schedule, link=a_link(fire_at))
        world.timers.put_takes = 2 * SECOND

        assert revive(world, schedule)

        assert fire_times(world) == [fire_at]
        assert [alarm.alarm_at for alarm in world.timers.alarms] == [fire_at, fire_at + HOUR]
        state = world.state(schedule)
        assert state.link is not None
        assert (state.link.at, state.alarm_at, state.fire_count) == (fire_at + HOUR, fire_at + HOUR, 1)

    def test_an_alarm_that_finished_at_the_last_instant_is_in_time(self, world: World):
        fire_at = NOON + world.wheel.guard + 2 * SECOND
        schedule = a_schedule(rule=every(hours=1, phase=world.wheel.guard + 2 * SECOND))
        begun(world, schedule, link=a_link(fire_at))
        world.timers.put_takes = 2 * SECOND

        assert revive(world, schedule)
        assert world.ready.sent == []

    @pytest.mark.parametrize("sign", [1, -1])
    def test_by_a_skewed_clock_near_fires_are_sent_and_no_alarm_is_placed(self, world: World, sign: int):
        begun(world, MINUTELY)
        before = world.state(MINUTELY)
        world.clock.known_offset = sign * (world.wheel.skew / 2 + MILLISECOND)

        assert not revive(world, MINUTELY)

        assert set(fire_times(world)) == {NOON, NOON + MINUTE, NOON + 2 * MINUTE}
        assert (world.timers.alarms, world.state(MINUTELY)) == ([], before)
        world.clock.known_offset = world.wheel.skew / 2
        assert revive(world, MINUTELY)

    def test_an_alarm_whose_answer_says_that_the_clock_is_skewed_is_not_relied_on(self, world: World):
        schedule = a_schedule()
        begun(world, schedule, link=a_link(NOON + HOUR))

        def learn(_: object) -> bool:
            world.clock.known_offset = world.wheel.skew
            return False

        world.timers.unwritten = learn

        assert not revive(world, schedule)
        assert world.state(schedule).alarm_at is None

    def test_a_schedule_that_cannot_be_computed_is_passed_and_reported_of_and_holds_up_no_other(self, world: World):
        # Its time zone was known when it was put.
        lost = a_schedule(schedule_id="lost", rule=CronRule("* * * * *"), timezone="Mars/Olympus")
        lost_and_waiting = a_schedule(
            schedule_id="waiting", rule=every(minutes=1, from_end=True), timezone="Mars/Olympus"
        )
        chains = [
            begun(world, lost),
            begun(world, lost_and_waiting, link=a_link(is_awaited=True), fire_count=1),
            begun(world, MINUTELY),
        ]

        assert world.materialiser.materialise(chains) == [BROKEN, BROKEN, ON]

        assert world.state(MINUTELY).fire_count == 3
        assert world.state(lost).link == a_link()
        assert world.state(lost_and_waiting).link == a_link(is_awaited=True)
        assert [event["schedule"] for event in world.events("chain_broken")] == ["acme#lost", "acme#waiting"]
        assert world.journal.counts["chains_broken"] == 2

    def test_what_was_missed_is_not_refused_by_a_skewed_clock_because_all_of_it_is_near(self, world: World):
        schedule = a_schedule(rule=every(seconds=1), end=NOON + HOUR)
        begun(world, schedule)
        world.clock.tick(2 * HOUR)
        world.clock.known_offset = world.wheel.skew

        assert not revive(world, schedule)

        assert world.state(schedule).skips == {}
        assert world.rows.rows == {}
        assert world.events("fire_refused") == []
        assert len(world.ready.sent) > MOST_MISSED

    def test_an_error_of_a_store_is_raised_and_leaves_the_state_to_be_repeated(self, world: World):
        begun(world, MINUTELY)
        before = world.state(MINUTELY)
        world.ready.refuses = lambda _: crash()

        with pytest.raises(CrashError):
            revive(world, MINUTELY)

        assert world.state(MINUTELY) == before


class TestCatchingUp:
    def test_what_was_missed_is_placed_so_many_an_alarm_and_the_alarm_comes_due_as_soon_as_it_may(self, world: World):
        begun(world, MINUTELY)
        world.clock.tick(200 * MINUTE)

        assert revive(world, MINUTELY)

        assert len(world.ready.sent) == MOST_MISSED < 200
        alarm_at = world.clock.now() + world.wheel.guard + ALARM_MARGIN
        assert [alarm.alarm_at for alarm in world.timers.alarms] == [alarm_at]
        state = world.state(MINUTELY)
        assert state.link == a_link(
            NOON + MOST_MISSED * MINUTE, index=MOST_MISSED, previous_at=NOON + (MOST_MISSED - 1) * MINUTE
        )
        assert (state.alarm_at, state.misfire_count) == (alarm_at, MOST_MISSED)

    def test_the_next_alarm_goes_on_where_the_last_one_stopped(self, world: World):
        begun(world, MINUTELY)
        world.clock.tick(200 * MINUTE)
        revive(world, MINUTELY)
        world.clock.tick(world.wheel.guard)

        assert revive(world, MINUTELY)

        assert fire_times(world) == [NOON + number * MINUTE for number in range(206)]
        assert world.state(MINUTELY).fire_count == 206

    def test_missed_fires_go_out_oldest_first_a_second_apart_and_are_late_by_their_own_time(self, world: World):
        begun(world, MINUTELY)
        world.clock.tick(10 * MINUTE)
        now = world.clock.now()

        revive(world, MINUTELY)

        missed = world.ready.sent[:9]
        assert [timer.due_at for timer in missed] == [now + number * SECOND for number in range(9)]
        assert [timer.job.scheduled_at for timer in missed] == [NOON + number * MINUTE for number in range(9)]

    def test_one_fire_for_all_that_was_missed_is_placed_whatever_was_missed(self, world: World):
        schedule = replace(MINUTELY, misfire=Misfire.COALESCE)
        begun(world, schedule)
        world.clock.tick(200 * MINUTE)

        assert revive(world, schedule)

        assert fire_times(world) == [NOON + number * MINUTE for number in range(198, 203)]
        assert world.state(schedule).skips == {SkipReason.COALESCED: 198}


class TestEndToStart:
    def test_a_fire_is_sent_and_its_alarm_comes_due_when_the_next_could_begin(self, world: World):
        begun(world, WAITING)

        assert revive(world, WAITING)

        awaited = a_link(is_awaited=True)
        assert fire_times(world) == [NOON]
        assert [(alarm.alarm_at, alarm.link) for alarm in world.timers.alarms] == [(NOON + 10 * MINUTE, awaited)]
        state = world.state(WAITING)
        assert (state.link, state.alarm_at, state.fire_count) == (awaited, NOON + 10 * MINUTE, 1)

    @pytest.mark.parametrize(
        "row",
        [
            None,
            LedgerRow(state=State.SCHEDULED),
            LedgerRow(state=State.RUNNING, lease_until=NOON),
            LedgerRow(state=State.RETRYING, attempt=1, updated_at=NOON),
        ],
        ids=["no row", "released", "running", "retrying"],
    )
    def test_while_its_run_has_not_ended_its_alarm_is_placed_again(self, world: World, row: LedgerRow | None):
        awaited = begun(world, WAITING, link=a_link(is_awaited=True), fire_count=1)
        if row is not None:
            world.ledger.rows[run_key(WAITING, NOON)] = row
        world.clock.tick(10 * MINUTE)

        assert revive(world, WAITING)

        alarm_at = world.clock.now() + world.wheel.guard + ALARM_MARGIN
        assert world.ready.sent == []
        assert [(alarm.alarm_at, alarm.link) for alarm in world.timers.alarms] == [(alarm_at, awaited.link)]
        assert (world.state(WAITING).link, world.state(WAITING).alarm_at) == (awaited.link, alarm_at)

    @pytest.mark.parametrize("state", sorted(TERMINAL))
    def test_however_its_run_has_ended_the_next_fire_is_an_interval_later(self, world: World, state: State):
        begun(world, WAITING, link=a_link(is_awaited=True), fire_count=1)
        world.ledger.rows[run_key(WAITING, NOON)] = LedgerRow(state=state, updated_at=NOON + 3 * MINUTE)
        world.clock.tick(3 * MINUTE)

        assert revive(world, WAITING)

        link = a_link(NOON + 13 * MINUTE, index=1, previous_at=NOON)
        assert world.ready.sent == []
        assert [(alarm.alarm_at, alarm.link) for alarm in world.timers.alarms] == [(link.at, link)]
        assert world.state(WAITING).link == link

    def test_a_run_that_ended_before_its_schedule_was_resumed_is_followed_an_interval_after_that(self, world: World):
        # Stored at noon.
        begun(world, WAITING, link=a_link(NOON - HOUR, is_awaited=True), fire_count=1)
        ended = LedgerRow(state=State.SUCCEEDED, updated_at=NOON - 30 * MINUTE)
        world.ledger.rows[run_key(WAITING, NOON - HOUR)] = ended

        assert revive(world, WAITING)

        assert world.state(WAITING).link == a_link(NOON + 10 * MINUTE, index=1, previous_at=NOON - HOUR)

    def test_a_next_fire_that_is_near_is_sent_in_the_same_step(self, world: World):
        schedule = a_schedule(rule=every(minutes=1, from_end=True))
        begun(world, schedule, link=a_link(is_awaited=True), fire_count=1)
        world.ledger.rows[run_key(schedule, NOON)] = LedgerRow(state=State.SUCCEEDED, updated_at=NOON + 3 * SECOND)
        world.clock.tick(3 * SECOND)

        assert revive(world, schedule)

        assert fire_times(world) == [NOON + 63 * SECOND]
        assert world.state(schedule).link == a_link(NOON + 63 * SECOND, index=1, previous_at=NOON, is_awaited=True)

    def test_a_run_of_which_no_message_can_be_left_is_awaited_no_longer(self, world: World):
        begun(world, WAITING, link=a_link(is_awaited=True), fire_count=1)
        world.clock.tick(MESSAGE_LIFE + world.wheel.skew)
        assert revive(world, WAITING)
        assert world.state(WAITING).link == a_link(is_awaited=True)

        world.clock.tick(MILLISECOND)
        assert revive(world, WAITING)

        assert world.state(WAITING).link == a_link(NOON + MESSAGE_LIFE + 10 * MINUTE, index=1, previous_at=NOON)

    @pytest.mark.parametrize("many", [1, 9], ids=["read one by one", "read together"])
    def test_a_run_of_which_no_message_can_be_left_is_brought_to_its_end(self, world: World, many: int):
        schedules = [replace(WAITING, schedule_id=f"s{number}") for number in range(many)]
        chains = [begun(world, schedule, link=a_link(is_awaited=True), fire_count=1) for schedule in schedules]
        runs = [an_occurrence_timer(schedule) for schedule in schedules]
        for run in runs:
            world.ledger.claim(run, owner="dead", lease_until=NOON + MINUTE, now=NOON)
        world.clock.tick(MESSAGE_LIFE + MINUTE + world.wheel.skew)
        world.materialiser.materialise(chains)
        assert {row.state for row in world.ledger.rows.values()} == {State.RUNNING}

        world.clock.tick(MILLISECOND)
        world.materialiser.materialise(chains)

        assert {row.state for row in world.ledger.rows.values()} == {State.CANCELLED}
        assert {ending.job_id: (ending.outcome, ending.reason) for ending in world.trail.endings} == {
            job_id_of(run.job): (State.CANCELLED, "abandoned") for run in runs
        }
        follow = a_link(world.clock.now() + 10 * MINUTE, index=1, previous_at=NOON)
        assert [world.state(schedule).link for schedule in schedules] == [follow] * many

    @pytest.mark.parametrize("is_seen_settled", [True, False], ids=["looked at again", "seen before it ended"])
    def test_whoever_repeats_giving_a_run_up_finds_the_same_next_fire(self, world: World, is_seen_settled: bool):
        chain = begun(world, SOON_AFTER, link=a_link(is_awaited=True), fire_count=1)
        run = an_occurrence_timer(SOON_AFTER)
        world.ledger.claim(run, owner="dead", lease_until=NOON + MINUTE, now=NOON)
        seen = world.row(run.job)
        world.clock.tick(2 * MESSAGE_LIFE)

        def die(call: str) -> None:
            if call == "schedules.advance":
                raise CrashError

        dying: Any = Watched(world.schedules, "schedules", before=die, after=lambda _: None)
        replace(world.materialiser, schedules=dying).materialise([chain])
        world.clock.tick(35 * SECOND)
        if not is_seen_settled:
            # By a read that is behind.
            world.ledger.get = lambda _: seen  # pyright: ignore[reportAttributeAccessIssue]
        world.materialiser.materialise([chain])

        assert len({timer.job.identity for timer in world.ready.sent}) == 1
        endings = [(ending.job_id, ending.attempt, ending.reason) for ending in world.trail.endings]
        assert set(endings) == {(job_id_of(run.job), 1, "abandoned")}
        assert len(endings) == 2  # under the same name: whoever gave it up may have died before its line was sent

    def test_a_row_that_nobody_can_make_sense_of_holds_up_no_other_chain(self, world: World):
        schedules = [replace(WAITING, schedule_id=f"s{number}") for number in range(3)]
        chains = [begun(world, schedule, link=a_link(is_awaited=True), fire_count=1) for schedule in schedules]
        for schedule in schedules:
            run = an_occurrence_timer(schedule)
            world.ledger.claim(run, owner="dead", lease_until=NOON + MINUTE, now=NOON)
        broken = run_key(schedules[1], NOON)
        world.ledger.rows[broken] = replace(world.ledger.rows[broken], job_id="")
        world.clock.tick(2 * MESSAGE_LIFE)

        assert world.materialiser.materialise(chains) == [Carried.ON, Carried.REFUSED, Carried.ON]
        [event] = world.events("run_not_given_up")
        assert event["schedule"] == schedules[1].uid
        assert str(event["error"]).startswith("InvalidJobId at ")

    def test_a_run_that_is_heard_of_just_then_is_awaited_on(self, world: World):
        chain = begun(world, WAITING, link=a_link(is_awaited=True), fire_count=1)
        run = an_occurrence_timer(WAITING)
        world.ledger.claim(run, owner="dead", lease_until=NOON + MINUTE, now=NOON)
        world.clock.tick(2 * MESSAGE_LIFE)

        world.ledger = heard_of(world, run)
        world.materialiser.materialise([chain])

        assert (world.state(WAITING).link, world.trail.endings) == (chain.link, [])

    def test_the_last_run_ends_the_chain(self, world: World):
        schedule = replace(WAITING, max_runs=1)
        begun(world, schedule, link=a_link(is_awaited=True), fire_count=1)
        world.ledger.rows[run_key(schedule, NOON)] = LedgerRow(state=State.SUCCEEDED, updated_at=NOON)

        assert revive(world, schedule)
        assert world.state(schedule).link is None

    def test_a_fire_that_the_queue_will_never_take_is_not_awaited(self, world: World):
        begun(world, WAITING)
        world.ready.refuses = lambda timer: Rejected(timer, "too long", is_permanent=True)

        assert revive(world, WAITING)

        state = world.state(WAITING)
        assert state.skips == {SkipReason.REFUSED: 1}
        assert state.link == a_link(NOON + 10 * MINUTE, index=1, previous_at=NOON)
        assert state.alarm_at == NOON + 10 * MINUTE

    @pytest.mark.parametrize("number", [1, 5])
    def test_the_runs_of_many_schedules_are_asked_for(self, world: World, number: int):
        schedules = [replace(WAITING, schedule_id=f"s{index}") for index in range(number)]
        chains = [begun(world, schedule, link=a_link(is_awaited=True), fire_count=1) for schedule in schedules]
        ended = LedgerRow(state=State.SUCCEEDED, updated_at=NOON + MINUTE)
        world.ledger.rows[run_key(schedules[0], NOON)] = ended

        assert world.materialiser.materialise(chains) == [ON] * number

        links = [world.state(schedule).link for schedule in schedules]
        assert links == [
            a_link(NOON + 11 * MINUTE, index=1, previous_at=NOON),
            *[a_link(is_awaited=True)] * (number - 1),
        ]

    @pytest.mark.parametrize("when", ["before", "after"])
    @pytest.mark.parametrize("call", CALLS)
    def test_whenever_somebody_dies_runs_follow_each_other_by_the_interval(self, world: World, call: str, when: str):
        schedule = a_schedule(rule=every(minutes=4, from_end=True))
        begun(world, schedule, link=a_link(NOON + 4 * MINUTE))
        assert revive(world, schedule)
        dies(world, call, when=when)

        deaths = live(world, 45 * MINUTE)

        ran = effects(world, schedule)
        assert deaths == 1
        assert len(ran) == len(set(ran)) >= 6
        gaps = [after - before for before, after in pairwise(ran)]
        assert min(gaps) >= 4 * MINUTE
        assert max(gaps) <= 4 * MINUTE + 6 * MINUTE


@pytest.mark.parametrize("delivery", Delivery)
def test_a_fire_is_placed_with_the_delivery_of_its_template(world: World, delivery: Delivery):
    schedule = a_schedule(job=a_template(delivery=delivery))
    begun(world, schedule)

    revive(world, schedule)

    assert [timer.job.delivery for timer in world.ready.sent] == [delivery]


class TestManyChains:
    def test_of_many_fires_only_some_are_placed_before_their_advances(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr("functions.services.schedules.materialiser.MOST_AT_ONCE", 5)
        chains = [self.chain(world, number) for number in range(4)]

        assert world.materialiser.materialise(chains) == [ON, ON, REFUSED, REFUSED]
        assert world.materialiser.materialise(chains[2:]) == [ON, ON]
        assert len(fire_times(world)) == 4 * 3

    def test_a_store_that_fails_for_one_schedule_fails_no_other(self, world: World, monkeypatch: pytest.MonkeyPatch):
        chains = [self.chain(world, number) for number in range(3)]
        advance = world.schedules.advance

        def failing(key: str, *args: Any, **options: Any) -> Any:
            if key == chains[1].stored.key:
                raise CrashError
            return advance(key, *args, **options)

        monkeypatch.setattr(world.schedules, "advance", failing)

        assert world.materialiser.materialise(chains) == [ON, REFUSED, ON]

    def chain(self, world: World, number: int) -> Chain:
        return begun(world, a_schedule(schedule_id=f"s{number}", rule=every(minutes=1)))


def begun(world: World, schedule: Schedule, *, link: Link | None = None, **state: Any) -> Chain:
    """A stored schedule that goes on at noon, of which nothing has been placed."""
    stored = world.store(schedule, link=link or a_link(), **state)
    return Chain(stored, link or a_link())


def revive(world: World, schedule: Schedule) -> bool:
    return world.materialiser.revive(schedule.uid) is not REFUSED


def watched(
    world: World, *, before: Callable[[str], None] = lambda _: None, after: Callable[[str], None] = lambda _: None
) -> list[str]:
    """The calls that are made to the stores from now on."""
    calls: list[str] = []

    def note(call: str) -> None:
        calls.append(call)
        before(call)

    for name in ("ready", "timers", "schedules"):
        setattr(world, name, Watched(getattr(world, name), name, note, after))
    return calls


def dies(world: World, call: str, *, when: str, number: int = 1) -> None:
    """Let the process die at the nth such call from now on, once."""
    left = [number]

    def die(made: str) -> None:
        left[0] -= made == call
        if made == call and left[0] == 0:
            raise DeathError

    watched(world, before=die) if when == "before" else watched(world, after=die)


def live(world: World, duration: timedelta) -> int:
    """Let time pass: a scan of every shard and a sweep a minute, workers all the time. How many processes died."""
    deaths = 0
    end = world.clock.now() + duration
    while world.clock.now() < end:
        if world.clock.now().second < 5:
            for process in (lambda: world.scan(0), lambda: world.scan(1), world.heal):
                try:
                    process()
                except DeathError:
                    deaths += 1
        while any(message.visible_at <= world.clock.instant for message in world.ready.messages.values()):
            try:
                world.receive_and_work()
            except DeathError:
                deaths += 1
        world.clock.tick(5 * SECOND)
    return deaths


def effects(world: World, schedule: Schedule) -> list[datetime]:
    """When the fires of a schedule had their effects, in the order in which they did."""
    return [call.scheduled_at for call in world.calls if call.idempotency_key.startswith(f"{schedule.uid}:")]


def assert_fired(world: World, schedule: Schedule, first: datetime, interval: timedelta, *, until: datetime) -> None:
    """Every fire that is due by now has had its effect, once."""
    due: list[datetime] = []
    at = first
    while at < until - 5 * SECOND:
        due.append(at)
        at += interval
    ran = effects(world, schedule)
    assert sorted(ran) == due or sorted(ran) == [*due, at]


def fire_times(world: World) -> list[datetime]:
    return [timer.job.scheduled_at for timer in world.ready.sent]


def alarm_keys(world: World) -> set[str]:
    return {key for rows in world.rows.rows.values() for key in rows}


def run_key(schedule: Schedule, fire_at: datetime) -> str:
    return f"{schedule.tenant}#{identity_of(schedule.schedule_id, fire_at)}"


def crash() -> Rejected:
    raise CrashError
