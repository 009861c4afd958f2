"""How often a schedule fires in an hour in which it fires most, and what it counts for."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.domain.fire_rates import fires_an_hour, share_of
from functions.domain.firing import fires
from functions.domain.instants import SECOND
from functions.domain.schedule import (
    At,
    Calendar,
    CronRule,
    Every,
    Poisson,
    RecurrenceRule,
    Schedule,
    Weekday,
    Window,
    WindowMode,
)
from functions.domain.schedule_load import Share
from functions.domain.schedule_state import ScheduleState, Status
from tests.builders import NOON, a_link, a_schedule, a_state, every

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
OFFICE = Window(start=time(9), end=time(17), days=frozenset(list(Weekday)[:5]))
FRIDAY_EVENING = datetime(2027, 3, 5, 16, 31, tzinfo=UTC)


def rrule(text: str) -> RecurrenceRule:
    return RecurrenceRule(text, starts_at=NOON.replace(tzinfo=None))


@pytest.mark.parametrize(
    ("rule", "parts", "an_hour"),
    [
        (every(seconds=1), {}, 3_600),
        (every(seconds=7), {}, 515),
        (every(minutes=5), {}, 12),
        (every(hours=1), {}, 1),
        (every(days=400), {}, 1),
        (Every(interval=10 * SECOND, from_end=True), {}, 360),
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
        (Poisson(24), {"windows": (Window(start=time(9), end=time(10)),), "window_mode": WindowMode.SCALE}, 24),
    ],
)
@pytest.mark.parametrize("after", [NOON, FRIDAY_EVENING])
def test_a_schedule_counts_as_it_fires_in_its_busiest_hour(
    rule: Any, parts: dict[str, Any], an_hour: int, after: datetime
):
    assert fires_an_hour(a_schedule(rule=rule, **parts), after=after) == an_hour


@given(
    expression=st.builds(
        "{} {} * * *".format,
        st.sampled_from(["*", "*/2", "*/7", "0", "3,4,5", "10-40"]),
        st.sampled_from(["*", "*/3", "9-17", "4"]),
    ),
    minutes=st.integers(0, 10_000),
)
def test_what_a_cron_counts_for_is_what_it_has_in_its_busiest_hour_of_a_day(expression: str, minutes: int):
    schedule, after = a_schedule(rule=CronRule(expression)), NOON + minutes * MINUTE
    day = [fire.at for fire, _ in zip(fires(schedule, after=NOON), range(1_500), strict=False)]
    busiest = max(sum(at <= other < at + HOUR for other in day) for at in day[:1_440:13])

    # A window of the rule's own may begin in the middle of what is looked at.
    assert 0.9 * busiest <= fires_an_hour(schedule, after=after) <= busiest + 1


@pytest.mark.parametrize(
    "schedule",
    [
        a_schedule(rule=CronRule("0 0 * * *"), calendar=Calendar(weekends=True)),
        a_schedule(rule=CronRule("0 0 */2 2 mon#5")),
        a_schedule(
            rule=CronRule("* * * * *"), windows=(Window(start=time(3), end=time(3, 1)),), window_mode=WindowMode.DEFER
        ),
        a_schedule(rule=rrule("FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=29;BYHOUR=5;BYMINUTE=5")),
        a_schedule(rule=rrule("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU")),
    ],
)
def test_a_costly_schedule_is_looked_at_for_a_bounded_time_and_counts_as_far_as_was_seen(schedule: Schedule):
    began = process_time()

    assert 1 <= fires_an_hour(schedule, after=NOON) <= 60
    assert process_time() - began < 0.2


class TestShares:
    schedule = a_schedule(rule=CronRule("*/5 * * * *"))
    going_on = a_state(version=3, link=a_link(NOON + HOUR))

    def share(self, state: ScheduleState, **before: Any) -> Share | None:
        return share_of(self.schedule, state, now=NOON, **before)

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
    def test_it_can_be_told_from_a_state_whether_it_is_counted_right(self, changes: dict[str, Any], is_right: bool):
        assert replace(self.going_on, **changes).is_counted_right is is_right
