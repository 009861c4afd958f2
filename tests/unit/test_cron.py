from calendar import monthrange
from datetime import date, datetime, timedelta
from itertools import islice, takewhile

import pytest
from croniter import croniter
from cronsim import CronSim

from functions.domain.errors import InvalidSchedule
from functions.domain.schedules.cron import MACROS, Cron, parse_cron
from functions.domain.schedules.cron_checks import check_new_cron
from tests.wall_clock import local


def matches(expression: str, count: int, *, since: str = "2027-01-01 00:00") -> list[str]:
    found = islice(parse_cron(expression).matches(since=local(since)), count)
    return [match.strftime("%m-%d %H:%M") for match in found]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("30 9 * * *", ["01-01 09:30", "01-02 09:30", "01-03 09:30"]),
        ("*/20 9 * * *", ["01-01 09:00", "01-01 09:20", "01-01 09:40"]),
        ("5/20 9 * * *", ["01-01 09:05", "01-01 09:25", "01-01 09:45"]),
        ("10-14/2 9 * * *", ["01-01 09:10", "01-01 09:12", "01-01 09:14"]),
        ("0 9,17 * * *", ["01-01 09:00", "01-01 17:00", "01-02 09:00"]),
        ("0 9 * * mon-fri", ["01-01 09:00", "01-04 09:00", "01-05 09:00"]),
        ("0 9 * * MON,WED", ["01-04 09:00", "01-06 09:00", "01-11 09:00"]),
        ("0 9 * * 7", ["01-03 09:00", "01-10 09:00", "01-17 09:00"]),
        ("0 9 * * 6-7", ["01-02 09:00", "01-03 09:00", "01-09 09:00"]),
        ("0 9 1 jan,jul *", ["01-01 09:00", "07-01 09:00", "01-01 09:00"]),
        ("0 9 L * *", ["01-31 09:00", "02-28 09:00", "03-31 09:00"]),
        ("0 9 * * fri#2", ["01-08 09:00", "02-12 09:00", "03-12 09:00"]),
        ("0 9 * * L5", ["01-29 09:00", "02-26 09:00", "03-26 09:00"]),
        ("0 9 * * 1#1,5#5", ["01-04 09:00", "01-29 09:00", "02-01 09:00"]),
        ("0 9 * * friL", ["01-29 09:00", "02-26 09:00", "03-26 09:00"]),
        ("0 9 * * fridayL,l1", ["01-25 09:00", "01-29 09:00", "02-22 09:00"]),
        ("0 9 * * mon-fri#1", ["01-01 09:00", "01-04 09:00", "01-05 09:00"]),
        ("0 9 * * fri-mon#2", ["01-08 09:00", "01-09 09:00", "01-10 09:00"]),
        ("0 9 L-0 * *", ["01-31 09:00", "02-28 09:00", "03-31 09:00"]),
        ("0 9 L-3 * *", ["01-28 09:00", "02-25 09:00", "03-28 09:00"]),
        ("0 9 L-30 * *", ["01-01 09:00", "03-01 09:00", "05-01 09:00"]),
        ("0 9 LW * *", ["01-29 09:00", "02-26 09:00", "03-31 09:00"]),
        ("0 9 L-2W * *", ["01-29 09:00", "02-26 09:00", "03-29 09:00"]),
        ("0 9 1,LW * *", ["01-01 09:00", "01-29 09:00", "02-01 09:00"]),
        ("0 9 30-L * *", ["01-30 09:00", "01-31 09:00", "03-30 09:00"]),
        ("0 9 15W * *", ["01-15 09:00", "02-15 09:00", "03-15 09:00"]),
        ("0 9 15W 5,8 *", ["05-14 09:00", "08-16 09:00", "05-15 09:00"]),  # a Saturday, a Sunday
        ("0 9 1W 5,8 *", ["05-03 09:00", "08-02 09:00", "05-01 09:00"]),  # never into another month
        ("0 9 31W 1,10 *", ["01-29 09:00", "10-29 09:00", "01-31 09:00"]),
        ("0 9 1W,15W * *", ["01-01 09:00", "01-15 09:00", "02-01 09:00"]),
        ("0 9 15w,20 * *", ["01-15 09:00", "01-20 09:00", "02-15 09:00"]),
        ("0 9 1 February *", ["02-01 09:00", "02-01 09:00", "02-01 09:00"]),
        ("0 9 * * Monday-Wednesday", ["01-04 09:00", "01-05 09:00", "01-06 09:00"]),
        ("0 9 * * saturday#3", ["01-16 09:00", "02-20 09:00", "03-20 09:00"]),
        # Over the end of their field, their steps too.
        ("0 22-1 * * *", ["01-01 00:00", "01-01 01:00", "01-01 22:00"]),
        ("0 20-4/2 * * *", ["01-01 00:00", "01-01 02:00", "01-01 04:00"]),
        ("0 21-4/2 * * *", ["01-01 01:00", "01-01 03:00", "01-01 21:00"]),
        ("50-10/15 9 * * *", ["01-01 09:05", "01-01 09:50", "01-02 09:05"]),
        ("0 9 28-3/2 * *", ["01-01 09:00", "01-03 09:00", "01-28 09:00"]),
        ("0 9 1 nov-feb *", ["01-01 09:00", "02-01 09:00", "11-01 09:00"]),
        ("0 9 * * sat-sun", ["01-02 09:00", "01-03 09:00", "01-09 09:00"]),
        ("0 9 * * fri-tue/2", ["01-01 09:00", "01-03 09:00", "01-05 09:00"]),
        ("0 9 * * 7-1", ["01-03 09:00", "01-04 09:00", "01-10 09:00"]),
        ("0 9 * * 7-0", ["01-03 09:00", "01-10 09:00", "01-17 09:00"]),
        ("0 9 29 2 *", ["02-29 09:00", "02-29 09:00", "02-29 09:00"]),
        ("0 9 ? * 1", ["01-04 09:00", "01-11 09:00", "01-18 09:00"]),
        ("  0\t9 * *  1 ", ["01-04 09:00", "01-11 09:00", "01-18 09:00"]),
        ("0 23-23/24 * * *", ["01-01 23:00", "01-02 23:00", "01-03 23:00"]),
        ("0 09-9 * * mon-1", ["01-04 09:00", "01-11 09:00", "01-18 09:00"]),
        ("0 9 *,5 * *", ["01-01 09:00", "01-02 09:00", "01-03 09:00"]),
        ("0 */100 * * *", ["01-01 00:00", "01-02 00:00", "01-03 00:00"]),
        # Both day fields: either of them ...
        ("0 9 13 * 5", ["01-01 09:00", "01-08 09:00", "01-13 09:00"]),
        ("0 9 31 2 1", ["02-01 09:00", "02-08 09:00", "02-15 09:00"]),
        ("0 9 13 * 5#2", ["01-08 09:00", "01-13 09:00", "02-12 09:00"]),
        ("0 9 1-7 * 1", ["01-01 09:00", "01-02 09:00", "01-03 09:00"]),
        # ... but both of them when one starts with a star.
        ("0 9 */2 * 5", ["01-01 09:00", "01-15 09:00", "01-29 09:00"]),
        ("0 9 13 * */2", ["02-13 09:00", "03-13 09:00", "04-13 09:00"]),
        ("0 9 1-7 * */7", ["01-03 09:00", "02-07 09:00", "03-07 09:00"]),
    ],
)
def test_an_expression_names_these_times_first(expression: str, expected: list[str]):
    assert matches(expression, 3) == expected


@pytest.mark.parametrize("macro", MACROS)
def test_a_macro_is_what_it_stands_for_in_any_case(macro: str):
    assert matches(macro, 50) == matches(macro.upper(), 50) == matches(MACROS[macro], 50)


@pytest.mark.parametrize(
    ("since", "first"),
    [
        ("2027-01-01 09:30", "01-01 09:30"),
        ("2027-01-01 09:30:00.000001", "01-02 09:30"),
        ("2027-01-01 09:29:59", "01-01 09:30"),
        ("2027-01-31 09:31", "02-01 09:30"),
        ("2027-12-31 23:59", "01-01 09:30"),
    ],
)
def test_the_search_begins_with_the_minute_it_is_given(since: str, first: str):
    assert matches("30 9 * * *", 1, since=since) == [first]


def test_the_calendar_has_an_end():
    assert len(matches("0 0 1 * *", 100, since="2199-06-15 00:00")) == 18
    assert not matches("0 0 1 * *", 1, since="2201-01-01 00:00")


@pytest.mark.parametrize(
    ("expression", "follows"),
    [
        ("*/5 1 * * *", True),
        ("5 */2 * * *", True),
        ("* * * * *", True),
        ("@hourly", True),
        ("5 1 * * *", False),
        ("0-59 0-23 * * *", False),
        ("@daily", False),
    ],
)
def test_a_star_in_the_minute_or_hour_makes_it_follow_elapsed_time(expression: str, follows: bool):
    assert parse_cron(expression).follows_elapsed_time is follows


@pytest.mark.parametrize(
    ("expression", "minutes"),
    [
        ("* * * * *", 1),
        ("*/7 * * * *", 4),  # 56 to 60
        ("0,50 * * * *", 10),
        ("0 * * * *", 60),
        ("0 9,17 * * *", 8 * 60),
        ("30 9 * * *", 24 * 60),
        ("0 0 1 1 *", 24 * 60),
        ("59 23 * * *", 24 * 60),
        ("0,59 0,23 * * *", 1),  # over midnight
    ],
)
def test_the_shortest_period_is_the_smallest_distance_of_its_times_of_day(expression: str, minutes: int):
    assert parse_cron(expression).shortest_period == timedelta(minutes=minutes)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("", "has 0 fields, but must have 5, minute, hour, day of month, month, day of week"),
        ("* * * *", "has 4 fields"),
        ("0 * * * * *", "seconds and years are not supported"),
        ("0 0 * * * 0 2027", "seconds and years are not supported"),
        ("@reboot", "@reboot is not supported: the macros are @yearly"),
        ("@every 5m", "is not supported"),
        ("H * * * *", "'h' in the minute is a choice by hash or chance: write a number, and use spread or jitter"),
        ("H(0-5) * * * *", "is a choice by hash or chance"),
        ("0 H/2 * * *", "'h/2' in the hour is a choice"),
        ("R * * * *", "is a choice by hash or chance"),
        ("0 0 * * 7/2", "'7/2' in the day of week could mean Sunday or every day: write"),
        ("0 0 30 2 *", "never fires: there is no such day"),
        ("0 0 31 4,6,9,11 *", "never fires"),
        ("0 0 30 2 */2", "never fires"),
        ("0 0 31 2 */1", "never fires"),
        ("0 0 * 2 1#5,2#5", None),
        ("60 * * * *", "is not a cron expression"),
        ("* 24 * * *", "is not a cron expression"),
        ("* * 0 * *", "is not a cron expression"),
        ("* * 32 * *", "is not a cron expression"),
        ("* * * 13 *", "is not a cron expression"),
        ("* * * * 8", "is not a cron expression"),
        ("* * * * 5#6", "'5#6' in the day of week must be from #1 to #5"),
        ("* * * * 5#0", "must be from #1 to #5"),
        ("* * * * jan#1", "names no weekday: they are 0 to 7, or sun, mon, tue"),
        ("* * * * 8#1", "names no weekday"),
        ("* * * * L8", "names no weekday"),
        ("* * * * 1-5#1", r'counted, in Quartz from 1 for Sunday: write \{"cron": "\* \* \* \* mon-fri#1"\}$'),
        ("* * L-31 * *", "'l-31' in the day of month must be from L-1 to L-30"),
        ("* * 32W * *", "'32w' in the day of month is not the weekday nearest to a day such as 15W"),
        ("* * 0W * *", "is not the weekday nearest to a day"),
        ("* * 1-15W * *", "is not the weekday nearest to a day"),
        ("* * W * *", "is not the weekday nearest to a day"),
        ("* * L/2 * *", "is not a cron expression: its day of month"),
        ("0 5-25 * * *", "is not a cron expression: its hour"),
        ("0 25-5 * * *", "'25-5' in the hour is out of range: 0 to 23"),
        ("0 0 5-0 * *", "'5-0' in the day of month is out of range: 1 to 31"),
        ("0 0 L-30 2 *", "never fires: there is no such day"),
        ("*/0 * * * *", "is not a cron expression"),
        ("-5 * * * *", "is not a cron expression"),
        ("1.5 * * * *", "is not a cron expression"),
        ("a b c d e", "is not a cron expression"),
        ("1,,2 * * * *", "is not a cron expression"),
        ("? * * * *", "is not a cron expression"),
        (
            "0 0 * * mon,2#1",
            'of a month: write {"cron": "0 0 \\* \\* mon#1,mon#2,mon#3,mon#4,mon#5,2#1"}',
        ),
        ("\u0665 * * * *", "is not a cron expression"),
        ("0\u00a00 * * *", "has 4 fields"),
        ("0 0 * * *\x00", "is not a cron expression"),
        ("1," * 600 + "1 * * * *", "is longer than 1000 characters"),
    ],
)
def test_what_is_not_an_expression_or_could_be_misread_is_refused(expression: str, message: str | None):
    if message is None:
        assert parse_cron(expression)
        return
    with pytest.raises(InvalidSchedule, match=message) as refused:
        parse_cron(expression)

    assert refused.value.field == "cron"


@pytest.mark.parametrize(
    ("expression", "readings"),
    [
        ("0 0 * * 5L", ["0 0 * * friL", "0 0 * * thuL"]),
        ("0 0 LW * 1L,fri#1", ["0 0 LW * monL,fri#1", "0 0 LW * sunL,fri#1"]),
        ("0 0 * * 0L", ["0 0 * * sunL"]),
        ("0 0 * * 7L", ["0 0 * * sunL", "0 0 * * satL"]),
        ("0 0 ? * L", ["0 0 * * sat"]),
        ("0 0 * * 1-5#1", ["0 0 * * mon-fri#1"]),
    ],
)
def test_where_it_matters_how_weekdays_are_counted_both_readings_are_reported(expression: str, readings: list[str]):
    with pytest.raises(InvalidSchedule, match="depends on how weekdays are counted") as refused:
        parse_cron(expression)

    assert [definition["cron"] for definition in refused.value.instead] == readings
    assert all(parse_cron(reading) for reading in readings)


def test_an_expression_is_parsed_once():
    assert parse_cron("7 7 7 7 *") is parse_cron("7 7 7 7 *")


def test_what_can_never_fire_is_found_without_walking(monkeypatch: pytest.MonkeyPatch):
    def walked(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(Cron, "days_of", walked)
    monkeypatch.setattr(Cron, "matches", walked)

    with pytest.raises(InvalidSchedule, match="never fires"):
        parse_cron("1 2 30,31 2 */1")


def days(expression: str, year: int, month: int) -> list[int]:
    return list(parse_cron(f"0 0 {expression}").days_of(year, month))


def as_croniter_finds(day_fields: str, year: int, month: int) -> list[int]:
    """Fields of which only one names days, walked from day to day."""
    start = datetime(year, month, 1)  # noqa: DTZ001  local time
    daily = croniter(f"0 0 {day_fields}", start - timedelta(minutes=1), ret_type=datetime, max_years_between_matches=9)
    found = takewhile(lambda match: (match.year, match.month) == (year, month), daily)
    return [match.day for match in found]


MONTHS = [(2027, 1), (2027, 2), (2028, 2), (2027, 4), (2027, 5), (2027, 8), (2100, 2)]


@pytest.mark.parametrize("months", ["*", "2,3", "jan,jul", "*/5"])
@pytest.mark.parametrize(
    "of_month",
    ["*", "1,15", "*/3", "31", "10-20", "29-31/2", "*,5", "L", "1,L", "25-L", "1W", "15W", "16w", "30W", "31W", "W14"],
)
def test_the_dates_are_those_that_croniter_finds_one_by_one(of_month: str, months: str):
    for year, month in MONTHS:
        assert days(f"{of_month} {months} *", year, month) == as_croniter_finds(f"{of_month} {months} *", year, month)


@pytest.mark.parametrize("months", ["*", "2-4"])
@pytest.mark.parametrize(
    "of_week",
    [
        "*",
        "1",
        "mon-fri",
        "0",
        "7",
        "5-7",
        "*/2",
        "*/7",
        "0,6",
        "*,1",
        "thu/2",
        "1#1",
        "7#5",
        "mon#2,5#4",
        "mon-fri#1",
        "fri-mon#3",
        "L0",
        "L5",
        "l7,l1",
        "5#5",
    ],
)
def test_the_weekdays_are_those_that_croniter_finds_one_by_one(of_week: str, months: str):
    for year in (2027, 2028):
        for month in range(1, 13):
            assert days(f"* {months} {of_week}", year, month) == as_croniter_finds(f"* {months} {of_week}", year, month)


@pytest.mark.parametrize("expression", ["* * *", "LW * *", "L * *", "* * 5#2", "*/2 2 mon#5", "1,LW 2 sun", "*,13 * *"])
def test_the_days_are_those_that_cronsim_finds_in_the_whole_calendar_that_there_is(expression: str):
    fields = CronSim(f"0 0 {expression}", datetime(2026, 1, 1))  # noqa: DTZ001  local time
    for year in range(2026, 2200, 7):
        for month in range(1, 13):
            if month in fields.months:
                dates = (date(year, month, day) for day in range(1, monthrange(year, month)[1] + 1))
                assert days(expression, year, month) == [day.day for day in dates if fields.match_day(day)]


@pytest.mark.parametrize(
    ("stored", "means"),
    [
        ("*/90 * * * *", "0 * * * *"),
        ("1/60 * * * *", "1 * * * *"),
        ("0 */24 * * *", "0 0 * * *"),
        ("0 1/24 * * *", "0 1 * * *"),
        ("0 0 1 */13 *", "0 0 1 1 *"),
        ("0 022-002 * * *", "0 22-2 * * *"),
        ("0 010 * * *", "0 10 * * *"),
        ("0 0 W15 * *", "0 0 15W * *"),
        ("0 0 31W * *", "0 0 LW * *"),
        ("0 0 * * 1,1#1", "0 0 * * mon#1"),
        ("0 0 * * 6/1", "0 0 * * sat"),
        ("0 0 * * *,1#1", "0 0 * * mon#1"),
        ("0 0 * * mon-mon#2", "0 0 8-14 * *"),
    ],
)
def test_what_is_no_longer_taken_means_what_it_has_always_intended_where_it_is_stored(stored: str, means: str):
    with pytest.raises(InvalidSchedule):
        check_new_cron(stored)

    assert matches(stored, 50) == matches(means, 50)
