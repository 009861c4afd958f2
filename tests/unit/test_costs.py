"""What schedules cost, in steps: the ones that once took seconds, or minutes, of CPU."""

from dataclasses import replace
from datetime import date, datetime, time, timedelta
from itertools import islice
from typing import Any

import pytest

from bench.nasty import NASTY, NOW, RULES, Definition, draw, requests
from functions.api.http.problems import Misshapen
from functions.api.schedules.bodies import read_schedule
from functions.domain.errors import InvalidSchedule, TooCostly
from functions.domain.schedules.calendars import STEPS_OF_A_SET, STEPS_OF_A_YEAR
from functions.domain.schedules.fire_rates import fires_an_hour
from functions.domain.schedules.firing import check_fires, fires, next_fire
from functions.domain.schedules.preview import preview
from functions.domain.schedules.rrules import counted, parse_rrule
from functions.domain.schedules.rules import CronRule, Fold, Gap, Poisson, RecurrenceRule, Rule
from functions.domain.schedules.schedule import Calendar, Roll, Schedule, WindowMode
from functions.domain.schedules.step_budget import STEPS_OF_A_FIRE, STEPS_OF_A_WALK, Budget
from functions.domain.schedules.validation import check_consistency
from functions.domain.schedules.zones import STEPS_OF_NO_INSTANT
from testkit.builders import NOON, OFFICE, a_schedule, a_window, every
from tests.wall_clock import a_cron, local, utc

A_MINUTE_A_WEEK = a_window("09:00", "09:01", "mon")
NIGHTLY = {"timezone": "Europe/Berlin", "windows": (a_window("03:00", "03:01"),)}


def recurrence(rule: str) -> RecurrenceRule:
    return RecurrenceRule(rule, local("2027-01-01 20:00"))


def in_berlin(rule: Rule, **overrides: Any) -> Schedule:
    return a_schedule(rule=rule, timezone="Europe/Berlin", **overrides)


def deferred(rule: Rule, *, excluded: int = 0) -> Schedule:
    mondays = frozenset(date(2027, 3, 8) + timedelta(weeks=number) for number in range(excluded))
    return in_berlin(
        rule, windows=(A_MINUTE_A_WEEK,), window_mode=WindowMode.DEFER, calendar=Calendar(excluded=mondays)
    )


def steps_of(schedule: Schedule, *, after: datetime = NOON) -> int:
    """What its next fire takes, once it is stored."""
    if isinstance(schedule.rule, RecurrenceRule):
        schedule = replace(schedule, rule=counted(schedule.rule))
    budget = Budget(STEPS_OF_A_WALK)
    assert next_fire(schedule, after=after, budget=budget) is not None
    return STEPS_OF_A_WALK - budget.left


@pytest.mark.parametrize(
    ("schedule", "steps"),
    [
        (in_berlin(recurrence("FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU;BYHOUR=5;BYMINUTE=5")), 50),
        (in_berlin(recurrence("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU")), 50),
        (a_cron("0 0 */2 2 mon#5"), 50),
        (in_berlin(every(seconds=1), windows=(A_MINUTE_A_WEEK,)), 100),
        (a_cron("* * * * *", windows=(A_MINUTE_A_WEEK,)), 100),
        (deferred(CronRule("* * * * *")), 1_200),
        (deferred(CronRule("* * * * *"), excluded=4), 1_500),
        (deferred(recurrence("FREQ=MINUTELY")), 1_200),
        (deferred(every(minutes=1)), 1_200),
        (a_cron("30 2 * * *", windows=NIGHTLY["windows"]), 100),
    ],
)
def test_the_next_fire_of_a_schedule_takes_few_steps(schedule: Schedule, steps: int):
    assert steps_of(schedule) <= steps
    assert check_fires(schedule, now=NOON) == next_fire(schedule, after=NOON)


def test_a_count_that_is_far_away_takes_few_steps_to_take_and_fewer_to_go_on():
    far = in_berlin(recurrence("FREQ=MINUTELY;COUNT=5000;BYMONTH=11;BYMONTHDAY=23;BYHOUR=3;BYMINUTE=0"))

    check_fires(far, now=NOON, budget=Budget(2_000))

    assert steps_of(far, after=utc("2150-01-01 00:00")) <= 10


def test_a_hundred_fires_of_a_narrow_window_are_shown_within_a_request():
    shown = preview(deferred(CronRule("* * * * *")), after=NOON, count=40, budget=Budget(STEPS_OF_A_WALK)).previews

    # Both the minute itself, and the one into which the others were moved.
    assert len(shown) == 40
    assert {found.local.time().replace(second=0, microsecond=0) for found in shown} == {time(9)}
    assert any("at least 100 fires of the closed hours became this one" in reason for _, reason in shown[1].marks)


@pytest.mark.parametrize(
    ("schedule", "field"),
    [
        (a_cron("0 20 * * *", windows=(OFFICE,)), "windows"),
        (a_cron("0 9 * * sat", windows=(OFFICE,)), "windows"),
        (a_cron("0 9 * * sat", calendar=Calendar(weekends=True)), "calendar"),
        (a_cron("0 9 25 12 *", calendar=Calendar(holidays=("DE",))), "calendar"),
        (a_cron("*/7 * * * *", windows=(a_window("09:01", "09:02"),)), "windows"),
        (in_berlin(every(days=1, phase=timedelta(hours=20)), windows=(OFFICE,)), "windows"),
        (in_berlin(recurrence("FREQ=DAILY"), windows=(OFFICE,)), "windows"),
        (in_berlin(recurrence("FREQ=MINUTELY;INTERVAL=1440"), windows=(OFFICE,)), "windows"),
        (in_berlin(recurrence("FREQ=HOURLY;INTERVAL=168"), windows=(A_MINUTE_A_WEEK,)), "windows"),
        (in_berlin(recurrence("FREQ=WEEKLY;BYDAY=SA"), windows=(OFFICE,)), "windows"),
        (a_cron("* * * * *", windows=(a_window("09:00", "10:00", "sun"),),
                   window_mode=WindowMode.DEFER, calendar=Calendar(weekends=True)), "windows"),
        (a_schedule(rule=Poisson(5), windows=(a_window("09:00", "10:00", "sun"),),
                    calendar=Calendar(weekends=True)), "windows"),
    ],
)  # fmt: skip
def test_what_can_never_fire_is_refused_within_the_budget(schedule: Schedule, field: str):
    with pytest.raises(InvalidSchedule, match="leave nothing of what the rule names") as refused:
        check_fires(schedule, now=NOON)

    assert (refused.value.field, isinstance(refused.value, TooCostly)) == (field, False)


def test_what_only_a_clock_change_brings_into_a_window_fires_then():
    found = islice(fires(a_cron("30 2 * * *", windows=NIGHTLY["windows"]), after=NOON), 3)

    assert [fire.at for fire in found] == [utc(f"{day} 01:00") for day in ("2027-03-28", "2028-03-26", "2029-03-25")]


def test_an_interval_that_meets_its_window_in_summer_only_fires_then():
    daily = in_berlin(every(days=1, phase=timedelta(hours=7)), windows=(a_window("09:00", "09:01"),))

    first = list(islice(fires(daily, after=NOON), 218))

    assert first[0].at == utc("2027-03-28 07:00")
    assert [fire.at for fire in first[216:]] == [utc("2027-10-30 07:00"), utc("2028-03-26 07:00")]


@pytest.mark.parametrize(
    "schedule",
    [
        in_berlin(every(minutes=10_081), windows=(A_MINUTE_A_WEEK,)),
        in_berlin(Poisson(1_440), windows=(A_MINUTE_A_WEEK,), window_mode=WindowMode.DEFER),
        in_berlin(recurrence("FREQ=MINUTELY;INTERVAL=1441;BYHOUR=3;BYMINUTE=0;COUNT=5000")),
    ],
)
def test_what_cannot_be_reported_within_the_budget_is_too_costly(schedule: Schedule):
    with pytest.raises(TooCostly):
        check_fires(schedule, now=NOON)


def test_what_is_taken_needs_no_more_for_its_next_fire_than_was_looked_at():
    closed = frozenset(date(2027, 3, 2) + timedelta(days=day) for day in range(31))
    rolled = a_cron("0 * * * *", calendar=Calendar(excluded=closed, roll=Roll.BEFORE))

    assert steps_of(rolled) > STEPS_OF_A_FIRE
    with pytest.raises(TooCostly):
        check_fires(rolled, now=NOON)


def test_the_definitions_of_one_request_share_its_budget():
    request = Budget(20_000)
    never = a_cron("0 20 * * *", windows=(OFFICE,))

    with pytest.raises(InvalidSchedule, match="leave nothing"):
        check_fires(never, now=NOON, budget=request)
    with pytest.raises(TooCostly):
        check_fires(never, now=NOON, budget=request)


def test_what_a_look_at_the_period_of_a_rule_takes_is_paid_for_by_its_request():
    rule = recurrence("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1")
    request = Budget(3_000)

    check_consistency(a_schedule(rule=rule, jitter=timedelta(hours=1)), budget=request)
    assert request.left < 2_000
    with pytest.raises(TooCostly):
        check_consistency(a_schedule(rule=rule, jitter=timedelta(hours=1)), budget=request)
    # Where nothing depends on it, there is none.
    check_consistency(a_schedule(rule=rule), budget=Budget(10))


@pytest.mark.parametrize("definition", [*NASTY.values(), *draw(7, 40)], ids=lambda definition: str(definition)[:80])
def test_whatever_is_taken_finds_its_next_fire_in_few_steps(definition: Definition):
    try:
        schedule = read_schedule({**definition, "job": {"target": "handler:echo"}}, RULES).schedule("acme", "nasty")
        check_fires(schedule, now=NOW)
    except (InvalidSchedule, Misshapen):
        return

    assert steps_of(schedule, after=NOW) <= STEPS_OF_A_FIRE


@pytest.mark.parametrize("given", [43_300, 48_000, 60_000])
@pytest.mark.parametrize("jitter", [timedelta(0), timedelta(minutes=10)])
def test_a_count_is_taken_or_refused_whoever_has_counted_it_before(given: int, jitter: timedelta):
    schedule = a_schedule(rule=recurrence("FREQ=MINUTELY;INTERVAL=1439;BYHOUR=3;COUNT=1700"), jitter=jitter)
    parse_rrule.cache_clear()

    answers: list[tuple[bool, int]] = []
    for _ in range(3):
        budget = Budget(given)
        try:
            check_fires(schedule, now=NOON, budget=budget)
        except TooCostly:
            answers.append((False, budget.left))
        else:
            answers.append((True, budget.left))

    assert len(set(answers)) == 1


TEN_SETS = ("TH", "XSHE", "IR", "MV", "VN", "IL", "TR", "SA", "CN", "DE")


def test_holidays_are_paid_for_by_set_and_year_whoever_has_worked_them_out_before():
    def steps(expression: str, *sets: str) -> int:
        return steps_of(a_cron(expression, calendar=Calendar(holidays=sets)))

    assert steps("0 9 * * *", "DE") == steps("0 9 * * *", "DE") == STEPS_OF_A_SET + STEPS_OF_A_YEAR + 22
    assert steps("0 9 * * *", *TEN_SETS) == 10 * (STEPS_OF_A_SET + STEPS_OF_A_YEAR) + 40
    with pytest.raises(TooCostly):
        check_fires(a_cron("0 9 25 12 *", calendar=Calendar(holidays=TEN_SETS)), now=NOON, budget=Budget(15_000))


def test_holidays_are_paid_for_once_by_the_definitions_of_a_request():
    request = Budget(5_000)

    for hour in range(20):
        check_fires(a_cron(f"0 {hour} * * *", calendar=Calendar(holidays=TEN_SETS)), now=NOON, budget=request)

    assert request.left > 2_000


def test_what_is_drawn_is_the_same_for_the_same_seed():
    assert list(draw(7, 20)) == list(draw(7, 20)) != list(draw(8, 20))


def test_a_preview_ends_where_its_budget_does_with_what_was_found():
    hourly = a_cron("0 * * * *")

    assert len(preview(hourly, after=NOON, count=100, budget=Budget(30)).previews) == 10
    with pytest.raises(TooCostly):
        preview(hourly, after=NOON, count=100, budget=Budget(2))


SKIPPED = [
    recurrence(
        "FREQ=MINUTELY;BYMONTH=3;BYDAY=SU;BYMONTHDAY=25,26,27,28,29,30,31;BYHOUR=2;"
        f"BYSECOND={','.join(map(str, range(60)))}"
    ),
    CronRule("0-59 2 25-31 3 */7"),
]


@pytest.mark.parametrize("rule", SKIPPED)
def test_local_times_that_a_clock_change_skips_are_paid_for(rule: Rule):
    budget = Budget(1_000)

    with pytest.raises(TooCostly):
        next_fire(in_berlin(rule, gap=Gap.SKIP), after=NOON, budget=budget)


def test_a_rule_of_skipped_local_times_counts_for_what_it_names_without_a_look_at_any():
    assert fires_an_hour(in_berlin(SKIPPED[0], gap=Gap.SKIP)) == 3_600


def test_local_times_before_the_instant_that_is_asked_for_are_paid_for():
    both = in_berlin(recurrence("FREQ=MINUTELY"), fold=Fold.FIRST)

    # The second pass of the hour in which its first has fired.
    assert steps_of(both, after=utc("2027-10-31 01:00")) > 60 * STEPS_OF_NO_INSTANT
    assert steps_of(both, after=utc("2027-10-30 12:00")) < 10


def test_a_request_of_one_kind_holds_no_definition_twice():
    # A cron of each minute has nothing that could differ.
    names = NASTY.keys() - {"minutes that a clock change skips"}

    for name, body in requests({**NASTY, "drawn": NASTY["holidays only"]}).items():
        given = body.schedules or ()
        written = {str({part: each[part] for part in each if part != "id"}) for each in given}
        is_by_name = any("poisson" in each for each in given)
        assert name not in names or is_by_name or len(written) == len(given), name
