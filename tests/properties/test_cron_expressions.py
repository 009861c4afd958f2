"""Crons that are drawn, against cronsim; and drawn expressions of Quartz and EventBridge, against what they document."""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from itertools import takewhile
from typing import NamedTuple

import pytest
from cronsim import CronSim
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from functions.domain.errors import InvalidSchedule
from functions.domain.schedules.cron import parse_cron
from functions.domain.schedules.cron_checks import check_new_cron
from functions.domain.schedules.cron_dialects import check_cron
from functions.domain.schedules.firing import fires
from tests.wall_clock import a_cron

EXAMPLES = settings(max_examples=60, deadline=None)
DAYS = [date(2027, 1, 1) + timedelta(days=day) for day in range(365 + 366)]
NAMES = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


@st.composite
def plain(draw: st.DrawFn, low: int, high: int) -> str:
    first = draw(st.integers(low, high - 1))
    last = draw(st.integers(first + 1, high))  # cronsim goes on to the end of the field from a range of one with a step
    return draw(st.sampled_from(["*", f"*/{max(1, last)}", f"{first}", f"{first}-{last}", f"{first}-{last}/2"]))


def lists(item: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(item, min_size=1, max_size=3).map(",".join)


dates = lists(st.one_of(plain(1, 31), st.sampled_from(["L", "LW"])))
months = lists(plain(1, 12))
of_a_month = st.builds("{}#{}".format, st.integers(0, 7), st.integers(1, 5))
weekdays = st.one_of(lists(plain(0, 7)), lists(st.one_of(of_a_month, st.builds("{}L".format, st.sampled_from(NAMES)))))


@EXAMPLES
@given(st.tuples(lists(plain(0, 59)), lists(plain(0, 23)), dates, months, weekdays).map(" ".join))
def test_a_drawn_cron_matches_on_the_days_and_minutes_that_cronsim_says(expression: str):
    theirs = expression
    for number, name in enumerate(NAMES):
        theirs = theirs.replace(f"{name}L", f"{number}L")
    oracle = CronSim(theirs, datetime(2026, 1, 1, tzinfo=UTC))
    assume(next(oracle, None) is not None)

    cron = parse_cron(expression)

    expected = {day for day in DAYS if day.month in oracle.months and oracle.match_day(day)}
    assert {day for day in DAYS if day.day in cron.days_of(day.year, day.month)} == expected
    assert {divmod(minute, 60) for minute in cron.minutes} == {(h, m) for h in oracle.hours for m in oracle.minutes}


class QuartzDays(NamedTuple):
    """A field of days as Quartz and EventBridge document it, and the days that it is."""

    of_month: str
    of_week: str
    days: frozenset[date]


def _of_week(day: date) -> int:
    """Sunday is 1."""
    return day.isoweekday() % 7 + 1


def _is_last_of_its_weekday(day: date) -> bool:
    return day.day + 7 > monthrange(day.year, day.month)[1]


@st.composite
def quartz_days(draw: st.DrawFn) -> QuartzDays:
    number, other, step = draw(st.integers(1, 7)), draw(st.integers(1, 7)), draw(st.integers(1, 6))
    day, last_day = draw(st.integers(1, 28)), draw(st.integers(0, 27))
    after = {(number + count - 1) % 7 + 1 for count in range((other - number) % 7 + 1)}
    length = {each: monthrange(each.year, each.month)[1] for each in DAYS}
    fields = [
        ("?", "*", DAYS),
        ("?", f"{number}", [each for each in DAYS if _of_week(each) == number]),
        ("?", f"{number},{NAMES[other - 1]}", [each for each in DAYS if _of_week(each) in (number, other)]),
        ("?", f"{number}-{other}", [each for each in DAYS if _of_week(each) in after]),
        ("?", f"{number}/{step}", [each for each in DAYS if _of_week(each) in range(number, 8, step)]),
        ("?", f"*/{step}", [each for each in DAYS if _of_week(each) in range(1, 8, step)]),
        ("?", "L", [each for each in DAYS if _of_week(each) == 7]),
        ("?", f"{number}L", [each for each in DAYS if _of_week(each) == number and _is_last_of_its_weekday(each)]),
        ("?", f"{number}#2", [each for each in DAYS if _of_week(each) == number and 8 <= each.day <= 14]),
        (f"{day}", "?", [each for each in DAYS if each.day == day]),
        (f"{day}/{step}", "?", [each for each in DAYS if each.day in range(day, 32, step)]),
        (f"L-{last_day}", "?", [each for each in DAYS if each.day == length[each] - last_day]),
    ]
    assume(number != other)
    of_month, of_week, days = draw(st.sampled_from(fields))
    return QuartzDays(of_month, of_week, frozenset(days))


@pytest.mark.parametrize("form", ["cron(30 6 {0} * {1} *)", "0 30 6 {0} * {1} *", "30 6 {0} * {1} *"])
@EXAMPLES
@given(drawn=quartz_days())
def test_the_translation_of_a_drawn_expression_fires_on_the_days_that_it_documents(form: str, drawn: QuartzDays):
    with pytest.raises(InvalidSchedule) as refused:
        check_cron(form.format(drawn.of_month, drawn.of_week))

    (definition,) = refused.value.instead
    check_new_cron(definition["cron"])
    found = fires(a_cron(definition["cron"], timezone="UTC"), after=datetime(2027, 1, 1, tzinfo=UTC))
    assert [fire.at.date() for fire in takewhile(lambda fire: fire.at.year < 2029, found)] == sorted(drawn.days)
