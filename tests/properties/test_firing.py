"""The fires of a schedule for all the schedules that there can be, against plainer ways to say the same."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from itertools import islice, takewhile

from cronsim import CronSim
from dateutil.rrule import rrulestr
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from functions.domain.errors import InvalidSchedule, TooCostly
from functions.domain.instants import DAY, MILLISECOND, MINUTE
from functions.domain.schedules import calendars, cron, poisson, rrules, windows
from functions.domain.schedules.calendars import why_excluded
from functions.domain.schedules.firing import MOST_GATHERED, check_fires, fires, next_fire
from functions.domain.schedules.nominal_times import nominal_times
from functions.domain.schedules.preview import explain, preview
from functions.domain.schedules.rules import At, CronRule, Every, Fold, Gap, Poisson, RecurrenceRule
from functions.domain.schedules.schedule import Calendar, Fire, Roll, Schedule, Weekday, Window, WindowMode
from functions.domain.schedules.shifts import course_of
from functions.domain.schedules.step_budget import Budget
from functions.domain.schedules.validation import check_consistency
from functions.domain.schedules.zones import zone_of
from testkit.builders import a_schedule

# Derandomized: what is drawn here costs much to shrink, and a push must not fail for what it did not change.
EXAMPLES = settings(deadline=None, derandomize=True, max_examples=150)

MOST_MOVED = 45 * DAY
_PLENTY = 10_000_000

ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
    "Africa/Cairo",
    "Asia/Beirut",
    "America/Nuuk",
    "Antarctica/Troll",
    "Asia/Kolkata",
)
CLOCK_CHANGES = tuple(
    datetime.fromisoformat(text).replace(tzinfo=UTC)
    for text in (
        "2027-03-28T01:00",
        "2027-10-31T01:00",
        "2027-03-14T07:00",
        "2027-11-07T06:00",
        "2027-04-03T15:00",
        "2027-10-02T15:30",
        "2027-04-03T14:00",
        "2027-09-25T14:00",
        "2027-04-29T22:00",
        "2027-10-28T21:00",
        "2027-03-27T22:00",
        "2027-03-28T00:00",
    )
)

instants = st.builds(
    lambda change, minutes: change + minutes * MINUTE, st.sampled_from(CLOCK_CHANGES), st.integers(-4_000, 4_000)
)
dates = st.builds(lambda change, days: change.date() + days * DAY, st.sampled_from(CLOCK_CHANGES), st.integers(-4, 4))
minutes_of_day = st.integers(0, 95).map(lambda quarter: time(quarter // 4, quarter % 4 * 15))


def listed(low: int, high: int) -> st.SearchStrategy[str]:
    return st.lists(st.integers(low, high), min_size=1, max_size=3).map(lambda numbers: ",".join(map(str, numbers)))


def stepped(low: int, high: int) -> st.SearchStrategy[str]:
    return st.integers(2, high).map(lambda step: f"*/{step}") | st.tuples(
        st.integers(low, high - 1), st.integers(1, 9)
    ).map(lambda pair: f"{pair[0]}-{high}/{pair[1]}")


expressions = st.tuples(
    listed(0, 59) | st.sampled_from(("0", "30", "*/20", "*/30", "15-45/15")),
    listed(0, 23) | stepped(0, 23) | st.just("*"),
    st.just("*") | listed(1, 28) | st.sampled_from(("L", "*/2", "1-7", "31", "15,L")),
    st.just("*") | st.sampled_from(("3,4,10", "*/2", "mar-nov")),
    st.just("*") | listed(0, 7) | st.sampled_from(("mon-fri", "sat,sun", "fri#2", "*/2")),
).map(" ".join)
recurrences = st.builds(
    lambda freq, interval, rest: f"FREQ={freq};INTERVAL={interval}{rest}",
    st.sampled_from(("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY")),
    st.integers(1, 5),
    st.sampled_from(
        (
            "",
            ";BYDAY=MO,SA,SU",
            ";BYMONTH=3,4,10",
            ";BYHOUR=0,2,23",
            ";BYMINUTE=0,30;BYSECOND=15",
            ";WKST=SU;BYDAY=SU,TU",
        )
    ),
)
starts = st.builds(
    lambda change, hours: (change + timedelta(hours=hours)).replace(tzinfo=None),
    st.sampled_from(CLOCK_CHANGES),
    st.integers(-5_000, 0),
)
rules = (
    st.builds(CronRule, expressions)
    | st.builds(RecurrenceRule, recurrences, starts)
    | st.builds(lambda minutes: Every(interval=minutes * MINUTE), st.integers(20, 5_000))
    | st.builds(At, instants)
    | st.builds(Poisson, st.floats(0.05, 60))
)
any_windows = st.lists(
    st.builds(
        Window, start=minutes_of_day, end=minutes_of_day, days=st.frozensets(st.sampled_from(Weekday), min_size=1)
    ),
    max_size=3,
).map(tuple)
any_calendars = st.none() | st.builds(
    Calendar,
    excluded=st.frozensets(dates, max_size=6),
    holidays=st.sampled_from(((), ("DE",), ("US", "NYSE"))),
    weekends=st.booleans(),
    roll=st.sampled_from(Roll),
)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """One that makes sense."""
    rule = draw(rules)
    opened = draw(any_windows)
    mode = draw(st.none() | st.sampled_from(WindowMode)) if opened else None
    start = draw(st.none() | instants)
    try:
        schedule = a_schedule(
            schedule_id=f"job-{draw(st.integers(0, 99))}",
            rule=rule,
            timezone=draw(st.sampled_from(ZONES)),
            gap=draw(st.none() | st.sampled_from(Gap)),
            fold=draw(st.none() | st.sampled_from(Fold)),
            windows=opened,
            window_mode=mode,
            calendar=draw(any_calendars),
            spread=draw(st.sampled_from((0, 0, 1, 90, 86_400))) * timedelta(seconds=1),
            jitter=draw(st.sampled_from((0, 0, 1, 19, 600))) * MINUTE,
            start=start,
            end=draw(st.none() | st.integers(1, 90)) and (start or CLOCK_CHANGES[0]) + draw(st.integers(1, 90)) * DAY,
        )
    except InvalidSchedule:
        reject()
    assume(makes_sense(schedule))
    return schedule


def makes_sense(schedule: Schedule) -> bool:
    try:
        # What was worked out before is not paid for again: the same schedule must make sense each time.
        check_consistency(schedule, budget=Budget(_PLENTY))
    except InvalidSchedule:
        return False
    return True


def first(schedule: Schedule, count: int, *, after: datetime) -> list[Fire]:
    return list(islice(fires(schedule, after=after, budget=Budget(_PLENTY)), count))


def is_inside(schedule: Schedule, instant: datetime) -> bool:
    """A plain look at the wall."""
    shown = instant.astimezone(zone_of(schedule.timezone))
    now, today, yesterday = shown.time(), shown.weekday(), (shown.weekday() - 1) % 7
    return not schedule.windows or any(
        (today in window.days and window.start <= now and (now < window.end or window.end <= window.start))
        or (yesterday in window.days and window.end <= window.start and now < window.end)
        for window in schedule.windows
    )


@EXAMPLES
@given(schedules(), instants)
def test_fires_are_in_order_after_the_instant_and_inside_all_bounds(schedule: Schedule, after: datetime):
    last = after
    for fire in first(schedule, 8, after=after):
        assert fire.at > last
        assert fire.at.microsecond % 1_000 == 0
        assert fire.at.tzinfo is UTC
        assert schedule.start is None or (fire.at >= schedule.start and fire.nominal_at >= schedule.start)
        assert schedule.end is None or (fire.at < schedule.end and fire.nominal_at < schedule.end)
        assert bool(fire.shifted_by) or fire.at == fire.nominal_at
        last = fire.at


@EXAMPLES
@given(schedules(), instants)
def test_no_fire_is_outside_the_windows_or_on_an_excluded_date(schedule: Schedule, after: datetime):
    for fire in first(schedule, 8, after=after):
        assert is_inside(schedule, fire.at)
        if schedule.calendar is not None:
            assert not why_excluded(schedule.calendar, fire.at.astimezone(zone_of(schedule.timezone)).date())


@EXAMPLES
@given(schedules(), instants, st.integers(0, 20_000))
def test_the_fires_do_not_depend_on_where_one_starts(schedule: Schedule, after: datetime, minutes: int):
    found = first(schedule, 9, after=after)
    assume(found)

    for later in (
        *(fire.at for fire in found[:4]),
        *(fire.at - MILLISECOND for fire in found[:4]),
        after + minutes * MINUTE,
    ):
        expected = [fire for fire in found if fire.at > later]
        assert first(schedule, len(expected), after=later) == expected
    assert next_fire(schedule, after=after) == found[0]


@EXAMPLES
@given(schedules(), instants)
def test_nothing_is_lost_or_made_up_by_looking_only_at_a_part_of_time(schedule: Schedule, after: datetime):
    """All nominal times far around, each moved by itself, then sorted and gathered."""
    until = after + 10 * DAY
    course = course_of(schedule)
    moved: dict[datetime, list[Fire]] = {}
    for nominal in nominal_times(schedule, since=max(after - MOST_MOVED, schedule.start or after - MOST_MOVED)):
        if nominal.at > until + MOST_MOVED or (schedule.end is not None and nominal.at >= schedule.end):
            break
        shift = course.shift(nominal)
        if shift is not None:
            moved.setdefault(shift.at, []).append(Fire(at=shift.at, nominal_at=nominal.at, shifted_by=shift.shifted_by))
    expected = []
    for at, of_one in sorted(moved.items()):
        least = min(of_one, key=lambda fire: (len(fire.shifted_by), fire.nominal_at))
        is_inside_bounds = (schedule.start is None or at >= schedule.start) and (
            schedule.end is None or at < schedule.end
        )
        if after < at <= until and is_inside_bounds:
            expected.append((least.at, least.nominal_at, least.shifted_by, min(len(of_one) - 1, MOST_GATHERED)))

    found = takewhile(lambda fire: fire.at <= until, fires(schedule, after=after, budget=Budget(_PLENTY)))

    assert [(fire.at, fire.nominal_at, fire.shifted_by, fire.merged_count) for fire in found] == expected


@EXAMPLES
@given(schedules(), instants)
def test_what_is_remembered_of_earlier_questions_changes_nothing(schedule: Schedule, after: datetime):
    found = first(schedule, 4, after=after)

    for remembered in (cron.parse_cron, rrules.parse_rrule, windows.open_hours, poisson._cell):
        remembered.cache_clear()
    calendars._holidays_of.cache_clear()

    assert first(schedule, 4, after=after) == found


@EXAMPLES
@given(schedules(), instants)
def test_a_preview_shows_the_fires_and_explains_them(schedule: Schedule, after: datetime):
    shown = preview(schedule, after=after, count=3, budget=Budget(_PLENTY)).previews

    assert [found.fire for found in shown] == first(schedule, 3, after=after)
    for found in shown:
        # In UTC: times of two zones are never equal to Python when one of them comes twice (PEP 495).
        assert found.local.astimezone(UTC) == found.fire.at
        assert set(found.fire.shifted_by) <= {shifter for shifter, _ in found.marks}
        assert explain(schedule, found.fire) == [text for _, text in found.marks]


@EXAMPLES
@given(schedules(), instants)
def test_a_checked_schedule_has_the_first_fire_that_was_promised(schedule: Schedule, after: datetime):
    try:
        promised = check_fires(schedule, now=after)
    except TooCostly:
        reject()
    except InvalidSchedule:
        assert next_fire(schedule, after=after) is None
    else:
        assert next_fire(schedule, after=after) == promised


@EXAMPLES
@given(expressions, instants)
def test_in_utc_a_cron_fires_when_cronsim_says(expression: str, after: datetime):
    schedule = a_schedule(rule=CronRule(expression))
    assume(makes_sense(schedule))

    expected = list(islice(CronSim(expression, after), 10))

    assert [fire.at for fire in first(schedule, 10, after=after)] == expected


@EXAMPLES
@given(recurrences, starts, instants)
def test_in_utc_a_recurrence_fires_when_dateutil_says(rule: str, starts_at: datetime, after: datetime):
    schedule = a_schedule(rule=RecurrenceRule(rule, starts_at))
    assume(makes_sense(schedule))

    expected = islice(rrulestr(rule, dtstart=starts_at).xafter(after.replace(tzinfo=None)), 10)

    found = first(schedule, 10, after=after)
    assert [fire.at.replace(tzinfo=None) for fire in found] == list(expected)


@EXAMPLES
@given(st.integers(1, 10**8), st.integers(0, 10**8), st.none() | instants, instants)
def test_an_interval_fires_at_whole_multiples_from_its_anchor(
    seconds: int, phase: int, start: datetime | None, after: datetime
):
    interval = timedelta(seconds=seconds)
    schedule = a_schedule(rule=Every(interval=interval, phase=timedelta(seconds=phase) % interval), start=start)
    anchor = (start or datetime(1970, 1, 1, tzinfo=UTC)) + timedelta(seconds=phase) % interval

    found = first(schedule, 3, after=after)

    assert all((fire.at - anchor) % interval == timedelta(0) for fire in found)
    assert [found[index + 1].at - found[index].at for index in range(2)] == [interval, interval]
    assert found[0].at == anchor or found[0].at - interval <= after
    assert found[0].at >= anchor


@EXAMPLES
@given(st.sampled_from(ZONES), st.integers(1, 10_000), instants, any_windows, any_calendars)
def test_from_end_to_start_a_fire_is_after_the_end_and_not_sooner_than_the_interval_unless_it_is_rolled_back(
    timezone: str, minutes: int, after: datetime, opened: tuple[Window, ...], calendar: Calendar | None
):
    rule = Every(interval=minutes * MINUTE, from_end=True)
    schedule = a_schedule(rule=rule, timezone=timezone, windows=opened, calendar=calendar)
    assume(makes_sense(schedule))

    fire = next_fire(schedule, after=after)

    assert fire is None or fire.at > after
    if calendar is None or calendar.roll is not Roll.BEFORE:
        assert fire is None or fire.at >= after + rule.interval
    assert fire is None or (fire.merged_count == 0 and is_inside(schedule, fire.at))
    assert opened or calendar or fire == Fire(at=after + rule.interval, nominal_at=after + rule.interval)


def test_the_days_of_this_file_are_those_of_the_rules_it_was_drawn_for():
    for change, zone in ((CLOCK_CHANGES[0], "Europe/Berlin"), (CLOCK_CHANGES[5], "Australia/Lord_Howe")):
        before, after = (at.astimezone(zone_of(zone)).utcoffset() for at in (change - MINUTE, change))
        assert before != after
    assert date(2027, 3, 28) == CLOCK_CHANGES[0].date()
