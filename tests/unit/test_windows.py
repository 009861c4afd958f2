from datetime import date, datetime, timedelta

import pytest

from functions.domain.errors import InvalidSchedule
from functions.domain.instants import MINUTE
from functions.domain.schedules.rules import CronRule, Poisson
from functions.domain.schedules.schedule import Calendar, Window, WindowMode
from functions.domain.schedules.windows import (
    LONGEST,
    REACH,
    OpenHours,
    Opening,
    open_hours,
    open_share,
    open_time_of_a_week,
)
from functions.domain.schedules.zones import zone_of
from testkit.builders import OFFICE, a_schedule, a_window
from tests.wall_clock import on_the_wall, utc

BERLIN = "Europe/Berlin"
WEEKEND = "sat sun"


def openings(hours: OpenHours, timezone: str, *, start: str, end: str) -> list[str]:
    """The openings that begin in a time that begins closed, as the wall shows them."""
    found, at = [], utc(start)
    while (opening := hours.next_after(at)) is not None and opening.start < utc(end):
        found.append(f"{on_the_wall(opening.start, timezone)[5:]} {on_the_wall(opening.end, timezone)[5:]}")
        at = opening.end
    return found


@pytest.mark.parametrize(
    ("windows", "timezone", "day", "expected"),
    [
        # A plain day, a window over midnight, several that touch, overlap, or do not.
        (["09:00 17:00"], BERLIN, "2027-06-01", ["06-01 09:00+02:00 06-01 17:00+02:00"]),
        (["22:00 06:00"], BERLIN, "2027-06-01 12:00", ["06-01 22:00+02:00 06-02 06:00+02:00"]),
        (["22:00 00:00"], BERLIN, "2027-06-01", ["06-01 22:00+02:00 06-02 00:00+02:00"]),
        (["09:00 12:00", "12:00 17:00"], BERLIN, "2027-06-01", ["06-01 09:00+02:00 06-01 17:00+02:00"]),
        (["09:00 13:00", "12:00 17:00", "10:00 11:00"], BERLIN, "2027-06-01", ["06-01 09:00+02:00 06-01 17:00+02:00"]),
        (["09:00 12:00", "13:00 17:00"], BERLIN, "2027-06-01", ["06-01 09:00+02:00 06-01 12:00+02:00", "06-01 13:00+02:00 06-01 17:00+02:00"]),
        (["20:00 00:00", "00:00 02:00"], BERLIN, "2027-06-01 12:00", ["06-01 20:00+02:00 06-02 02:00+02:00"]),
        # Spring: an hour is missing, at the start, in the middle, at the end, or all of it.
        (["01:00 04:00"], BERLIN, "2027-03-28", ["03-28 01:00+01:00 03-28 04:00+02:00"]),
        (["02:00 03:00"], BERLIN, "2027-03-28", ["03-29 02:00+02:00 03-29 03:00+02:00"]),
        (["02:30 03:30"], BERLIN, "2027-03-28", ["03-28 03:00+02:00 03-28 03:30+02:00"]),
        (["01:30 02:30"], BERLIN, "2027-03-28", ["03-28 01:30+01:00 03-28 03:00+02:00"]),
        # Autumn: an hour comes twice.
        (["01:00 04:00"], BERLIN, "2027-10-31", ["10-31 01:00+02:00 10-31 04:00+01:00"]),
        (["02:00 03:00"], BERLIN, "2027-10-31", ["10-31 02:00+02:00 10-31 03:00+01:00"]),
        (["01:00 02:30"], BERLIN, "2027-10-31", ["10-31 01:00+02:00 10-31 02:30+02:00", "10-31 02:00+01:00 10-31 02:30+01:00"]),
        (["02:30 04:00"], BERLIN, "2027-10-31", ["10-31 02:30+02:00 10-31 02:00+01:00", "10-31 02:30+01:00 10-31 04:00+01:00"]),
        # Half an hour, and midnight.
        (["01:00 03:00"], "Australia/Lord_Howe", "2027-04-04", ["04-04 01:00+11:00 04-04 03:00+10:30"]),
        (["23:00 01:00"], "Africa/Cairo", "2027-04-29 12:00", ["04-29 23:00+02:00 04-30 01:00+03:00"]),
        (["23:30 00:30"], "Africa/Cairo", "2027-10-28 12:00", ["10-28 23:30+03:00 10-28 23:00+02:00", "10-28 23:30+02:00 10-29 00:30+02:00"]),
        (["00:00 00:30"], "Asia/Beirut", "2027-03-28", ["03-29 00:00+03:00 03-29 00:30+03:00"]),
    ],
)  # fmt: skip
def test_windows_are_open_when_the_wall_shows_a_time_inside(
    windows: list[str], timezone: str, day: str, expected: list[str]
):
    hours = OpenHours(tuple(a_window(start, end) for start, end in map(str.split, windows)), None, timezone)
    midnight = datetime.fromisoformat(day).replace(tzinfo=zone_of(timezone))
    start = midnight.astimezone(zone_of("UTC")).isoformat()[:16]

    assert openings(hours, timezone, start=start, end="2028-01-01")[: len(expected)] == expected


@pytest.mark.parametrize(
    ("windows", "timezone"),
    [
        ((OFFICE, a_window("16:00", "18:30", WEEKEND)), BERLIN),
        ((a_window("22:15", "02:30", "wed sat"),), BERLIN),
        ((a_window("02:10", "02:50"), a_window("01:50", "02:15", WEEKEND)), BERLIN),
        ((a_window("18:00", "18:00", "fri"),), BERLIN),
        ((a_window("01:15", "01:45"), a_window("23:50", "00:10")), "Australia/Lord_Howe"),
        ((a_window("23:30", "00:30"), a_window("02:45", "04:00")), "Africa/Cairo"),
        ((a_window("22:00", "00:00", "sat"), a_window("23:30", "01:00")), "America/Nuuk"),
        ((), BERLIN),
    ],
)
@pytest.mark.parametrize(
    "calendar", [None, Calendar(excluded=frozenset({date(2027, 4, 4), date(2027, 10, 30)}), weekends=False)]
)
def test_an_instant_is_open_exactly_when_a_plain_look_at_the_wall_says_so(
    windows: tuple[Window, ...], timezone: str, calendar: Calendar | None
):
    hours = OpenHours(windows, calendar, timezone)
    zone = zone_of(timezone)

    def is_open(instant: datetime) -> bool:
        shown = instant.astimezone(zone)
        if calendar is not None and shown.date() in calendar.excluded:
            return False
        now, today, yesterday = shown.time(), shown.weekday(), (shown.weekday() - 1) % 7
        return not windows or any(
            (today in window.days and window.start <= now and (now < window.end or window.end <= window.start))
            or (yesterday in window.days and window.end <= window.start and now < window.end)
            for window in windows
        )

    for around in ("2027-03-27 12:00", "2027-04-03 06:00", "2027-04-29 12:00", "2027-10-28 12:00", "2027-10-30 12:00"):
        start = utc(around)
        walk = [start + count * MINUTE for count in range(36 * 60)]
        opened = [is_open(minute) for minute in walk]
        for index in range(0, len(walk) - 1, 7):
            minute, is_now = walk[index], opened[index]
            following = next((walk[later] for later in range(index, len(walk)) if opened[later] is not is_now), None)
            end = hours.end_of(minute, limit=walk[-1])
            assert (end is not None) is is_now
            if is_now:
                assert end == (following or walk[-1])
            elif following is not None:
                opening = hours.next_after(minute)
                assert opening is not None
                assert opening.start == following
            before = [walk[earlier] for earlier in range(index) if opened[earlier] is not is_now]
            if before and not is_now:
                assert hours.closed_since(minute) == (before[-1] + MINUTE, None)
            if before and is_now:
                closed_at, current = hours.closed_since(minute)
                assert current is not None
                assert current.start == before[-1] + MINUTE
                assert closed_at < current.start


def test_an_excluded_date_is_closed_for_the_night_that_leads_into_it_too():
    hours = OpenHours((a_window("22:00", "06:00"),), Calendar(excluded=frozenset({date(2027, 6, 2)})), BERLIN)

    found = openings(hours, BERLIN, start="2027-06-01 12:00", end="2027-06-03 12:00")

    assert found == ["06-01 22:00+02:00 06-02 00:00+02:00", "06-03 00:00+02:00 06-03 06:00+02:00"]


def test_a_window_that_ends_when_it_starts_is_open_for_a_whole_day():
    hours = OpenHours((a_window("18:00", "18:00", "tue"),), None, BERLIN)

    assert openings(hours, BERLIN, start="2027-06-01 12:00", end="2027-06-05 00:00") == [
        "06-01 18:00+02:00 06-02 18:00+02:00"
    ]


def test_of_an_opening_without_end_the_first_week_counts():
    hours = OpenHours((), Calendar(excluded=frozenset({date(2027, 6, 2)})), "UTC")

    assert hours.next_after(utc("2027-06-02 12:00")) == Opening(
        utc("2027-06-03 00:00"), utc("2027-06-03 00:00") + LONGEST
    )
    assert hours.end_of(utc("2027-06-03 12:00"), limit=utc("2027-06-05 12:00")) == utc("2027-06-05 12:00")
    assert hours.closed_since(utc("2027-06-08 12:00"))[0] == utc("2027-06-02 00:00")
    assert hours.closed_since(utc("2027-06-10 00:00"))[0] == utc("2027-06-10 00:00")


def test_an_opening_that_is_too_far_away_is_none():
    june = frozenset(date(2027, 6, 1) + timedelta(days=day) for day in range(40))
    hours = OpenHours((), Calendar(excluded=june), "UTC")
    reopens = utc("2027-07-11 00:00")

    assert hours.next_after(reopens - REACH - MINUTE) is None
    assert hours.next_after(reopens - REACH) == Opening(reopens, reopens + LONGEST)


@pytest.mark.parametrize(
    ("windows", "hours"),
    [
        ((a_window("09:00", "17:00"),), 56),
        ((OFFICE,), 40),
        ((a_window("22:00", "06:00", "sun"),), 8),
        ((a_window("00:00", "00:00"),), 168),
        ((a_window("09:00", "12:00"), a_window("11:00", "13:00"), a_window("11:00", "12:00")), 28),
    ],
)
def test_the_open_time_of_a_week_counts_what_overlaps_once(windows: tuple[Window, ...], hours: int):
    assert open_time_of_a_week(windows) == timedelta(hours=hours)


def test_only_scaled_events_become_more_frequent():
    windows = (OFFICE,)

    assert open_share(a_schedule(rule=Poisson(10), windows=windows)) == pytest.approx(168 / 40)
    assert open_share(a_schedule(rule=Poisson(10))) == 1
    assert open_share(a_schedule(rule=Poisson(10), windows=windows, window_mode=WindowMode.SKIP)) == 1
    assert open_share(a_schedule(rule=CronRule("0 9 * * *"), windows=windows)) == 1


@pytest.mark.parametrize(
    ("field", "start", "end"),
    [
        ("windows.start", "09:00:01", "10:00"),
        ("windows.end", "09:00", "10:00:00.5"),
        ("windows.end", "09:00", "10:00+01:00"),
    ],
)
def test_a_window_is_of_whole_local_minutes(field: str, start: str, end: str):
    with pytest.raises(InvalidSchedule) as refused:
        a_window(start, end)

    assert refused.value.field == field


def test_the_days_of_the_same_windows_are_computed_once():
    windows = (a_window("09:00", "17:00"),)

    assert open_hours(windows, None, BERLIN) is open_hours((a_window("09:00", "17:00"),), None, BERLIN)
