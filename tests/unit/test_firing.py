from dataclasses import replace
from datetime import date, datetime, time, timedelta
from itertools import islice
from time import perf_counter

import pytest

from functions.domain.instants import EPOCH, HOUR, MILLISECOND, MINUTE, SECOND
from functions.domain.schedules.firing import fires, next_fire
from functions.domain.schedules.rrules import last_of, parse_rrule
from functions.domain.schedules.rules import At, CronRule, Every, RecurrenceRule
from functions.domain.schedules.schedule import Calendar, Fire, Roll, Schedule, Shifter, WindowMode
from functions.domain.schedules.shifts import jitter_of, spread_of
from functions.domain.schedules.step_budget import Budget
from functions.domain.schedules.zones import local_of, zone_of
from testkit.builders import NOON, OFFICE, a_schedule, a_window, every
from tests.chance import are_equally_frequent, is_uniform
from tests.wall_clock import a_cron, fires_between, local, shown, utc


def first(schedule: Schedule, count: int, after: datetime = NOON) -> list[Fire]:
    return list(islice(fires(schedule, after=after), count))


def ats(found: list[Fire]) -> list[str]:
    return [fire.at.isoformat(timespec="milliseconds")[:23].replace("T", " ") for fire in found]


def test_an_instant_fires_once():
    schedule = a_schedule(rule=At(NOON + HOUR))

    assert list(fires(schedule, after=NOON)) == [Fire(at=NOON + HOUR, nominal_at=NOON + HOUR)]
    assert next_fire(schedule, after=NOON + HOUR) is None


def test_an_instant_in_another_offset_fires_in_utc_and_at_a_whole_millisecond():
    at = datetime.fromisoformat("2027-03-01T14:00:00.000001+01:00")

    (fire,) = fires(a_schedule(rule=At(at)), after=NOON)

    assert fire.at.isoformat() == "2027-03-01T13:00:00.001000+00:00"


@pytest.mark.parametrize(
    ("rule", "start", "expected"),
    [
        (every(hours=1), None, ["2027-03-01 13:00:00.000", "2027-03-01 14:00:00.000"]),
        (every(hours=1, phase=5 * MINUTE), None, ["2027-03-01 12:05:00.000", "2027-03-01 13:05:00.000"]),
        (every(hours=7), None, ["2027-03-01 16:00:00.000", "2027-03-01 23:00:00.000"]),  # 71,584 intervals since 1970
        (every(seconds=1.5), None, ["2027-03-01 12:00:01.500", "2027-03-01 12:00:03.000"]),
        (every(hours=1), NOON - 90 * MINUTE, ["2027-03-01 12:30:00.000", "2027-03-01 13:30:00.000"]),
        (every(hours=1), NOON, ["2027-03-01 13:00:00.000", "2027-03-01 14:00:00.000"]),
        (every(hours=1), NOON + MINUTE, ["2027-03-01 12:01:00.000", "2027-03-01 13:01:00.000"]),
        (every(days=3, phase=HOUR), NOON + MINUTE, ["2027-03-01 13:01:00.000", "2027-03-04 13:01:00.000"]),
    ],
)
def test_an_interval_is_counted_from_the_start_or_the_epoch(rule: Every, start: datetime | None, expected: list[str]):
    assert ats(first(a_schedule(rule=rule, start=start), 2)) == expected


def test_an_interval_is_not_counted_up_from_the_epoch():
    schedule = a_schedule(rule=every(seconds=1))
    began = perf_counter()

    for _ in range(100):
        next_fire(schedule, after=NOON)

    assert perf_counter() - began < 1  # 1.8 thousand million steps each would take a quarter of an hour


def test_an_interval_knows_no_clock_changes():
    schedule = a_schedule(rule=every(hours=6), timezone="Europe/Berlin")

    assert shown(schedule, "2027-03-27 20:00", "2027-03-28 08:00") == [
        "2027-03-28 01:00+01:00",
        "2027-03-28 08:00+02:00",
    ]


def test_from_end_to_start_the_next_fire_is_an_interval_after_the_last_end():
    schedule = a_schedule(rule=every(minutes=10, from_end=True))

    fire = next_fire(schedule, after=NOON + 17 * SECOND)

    assert fire == Fire(at=NOON + 10 * MINUTE + 17 * SECOND, nominal_at=NOON + 10 * MINUTE + 17 * SECOND)


@pytest.mark.parametrize(
    ("start", "expected"),
    [(NOON + HOUR, NOON + HOUR), (NOON + 5 * MINUTE, NOON + 10 * MINUTE), (NOON - HOUR, NOON + 10 * MINUTE)],
)
def test_from_end_to_start_the_first_fire_is_not_before_the_start(start: datetime, expected: datetime):
    schedule = a_schedule(rule=every(minutes=10, from_end=True), start=start)

    fire = next_fire(schedule, after=NOON)

    assert fire is not None
    assert fire.at == expected


def test_from_end_to_start_a_fire_outside_the_windows_is_skipped_or_deferred():
    friday_evening = utc("2027-03-05 15:55")  # 16:55 in Berlin
    skipped = a_schedule(rule=every(minutes=10, from_end=True), timezone="Europe/Berlin", windows=(OFFICE,))
    deferred = replace(skipped, window_mode=WindowMode.DEFER)

    after_skipping, after_deferring = (
        next_fire(skipped, after=friday_evening),
        next_fire(deferred, after=friday_evening),
    )

    assert after_skipping is not None
    assert after_deferring is not None
    assert after_skipping.at == utc("2027-03-08 08:05")  # the first of the ten-minute steps that is inside
    assert utc("2027-03-08 08:00") <= after_deferring.at < utc("2027-03-08 16:00")
    assert (after_deferring.nominal_at, after_deferring.merged_count) == (utc("2027-03-05 16:05"), 0)


def test_from_end_to_start_runs_are_taken_for_ones_without_length():
    schedule = a_schedule(rule=every(minutes=10, from_end=True))

    assert ats(first(schedule, 3)) == [f"2027-03-01 12:{minutes}:00.000" for minutes in (10, 20, 30)]


def test_from_end_to_start_the_end_of_the_schedule_ends_it():
    schedule = a_schedule(rule=every(minutes=10, from_end=True), end=NOON + 20 * MINUTE)

    assert ats(first(schedule, 3)) == ["2027-03-01 12:10:00.000"]


def test_a_schedule_fires_from_its_start_up_to_but_not_at_its_end():
    schedule = a_schedule(rule=every(hours=1), start=NOON + HOUR, end=NOON + 4 * HOUR)

    assert ats(first(schedule, 9)) == [f"2027-03-01 {hour}:00:00.000" for hour in (13, 14, 15)]


def test_a_time_before_the_start_does_not_fire_after_it_because_something_moved_it():
    at_nine = a_cron("0 9 * * *", start=utc("2027-03-01 08:05"), spread=HOUR, end=utc("2027-03-03 08:00"))

    (fire,) = fires(at_nine, after=EPOCH)

    assert fire.nominal_at == utc("2027-03-02 08:00")


def test_a_fire_that_is_moved_to_the_end_does_not_happen():
    schedule = a_cron("0 9 * * *", spread=HOUR)
    fire = next_fire(schedule, after=NOON)
    assert fire is not None

    assert next_fire(replace(schedule, end=fire.at), after=NOON) is None
    assert next_fire(replace(schedule, end=fire.at + MILLISECOND), after=NOON) == fire


def test_a_schedule_that_had_all_its_runs_fires_no_more():
    schedule = a_schedule(rule=every(hours=1), max_runs=3)

    assert next_fire(schedule, after=NOON, index=2) is not None
    assert next_fire(schedule, after=NOON, index=3) is None
    assert next_fire(schedule, after=NOON, index=4) is None


@pytest.mark.parametrize(
    "rule",
    [CronRule("0 0 * * *"), every(days=3_000), RecurrenceRule("FREQ=DAILY", local("2027-01-01 00:00"))],
)
@pytest.mark.parametrize(
    "overrides", [{}, {"windows": (OFFICE,)}, {"calendar": Calendar(weekends=True, roll=Roll.AFTER)}]
)
def test_fires_end_quietly_with_the_calendar(rule: CronRule | Every | RecurrenceRule, overrides: dict[str, object]):
    schedule = a_schedule(rule=rule, timezone="America/New_York", **overrides)

    assert len(list(fires(schedule, after=utc("9997-12-01 00:00")))) < 800


def test_the_spread_is_the_same_for_every_fire():
    schedule = a_cron("0 9 * * *", spread=15 * MINUTE)
    offset = spread_of(schedule)

    found = fires_between(schedule, "2027-01-01 00:00", "2027-12-31 00:00")

    assert timedelta(0) < offset < 15 * MINUTE
    assert {fire.at - fire.nominal_at for fire in found} == {offset}
    assert {fire.shifted_by for fire in found} == {(Shifter.SPREAD,)}
    assert {local_of(fire.nominal_at, zone_of("Europe/Berlin")).time() for fire in found} == {time(9)}


def test_the_spreads_of_many_schedules_are_equally_frequent():
    counts = [0] * 60
    for number in range(10_000):
        counts[spread_of(a_schedule(schedule_id=f"job-{number}", spread=60 * SECOND)) // SECOND] += 1

    assert are_equally_frequent(counts)


def test_the_spread_does_not_follow_from_the_name_alone_but_from_the_tenant_too():
    spreads = {spread_of(a_schedule(tenant=f"tenant-{number}", spread=HOUR)) for number in range(20)}

    assert len(spreads) > 15


def test_these_are_the_choices_on_every_machine_and_python():
    schedule = a_schedule(tenant="acme", schedule_id="pinned", spread=HOUR, jitter=10 * MINUTE)

    assert spread_of(schedule) == timedelta(minutes=38, seconds=2)
    assert jitter_of(schedule, NOON) == timedelta(seconds=271.671)


def test_jitter_is_another_for_each_fire_and_uniform():
    schedule = a_schedule(rule=every(minutes=10), jitter=8 * MINUTE)

    found = first(schedule, 5_000)

    assert is_uniform([(fire.at - fire.nominal_at) / (8 * MINUTE) for fire in found])
    assert all(fire.at == fire.nominal_at + jitter_of(schedule, fire.nominal_at) for fire in found)
    assert all((fire.at - EPOCH) % MILLISECOND == timedelta(0) for fire in found)
    assert {fire.shifted_by for fire in found} == {(Shifter.JITTER,)}


def test_spread_and_jitter_add_up():
    schedule = a_cron("0 9 * * *", spread=15 * MINUTE, jitter=5 * MINUTE)

    for fire in fires_between(schedule, "2027-01-01 00:00", "2027-02-01 00:00"):
        assert fire.at - fire.nominal_at == spread_of(schedule) + jitter_of(schedule, fire.nominal_at)
        assert fire.shifted_by == (Shifter.SPREAD, Shifter.JITTER)


def test_what_jitter_mixes_up_around_a_clock_change_comes_in_order():
    # 45 minutes past each hour, but 01:45 comes twice within half an hour on Lord Howe.
    schedule = a_cron("45 * * * *", timezone="Australia/Lord_Howe", jitter=59 * MINUTE)

    found = [
        fires_between(replace(schedule, schedule_id=f"s{n}"), "2027-04-03 12:00", "2027-04-03 18:00") for n in range(50)
    ]

    assert all([fire.at for fire in of_one] == sorted(fire.at for fire in of_one) for of_one in found)
    assert any([fire.nominal_at for fire in of_one] != sorted(fire.nominal_at for fire in of_one) for of_one in found)


def test_a_fire_outside_the_windows_is_skipped():
    schedule = a_cron("0 */4 * * *", windows=(OFFICE,))

    assert shown(schedule, "2027-03-04 23:00", "2027-03-08 22:00") == [
        "2027-03-05 12:00+01:00",
        "2027-03-05 16:00+01:00",
        "2027-03-08 12:00+01:00",
        "2027-03-08 16:00+01:00",
    ]


def test_the_fires_of_one_closed_time_become_one_in_the_next_opening():
    schedule = a_cron("30 */4 * * *", windows=(OFFICE,), window_mode=WindowMode.DEFER)

    found = fires_between(schedule, "2027-03-05 16:00", "2027-03-08 16:00")

    (deferred,) = [fire for fire in found if fire.shifted_by]
    assert ats([fire for fire in found if not fire.shifted_by]) == [
        "2027-03-08 11:30:00.000",
        "2027-03-08 15:30:00.000",
    ]
    assert utc("2027-03-08 08:00") <= deferred.at < utc("2027-03-08 16:00")
    # From Friday 20:30 to Monday 08:30: one, six on each day of the weekend, three.
    assert (deferred.nominal_at, deferred.shifted_by) == (utc("2027-03-05 19:30"), (Shifter.WINDOW,))
    assert deferred.merged_count == 1 + 6 + 6 + 3 - 1


def test_a_closed_time_without_fires_gives_none_to_the_next_opening():
    schedule = a_cron("0 10 * * 1-5", windows=(OFFICE,), window_mode=WindowMode.DEFER)

    found = fires_between(schedule, "2027-03-01 00:00", "2027-03-05 23:00")

    assert [fire.shifted_by for fire in found] == [()] * 5


def test_a_fire_that_comes_exactly_when_a_window_ends_is_outside_and_when_it_starts_inside():
    schedule = a_cron("0 9,17 * * *", windows=(OFFICE,))

    assert shown(schedule, "2027-03-01 00:00", "2027-03-01 23:00") == ["2027-03-01 09:00+01:00"]


def test_deferred_fires_are_spread_over_the_opening_by_schedule_and_opening():
    places = []
    for number in range(60):
        schedule = a_cron("0 20 * * *", schedule_id=f"job-{number}", windows=(OFFICE,), window_mode=WindowMode.DEFER)
        for fire in fires_between(schedule, "2027-05-31 23:00", "2027-06-14 23:00"):
            opened_at = datetime.combine(local_of(fire.at, zone_of("Europe/Berlin")), time(9))
            places.append((local_of(fire.at, zone_of("Europe/Berlin")) - opened_at) / timedelta(hours=8))

    assert len(places) == 600
    assert is_uniform(places)


@pytest.mark.parametrize("after", ["2027-03-06 12:00", "2027-03-08 07:59", "2027-03-08 08:00", "2027-03-05 16:00"])
def test_what_a_deferred_fire_merges_does_not_depend_on_where_one_starts(after: str):
    schedule = a_cron("30 */4 * * *", windows=(OFFICE,), window_mode=WindowMode.DEFER)

    found = fires_between(schedule, after, "2027-03-08 16:00")

    assert [fire.merged_count for fire in found if fire.shifted_by] == [15]


def test_what_would_wait_for_more_than_a_month_is_dropped():
    summer = frozenset(date(2027, 6, 1) + timedelta(days=day) for day in range(60))
    schedule = a_cron("0 20 * * *", windows=(OFFICE,), window_mode=WindowMode.DEFER, calendar=Calendar(excluded=summer))

    found = fires_between(schedule, "2027-05-29 00:00", "2027-08-03 12:00")

    # Not the one of 31 May: it would wait for 2 August, a Monday.
    assert [(str(fire.nominal_at.date()), str(fire.at.date()), fire.merged_count) for fire in found] == [
        ("2027-05-28", "2027-05-31", 2),
        ("2027-07-31", "2027-08-02", 1),
    ]


@pytest.mark.parametrize(
    "overrides", [{"spread": 30 * MINUTE}, {"jitter": 30 * MINUTE}, {"spread": HOUR, "jitter": HOUR}]
)
def test_spread_and_jitter_do_not_lead_out_of_a_window(overrides: dict[str, timedelta]):
    for number in range(40):
        schedule = a_cron("55 16 * * *", schedule_id=f"job-{number}", windows=(OFFICE,), **overrides)
        for fire in fires_between(schedule, "2027-03-01 00:00", "2027-03-12 23:00"):
            assert utc(f"{fire.at.date()} 15:55") <= fire.at < utc(f"{fire.at.date()} 16:00")


def test_spread_and_jitter_do_not_lead_onto_an_excluded_date():
    calendar = Calendar(weekends=True)
    for number in range(40):
        schedule = a_cron("55 23 * * *", schedule_id=f"job-{number}", calendar=calendar, spread=timedelta(hours=10))
        found = [
            local_of(fire.at, zone_of("Europe/Berlin"))
            for fire in fires_between(schedule, "2027-03-01 00:00", "2027-03-14 00:00")
        ]
        assert all(at.weekday() < 5 for at in found)
        assert len(found) == 10


def test_the_fires_that_fold_into_the_end_of_a_window_come_in_order():
    schedule = a_cron("50-59/3 16 * * *", windows=(OFFICE,), jitter=2 * MINUTE, spread=25 * MINUTE)

    for number in range(30):
        found = fires_between(replace(schedule, schedule_id=f"job-{number}"), "2027-03-01 00:00", "2027-03-05 23:00")
        assert [fire.at for fire in found] == sorted({fire.at for fire in found})
        assert sum(1 + fire.merged_count for fire in found) == 20


def test_a_rule_and_windows_that_rarely_meet_do():
    schedule = a_cron("0 12 29 2 *", windows=(a_window("09:00", "17:00", "sun"),), timezone="UTC")

    assert ats(first(schedule, 2)) == ["2032-02-29 12:00:00.000", "2060-02-29 12:00:00.000"]


@pytest.mark.parametrize(
    "schedule",
    [
        a_cron("0 20 * * *", windows=(OFFICE,)),
        a_cron("* 20 * * *", windows=(OFFICE,)),
        a_cron("0 9 * * 6", windows=(OFFICE,)),
        a_cron("0 9 * * 6", calendar=Calendar(weekends=True)),
        a_cron("0 9 25 12 *", calendar=Calendar(holidays=("DE",))),
        a_schedule(rule=every(days=1, phase=timedelta(hours=20)), windows=(OFFICE,)),
        a_schedule(rule=RecurrenceRule("FREQ=DAILY", local("2027-01-01 20:00")), windows=(OFFICE,)),
    ],
)
def test_a_search_that_finds_nothing_ends(schedule: Schedule):
    began = perf_counter()

    assert next_fire(schedule, after=NOON) is None
    assert perf_counter() - began < 20


def test_a_second_by_second_schedule_jumps_over_the_time_in_which_it_is_closed():
    schedule = a_schedule(rule=every(seconds=1), timezone="Europe/Berlin", windows=(OFFICE,))
    began = perf_counter()

    assert ats(first(schedule, 2, after=utc("2027-03-05 15:59:59"))) == [
        "2027-03-08 08:00:00.000",
        "2027-03-08 08:00:01.000",
    ]
    assert perf_counter() - began < 1


@pytest.mark.parametrize(
    ("expression", "roll"), [("* * * * *", Roll.SKIP), ("0 * * * *", Roll.BEFORE), ("0 * * * *", Roll.AFTER)]
)
def test_a_long_run_of_excluded_dates_does_not_end_a_frequent_schedule(expression: str, roll: Roll):
    closed = frozenset(date(2027, 3, 2) + timedelta(days=day) for day in range(90))
    schedule = a_cron(
        expression, calendar=Calendar(excluded=closed, roll=roll), windows=(OFFICE,), window_mode=WindowMode.DEFER
    )

    fire = next_fire(schedule, after=utc("2027-03-03 00:00"))

    assert fire is not None
    assert fire.at < utc("2027-06-01 00:00")


def test_a_count_goes_on_from_where_it_ends_with_caches_cold():
    rule = RecurrenceRule(
        "FREQ=MINUTELY;COUNT=5000;BYMONTH=11;BYMONTHDAY=23;BYHOUR=3;BYMINUTE=0", local("2027-01-01 00:00")
    )
    counted = a_schedule(rule=replace(rule, last=last_of(rule)))
    parse_rrule.cache_clear()

    fire = next_fire(counted, after=utc("2100-01-01 00:00"), budget=Budget(30))

    assert fire == next_fire(a_schedule(rule=rule), after=utc("2100-01-01 00:00"))
    assert fire is not None
    assert fire.at == utc("2100-11-23 03:00")
