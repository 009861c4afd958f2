from datetime import date, datetime, time, timedelta
from itertools import islice, pairwise
from math import exp, sqrt
from statistics import fmean

import pytest

from functions.domain.instants import EPOCH, to_ms
from functions.domain.schedules.firing import fires
from functions.domain.schedules.poisson import events
from functions.domain.schedules.rules import Poisson
from functions.domain.schedules.schedule import Calendar, Fire, Schedule, Shifter, Window, WindowMode
from functions.domain.schedules.step_budget import Budget
from functions.domain.schedules.zones import local_of, zone_of
from testkit.builders import OFFICE, a_schedule, a_window
from tests.chance import is_drawn_from, is_uniform
from tests.wall_clock import utc

DAY_MS = 86_400_000
FROM = utc("2027-01-01 00:00")
NIGHT = a_window("22:00", "06:00")


def a_poisson(per_day: float, **overrides: object) -> Schedule:
    return a_schedule(rule=Poisson(per_day), **{"timezone": "Europe/Berlin", **overrides})


def first(schedule: Schedule, count: int, after: datetime = FROM) -> list[Fire]:
    return list(islice(fires(schedule, after=after, budget=Budget(10_000_000)), count))


@pytest.mark.parametrize("per_day", [0.5, 10.0, 200.0, 5_000.0, 86_400.0])
def test_the_gaps_are_exponential(per_day: float):
    # With 0.5 a day a cell is 16 days or more, with 86,400 it holds 3,600 events: many borders are crossed in each.
    instants = list(islice(events("acme#gaps", per_day=per_day, since_ms=to_ms(FROM)), 20_001))
    gaps = [after - before for before, after in pairwise(instants)]
    mean = DAY_MS / per_day

    # Whole milliseconds: half of one is added to what was rounded down.
    assert is_drawn_from(gaps, lambda gap: 1 - exp(-(gap + 0.5) / mean))
    assert fmean(gaps) == pytest.approx(mean, rel=4 / sqrt(20_000))


def test_a_gap_says_nothing_of_the_next():
    instants = list(islice(events("acme#memory", per_day=30, since_ms=to_ms(FROM)), 20_001))
    gaps = [after - before for before, after in pairwise(instants)]
    mean = fmean(gaps)

    covariance = fmean((one - mean) * (other - mean) for one, other in pairwise(gaps))

    assert abs(covariance / fmean((gap - mean) ** 2 for gap in gaps)) < 3.3 / sqrt(20_000)


def test_the_counts_of_days_vary_as_much_as_their_mean():
    counts = [0] * 1_000
    for ms in events("acme#counts", per_day=24, since_ms=to_ms(FROM)):
        day = (ms - to_ms(FROM)) // DAY_MS
        if day >= len(counts):
            break
        counts[day] += 1

    mean = fmean(counts)
    dispersion = sum((count - mean) ** 2 for count in counts) / mean  # chi-square with 999 degrees of freedom

    assert mean == pytest.approx(24, abs=3.3 * sqrt(24 / 1_000))
    assert dispersion == pytest.approx(999, abs=3.3 * sqrt(2 * 999))


def test_two_schedules_have_nothing_to_do_with_each_other():
    one = set(islice(events("acme#one", per_day=1_000, since_ms=to_ms(FROM)), 1_000))
    other = set(islice(events("acme#other", per_day=1_000, since_ms=to_ms(FROM)), 1_000))

    assert len(one & other) < 5


@pytest.mark.parametrize("per_day", [0.01, 3.0, 1_000.0])
def test_the_events_are_the_same_from_wherever_one_starts(per_day: float):
    whole = list(islice(events("acme#start", per_day=per_day, since_ms=to_ms(FROM)), 200))

    for index in (1, 50, 149):
        assert (
            list(islice(events("acme#start", per_day=per_day, since_ms=whole[index]), 20)) == whole[index : index + 20]
        )
        later = islice(events("acme#start", per_day=per_day, since_ms=whole[index] + 1), 20)
        assert list(later) == whole[index + 1 : index + 21]


def test_these_are_the_events_on_every_machine_and_python():
    found = first(a_poisson(24, schedule_id="pinned"), 3)

    assert [fire.at.isoformat(timespec="milliseconds") for fire in found] == [
        "2027-01-01T00:35:16.199+00:00",
        "2027-01-01T05:28:18.551+00:00",
        "2027-01-01T05:29:32.846+00:00",
    ]


def test_an_event_so_rare_that_the_calendar_ends_before_it_is_searched_in_no_time():
    assert len(list(events("acme#rare", per_day=1 / 3_660, since_ms=to_ms(utc("9990-01-01 00:00"))))) < 10


def test_a_scaled_process_fires_only_while_its_windows_are_open_and_as_often_a_day_as_it_would_without():
    schedule = a_poisson(40, windows=(OFFICE,))
    found = first(schedule, 5_000)
    days = (found[-1].at - FROM) / timedelta(days=1)

    shown = [local_of(fire.at, zone_of("Europe/Berlin")) for fire in found]
    assert all(time(9) <= at.time() < time(17) and at.weekday() < 5 for at in shown)
    assert len(found) / days == pytest.approx(40, rel=4 / sqrt(5_000))
    assert all(fire.shifted_by == () and fire.at == fire.nominal_at for fire in found)


def test_within_an_opening_the_gaps_of_a_scaled_process_are_exponential_and_its_places_uniform():
    found = [local_of(fire.at, zone_of("Europe/Berlin")) for fire in first(a_poisson(400, windows=(OFFICE,)), 20_000)]
    mean = timedelta(days=1) / (400 * 168 / 40)

    places = [(at - datetime.combine(at, time(9))) / timedelta(hours=8) for at in found]
    # A gap that would lead out of the opening is not seen, so short ones are a little more frequent: look at the first
    # hours only, where no gap that counts comes near the end.
    gaps = [
        after - before for before, after in pairwise(found) if before.hour < 14 and after - before < timedelta(hours=3)
    ]

    assert is_uniform(places)
    assert is_drawn_from([gap / mean for gap in gaps], lambda gap: 1 - exp(-gap))


def test_a_gap_that_starts_inside_a_window_and_ends_outside_does_not_fire_outside():
    everything = first(a_poisson(300 * 168 / 40), 20_000)
    shown = {fire.at: local_of(fire.at, zone_of("Europe/Berlin")) for fire in everything}

    thinned = [at for at, wall in shown.items() if 9 <= wall.hour < 17 and wall.weekday() < 5]

    assert [fire.at for fire in first(a_poisson(300, windows=(OFFICE,)), 3_000)] == thinned[:3_000]
    assert any(shown[at].hour == 16 and shown[following].hour == 17 for at, following in pairwise(shown))


@pytest.mark.parametrize("windows", [(OFFICE,), (NIGHT,)])
def test_deferred_events_keep_their_number_and_do_not_bunch_when_the_windows_open(windows: tuple[Window, ...]):
    schedule = a_poisson(40, windows=windows, window_mode=WindowMode.DEFER, timezone="UTC")
    found = first(schedule, 6_000)
    moved = [fire for fire in found if fire.shifted_by == (Shifter.WINDOW,)]
    length = timedelta(hours=8)

    def place(fire: Fire) -> float:
        start = datetime.combine(fire.at, windows[0].start, tzinfo=fire.at.tzinfo)
        return ((fire.at - start) % timedelta(days=1)) / length

    assert len(moved) > 3_000
    assert is_uniform([place(fire) for fire in moved])
    assert is_uniform([place(fire) for fire in found if fire.shifted_by == ()])
    days = (found[-1].at - found[0].at) / timedelta(days=1)
    assert len(found) / days == pytest.approx(40, rel=4 / sqrt(6_000))
    # Each event moves on its own, to the next opening.
    assert all(
        fire.merged_count == 0 and fire.nominal_at < fire.at < fire.nominal_at + timedelta(days=3) for fire in moved
    )


def test_events_outside_the_windows_can_be_dropped_without_making_the_others_more_frequent():
    everything = first(a_poisson(40), 2_000)

    found = first(a_poisson(40, windows=(OFFICE,), window_mode=WindowMode.SKIP), 300)

    assert {fire.at for fire in found} < {fire.at for fire in everything}


def test_an_excluded_date_is_closed_for_events():
    calendar = Calendar(excluded=frozenset({date(2027, 1, 4)}), weekends=True)
    dropped = first(a_poisson(200, calendar=calendar), 2_000)
    deferred = first(a_poisson(200, calendar=calendar, windows=(NIGHT,), window_mode=WindowMode.DEFER), 2_000)

    for fire in (*dropped, *deferred):
        day = local_of(fire.at, zone_of("Europe/Berlin"))
        assert day.weekday() < 5
        assert day.date() != date(2027, 1, 4)


@pytest.mark.parametrize("mode", WindowMode)
def test_the_fires_are_the_same_from_wherever_one_starts_in_every_mode(mode: WindowMode):
    schedule = a_poisson(100, windows=(OFFICE, NIGHT), window_mode=mode)
    whole = first(schedule, 400)

    for index in range(0, 350, 23):
        assert first(schedule, 10, after=whole[index].at) == whole[index + 1 : index + 11]
        assert first(schedule, 10, after=whole[index].at - timedelta(milliseconds=1)) == whole[index : index + 10]


def test_two_events_of_one_millisecond_are_one_fire_that_counts_the_other():
    rule = a_poisson(86_400, schedule_id="dense")
    instants = list(islice(events(rule.uid, per_day=86_400, since_ms=to_ms(EPOCH)), 30_000))
    (twice, *_) = [at for at, following in pairwise(instants) if at == following]

    (fire,) = first(rule, 1, after=EPOCH + timedelta(milliseconds=twice - 1))

    assert (to_ms(fire.at), fire.merged_count) == (twice, 1)
