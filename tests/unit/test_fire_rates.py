"""How often a schedule fires in an hour in which it fires most, and what it counts for."""

from bisect import bisect_left
from dataclasses import replace
from datetime import time, timedelta
from itertools import takewhile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.domain.schedules.fire_rates import fires_an_hour, share_of
from functions.domain.schedules.firing import fires
from functions.domain.schedules.load import Share
from functions.domain.schedules.rules import At, CronRule, Poisson, RecurrenceRule
from functions.domain.schedules.schedule import Calendar, Schedule, Weekday, Window, WindowMode
from functions.domain.schedules.state import ScheduleState, Status
from functions.domain.schedules.step_budget import Budget
from testkit.builders import NOON, OFFICE, a_link, a_schedule, a_state, a_window, every

DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
SHORT = a_window("09:00", "09:20", "mon tue wed thu fri")
LONG = a_window("09:00", "14:00", "sat")
NIGHT = a_window("23:50", "00:55", "sun")
SCATTERED = tuple(a_window(f"{hour}:{minute}0", f"{hour}:{minute}2") for hour in ("04", "05") for minute in (0, 2, 4))
EACH = ",".join(map(str, range(60)))


def rrule(text: str) -> RecurrenceRule:
    return RecurrenceRule(text, starts_at=NOON.replace(tzinfo=None))


def busiest_hour(schedule: Schedule, *, days: int) -> int:
    """Its fires in the hour that has most, in so many days from its start on."""
    end = NOON + days * DAY
    found = [
        fire.at for fire in takewhile(lambda fire: fire.at < end, fires(schedule, after=NOON, budget=Budget(10**9)))
    ]
    return max((bisect_left(found, at + HOUR) - number for number, at in enumerate(found)), default=0)


@pytest.mark.parametrize(
    ("rule", "parts", "an_hour"),
    [
        (every(seconds=1), {}, 3_600),
        (every(seconds=7), {}, 515),
        (every(minutes=5), {}, 12),
        (every(hours=1), {}, 1),
        (every(days=400), {}, 1),
        (every(seconds=10, from_end=True), {}, 360),
        (At(NOON + HOUR), {}, 1),
        (CronRule("* * * * *"), {}, 60),
        (CronRule("*/5 * * * *"), {}, 12),
        (CronRule("0 3 * * *"), {}, 1),
        (CronRule("0,1 3 * * *"), {}, 2),
        (CronRule("0 0 29 2 *"), {}, 1),
        (CronRule("* * * * *"), {"windows": (OFFICE,)}, 60),
        (CronRule("30 * * * *"), {"windows": (OFFICE,), "window_mode": WindowMode.DEFER}, 2),
        (rrule("FREQ=MINUTELY;INTERVAL=2"), {}, 30),
        (rrule("FREQ=DAILY;BYHOUR=9;BYMINUTE=0,20,40"), {}, 3),
        (Poisson(24), {}, 1),
        (Poisson(86_400), {}, 3_600),
        (Poisson(24), {"windows": (a_window("09:00", "10:00"),), "window_mode": WindowMode.SCALE}, 24),
    ],
)
def test_a_schedule_counts_as_it_fires_in_its_busiest_hour(rule: Any, parts: dict[str, Any], an_hour: int):
    assert fires_an_hour(a_schedule(rule=rule, **parts)) == an_hour


@pytest.mark.parametrize(
    ("rule", "parts", "days"),
    [
        (CronRule("* * * * *"), {"start": NOON + 9 * DAY}, 10),
        (CronRule("* * 10-31 * *"), {}, 20),
        (CronRule("* 9 25 * *"), {}, 32),
        (CronRule("*/2 * 29 2 *"), {}, 400),
        (CronRule("5,6,7 */8 * * *"), {}, 2),
        (CronRule("* * * * *"), {"windows": (SHORT, LONG)}, 8),
        (CronRule("* * * * *"), {"windows": SCATTERED}, 8),
        (CronRule("0 0 * * *"), {"windows": SCATTERED, "window_mode": WindowMode.DEFER}, 8),
        (CronRule("50-59 * * * *"), {"windows": (NIGHT,)}, 8),
        (CronRule("* * * * *"), {"windows": (LONG, SHORT), "calendar": Calendar(weekends=True)}, 8),
        (rrule(f"FREQ=MINUTELY;BYSECOND={EACH}"), {}, 1),
        (rrule(f"FREQ=MINUTELY;INTERVAL=3;BYSECOND={EACH}"), {}, 1),
        (rrule(f"FREQ=HOURLY;BYMINUTE=0,1,2,3,4;BYSECOND={EACH}"), {}, 1),
        (rrule(f"FREQ=HOURLY;BYMINUTE=0,1,2,3,4;BYSECOND={EACH};BYSETPOS=1,2,3"), {}, 1),
        (rrule("FREQ=MINUTELY;BYSECOND=0,20,40;BYSETPOS=1"), {}, 1),
        (rrule("FREQ=MINUTELY;BYMONTHDAY=25"), {}, 32),
        (rrule("FREQ=MINUTELY;BYSECOND=0,30;COUNT=7"), {}, 1),
        (rrule("FREQ=DAILY;BYHOUR=9;BYMINUTE=0,1,2;BYSECOND=0,30"), {"windows": (OFFICE,)}, 8),
    ],
)
def test_what_it_counts_for_is_what_it_has_in_an_hour_however_far_away_and_seldom_that_is(
    rule: Any, parts: dict[str, Any], days: int
):
    schedule = a_schedule(rule=rule, **parts)

    busiest = busiest_hour(schedule, days=days)

    assert busiest <= fires_an_hour(schedule) <= busiest + 1


def test_events_that_wait_for_an_opening_count_by_how_many_wait():
    # 23 hours' events and its own have the one hour that is open.
    deferred = a_schedule(rule=Poisson(240), windows=(a_window("09:00", "10:00"),), window_mode=WindowMode.DEFER)

    assert fires_an_hour(deferred) == 240
    assert fires_an_hour(replace(deferred, windows=(a_window("08:00", "10:00"),))) == 120


@pytest.mark.parametrize("rule", [CronRule("61 * * * *"), rrule("FREQ=SOMETIMES")])
def test_what_cannot_be_read_any_more_counts_as_one_that_fires_seldom(rule: Any):
    assert fires_an_hour(a_schedule(rule=rule)) == 1


@settings(deadline=None, max_examples=40)
@given(
    expression=st.builds(
        "{} {} * * *".format,
        st.sampled_from(["*", "*/2", "*/7", "0", "3,4,5", "10-40"]),
        st.sampled_from(["*", "*/3", "9-17", "4"]),
    ),
    windows=st.lists(
        st.builds(
            Window,
            start=st.builds(time, st.integers(3, 6) | st.integers(22, 23), st.sampled_from([0, 7, 30])),
            end=st.builds(time, st.integers(4, 7) | st.integers(0, 1), st.sampled_from([0, 8, 31])),
            days=st.frozensets(st.sampled_from(Weekday), min_size=1),
        ),
        max_size=4,
    ).map(tuple),
    mode=st.sampled_from([WindowMode.SKIP, WindowMode.DEFER]),
)
def test_what_a_cron_counts_for_is_what_it_has_in_its_busiest_hour_of_a_week(
    expression: str, windows: tuple[Window, ...], mode: WindowMode
):
    schedule = a_schedule(rule=CronRule(expression), windows=windows, window_mode=mode if windows else None)

    busiest, counted = busiest_hour(schedule, days=8), fires_an_hour(schedule)

    if windows and mode is WindowMode.DEFER:
        # What waited goes anywhere in its opening.
        assert busiest - 1 <= counted <= max(busiest, 1) + len(windows)
    else:
        assert counted == max(busiest, 1)


@pytest.mark.parametrize(
    "schedule",
    [
        a_schedule(rule=CronRule("0 0 * * *"), calendar=Calendar(weekends=True)),
        a_schedule(rule=CronRule("0 0 */2 2 mon#5")),
        a_schedule(rule=CronRule("* * * * *"), windows=(a_window("03:00", "03:01"),), window_mode=WindowMode.DEFER),
        a_schedule(rule=rrule("FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=29;BYHOUR=5;BYMINUTE=5")),
        a_schedule(rule=rrule("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU")),
        a_schedule(rule=rrule("FREQ=YEARLY;BYDAY=MO;COUNT=5000")),
    ],
)
def test_no_date_is_looked_at_whatever_it_would_take_to_find_the_next_fire(
    schedule: Schedule, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Budget, "spend", _never)

    assert 1 <= fires_an_hour(schedule) <= 2


class TestShares:
    schedule = a_schedule(rule=CronRule("*/5 * * * *"))
    going_on = a_state(version=3, link=a_link(NOON + HOUR))

    def share(self, state: ScheduleState, **before: Any) -> Share | None:
        return share_of(self.schedule, state, **before)

    def test_one_that_goes_on_counts_as_often_as_it_fires(self):
        assert self.share(self.going_on) == Share(3, 12)

    @pytest.mark.parametrize(
        "changes",
        [{"status": Status.PAUSED}, {"status": Status.PAUSED, "link": None}, {"link": None}],
        ids=["paused, and its last run awaited", "paused", "ended"],
    )
    def test_one_that_does_not_counts_as_one_that_never_fires(self, changes: dict[str, Any]):
        assert self.share(replace(self.going_on, **changes)) == Share(3, 0)

    def test_a_deleted_one_counts_for_nothing(self):
        assert self.share(replace(self.going_on, status=Status.DELETED, link=None)) is None

    def test_what_fires_as_before_counts_as_before_whatever_it_runs(self):
        seen = replace(self.going_on, version=2, share=Share(2, 7))
        other_job = replace(self.schedule, job=replace(self.schedule.job, target="handler:other"))
        slower = replace(self.schedule, rule=CronRule("0 * * * *"))

        assert self.share(self.going_on, before=other_job, seen=seen) == Share(3, 7)
        assert self.share(self.going_on, before=slower, seen=seen) == Share(3, 12)
        # Of another version than it was found for, it says nothing.
        stale = replace(seen, share=Share(1, 7))
        assert self.share(self.going_on, before=other_job, seen=stale) == Share(3, 12)

    @pytest.mark.parametrize(
        ("changes", "is_right"),
        [
            ({"share": Share(3, 12)}, True),
            ({"share": Share(3, 12, counted_by=1)}, False),
            ({"share": Share(3, 0, counted_by=1), "status": Status.PAUSED}, True),
            ({"share": None}, False),
            ({"share": Share(2, 12)}, False),
            ({"share": Share(3, 12), "link": None}, False),
            ({"share": Share(2, 0), "link": None}, True),
            ({"share": Share(2, 0), "status": Status.PAUSED}, True),
            ({"share": Share(3, 1), "status": Status.PAUSED}, False),
            ({"share": None, "status": Status.DELETED, "link": None}, True),
            ({"share": Share(2, 0), "status": Status.DELETED, "link": None}, False),
        ],
    )
    def test_it_can_be_reported_from_a_state_whether_it_is_counted_right(self, changes: dict[str, Any], is_right: bool):
        assert replace(self.going_on, **changes).is_counted_right is is_right


def _never(*_: object) -> None:
    raise AssertionError("a date was looked at")
