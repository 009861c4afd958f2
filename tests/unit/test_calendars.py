import json
from datetime import date, timedelta
from importlib.metadata import version

import pytest
from holidays.registry import COUNTRIES, FINANCIAL

from functions.domain.errors import InvalidSchedule
from functions.domain.schedules.calendars import _holidays_of, check_calendar, rolled, why_excluded
from functions.domain.schedules.firing import fires, next_fire
from functions.domain.schedules.rules import CronRule
from functions.domain.schedules.schedule import Calendar, Roll, Shifter
from scripts.holiday_dates import FILE, dates_of, parts_of
from testkit.builders import a_schedule, every
from tests.wall_clock import a_cron, fires_between, shown, utc

NEW_YEAR = date(2027, 1, 1)  # a Friday
BUSINESS = Calendar(holidays=("DE",), weekends=True, roll=Roll.AFTER)


@pytest.mark.parametrize(
    ("calendar", "day", "reason"),
    [
        (Calendar(excluded=frozenset({NEW_YEAR})), NEW_YEAR, "an excluded date"),
        (Calendar(excluded=frozenset({NEW_YEAR})), date(2027, 1, 2), None),
        (Calendar(weekends=True), date(2027, 1, 2), "a Saturday"),
        (Calendar(weekends=True), date(2027, 1, 3), "a Sunday"),
        (Calendar(weekends=True), date(2027, 1, 4), None),
        (Calendar(), date(2027, 1, 2), None),
        (Calendar(holidays=("DE",)), NEW_YEAR, "a holiday of DE (New Year's Day)"),
        (Calendar(holidays=("DE",)), date(2027, 1, 6), None),
        (Calendar(holidays=("DE-BY",)), date(2027, 1, 6), "a holiday of DE-BY (Epiphany)"),
        (Calendar(holidays=("US", "DE-BY")), date(2027, 1, 6), "a holiday of DE-BY (Epiphany)"),
        (Calendar(holidays=("US",)), date(2027, 7, 5), "a holiday of US (Independence Day (observed))"),
        (Calendar(holidays=("US",)), date(2021, 12, 31), "a holiday of US (New Year's Day (observed))"),
        (Calendar(holidays=("NYSE",)), date(2027, 3, 26), "a holiday of NYSE (Good Friday)"),
        (Calendar(holidays=("XNYS",)), date(2027, 3, 26), "a holiday of XNYS (Good Friday)"),
        (Calendar(holidays=("US",)), date(2027, 3, 26), None),
        (Calendar(holidays=("ECB",)), date(2027, 5, 1), "a holiday of ECB (Labour Day)"),
        (Calendar(holidays=("GB-SCT",)), date(2027, 11, 30), "a holiday of GB-SCT (Saint Andrew's Day)"),
    ],
)
def test_a_calendar_says_why_a_date_has_no_fires(calendar: Calendar, day: date, reason: str | None):
    assert why_excluded(calendar, day) == reason


@pytest.mark.parametrize(
    ("roll", "day", "target"),
    [
        (Roll.AFTER, date(2027, 1, 1), date(2027, 1, 4)),
        (Roll.AFTER, date(2027, 1, 4), date(2027, 1, 4)),
        (Roll.BEFORE, date(2027, 1, 3), date(2026, 12, 31)),
        (Roll.BEFORE, date(2026, 12, 31), date(2026, 12, 31)),
        (Roll.SKIP, date(2027, 1, 3), None),
        (Roll.SKIP, date(2027, 1, 4), date(2027, 1, 4)),
    ],
)
def test_a_fire_rolls_over_the_weekend_and_the_holiday_beside_it(roll: Roll, day: date, target: date | None):
    assert rolled(Calendar(holidays=("DE",), weekends=True, roll=roll), day) == target


@pytest.mark.parametrize(("days", "target"), [(31, date(2027, 2, 1)), (32, None)])
def test_a_fire_rolls_no_further_than_a_month(days: int, target: date | None):
    closed = frozenset(NEW_YEAR + timedelta(days=day) for day in range(days))

    assert rolled(Calendar(excluded=closed, roll=Roll.AFTER), NEW_YEAR) == target


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("XX", "no holidays are known for 'XX'"),
        ("de", "no holidays are known for 'de': did you mean DE"),
        ("NYCE", "did you mean NYSE"),
        ("Germany", "no holidays are known for 'Germany': "),
        ("DE-XX", "DE has no holidays of its own for 'XX'"),
        ("DE-by", "DE has no holidays of its own for 'by'"),
        ("DE-", "DE has no holidays of its own for ''"),
        ("NYSE-XX", "NYSE has no holidays of its own for 'XX'"),
        ("HolidayBase", "no holidays are known"),
        ("", "no holidays are known for ''"),
        ("__class__", "no holidays are known"),
        ("x" * 10_000, "no holidays are known"),
    ],
)
def test_an_unknown_set_of_holidays_is_refused_with_the_names_that_are_like_it(name: str, message: str):
    with pytest.raises(InvalidSchedule) as refused:
        check_calendar(Calendar(holidays=("DE", name)))

    assert message in str(refused.value)
    assert len(str(refused.value)) < 400
    assert (refused.value.field, refused.value.value) == ("calendar.holidays", name)


def test_a_fire_of_an_excluded_date_does_not_happen():
    schedule = a_cron("0 9 * * *", calendar=Calendar(excluded=frozenset({date(2027, 6, 2)})))

    found = shown(schedule, "2027-06-01 00:00", "2027-06-03 12:00")

    assert found == ["2027-06-01 09:00+02:00", "2027-06-03 09:00+02:00"]


def test_a_fire_that_rolls_forward_to_one_of_its_own_joins_it():
    schedule = a_cron("0 9 * * *", calendar=BUSINESS)

    found = fires_between(schedule, "2026-12-31 00:00", "2027-01-05 00:00")

    assert [(fire.at.day, fire.nominal_at.day, fire.shifted_by, fire.merged_count) for fire in found] == [
        (31, 31, (), 0),
        (4, 4, (), 3),
    ]


@pytest.mark.parametrize("after", ["2027-01-01 12:00", "2027-01-02 12:00", "2027-01-03 12:00", "2027-01-04 07:59"])
def test_what_rolls_forward_is_counted_from_wherever_one_starts(after: str):
    schedule = a_cron("0 9 * * *", calendar=BUSINESS)

    (fire,) = fires_between(schedule, after, "2027-01-05 00:00")

    assert fire.merged_count == 3


def test_a_fire_that_rolls_back_to_one_of_its_own_joins_it():
    schedule = a_cron("0 9 * * *", calendar=Calendar(holidays=("DE",), weekends=True, roll=Roll.BEFORE))

    found = fires_between(schedule, "2026-12-30 12:00", "2027-01-05 00:00")

    assert [(fire.at.day, fire.nominal_at.day, fire.shifted_by, fire.merged_count) for fire in found] == [
        (31, 31, (), 3),
        (4, 4, (), 0),
    ]


def test_a_fire_that_rolls_to_a_date_without_one_keeps_its_time_of_day():
    schedule = a_cron("15 7 1 * *", calendar=BUSINESS)

    (fire,) = fires_between(schedule, "2026-12-31 00:00", "2027-01-31 00:00")

    assert (fire.at.isoformat(), fire.nominal_at.isoformat()) == (
        "2027-01-04T06:15:00+00:00",
        "2027-01-01T06:15:00+00:00",
    )
    assert (fire.shifted_by, fire.merged_count) == ((Shifter.CALENDAR,), 0)


@pytest.mark.parametrize(
    ("roll", "expected"),
    [
        (Roll.BEFORE, ["2026-12-31 22:00+01:00", "2026-12-31 23:00+01:00", "2027-01-04 22:00+01:00"]),
        (Roll.AFTER, ["2026-12-31 22:00+01:00", "2027-01-04 22:00+01:00", "2027-01-04 23:00+01:00"]),
    ],
)
def test_fires_that_roll_back_are_in_order_with_those_of_the_day_itself(roll: Roll, expected: list[str]):
    schedule = a_cron(
        "0 22,23 31,1,4 12,1 *", calendar=Calendar(weekends=True, excluded=frozenset({NEW_YEAR}), roll=roll)
    )
    one_hour_a_day = [text for text in shown(schedule, "2026-12-31 00:00", "2027-01-04 23:00") if text]

    assert [text for text in one_hour_a_day if text in expected] == expected
    assert one_hour_a_day == sorted(one_hour_a_day)


def test_a_rolled_fire_lands_on_the_same_time_of_day_across_a_clock_change():
    schedule = a_cron("30 2 27 3 *", calendar=Calendar(weekends=True, roll=Roll.AFTER))  # a Saturday

    assert shown(schedule, "2027-03-26 00:00", "2027-04-01 00:00") == ["2027-03-29 02:30+02:00"]


def test_a_rolled_fire_can_land_in_a_gap():
    schedule = a_cron("30 2 27 3 *", calendar=Calendar(excluded=frozenset({date(2027, 3, 27)}), roll=Roll.AFTER))

    (fire,) = fires_between(schedule, "2027-03-26 00:00", "2027-04-01 00:00")

    assert fire.at.isoformat() == "2027-03-28T01:00:00+00:00"
    assert fire.shifted_by == (Shifter.GAP, Shifter.CALENDAR)


def test_a_gap_that_leads_onto_an_excluded_date_makes_the_fire_roll_again():
    # 23:30 of Saturday does not exist in Nuuk: the next time that does is midnight on Sunday.
    sunday = Calendar(excluded=frozenset({date(2027, 3, 28)}), roll=Roll.AFTER)
    schedule = a_cron("30 23 27 3 *", timezone="America/Nuuk", calendar=sunday)

    assert shown(schedule, "2027-03-27 00:00", "2027-04-01 00:00") == ["2027-03-29 00:00-01:00"]


def test_an_interval_rolls_by_the_time_of_day_that_the_wall_shows():
    schedule = a_schedule(
        rule=every(hours=24), timezone="Europe/Berlin", calendar=Calendar(weekends=True, roll=Roll.AFTER)
    )

    found = fires_between(schedule, "2027-03-26 12:00", "2027-03-29 12:00")

    # 01:00 on Saturday and Sunday; the clock changes later on Sunday, so it is 02:00 on Monday.
    assert [(fire.at.isoformat()[5:16], fire.merged_count) for fire in found] == [
        ("03-28T23:00", 1),
        ("03-29T00:00", 0),
    ]


def test_dates_are_those_of_the_zone_and_not_of_utc():
    schedule = a_schedule(
        rule=CronRule("30 0 * * *"), timezone="Asia/Tokyo", calendar=Calendar(excluded=frozenset({date(2027, 6, 2)}))
    )

    assert shown(schedule, "2027-05-31 16:00", "2027-06-02 16:00") == ["2027-06-03 00:30+09:00"]


def test_the_file_of_holidays_is_of_the_pinned_package():
    about = json.loads(FILE.read_text().partition("\n")[0])

    assert about == {"holidays": version("holidays"), "first": 1970, "last": 2100}, "run scripts/holiday_dates.py"


@pytest.mark.parametrize("year", [1970, 2027, 2100])
def test_each_country_has_the_holidays_of_the_package(year: int):
    codes = [names[1:3] for names in COUNTRIES.values()] + [names[1:] for names in FINANCIAL.values()]

    for first, *others in codes:
        expected = dates_of(first, "", range(year, year + 1))
        assert all(_holidays_of(code, year) == expected for code in (first, *others)), first
    assert len(codes) > 250


@pytest.mark.parametrize("code", ["DE", "US", "CH", "GB", "MY", "BR"])
def test_each_part_of_a_country_has_the_holidays_of_the_package_under_each_of_its_names(code: str):
    for part in parts_of(code):
        for year in (1995, 2027, 2061):
            assert _holidays_of(f"{code}-{part}", year) == dates_of(code, part, range(year, year + 1)), (part, year)


def test_two_holidays_of_one_date_are_reported_together():
    both = (
        why_excluded(Calendar(holidays=("NYSE",)), date(2027, 7, 5)),
        why_excluded(Calendar(holidays=("DE",)), date(2008, 5, 1)),
    )

    assert both == (
        "a holiday of NYSE (Independence Day (observed))",
        "a holiday of DE (Ascension Day; Labor Day)",
    )


def test_a_schedule_fires_no_more_when_its_holidays_are_not_known_any_more():
    at_christmas = a_cron("0 9 25 12 *", calendar=Calendar(holidays=("DE",)), timezone="UTC")
    daily = a_cron("0 9 * * *", calendar=Calendar(holidays=("DE",)), timezone="UTC")

    assert next_fire(at_christmas, after=utc("2027-01-01 00:00")) is None
    assert [fire.at.year for fire in fires(daily, after=utc("2100-12-30 09:00"))] == [2100]
