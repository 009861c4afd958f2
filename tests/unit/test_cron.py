from datetime import timedelta
from itertools import islice

import pytest

from functions.domain import cron
from functions.domain.cron import MACROS, parse_cron
from functions.domain.errors import InvalidSchedule
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
        ("0 9 15W * *", ["01-15 09:00", "02-15 09:00", "03-15 09:00"]),
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
    assert len(matches("0 0 1 * *", 100, since="9998-06-15 00:00")) == 6


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
        ("0 5-1 * * *", "'5-1' in the hour runs backwards: write 5-23,0-1"),
        ("0 22-0 * * *", "'22-0' in the hour runs backwards: write 22-23,0"),
        ("50-10/5 * * * *", "'50-10/5' in the minute runs backwards: write 50-59,0-10"),
        ("0 0 28-3 * *", "write 28-31,1-3"),
        ("0 0 * nov-feb *", "'nov-feb' in the month runs backwards: write 11-12,1-2"),
        ("0 0 * * 5-1", "'5-1' in the day of week runs backwards: write 5-6,0-1"),
        ("0 0 * * sat-sun", "'sat-sun' in the day of week runs backwards: write 6-7"),
        ("0 0 * * 7-1", "write 7,0-1"),
        ("0 0 * * 7-0", "write 7"),
        ("0 0 * * 7/2", "'7/2' in the day of week could mean Sunday or every day: write 0, or '\\*/2'"),
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
        ("* * * * 5#6", "is not a cron expression"),
        ("* * * * 5L", "is not a cron expression"),
        ("* * LW * *", "is not a cron expression"),
        ("*/0 * * * *", "is not a cron expression"),
        ("-5 * * * *", "is not a cron expression"),
        ("1.5 * * * *", "is not a cron expression"),
        ("a b c d e", "is not a cron expression"),
        ("1,,2 * * * *", "is not a cron expression"),
        ("? * * * *", "is not a cron expression"),
        ("0 0 * * mon,2#1", "is not a cron expression"),
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


def test_an_expression_is_parsed_once():
    assert parse_cron("7 7 7 7 *") is parse_cron("7 7 7 7 *")


@pytest.mark.parametrize("day_fields", ["{} * *", "{} 2 *", "{} jan,jul *", "{} */5 *"])
def test_the_dates_that_are_computed_are_those_that_croniter_finds_one_by_one(day_fields: str):
    for of_month in ("*", "1,15", "*/3", "31", "10-20", "29-31/2", "*,5"):
        for year, month in ((2027, 1), (2027, 2), (2028, 2), (2027, 4), (2027, 7), (2100, 2)):
            fields = day_fields.format(of_month)
            assert cron._days(fields, year, month) == cron._walked(fields, year, month)


@pytest.mark.parametrize("of_week", ["*", "1", "mon-fri", "0", "7", "5-7", "*/2", "*/7", "0,6", "*,1", "thu/2"])
def test_the_weekdays_that_are_computed_are_those_that_croniter_finds_one_by_one(of_week: str):
    for months in ("*", "2-4"):
        for month in range(1, 13):
            fields = f"* {months} {of_week}"
            assert cron._days(fields, 2027, month) == cron._walked(fields, 2027, month)
