from dataclasses import replace
from datetime import timedelta
from itertools import islice

import pytest
from dateutil.rrule import rrulestr

from functions.domain.errors import InvalidSchedule, TooCostly
from functions.domain.schedules.rrules import check_recurrence, parse_rrule
from functions.domain.schedules.rules import RecurrenceRule
from functions.domain.schedules.step_budget import Budget
from tests.wall_clock import local

START = local("2026-01-30 09:10:20")


def matches(rule: str, count: int, *, since: str = "2027-01-01 00:00") -> list[str]:
    return [
        match.isoformat(" ", "minutes") for match in islice(parse_rrule(rule, START).matches(since=local(since)), count)
    ]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("FREQ=DAILY", ["2027-01-01 09:10", "2027-01-02 09:10"]),
        ("FREQ=DAILY;INTERVAL=10", ["2027-01-05 09:10", "2027-01-15 09:10"]),
        ("FREQ=WEEKLY", ["2027-01-01 09:10", "2027-01-08 09:10"]),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE", ["2027-01-11 09:10", "2027-01-13 09:10"]),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=SU", ["2027-01-10 09:10", "2027-01-12 09:10"]),
        ("FREQ=MONTHLY", ["2027-01-30 09:10", "2027-03-30 09:10"]),
        ("FREQ=MONTHLY;BYDAY=-1FR", ["2027-01-29 09:10", "2027-02-26 09:10"]),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", ["2027-01-29 09:10", "2027-02-26 09:10"]),
        ("FREQ=MONTHLY;INTERVAL=5;BYMONTHDAY=-1", ["2027-04-30 09:10", "2027-09-30 09:10"]),
        ("FREQ=YEARLY", ["2027-01-30 09:10", "2028-01-30 09:10"]),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", ["2028-02-29 09:10", "2032-02-29 09:10"]),
        ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", ["2027-05-17 09:10", "2028-05-15 09:10"]),
        ("FREQ=YEARLY;BYYEARDAY=-1;BYHOUR=1", ["2027-12-31 01:10", "2028-12-31 01:10"]),
        ("FREQ=HOURLY;INTERVAL=7", ["2027-01-01 02:10", "2027-01-01 09:10"]),
        ("FREQ=HOURLY;INTERVAL=7;BYDAY=TU", ["2027-01-05 04:10", "2027-01-05 11:10"]),
        ("FREQ=MINUTELY;INTERVAL=90;BYHOUR=9,10", ["2027-01-01 09:10", "2027-01-01 10:40"]),
        ("RRULE:freq=daily;byhour=5,6;byminute=0;", ["2027-01-01 05:00", "2027-01-01 06:00"]),
        ("FREQ=DAILY;UNTIL=20270101T091020", ["2027-01-01 09:10"]),
        ("FREQ=DAILY;UNTIL=20270101T091019", []),
        ("FREQ=DAILY;COUNT=338", ["2027-01-01 09:10", "2027-01-02 09:10"]),
        ("FREQ=DAILY;COUNT=337", ["2027-01-01 09:10"]),
        ("FREQ=DAILY;COUNT=336", []),
    ],
)
def test_a_rule_names_these_times_first(rule: str, expected: list[str]):
    assert matches(rule, 2) == expected


def test_a_time_has_the_seconds_of_the_start():
    assert next(parse_rrule("FREQ=HOURLY", START).matches(since=START)) == START


def test_the_start_itself_is_no_occurrence_unless_it_matches():
    assert matches("FREQ=WEEKLY;BYDAY=MO", 1, since="2026-01-30 00:00") == ["2026-02-02 09:10"]


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=YEARLY;INTERVAL=3",
        "FREQ=YEARLY;INTERVAL=4;BYDAY=20MO,-1SU",
        "FREQ=YEARLY;BYMONTH=3,11;BYDAY=1MO,-2TU;BYSETPOS=2,-1",
        "FREQ=YEARLY;BYWEEKNO=1,53;BYDAY=MO,SU;WKST=SU",
        "FREQ=YEARLY;BYYEARDAY=1,100,-1;BYHOUR=3,4",
        "FREQ=MONTHLY;INTERVAL=7;BYMONTHDAY=31,-31,15",
        "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13",
        "FREQ=MONTHLY;INTERVAL=13;BYDAY=MO,TU;BYSETPOS=1,3,-1",
        "FREQ=WEEKLY;INTERVAL=3;BYDAY=MO,SU;WKST=MO",
        "FREQ=WEEKLY;INTERVAL=3;BYDAY=MO,SU;WKST=SU",
        "FREQ=WEEKLY;INTERVAL=5;BYDAY=SA,SU;WKST=TH;BYHOUR=0,23;BYSETPOS=2,-1",
        "FREQ=DAILY;INTERVAL=11;BYMONTH=1,6;BYHOUR=1,13;BYMINUTE=5,10;BYSECOND=0,30",
        "FREQ=DAILY;BYHOUR=1,2,3;BYMINUTE=0,30;BYSETPOS=1,-1",
        "FREQ=HOURLY;INTERVAL=5;BYDAY=SA",
        "FREQ=HOURLY;INTERVAL=9;BYHOUR=0,9,18;BYMINUTE=1,2",
        "FREQ=HOURLY;BYMONTHDAY=-1;BYMINUTE=1,2,3;BYSETPOS=-1",
        "FREQ=MINUTELY;INTERVAL=1441",
        "FREQ=MINUTELY;INTERVAL=35;BYDAY=SU;BYSECOND=5,55",
        "FREQ=MINUTELY;INTERVAL=21;BYHOUR=3,5;BYMINUTE=0,7,14,21",
    ],
)
def test_a_rule_that_starts_afresh_later_says_what_dateutil_says_from_the_first_day_on(rule: str):
    whole = [match for match in islice(rrulestr(rule, dtstart=START), 3_000) if match.year < 2099]
    recurrence = parse_rrule(rule, START)

    for index in range(0, len(whole) - 5, 97):
        for since in (whole[index], whole[index] + timedelta(microseconds=1), whole[index] - timedelta(minutes=17)):
            expected = [match for match in whole[max(0, index - 40) : index + 60] if match >= since][:5]
            assert list(islice(recurrence.matches(since=since), len(expected))) == expected


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("", "is not a part of a rule"),
        ("DAILY", "is not a part of a rule"),
        ("FREQ=SECONDLY", "FREQ=SECONDLY is not one of YEARLY, .*; for seconds use every"),
        ("FREQ=DAYLY", "FREQ=DAYLY is not one of"),
        ("INTERVAL=2", "FREQ= is not one of"),
        ("DTSTART:20270101T000000\nRRULE:FREQ=DAILY", "has a DTSTART: give that as starts_at"),
        ("FREQ=DAILY;DTSTART=20270101T000000", "has a DTSTART"),
        ("FREQ=DAILY;FREQ=WEEKLY", "has FREQ twice"),
        ("FREQ=DAILY;BYEASTER=1", "'BYEASTER=1' is not a part of a rule: they are BYDAY"),
        ("FREQ=DAILY;X-WHAT=1", "is not a part of a rule"),
        ("FREQ=DAILY;COUNT=2;UNTIL=20270101T000000", "has both COUNT and UNTIL"),
        ("FREQ=DAILY;COUNT=0", "COUNT=0 must be from 1 to 5000: use max_runs or UNTIL"),
        ("FREQ=DAILY;COUNT=5001", "must be from 1 to 5000"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL=0 must be from 1 to 100000"),
        ("FREQ=DAILY;INTERVAL=-1", "must be from 1 to 100000"),
        ("FREQ=DAILY;INTERVAL=9999999", "must be from 1 to 100000"),
        ("FREQ=DAILY;UNTIL=20271231", "UNTIL=20271231 must be a local time such as 20271231T235959, or one in UTC"),
        ("FREQ=DAILY;UNTIL=2027-12-31T00:00:00", "must be a local time"),
        ("FREQ=DAILY;UNTIL=20271331T000000", "must be a local time"),
        ("FREQ=DAILY;UNTIL=20270101T000000+0100", "must be a local time"),
        ("FREQ=DAILY;UNTIL=20200101T000000", "never fires: nothing matches from 2026-01-30T09:10:20 on"),
        ("FREQ=YEARLY;BYMONTH=13", "BYMONTH=13 must be numbers from 1 to 12$"),
        ("FREQ=YEARLY;BYMONTH=-1", "must be numbers from 1 to 12"),
        ("FREQ=MONTHLY;BYMONTHDAY=0", "must be numbers from 1 to 31, or from -31 to -1"),
        ("FREQ=MONTHLY;BYMONTHDAY=1,,2", "must be numbers"),
        ("FREQ=DAILY;BYHOUR=24", "must be numbers from 0 to 23"),
        ("FREQ=DAILY;BYMINUTE=60", "must be numbers from 0 to 59"),
        ("FREQ=DAILY;BYMINUTE=\u0665", "must be numbers"),
        ("FREQ=MONTHLY;BYDAY=XX", "BYDAY=XX must be days such as MO, or 2TU and -1FR"),
        ("FREQ=MONTHLY;BYDAY=0MO", "must be days such as"),
        ("FREQ=MONTHLY;BYDAY=MO(2)", "must be days such as"),
        ("FREQ=WEEKLY;BYDAY=2MO", "numbered days, such as 2TU, need FREQ=MONTHLY"),
        ("FREQ=YEARLY;BYWEEKNO=2;BYDAY=2MO", "numbered days"),
        ("FREQ=MONTHLY;BYWEEKNO=2", "BYWEEKNO has no meaning with FREQ=MONTHLY"),
        ("FREQ=DAILY;BYYEARDAY=2", "BYYEARDAY has no meaning"),
        ("FREQ=WEEKLY;BYMONTHDAY=2", "BYMONTHDAY has no meaning"),
        ("FREQ=MONTHLY;BYSETPOS=1", "BYSETPOS chooses among what another BY… part names"),
        ("FREQ=WEEKLY;WKST=XX", "WKST=XX is not one of MO"),
        ("FREQ=DAILY;BYHOUR=" + ",".join(map(str, range(24))) + ";BYMINUTE=" + ",".join(map(str, range(60)))
         + ";BYSECOND=0,30", "names 2880 times of a day, more than 1440"),
        ("FREQ=DAILY;BYHOUR=" + "1," * 600 + "1", "is longer than 1000 characters"),
        # What would never end.
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "never fires"),
        ("FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30", "never fires"),
        ("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", "never fires"),
        ("FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30", "never fires"),
        ("FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=30", "never fires"),
        ("FREQ=DAILY;INTERVAL=99991;BYMONTH=2;BYMONTHDAY=30", "never fires"),
        ("FREQ=DAILY;INTERVAL=7;BYDAY=MO", "never fires"),
        ("FREQ=HOURLY;INTERVAL=24;BYHOUR=5", "never fires"),
        ("FREQ=MINUTELY;INTERVAL=1440;BYHOUR=5", "never fires"),
        ("FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=30;BYSECOND=5", "never fires"),
        ("FREQ=MINUTELY;INTERVAL=60;BYMINUTE=5", "never fires"),
        ("FREQ=MINUTELY;INTERVAL=10080;BYDAY=MO", "never fires"),
        ("FREQ=HOURLY;INTERVAL=168;BYDAY=MO", "never fires"),
        ("FREQ=MINUTELY;BYSECOND=5;BYSETPOS=2", "never fires"),
        ("FREQ=HOURLY;BYMINUTE=5,6;BYSETPOS=-3", "never fires"),
        ("FREQ=DAILY;BYHOUR=5,6;BYSETPOS=3", "never fires"),
        ("FREQ=WEEKLY;BYDAY=MO;BYSETPOS=2", "never fires"),
        ("FREQ=WEEKLY;INTERVAL=10000;BYMONTH=7", "never fires"),
        ("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6", "never fires"),
        ("FREQ=YEARLY;BYDAY=1MO;BYSETPOS=366", "never fires"),
        ("FREQ=YEARLY;BYDAY=53MO;BYYEARDAY=1", "never fires"),
    ],
)  # fmt: skip
def test_what_is_not_a_rule_or_never_fires_is_refused_in_few_steps(rule: str, message: str):
    with pytest.raises(InvalidSchedule, match=message) as refused:
        check_recurrence(RecurrenceRule(rule, START), Budget(2_500))

    assert refused.value.field == "rrule"


@pytest.mark.parametrize(
    ("rule", "instead"),
    [
        (
            "FREQ=DAILY\nEXDATE:20271224T090000Z,20271231T090000Z",
            'give the dates as "calendar": {"exclude": ["2027-12-24", "2027-12-31"]}',
        ),
        ("FREQ=DAILY;EXDATE=20271224", 'give the dates as "calendar": {"exclude": ["2027-12-24"]}'),
        (
            "FREQ=DAILY\nRDATE:20271224T090000Z",
            'make a schedule for each of its dates, with "at": "2027-12-24T09:00:00Z"',
        ),
        ("FREQ=DAILY\nEXRULE:FREQ=WEEKLY", "let the rule name only the dates that are left"),
    ],
)
def test_dates_beside_a_rule_are_refused_with_what_to_write_instead(rule: str, instead: str):
    with pytest.raises(InvalidSchedule) as refused:
        parse_rrule(rule, START)

    assert instead in str(refused.value)


@pytest.mark.parametrize(
    ("rule", "steps"),
    [
        # A year, a month or a day that a walk looks at is a step.
        ("FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU;BYHOUR=5;BYMINUTE=5", 40),
        ("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU", 40),
        ("FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU", 40),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU", 40),
        ("FREQ=MINUTELY;INTERVAL=7", 2),
        ("FREQ=HOURLY;INTERVAL=99991", 4),
        ("FREQ=WEEKLY;INTERVAL=3;BYMONTH=2;BYDAY=MO", 10),
    ],
)
def test_a_rule_goes_from_match_to_match_without_a_look_at_what_is_between(rule: str, steps: int):
    recurrence = parse_rrule(rule, local("1971-01-31 09:10"))

    for since in ("1971-02-01 00:00", "2027-01-01 00:00", "2071-06-01 00:00"):
        assert next(recurrence.matches(since=local(since), budget=Budget(steps))) >= local(since)


@pytest.mark.parametrize("starts_at", ["1971-01-01 00:00", "2026-01-30 09:10:20"])
@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=MINUTELY;COUNT=5000;BYMONTH=11;BYMONTHDAY=23;BYHOUR=3;BYMINUTE=0",
        "FREQ=MINUTELY;COUNT=5000",
        "FREQ=DAILY;INTERVAL=2;COUNT=5000",
        "FREQ=WEEKLY;BYDAY=MO,TU;BYSETPOS=1;COUNT=5000",
    ],
)
def test_a_rule_is_counted_to_its_end_once_and_goes_on_from_there(rule: str, starts_at: str):
    recurrence, start = parse_rrule.__wrapped__(rule, local(starts_at)), local(starts_at)

    last = recurrence.last_of(Budget(25_000))

    assert last is not None
    assert [*islice(recurrence.matches(since=start, budget=Budget(25_000)), 5_000)][-1] == last
    assert replace(recurrence, last=last).last_of(Budget(0)) == last
    again = parse_rrule(rule, start, last)
    assert list(again.matches(since=last, budget=Budget(5))) == [last]


def test_to_count_a_rule_takes_as_much_of_a_call_whether_it_was_counted_before_or_not():
    rule, start = "FREQ=MINUTELY;INTERVAL=1439;BYHOUR=3;COUNT=1700", local("2027-01-01 00:00")
    recurrence = parse_rrule.__wrapped__(rule, start)
    steps = 43_212

    left: list[int] = []
    for given in (steps - 1, steps, steps - 1, steps, 10_000):
        call = Budget(given)
        part = Budget(100_000, within=call)
        if given < steps:
            with pytest.raises(TooCostly):
                recurrence.last_of(part)
        else:
            assert recurrence.last_of(part) == recurrence.last_of(part)
        left.append(call.left)

    assert left == [-1, 0, -1, 0, -1]


def test_what_cannot_be_counted_within_the_budget_is_too_costly():
    with pytest.raises(TooCostly):
        check_recurrence(
            RecurrenceRule("FREQ=MINUTELY;INTERVAL=1441;BYHOUR=3;BYMINUTE=0;COUNT=5000", START), Budget(50_000)
        )


@pytest.mark.parametrize("starts_at", ["2027-01-01 00:00+00:00", "2027-01-01 00:00:00.5"])
def test_the_start_is_a_local_time_in_whole_seconds(starts_at: str):
    with pytest.raises(InvalidSchedule, match="must be a local time in whole seconds") as refused:
        parse_rrule("FREQ=DAILY", local(starts_at))

    assert refused.value.field == "rrule.starts_at"


@pytest.mark.parametrize(
    ("rule", "period"),
    [
        ("FREQ=DAILY", timedelta(days=1)),
        ("FREQ=DAILY;BYHOUR=1,5,23", timedelta(hours=2)),
        ("FREQ=MONTHLY;BYMONTHDAY=1,-1", timedelta(days=1)),
        ("FREQ=MINUTELY;INTERVAL=5", timedelta(minutes=5)),
        ("FREQ=DAILY;COUNT=1", None),
    ],
)
def test_the_shortest_period_is_the_smallest_distance_that_was_seen(rule: str, period: timedelta | None):
    assert parse_rrule(rule, START).shortest_period() == period


def test_a_rule_that_began_long_ago_is_not_walked_through_from_there():
    recurrence = parse_rrule("FREQ=MINUTELY;INTERVAL=7", local("1971-01-01 00:00"))

    assert next(recurrence.matches(since=local("2027-01-01 00:00"), budget=Budget(1)))


@pytest.mark.parametrize("freq", ["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY"])
@pytest.mark.parametrize("starts_at", ["0001-01-01 00:00", "2027-01-01 00:00", "9999-12-31 23:59"])
def test_time_has_a_begin_and_an_end(freq: str, starts_at: str):
    recurrence = parse_rrule(f"FREQ={freq}", local(starts_at))

    assert [match.year for match in recurrence.matches(since=local("2200-12-30 00:00"))] in ([], [2200])
    assert not list(recurrence.matches(since=local("9999-12-31 23:00")))
    assert next(recurrence.matches(since=local("0001-01-01 00:00")), None) in (None, local(starts_at))


def test_weeks_are_counted_where_the_calendar_begins():
    recurrence = parse_rrule("FREQ=YEARLY;BYWEEKNO=1;WKST=SU;BYDAY=SU,MO", local("0001-01-01 00:00"))

    assert next(recurrence.matches(since=local("0001-01-01 00:00"))) == local("0001-01-01 00:00")


def test_days_with_and_without_a_number_may_stand_together():
    assert matches("FREQ=MONTHLY;BYDAY=SU,1TU", 3) == ["2027-01-03 09:10", "2027-01-05 09:10", "2027-01-10 09:10"]


@pytest.mark.parametrize(
    ("rule", "starts_at", "expected"),
    [
        # RFC 5545, section 3.3.10: BYSETPOS chooses "within the set of recurrence instances specified by the rule" of a
        # week, which begins on WKST, not with the start.
        ("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=1", "2027-01-06 09:00", ["2027-01-11", "2027-01-18"]),
        ("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", "2027-01-06 09:00", ["2027-01-08", "2027-01-15"]),
        ("FREQ=WEEKLY;BYDAY=SU,WE;WKST=SU;BYSETPOS=1", "2027-01-06 09:00", ["2027-01-10", "2027-01-17"]),
        # What a rule does not say, its start does: the weekday of a week.
        ("FREQ=YEARLY;BYWEEKNO=20", "2026-05-13 09:00", ["2026-05-13", "2027-05-19", "2028-05-17"]),
        ("FREQ=YEARLY;BYWEEKNO=20;BYMONTH=5", "2026-05-13 09:00", ["2026-05-13", "2027-05-19"]),
        # The years are those to which the weeks belong.
        ("FREQ=YEARLY;BYWEEKNO=1;BYDAY=MO,TU;INTERVAL=3", "2024-12-31 09:00",
         ["2024-12-31", "2028-01-03", "2028-01-04", "2030-12-30", "2030-12-31"]),
        ("FREQ=YEARLY;BYWEEKNO=53;BYDAY=TU,SA;INTERVAL=6", "2010-01-02 09:00", ["2010-01-02", "2015-12-29", "2016-01-02"]),
        ("FREQ=YEARLY;BYWEEKNO=1,-1;BYDAY=MO,SU;BYSETPOS=1", "2026-01-01 09:00", ["2027-01-04", "2028-01-03", "2029-01-01"]),
        ("FREQ=YEARLY;BYWEEKNO=1;BYMONTH=12;BYDAY=MO", "2024-01-01 09:00", ["2024-12-30", "2025-12-29", "2029-12-31"]),
    ],
)  # fmt: skip
def test_weeks_are_those_of_rfc_5545(rule: str, starts_at: str, expected: list[str]):
    found = parse_rrule(rule, local(starts_at)).matches(since=local(starts_at))

    assert [str(match.date()) for match in islice(found, len(expected))] == expected


@pytest.mark.parametrize("wkst", ["SU", "TU", "TH"])
def test_a_week_that_begins_before_the_first_day_there_is_has_the_rest_of_its_days(wkst: str):
    weekly = parse_rrule(f"FREQ=WEEKLY;WKST={wkst};BYDAY=MO", local("0001-01-01 00:00"))

    assert next(weekly.matches(since=local("0001-01-01 00:00"))) == local("0001-01-01 00:00")
