from datetime import date, datetime, timedelta
from typing import Any

import pytest

from functions.domain.errors import InvalidSchedule
from functions.domain.instants import HOUR, MINUTE
from functions.domain.schedules.firing import check_fires, next_fire
from functions.domain.schedules.rules import At, CronRule, Every, Poisson, RecurrenceRule, Rule
from functions.domain.schedules.schedule import Calendar, Roll, WindowMode
from functions.domain.schedules.validation import shortest_period
from testkit.builders import NOON, OFFICE, a_schedule, a_window, every
from tests.wall_clock import local, utc

WEEKEND = (a_window("09:00", "17:00", "sat sun"),)
DAILY = RecurrenceRule("FREQ=DAILY", local("2027-01-01 09:00"))


@pytest.mark.parametrize(
    ("rule", "overrides", "at"),
    [
        (At(NOON + HOUR), {}, "2027-03-01 13:00"),
        (CronRule("0 9 * * *"), {}, "2027-03-02 09:00"),
        (every(hours=1), {}, "2027-03-01 13:00"),
        (every(hours=1, from_end=True), {}, "2027-03-01 13:00"),
        (DAILY, {}, "2027-03-02 09:00"),
        (CronRule("0 9 * * *"), {"start": utc("2027-04-01 09:00")}, "2027-04-01 09:00"),
        (CronRule("0 9 * * *"), {"start": utc("2027-04-01 09:01")}, "2027-04-02 09:00"),
        (CronRule("0 9 * * *"), {"windows": WEEKEND}, "2027-03-06 09:00"),
        (CronRule("*/5 * * * *"), {"jitter": 5 * MINUTE - timedelta(milliseconds=1), "spread": timedelta(0)}, None),
        (CronRule("0 9 * * *"), {"jitter": 23 * HOUR}, None),
        (At(NOON + HOUR), {"jitter": 23 * HOUR}, None),
        (every(minutes=10), {"jitter": 9 * MINUTE}, None),
        (every(minutes=1), {"windows": (OFFICE,), "window_mode": WindowMode.DEFER}, None),
        (Poisson(200), {"windows": (OFFICE,), "window_mode": WindowMode.DEFER}, None),
        (Poisson(20_000), {"windows": (OFFICE,)}, None),
        (every(seconds=1), {"windows": (OFFICE,), "calendar": Calendar(weekends=True)}, None),
        # Closed for all of it, and for a month and a half, but not for ever.
        (CronRule("0 9 * * 6"), {"calendar": Calendar(weekends=True, roll=Roll.AFTER)}, "2027-03-08 09:00"),
    ],
)
def test_a_schedule_that_makes_sense_has_a_first_fire(rule: Rule, overrides: dict[str, Any], at: str | None):
    schedule = a_schedule(rule=rule, **overrides)

    fire = check_fires(schedule, now=NOON)

    assert fire == next_fire(schedule, after=NOON)
    assert fire.at > NOON
    assert at is None or fire.at == utc(at)


@pytest.mark.parametrize(
    ("field", "message", "rule", "overrides"),
    [
        ("timezone", "'Europe/Berln' is not an IANA time zone", every(hours=1), {"timezone": "Europe/Berln"}),
        ("cron", "is not a cron expression", CronRule("61 * * * *"), {}),
        ("cron", "never fires: there is no such day", CronRule("0 0 30 2 *"), {}),
        ("rrule", "FREQ= is not one of", RecurrenceRule("INTERVAL=2", local("2027-01-01 00:00")), {}),
        ("rrule.starts_at", "must be a local time", RecurrenceRule("FREQ=DAILY", NOON), {}),
        ("calendar.holidays", "no holidays are known for 'XX'", every(hours=1), {"calendar": Calendar(holidays=("XX",))}),
        # Jitter that could change the order of fires.
        ("jitter", "must be shorter than the shortest time between two fires, 300 s", CronRule("*/5 * * * *"), {"jitter": 5 * MINUTE}),
        ("jitter", "two fires, 3000 s", CronRule("0,50 9 * * *"), {"jitter": 50 * MINUTE}),
        ("jitter", "two fires, 60 s", CronRule("0,59 0,23 * * *"), {"jitter": 2 * MINUTE}),
        ("jitter", "two fires, 86400 s", CronRule("0 9 * * *"), {"jitter": timedelta(days=1)}),
        ("jitter", "two fires, 60 s", every(minutes=1), {"jitter": MINUTE}),
        ("jitter", "two fires, 60 s", every(minutes=1, from_end=True), {"jitter": MINUTE}),
        ("jitter", "two fires, 3600 s", RecurrenceRule("FREQ=DAILY;BYHOUR=8,9", local("2027-01-01 09:00")), {"jitter": HOUR}),
        ("jitter", "has no meaning for poisson: its events are random already", Poisson(10), {"jitter": MINUTE}),
        ("spread", "has no meaning for poisson", Poisson(10), {"spread": MINUTE}),
        # Ways over closed time that have no meaning, or no end.
        ("calendar.roll", "has no meaning for poisson", Poisson(10), {"calendar": Calendar(weekends=True, roll=Roll.AFTER)}),
        ("calendar.roll", "after is for rules that fire at most once an hour", every(minutes=59), {"calendar": Calendar(weekends=True, roll=Roll.AFTER)}),
        ("window_mode", "defer is for rules that fire at most once a minute", every(seconds=59), {"windows": (OFFICE,), "window_mode": WindowMode.DEFER}),
        ("window_mode", "defer is for at most 1440 events a day: use scale", Poisson(1_441), {"windows": (OFFICE,), "window_mode": WindowMode.DEFER}),
        ("poisson.per_day", "would be 126000 a day while its windows are open, more than 86400", Poisson(30_000), {"windows": (OFFICE,)}),
        # Nothing left.
        ("at", "is past: nothing would ever fire", At(NOON), {}),
        ("end", "is past: nothing would ever fire", every(hours=1), {"end": NOON}),
        ("end", "is before the first fire", CronRule("0 9 * * *"), {"end": NOON + HOUR}),
        ("end", "is before the first fire", CronRule("0 9 * * *"), {"start": NOON, "end": utc("2027-03-02 09:00")}),
        ("windows", "leave nothing of what the rule names", CronRule("0 20 * * *"), {"windows": (OFFICE,)}),
        ("windows", "leave nothing", CronRule("0 9 * * *"), {"windows": WEEKEND, "calendar": Calendar(weekends=True)}),
        ("windows", "leave nothing", At(utc("2027-03-06 12:00")), {"windows": (OFFICE,)}),
        ("calendar", "leave nothing", CronRule("0 9 * * 0,6"), {"calendar": Calendar(weekends=True)}),
        ("calendar", "leave nothing", At(utc("2027-03-06 12:00")), {"calendar": Calendar(excluded=frozenset({date(2027, 3, 6)}))}),
        ("rrule", "names no time after now", RecurrenceRule("FREQ=DAILY;COUNT=3", local("2027-01-01 00:00")), {}),
        ("rrule", "names no time after now", RecurrenceRule("FREQ=DAILY;UNTIL=20270301T115959Z", local("2027-01-01 12:00")), {}),
        ("at", "names no time after now", At(NOON + HOUR), {"start": NOON + 2 * HOUR}),
    ],
)  # fmt: skip
def test_a_schedule_that_does_not_make_sense_is_refused_with_the_field_and_the_reason(
    field: str, message: str, rule: Rule, overrides: dict[str, Any]
):
    schedule = a_schedule(rule=rule, **overrides)

    with pytest.raises(InvalidSchedule, match=message) as refused:
        check_fires(schedule, now=NOON)

    assert refused.value.field == field


def test_an_until_in_utc_is_an_instant_and_one_without_an_offset_is_local():
    rule = "FREQ=HOURLY;UNTIL=20270301T130000"
    in_utc = a_schedule(rule=RecurrenceRule(f"{rule}Z", local("2027-01-01 00:00")), timezone="Europe/Berlin")
    in_berlin = a_schedule(rule=RecurrenceRule(rule, local("2027-01-01 00:00")), timezone="Europe/Berlin")

    assert next_fire(in_utc, after=utc("2027-03-01 12:30")) is not None
    assert next_fire(in_utc, after=utc("2027-03-01 13:00")) is None
    assert next_fire(in_berlin, after=utc("2027-03-01 11:30")) is not None
    assert next_fire(in_berlin, after=utc("2027-03-01 12:00")) is None


@pytest.mark.parametrize(
    ("rule", "name", "period"),
    [
        (At(NOON), "at", None),
        (CronRule("*/5 * * * *"), "cron", 5 * MINUTE),
        (every(minutes=7), "every", 7 * MINUTE),
        (DAILY, "rrule", timedelta(days=1)),
        (Poisson(3), "poisson", None),
    ],
)
def test_a_rule_has_a_name_and_a_shortest_period(rule: Rule, name: str, period: timedelta | None):
    assert (rule.name, shortest_period(rule)) == (name, period)


@pytest.mark.parametrize(
    ("interval", "phase"), [(timedelta(seconds=1, microseconds=1), timedelta(0)), (HOUR, timedelta(microseconds=1))]
)
def test_an_interval_is_of_whole_milliseconds(interval: timedelta, phase: timedelta):
    with pytest.raises(InvalidSchedule, match="must be whole milliseconds"):
        Every(interval=interval, phase=phase)


def test_an_instant_after_which_nothing_can_be_asked_for_has_no_fires():
    assert next_fire(a_schedule(rule=CronRule("* * * * *")), after=datetime.max.replace(tzinfo=NOON.tzinfo)) is None
    assert next_fire(a_schedule(rule=every(hours=1)), after=datetime.max.replace(tzinfo=NOON.tzinfo)) is None
    assert (
        next_fire(a_schedule(rule=every(hours=1, from_end=True)), after=datetime.max.replace(tzinfo=NOON.tzinfo))
        is None
    )
