from datetime import datetime, time, timedelta

import pytest

from functions.api.fire_counts import MOST_COUNTED, minutes_of, spread_out, start_of
from functions.domain.errors import InvalidSchedule
from functions.domain.moving import spread_of
from functions.domain.schedule import At, CronRule, Poisson, Schedule, Window
from tests.builders import NOON, a_schedule, every


def test_fires_are_counted_from_the_start_up_to_the_end():
    assert minutes_of(a_schedule(rule=every(minutes=30)), start=NOON, hours=1) == {0: 1, 30: 1}


def test_several_fires_of_one_minute_are_added_up():
    assert minutes_of(a_schedule(rule=every(seconds=20)), start=NOON, hours=1)[59] == 3


def test_a_fire_an_instant_before_the_start_does_not_count():
    rule = every(hours=24, phase=timedelta(hours=12) - timedelta(milliseconds=1))

    assert minutes_of(a_schedule(rule=rule), start=NOON, hours=24) == {24 * 60 - 1: 1}


def test_a_fire_every_minute_for_two_days_can_be_counted():
    assert sum(minutes_of(a_schedule(rule=CronRule("* * * * *")), start=NOON, hours=48).values()) == 2_880


def test_more_fires_than_are_counted_are_refused():
    with pytest.raises(InvalidSchedule, match=f"more than {MOST_COUNTED} fires in these 1 hours: ask for fewer"):
        minutes_of(a_schedule(rule=every(seconds=1)), start=NOON, hours=1)


def test_what_depends_on_its_runs_cannot_be_counted():
    with pytest.raises(InvalidSchedule, match="its fires depend on its runs"):
        minutes_of(a_schedule(rule=every(hours=1, from_end=True)), start=NOON, hours=1)


def test_a_spread_moves_what_has_none():
    schedule = a_schedule()

    spread = spread_out(schedule, timedelta(minutes=30))

    offset = spread_of(spread) // timedelta(minutes=1)
    assert minutes_of(spread, start=NOON, hours=2) == {offset: 1, offset + 60: 1}


@pytest.mark.parametrize(
    "schedule",
    [
        a_schedule(spread=timedelta(minutes=5)),
        a_schedule(rule=At(NOON)),
        a_schedule(rule=Poisson(5)),
        a_schedule(rule=every(hours=1, from_end=True)),
    ],
    ids=["spread already", "at", "poisson", "from end to start"],
)
def test_a_spread_leaves_alone_what_it_has_no_meaning_for(schedule: Schedule):
    assert spread_out(schedule, timedelta(minutes=30)) is schedule


def test_no_spread_changes_nothing():
    schedule = a_schedule(windows=(Window(start=time(9), end=time(17)),))

    assert spread_out(schedule, None) is schedule


def test_the_start_is_that_of_its_minute():
    assert start_of(datetime.fromisoformat("2027-03-01T12:00:59.999+01:00")) == NOON - timedelta(hours=1)
