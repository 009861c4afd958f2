from dataclasses import FrozenInstanceError, replace
from datetime import date, timedelta
from itertools import islice
from typing import Any

import pytest

from functions.domain.instants import MINUTE
from functions.domain.schedules.firing import fires, next_fire
from functions.domain.schedules.preview import Preview, PreviewPosition, explain, preview
from functions.domain.schedules.rules import CronRule, Fold, Poisson, RecurrenceRule
from functions.domain.schedules.schedule import Calendar, Fire, Roll, Schedule, Shifter, WindowMode
from functions.domain.schedules.step_budget import Budget
from testkit.builders import NOON, OFFICE, a_schedule, every
from tests.wall_clock import a_cron, local, utc

DEFERRED: dict[str, Any] = {"windows": (OFFICE,), "window_mode": WindowMode.DEFER}
BUSINESS = Calendar(holidays=("DE",), weekends=True, roll=Roll.AFTER)


def marks(schedule: Schedule, after: str) -> dict[Shifter, str]:
    ((found,), _) = preview(schedule, after=utc(after), count=1)
    return dict(found.marks)


def test_a_preview_shows_the_fire_as_the_wall_does():
    ((found,), _) = preview(a_cron("0 9 * * *"), after=utc("2027-07-01 00:00"), count=1)

    assert found.fire == Fire(at=utc("2027-07-01 07:00"), nominal_at=utc("2027-07-01 07:00"))
    assert (found.local.isoformat(), found.offset) == ("2027-07-01T09:00:00+02:00", timedelta(hours=2))
    assert found.marks == ()


@pytest.mark.parametrize(
    ("max_runs", "index", "count", "number"),
    [(None, 0, 5, 5), (3, 0, 5, 3), (3, 2, 5, 1), (3, 3, 5, 0), (3, 4, 5, 0), (None, 7, 0, 0), (None, 0, -1, 0)],
)
def test_a_preview_is_as_long_as_asked_for_and_the_runs_that_are_left_allow(
    max_runs: int | None, index: int, count: int, number: int
):
    schedule = a_schedule(max_runs=max_runs)

    assert len(preview(schedule, after=NOON, count=count, index=index).previews) == number


def test_a_preview_goes_on_where_a_page_of_it_was_full():
    schedule = a_schedule(max_runs=5)
    first = preview(schedule, after=NOON, count=3)
    last_at = first.previews[-1].fire.at
    assert first.goes_on == PreviewPosition(last_at, fired=3)

    second = preview(schedule, after=last_at, count=3, index=3)

    assert [found.fire for found in (*first.previews, *second.previews)] == list(islice(fires(schedule, after=NOON), 5))
    assert second.goes_on is None


def test_a_preview_goes_on_where_its_budget_was_spent():
    schedule = a_schedule(rule=CronRule("0 9 * * *"))
    whole = preview(schedule, after=NOON, count=100)
    found, after, pages = list[Preview](), NOON, 0

    while len(found) < 100:
        page = preview(schedule, after=after, count=100 - len(found), budget=Budget(100))
        assert page.goes_on is not None
        found, after, pages = [*found, *page.previews], page.goes_on.after, pages + 1

    assert found == whole.previews
    assert 2 <= pages < 50


def test_a_preview_ends_with_the_schedule():
    schedule = a_schedule(end=NOON + timedelta(hours=3))

    assert [found.fire for found in preview(schedule, after=NOON, count=10).previews] == list(
        fires(schedule, after=NOON)
    )


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        (
            a_cron("30 2 * * *"),
            "2027-03-28 00:00",
            {Shifter.GAP: "02:30 does not exist on 2027-03-28 in Europe/Berlin: the first valid time after it"},
        ),
        (
            a_cron("15,45 2 * * *"),
            "2027-03-28 00:00",
            {
                Shifter.GAP: "02:15 does not exist on 2027-03-28 in Europe/Berlin: the first valid time after it; 2 fires of "
                "the hours that the clock skips became this one"
            },
        ),
        (
            a_cron("0 2,3 * * *"),
            "2027-03-28 00:00",
            {Shifter.GAP: "1 fire of the hours that the clock skips became this one"},
        ),
        (
            a_schedule(rule=RecurrenceRule("FREQ=DAILY", local("2027-01-01 02:30:15")), timezone="Europe/Berlin"),
            "2027-03-28 00:00",
            {Shifter.GAP: "02:30:15 does not exist on 2027-03-28 in Europe/Berlin: the first valid time after it"},
        ),
        (
            a_cron("30 2 * * *"),
            "2027-10-30 23:00",
            {Shifter.FOLD: "02:30 comes twice on 2027-10-31 in Europe/Berlin: the first time"},
        ),
        (
            a_cron("30 2 * * *", fold=Fold.SECOND),
            "2027-10-30 23:00",
            {Shifter.FOLD: "02:30 comes twice on 2027-10-31 in Europe/Berlin: the second time"},
        ),
        (
            a_cron("30 * * * *"),
            "2027-10-31 01:00",
            {Shifter.FOLD: "02:30 comes twice on 2027-10-31 in Europe/Berlin: the second time"},
        ),
        (
            a_cron("0 9 1 1 *", calendar=BUSINESS),
            "2026-12-01 00:00",
            {Shifter.CALENDAR: "moved from 2027-01-01, a holiday of DE (New Year's Day)"},
        ),
        (
            a_cron("0 9 2,3 1 *", calendar=BUSINESS),
            "2026-12-01 00:00",
            {Shifter.CALENDAR: "moved from 2027-01-02, a Saturday; 2 fires of excluded dates became this one"},
        ),
        (
            a_cron("0 9 * * *", calendar=BUSINESS),
            "2027-01-01 00:00",
            {Shifter.CALENDAR: "3 fires of excluded dates became this one"},
        ),
        (
            a_cron("0 20 * * 1", **DEFERRED),
            "2027-03-01 18:00",
            {Shifter.WINDOW: "moved from 2027-03-01 20:00, outside its windows, into the next opening"},
        ),
        (
            a_cron("0 20-22 * * 1", **DEFERRED),
            "2027-03-01 18:00",
            {
                Shifter.WINDOW: "moved from 2027-03-01 20:00, outside its windows, into the next opening; 3 fires of the "
                "closed hours became this one"
            },
        ),
        (
            a_cron("0 9 * * *", spread=15 * MINUTE),
            "2027-03-01 00:00",
            {Shifter.SPREAD: "+12 min 59 s by its spread of 15 min"},
        ),
        (
            a_cron("0 9 * * *", jitter=150 * MINUTE),
            "2027-03-01 00:00",
            {Shifter.JITTER: "+2 h 8 min 46.268 s by its jitter of 2 h 30 min"},
        ),
        (
            a_cron("55 16 * * *", spread=15 * MINUTE, windows=(OFFICE,)),
            "2027-03-01 00:00",
            {
                Shifter.SPREAD: "+12 min 59 s by its spread of 15 min; 2 min 59 s in all, so that it stays inside its "
                "opening"
            },
        ),
        (a_schedule(rule=Poisson(10)), "2027-03-01 00:00", {}),
    ],
)
def test_a_fire_that_is_not_where_its_rule_says_says_why(schedule: Schedule, after: str, expected: dict[Shifter, str]):
    found = marks(schedule, after)
    fire = next_fire(schedule, after=utc(after))

    assert found == expected
    assert fire is not None
    assert explain(schedule, fire) == list(expected.values())


def test_several_reasons_are_reported_in_the_order_in_which_they_moved_the_fire():
    schedule = a_cron(
        "30 2 * * 6",
        calendar=Calendar(excluded=frozenset({date(2027, 3, 27)}), roll=Roll.AFTER),
        spread=MINUTE,
        jitter=MINUTE,
    )

    assert list(marks(schedule, "2027-03-26 00:00")) == [Shifter.GAP, Shifter.CALENDAR, Shifter.SPREAD, Shifter.JITTER]


def test_from_end_to_start_a_fire_can_be_explained_without_knowing_the_last_end():
    schedule = a_schedule(rule=every(minutes=10, from_end=True), timezone="Europe/Berlin", spread=MINUTE, **DEFERRED)
    inside, outside = utc("2027-03-05 12:00"), utc("2027-03-05 15:55")

    for after, shifter in ((inside, "spread"), (outside, "next opening")):
        fire = next_fire(schedule, after=after)
        assert fire is not None
        (reason,) = explain(schedule, fire)
        assert shifter in reason


def test_a_fire_that_the_schedule_does_not_have_has_no_reasons():
    schedule = a_cron("30 2 * * *")
    fire = Fire(at=utc("2027-03-28 12:00"), nominal_at=utc("2027-03-28 12:00"), shifted_by=(Shifter.GAP,))

    assert explain(schedule, fire) == []
    assert explain(replace(schedule, end=utc("2027-03-01 00:00")), fire) == []


def test_every_fire_is_explained_by_as_many_reasons_as_it_has_movers():
    schedule = a_cron("0 * * * *", calendar=BUSINESS, spread=15 * MINUTE, jitter=5 * MINUTE, **DEFERRED)

    for found in preview(schedule, after=utc("2027-03-25 00:00"), count=100).previews:
        assert set(found.fire.shifted_by) <= {shifter for shifter, _ in found.marks}
        assert explain(schedule, found.fire) == [text for _, text in found.marks]
        assert ("became this one" in " ".join(explain(schedule, found.fire))) is bool(found.fire.merged_count)


def test_a_preview_is_a_value():
    ((found,), _) = preview(a_schedule(rule=CronRule("0 9 * * *")), after=NOON, count=1)

    assert found == Preview(found.fire, found.local, found.offset, found.marks)
    with pytest.raises(FrozenInstanceError):
        found.offset = MINUTE  # pyright: ignore[reportAttributeAccessIssue]
