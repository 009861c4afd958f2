from dataclasses import replace
from datetime import datetime, time, timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.domain.errors import TooCostly
from functions.domain.instants import HOUR, MILLISECOND, MINUTE, SECOND, from_ms, to_ms
from functions.domain.jobs.occurrence import UNBOUND, Occurrence
from functions.domain.jobs.overlap import Overlap
from functions.domain.schedules import due_fires, firing
from functions.domain.schedules.due_fires import (
    ALARM_MARGIN,
    MISFIRE_GRACE,
    MOST_FIRES,
    MOST_MISSED,
    DueFires,
    alarm_at,
    decide,
    first_link,
    link_after_run,
    occurrence_job,
)
from functions.domain.schedules.firing import check_fires, fires
from functions.domain.schedules.rules import CronRule, Every, RecurrenceRule
from functions.domain.schedules.schedule import Misfire, Schedule, Window, WindowMode
from functions.domain.schedules.state import Link, SkipReason
from functions.domain.schedules.step_budget import STEPS_OF_A_TICK, Budget
from functions.domain.targets.flows import NamedFlow
from functions.domain.targets.options import Method, TargetOptions
from testkit.builders import LOCAL_WHEEL, NOON, a_link, a_schedule, a_template, every
from tests.wall_clock import local

GUARD = LOCAL_WHEEL.guard


class TestNearFires:
    def test_a_fire_that_is_guard_away_is_left_to_its_alarm(self):
        link = a_link(NOON, index=3, previous_at=NOON - HOUR)

        decided = plan_at(NOON - GUARD, link)

        assert decided == DueFires(link=link)

    def test_a_fire_that_is_nearer_than_guard_is_placed_and_the_next_is_the_link(self):
        decided = plan_at(NOON - GUARD + MILLISECOND, a_link(index=3, previous_at=NOON - HOUR))

        assert decided.kept == [a_link(index=3, previous_at=NOON - HOUR)]
        assert decided.link == a_link(NOON + HOUR, index=4, previous_at=NOON)
        assert decided.due_at == {}

    def test_every_fire_before_guard_is_placed_in_order_each_knowing_the_one_before(self):
        decided = plan_at(NOON, rule=every(minutes=1))

        assert decided.kept == [
            a_link(NOON),
            a_link(NOON + MINUTE, index=1, previous_at=NOON),
            a_link(NOON + 2 * MINUTE, index=2, previous_at=NOON + MINUTE),
        ]
        assert decided.link == a_link(NOON + 3 * MINUTE, index=3, previous_at=NOON + 2 * MINUTE)

    def test_all_near_fires_of_a_schedule_of_seconds_are_placed(self):
        decided = plan_at(NOON, rule=every(seconds=1))

        assert [link.at for link in decided.kept] == [NOON + number * SECOND for number in range(155)]
        assert decided.link == a_link(NOON + GUARD, index=155, previous_at=NOON + GUARD - SECOND)

    def test_a_schedule_that_ends_has_no_link_behind_its_last_fire(self):
        decided = plan_at(NOON, rule=every(minutes=1), end=NOON + 2 * MINUTE)

        assert [link.at for link in decided.kept] == [NOON, NOON + MINUTE]
        assert decided.link is None

    def test_what_moved_a_fire_is_kept_as_the_time_that_its_rule_named(self):
        link = a_link(NOON, nominal_at=NOON - 7 * SECOND)

        assert plan_at(NOON, link).kept == [link]

    def test_the_same_schedule_link_and_time_give_the_same_plan(self):
        schedule = a_schedule(rule=every(minutes=1), misfire=Misfire.COALESCE)
        now = NOON + HOUR

        assert decide(schedule, a_link(), now=now, guard=GUARD) == decide(schedule, a_link(), now=now, guard=GUARD)


class TestMissedFires:
    def test_a_fire_up_to_a_minute_late_is_not_missed(self):
        for misfire in Misfire:
            decided = plan_at(NOON + MISFIRE_GRACE, misfire=misfire)
            assert (decided.kept, decided.misfire_count, decided.skips) == ([a_link()], 0, {})

    def test_a_fire_more_than_a_minute_late_is_missed(self):
        decided = plan_at(NOON + MISFIRE_GRACE + MILLISECOND, misfire=Misfire.SKIP)

        assert (decided.kept, decided.misfire_count) == ([], 1)

    def test_fire_all_places_every_missed_fire_oldest_first_a_second_apart(self):
        now = NOON + 5 * MINUTE

        decided = plan_at(now, rule=every(minutes=1))

        assert [link.at for link in decided.kept] == [NOON + number * MINUTE for number in range(8)]
        assert [link.index for link in decided.kept] == list(range(8))
        assert decided.due_at == {NOON + number * MINUTE: now + number * SECOND for number in range(4)}
        assert (decided.misfire_count, decided.skips, decided.last_skip) == (4, {}, None)

    def test_skip_drops_what_was_missed_and_keeps_what_was_not(self):
        decided = plan_at(NOON + 5 * MINUTE, rule=every(minutes=1), misfire=Misfire.SKIP)

        assert [link.at for link in decided.kept] == [NOON + number * MINUTE for number in range(4, 8)]
        assert [link.index for link in decided.kept] == [0, 1, 2, 3]
        assert decided.kept[0].previous_at is None
        assert decided.skips == {SkipReason.MISSED: 4}
        assert decided.last_skip == (SkipReason.MISSED, NOON + 3 * MINUTE)
        assert decided.misfire_count == 4

    def test_coalesce_keeps_the_last_missed_fire_for_all(self):
        decided = plan_at(NOON + 5 * MINUTE, rule=every(minutes=1), misfire=Misfire.COALESCE)

        assert [link.at for link in decided.kept] == [NOON + number * MINUTE for number in range(3, 8)]
        assert [link.index for link in decided.kept] == [0, 1, 2, 3, 4]
        assert decided.due_at == {NOON + 3 * MINUTE: NOON + 5 * MINUTE}
        assert decided.skips == {SkipReason.COALESCED: 3}
        assert decided.last_skip == (SkipReason.COALESCED, NOON + 2 * MINUTE)
        assert decided.misfire_count == 4

    def test_coalesce_keeps_the_last_missed_fire_also_when_the_next_one_is_far(self):
        decided = plan_at(NOON + 2 * HOUR + 2 * MINUTE, misfire=Misfire.COALESCE)

        assert decided.kept == [a_link(NOON + 2 * HOUR)]
        assert decided.link == a_link(NOON + 3 * HOUR, index=1, previous_at=NOON + 2 * HOUR)
        assert decided.skips == {SkipReason.COALESCED: 2}

    def test_coalesce_keeps_the_last_missed_fire_also_when_the_schedule_has_ended(self):
        decided = plan_at(NOON + 5 * HOUR, misfire=Misfire.COALESCE, end=NOON + HOUR + SECOND)

        assert decided.kept == [a_link(NOON + HOUR)]
        assert decided.link is None

    @pytest.mark.parametrize("misfire", Misfire)
    def test_what_is_later_than_max_lateness_is_dropped_whatever_the_policy(self, misfire: Misfire):
        decided = plan_at(NOON + 5 * MINUTE, rule=every(minutes=1), misfire=misfire, max_lateness=3 * MINUTE)

        missed_in_time = {
            Misfire.FIRE_ALL: [NOON + 2 * MINUTE, NOON + 3 * MINUTE],
            Misfire.COALESCE: [NOON + 3 * MINUTE],
            Misfire.SKIP: [],
        }
        assert [link.at for link in decided.kept if link.at < NOON + 4 * MINUTE] == missed_in_time[misfire]
        assert decided.skips[SkipReason.TOO_LATE] == 2
        assert sum(decided.skips.values()) == 4 - len(missed_in_time[misfire])
        assert decided.misfire_count == 4

    @pytest.mark.parametrize("misfire", Misfire)
    def test_of_fires_that_are_all_too_late_none_is_kept(self, misfire: Misfire):
        decided = plan_at(NOON + 50 * MINUTE, misfire=misfire, max_lateness=40 * MINUTE)

        assert (decided.kept, decided.skips) == ([], {SkipReason.TOO_LATE: 1})
        assert decided.last_skip == (SkipReason.TOO_LATE, NOON)
        assert decided.link == a_link(NOON + HOUR)

    def test_a_fire_exactly_max_lateness_late_is_not_too_late(self):
        assert plan_at(NOON + 5 * MINUTE, max_lateness=5 * MINUTE).kept == [a_link()]
        assert plan_at(NOON + 5 * MINUTE + MILLISECOND, max_lateness=5 * MINUTE).kept == []

    def test_max_lateness_below_the_grace_holds_for_fires_that_are_not_missed(self):
        decided = plan_at(NOON + 31 * SECOND, max_lateness=30 * SECOND)

        assert (decided.kept, decided.skips, decided.misfire_count) == ([], {SkipReason.TOO_LATE: 1}, 0)

    def test_times_that_were_merged_into_a_fire_are_counted_once_it_is_decided(self):
        link = a_link(merged_count=2)

        far, near = plan_at(NOON - HOUR, link), plan_at(NOON, link)

        assert (far.skips, far.link) == ({}, link)
        assert near.skips == {SkipReason.MERGED: 2}
        assert near.last_skip == (SkipReason.MERGED, NOON)
        assert near.kept == [link]

    def test_times_that_the_clock_skips_are_merged_into_one_fire(self):
        # In the night to 14 March 2027 New York's clocks skip the hour after 2:00.
        before = datetime.fromisoformat("2027-03-14T06:50:00Z")
        schedule = a_schedule(rule=CronRule("0,20,40 2 * * *"), timezone="America/New_York")
        link = first_link(schedule, after=before)
        assert link is not None
        assert link.at == datetime.fromisoformat("2027-03-14T07:00:00Z")

        decided = decide(schedule, link, now=link.at, guard=GUARD)

        assert [kept.at for kept in decided.kept] == [link.at]
        assert decided.skips == {SkipReason.MERGED: 2}


class TestCatchingUp:
    def test_a_ring_places_so_many_missed_fires_and_the_link_goes_on_behind_them(self):
        decided = plan_at(NOON + 10 * HOUR, rule=every(minutes=1))

        assert len(decided.kept) == MOST_MISSED
        assert decided.link == a_link(
            NOON + MOST_MISSED * MINUTE, index=MOST_MISSED, previous_at=NOON + (MOST_MISSED - 1) * MINUTE
        )
        assert max(decided.due_at.values()) < NOON + 10 * HOUR + GUARD / 2

    def test_comes_due_one_after_the_other_place_each_missed_fire_once(self):
        found = rings(a_schedule(rule=every(minutes=1)), a_link(), now=NOON + 10 * HOUR)

        kept = [link for decided in found for link in decided.kept]
        assert [link.at for link in kept] == [NOON + number * MINUTE for number in range(603)]
        assert [link.index for link in kept] == list(range(603))
        assert [link.previous_at for link in kept] == [None, *(link.at for link in kept[:-1])]
        assert sum(decided.misfire_count for decided in found) == 599
        assert len(found) == 5

    @pytest.mark.parametrize("interval", [SECOND, 2 * SECOND, 5 * SECOND, 13 * SECOND])
    def test_a_schedule_of_seconds_places_more_than_comes_due_until_the_next_alarm(self, interval: timedelta):
        decided = plan_at(NOON + 10 * HOUR, rule=Every(interval=interval))

        next_ring = GUARD + ALARM_MARGIN + MINUTE
        assert len(decided.kept) > next_ring / interval
        assert all(due_at < NOON + 10 * HOUR + GUARD / 2 for due_at in decided.due_at.values())

    @pytest.mark.parametrize("misfire", [Misfire.SKIP, Misfire.COALESCE])
    @pytest.mark.parametrize("missed_count", [MOST_FIRES - 60, MOST_FIRES - 1, MOST_FIRES, MOST_FIRES + 1, 40_000])
    def test_however_many_were_missed_one_alarm_is_enough_for_those_that_are_dropped(
        self, missed_count: int, misfire: Misfire
    ):
        now = NOON + missed_count * SECOND + MISFIRE_GRACE

        decided = plan_at(now, rule=every(seconds=1), misfire=misfire)

        last_missed = [now - MISFIRE_GRACE - SECOND] * (misfire is Misfire.COALESCE)
        in_time = [now - MISFIRE_GRACE + number * SECOND for number in range(60 + 155)]
        assert [link.at for link in decided.kept] == [*last_missed, *in_time]
        assert decided.link is not None
        assert decided.link.at == now + GUARD

    @pytest.mark.parametrize("misfire", [Misfire.SKIP, Misfire.COALESCE])
    def test_many_missed_fires_of_a_schedule_that_has_ended_are_dropped_in_one_alarm(self, misfire: Misfire):
        decided = plan_at(NOON + 5 * HOUR, rule=every(seconds=1), misfire=misfire, end=NOON + HOUR)

        last = [NOON + HOUR - SECOND] * (misfire is Misfire.COALESCE)
        assert ([link.at for link in decided.kept], decided.link) == (last, None)

    def test_coalesce_keeps_the_last_missed_fire_of_many_that_are_not_evenly_spread(self):
        # Every second from noon to one o'clock, and then nothing until the next day.
        window = Window(start=NOON.time(), end=(NOON + HOUR).time())

        decided = plan_at(NOON + 5 * HOUR, rule=every(seconds=1), misfire=Misfire.COALESCE, windows=(window,))

        assert [link.at for link in decided.kept] == [NOON + HOUR - SECOND]
        assert decided.link is not None
        assert decided.link.at == NOON + timedelta(days=1)

    @pytest.mark.parametrize("misfire", Misfire)
    def test_many_fires_that_are_too_late_are_passed_over_in_one_alarm(self, misfire: Misfire):
        now = NOON + 5 * HOUR

        decided = plan_at(now, rule=every(seconds=1), misfire=misfire, max_lateness=90 * SECOND)

        in_time = [now - MISFIRE_GRACE + number * SECOND for number in range(60 + 155)]
        missed = {
            Misfire.FIRE_ALL: [now - (90 - number) * SECOND for number in range(30)],
            Misfire.COALESCE: [now - 61 * SECOND],
            Misfire.SKIP: [],
        }
        assert [link.at for link in decided.kept] == [*missed[misfire], *in_time]
        assert decided.skips[SkipReason.TOO_LATE] >= MOST_FIRES


class TestMaxRuns:
    def test_the_last_run_has_no_link_behind_it(self):
        decided = plan_at(NOON, a_link(index=4), rule=every(minutes=1), max_runs=6)

        assert [link.index for link in decided.kept] == [4, 5]
        assert decided.link is None

    def test_a_chain_that_has_had_its_runs_places_nothing_and_ends(self):
        assert plan_at(NOON, a_link(index=6), max_runs=6) == DueFires()

    def test_a_fire_that_is_dropped_is_no_run(self):
        decided = plan_at(NOON + 5 * MINUTE, rule=every(minutes=1), misfire=Misfire.SKIP, max_runs=3)

        assert [link.at for link in decided.kept] == [NOON + number * MINUTE for number in (4, 5, 6)]
        assert decided.link is None

    def test_the_one_fire_that_stands_for_the_missed_ones_may_be_the_last_run(self):
        decided = plan_at(NOON + 5 * MINUTE, rule=every(minutes=1), misfire=Misfire.COALESCE, max_runs=1)

        assert [link.at for link in decided.kept] == [NOON + 3 * MINUTE]
        assert decided.link is None


class TestEndToStart:
    def test_a_near_fire_is_placed_and_its_end_awaited(self):
        link = a_link(index=2, previous_at=NOON - HOUR)

        decided = plan_at(NOON - GUARD + MILLISECOND, link, rule=every(minutes=1, from_end=True))

        assert decided == DueFires(kept=[link], link=replace(link, is_awaited=True))

    def test_a_far_fire_is_left_to_its_alarm(self):
        decided = plan_at(NOON - GUARD, rule=every(minutes=1, from_end=True))

        assert decided == DueFires(link=a_link())

    @pytest.mark.parametrize("misfire", Misfire)
    def test_a_fire_is_placed_however_late_because_there_is_never_more_than_one(self, misfire: Misfire):
        decided = plan_at(NOON + 9 * HOUR, rule=every(minutes=1, from_end=True), misfire=misfire, max_lateness=MINUTE)

        assert decided == DueFires(kept=[a_link()], link=a_link(is_awaited=True))

    def test_the_next_fire_is_an_interval_after_the_end_of_the_run(self):
        schedule = a_schedule(rule=every(minutes=10, from_end=True))

        link = link_after_run(schedule, a_link(index=2, is_awaited=True), ended_at=NOON + 3 * MINUTE)

        assert link == a_link(NOON + 13 * MINUTE, index=3, previous_at=NOON)

    def test_no_fire_follows_the_last_run_or_the_end_of_the_schedule(self):
        rule = every(minutes=10, from_end=True)
        awaited = a_link(index=2, is_awaited=True)

        assert link_after_run(a_schedule(rule=rule, max_runs=3), awaited, ended_at=NOON) is None
        assert link_after_run(a_schedule(rule=rule, end=NOON + 10 * MINUTE), awaited, ended_at=NOON) is None


class TestAlarms:
    def test_the_alarm_of_a_far_fire_comes_due_with_it(self):
        assert alarm_at(a_schedule(), a_link(), now=NOON - GUARD, guard=GUARD) == NOON

    def test_the_alarm_of_a_fire_that_is_too_near_for_the_far_ring_comes_due_as_soon_as_it_may(self):
        now = NOON - GUARD + MILLISECOND

        assert alarm_at(a_schedule(), a_link(), now=now, guard=GUARD) == now + GUARD + ALARM_MARGIN

    def test_the_alarm_of_an_awaited_run_comes_due_when_the_next_could_begin_if_it_ended_at_once(self):
        schedule = a_schedule(rule=every(hours=1, from_end=True))

        assert alarm_at(schedule, a_link(is_awaited=True), now=NOON, guard=GUARD) == NOON + HOUR

    def test_the_alarm_of_a_run_that_takes_longer_comes_due_again(self):
        schedule = a_schedule(rule=every(hours=1, from_end=True))
        now = NOON + HOUR

        assert alarm_at(schedule, a_link(is_awaited=True), now=now, guard=GUARD) == now + GUARD + ALARM_MARGIN

    def test_the_alarm_of_the_last_awaited_run_comes_due_too_so_that_the_chain_comes_to_its_end(self):
        schedule = a_schedule(rule=every(hours=1, from_end=True), end=NOON + MINUTE)

        assert alarm_at(schedule, a_link(is_awaited=True), now=NOON, guard=GUARD) == NOON + GUARD + ALARM_MARGIN

    @given(
        ahead=st.timedeltas(-timedelta(days=30), timedelta(days=30)),
        interval=st.timedeltas(SECOND, timedelta(days=2)).map(lambda interval: interval // MILLISECOND * MILLISECOND),
        is_awaited=st.booleans(),
    )
    def test_no_alarm_comes_due_nearer_than_a_far_row_may_be(
        self, ahead: timedelta, interval: timedelta, *, is_awaited: bool
    ):
        schedule = a_schedule(rule=Every(interval=interval, from_end=is_awaited))
        link = a_link(NOON + ahead, is_awaited=is_awaited)

        assert alarm_at(schedule, link, now=NOON, guard=GUARD) - NOON >= GUARD


class TestJobs:
    def test_a_fire_becomes_the_job_of_its_template_under_a_name_of_its_own(self):
        schedule = a_schedule(overlap=Overlap.FORBID, pause_after_failures=3)

        job = occurrence_job(
            schedule, a_link(index=4, previous_at=NOON - HOUR, nominal_at=NOON - SECOND), version=7, wheel=LOCAL_WHEEL
        )

        assert (job.tenant, job.identity) == ("acme", "nightly:2027-03-01T12:00:00.000Z")
        assert (job.target, job.payload, job.retry) == (schedule.job.target, schedule.job.payload, schedule.job.retry)
        assert (job.scheduled_at, job.bucket, job.expires_at) == (NOON, LOCAL_WHEEL.bucket_of(NOON), None)
        assert job.shard == LOCAL_WHEEL.shard_of("acme", "nightly")
        assert job.occurrence == Occurrence(
            schedule_id="nightly",
            fire_at=NOON,
            nominal_at=NOON - SECOND,
            version=7,
            index=4,
            previous_at=NOON - HOUR,
            overlap=Overlap.FORBID,
            pause_after=3,
        )

    @pytest.mark.parametrize(
        ("expires_after", "max_lateness", "expires_at"),
        [
            (None, None, None),
            (MINUTE, None, NOON + MINUTE),
            (None, HOUR, NOON + HOUR),
            (MINUTE, HOUR, NOON + MINUTE),
            (HOUR, MINUTE, NOON + MINUTE),
        ],
    )
    def test_a_fire_does_not_run_later_than_its_job_and_its_schedule_allow(
        self, expires_after: timedelta | None, max_lateness: timedelta | None, expires_at: datetime | None
    ):
        schedule = a_schedule(job=a_template(expires_after=expires_after), max_lateness=max_lateness)

        assert occurrence_job(schedule, a_link(), version=1, wheel=LOCAL_WHEEL).expires_at == expires_at

    def test_a_fire_is_called_as_its_template_says_and_has_its_tags_and_flows(self):
        options = TargetOptions(method=Method.PUT, headers=(("X-Key", "hush"),))
        said = {"options": options, "tags": ("eu",), "flows": (NamedFlow(key="stripe"),)}

        job = occurrence_job(a_schedule(job=a_template(**said)), a_link(), version=1, wheel=LOCAL_WHEEL)

        assert {name: getattr(job, name) for name in said} == said

    def test_an_extra_run_expires_by_its_own_time_and_has_no_successor(self):
        schedule = a_schedule(
            rule=every(hours=1, from_end=True), job=a_template(expires_after=MINUTE), max_lateness=SECOND
        )
        later = NOON + timedelta(days=9)

        job = occurrence_job(schedule, a_link(), version=UNBOUND, wheel=LOCAL_WHEEL, due_at=later, suffix="backfill-1")

        assert job.identity == "nightly:2027-03-01T12:00:00.000Z:backfill-1"
        assert (job.scheduled_at, job.bucket) == (later, LOCAL_WHEEL.bucket_of(later))
        assert job.expires_at == later + MINUTE
        assert job.occurrence is not None
        assert (job.occurrence.fire_at, job.occurrence.is_end_to_start) == (NOON, False)

    def test_the_run_of_an_end_to_start_schedule_says_so(self):
        job = occurrence_job(a_schedule(rule=every(hours=1, from_end=True)), a_link(), version=1, wheel=LOCAL_WHEEL)

        assert job.occurrence is not None
        assert job.occurrence.is_end_to_start


A_RULE = st.sampled_from([every(seconds=7), every(minutes=1), every(minutes=25), CronRule("*/5 * * * *")])


@given(
    rule=A_RULE,
    misfire=st.sampled_from(Misfire),
    lateness=st.none() | st.timedeltas(SECOND, HOUR),
    jitter=st.sampled_from([timedelta(0), 5 * SECOND]),
    is_windowed=st.booleans(),
    nows=st.lists(st.timedeltas(timedelta(0), timedelta(hours=3)), min_size=1, max_size=6).map(sorted),
)
def test_whenever_a_chain_is_planned_each_of_its_fires_is_kept_or_counted_as_dropped_exactly_once(
    rule: Any,
    misfire: Misfire,
    lateness: timedelta | None,
    jitter: timedelta,
    *,
    is_windowed: bool,
    nows: list[timedelta],
):
    window = Window(start=(NOON - HOUR).time(), end=(NOON + 2 * HOUR).time())
    windows: dict[str, Any] = {"windows": (window,), "window_mode": WindowMode.SKIP} if is_windowed else {}
    schedule = a_schedule(rule=rule, misfire=misfire, max_lateness=lateness, jitter=jitter, **windows)
    link = first_link(schedule, after=NOON)
    assert link is not None
    begun_at = link.at
    kept: list[Link] = []
    skipped: dict[SkipReason, int] = {}
    for now in nows:
        decided = decide(schedule, link, now=NOON + now, guard=GUARD)
        kept += decided.kept
        for reason, passed_over in decided.skips.items():
            skipped[reason] = skipped.get(reason, 0) + passed_over
        assert decided.link is not None
        link = decided.link

    decided = fires_between(schedule, begun_at, link.at)
    dropped = sum(passed_over for reason, passed_over in skipped.items() if reason is not SkipReason.MERGED)
    assert [fire.at for fire in kept] == sorted({fire.at for fire in kept})
    assert {fire.at for fire in kept} <= set(decided)
    assert len(kept) + dropped == len(decided)
    assert skipped.get(SkipReason.MERGED, 0) == 0
    assert [fire.index for fire in kept] == list(range(len(kept)))
    assert link.index == len(kept)


@settings(deadline=None)
@given(
    interval=st.integers(1_000, 90_000).map(lambda number: number * MILLISECOND),
    missed=st.timedeltas(2 * MINUTE, 4 * HOUR),
    window_ends=st.none() | st.integers(1, 180),
    misfire=st.sampled_from([Misfire.COALESCE, Misfire.SKIP]),
)
def test_however_fires_are_spread_one_alarm_finds_the_last_that_was_missed(
    interval: timedelta, missed: timedelta, window_ends: int | None, misfire: Misfire
):
    now = from_ms(to_ms(NOON + missed))
    window = Window(start=NOON.time(), end=(NOON + (window_ends or 1) * MINUTE).time())
    schedule = a_schedule(
        rule=Every(interval=interval), misfire=misfire, start=NOON, windows=(window,) if window_ends else ()
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(due_fires, "MOST_FIRES", 7)
        decided = decide(schedule, a_link(), now=now, guard=GUARD)

    missed_fires = fires_between(schedule, NOON, now - MISFIRE_GRACE)
    near_fires = fires_between(schedule, now - MISFIRE_GRACE, now + GUARD)
    kept = missed_fires[-1:] if misfire is Misfire.COALESCE else []
    assert [link.at for link in decided.kept] == [*kept, *near_fires]


def plan_at(now: datetime, link: Link | None = None, **schedule: Any) -> DueFires:
    """What is planned at an instant for a schedule that goes on at noon."""
    return decide(a_schedule(**schedule), link or a_link(), now=now, guard=GUARD)


def rings(schedule: Schedule, link: Link, *, now: datetime) -> list[DueFires]:
    """The plans of rings at one instant, until the chain is carried on."""
    found: list[DueFires] = []
    following: Link | None = link
    while following is not None and following.at - now < GUARD:
        decided = decide(schedule, following, now=now, guard=GUARD)
        found.append(decided)
        following = decided.link
    return found


def fires_between(schedule: Schedule, first: datetime, end: datetime) -> list[datetime]:
    """The fires from one instant up to another."""
    found: list[datetime] = []
    for fire in fires(schedule, after=first - MILLISECOND, budget=Budget(10**9)):
        if fire.at >= end:
            return found
        found.append(fire.at)
    return found


def test_a_plan_whose_budget_is_spent_ends_behind_what_was_decided():
    schedule = a_schedule(rule=Every(interval=SECOND), start=NOON, misfire=Misfire.SKIP)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(due_fires, "STEPS_OF_A_TICK", 300)
        decided = decide(schedule, a_link(), now=NOON + timedelta(hours=1), guard=GUARD)

    assert decided.kept == []
    assert decided.skips == {SkipReason.MISSED: 101}
    assert decided.link is not None
    assert decided.link.at == NOON + 101 * SECOND


@pytest.mark.parametrize(
    "rule",
    [
        # As they were taken by a release that counted no steps; the second before the end of a count was stored.
        Every(interval=timedelta(days=1, minutes=1)),
        RecurrenceRule("FREQ=MINUTELY;INTERVAL=1439;BYHOUR=9;COUNT=2400", local("2024-01-01 00:00")),
    ],
)
def test_a_schedule_that_was_taken_before_goes_on_though_it_would_be_too_costly_today(rule: Every | RecurrenceRule):
    window = (Window(start=time(9, 55), end=time(9, 56)),) if isinstance(rule, Every) else ()
    schedule = a_schedule(rule=rule, windows=window)
    with pytest.raises(TooCostly):
        check_fires(schedule, now=NOON)

    link = first_link(schedule, after=NOON, budget=Budget(STEPS_OF_A_TICK))
    assert link is not None
    decided = decide(schedule, link, now=link.at, guard=GUARD)

    assert decided.kept == [link]
    assert decided.link is not None
    assert decided.link.at > link.at


def test_a_plan_whose_next_fire_cannot_be_found_is_too_costly(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(due_fires, "STEPS_OF_A_TICK", 2)

    with pytest.raises(TooCostly):
        plan_at(NOON, rule=every(minutes=1))


class TestInterruptions:
    """The limit of the processor's time may raise anywhere, however few steps were spent."""

    @staticmethod
    def interrupted(patch: pytest.MonkeyPatch, owner: Any, name: str, *, at: int) -> None:
        """The `at`-th call of a function is interrupted."""
        real, calls = getattr(owner, name), count(1)

        def once(*given: Any, **named: Any) -> Any:
            if next(calls) == at:
                raise TooCostly
            return real(*given, **named)

        patch.setattr(owner, name, once)

    def test_a_plan_that_is_interrupted_before_its_first_fire_passes_over_none(self, monkeypatch: pytest.MonkeyPatch):
        self.interrupted(monkeypatch, firing, "course_of", at=1)

        with pytest.raises(TooCostly):
            plan_at(NOON, rule=every(minutes=1))

    @pytest.mark.parametrize("at", [1, 2])
    def test_a_plan_that_is_interrupted_amid_a_decision_passes_over_none(
        self, monkeypatch: pytest.MonkeyPatch, at: int
    ):
        self.interrupted(monkeypatch, due_fires, "_link", at=at)

        with pytest.raises(TooCostly):
            plan_at(NOON, rule=every(minutes=1))

    def test_a_plan_that_is_interrupted_between_two_fires_goes_on_behind_what_was_decided(
        self, monkeypatch: pytest.MonkeyPatch
    ):
        whole = plan_at(NOON, rule=every(minutes=1))
        self.interrupted(monkeypatch, due_fires._Walk, "is_behind", at=3)

        decided = plan_at(NOON, rule=every(minutes=1))

        assert decided.kept == whole.kept[:2]
        assert decided.link == whole.kept[2]
