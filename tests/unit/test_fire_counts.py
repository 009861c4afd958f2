from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.api.http.requests import Rules
from functions.api.schedules.answers import FireCounts
from functions.api.schedules.fire_counts import (
    MOST_COUNTED,
    FireCountsBody,
    count_given,
    count_stored,
    minutes_of,
    spread_out,
    start_of,
)
from functions.domain.errors import InvalidSchedule
from functions.domain.schedules.rules import At, CronRule, Poisson
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.shifts import spread_of
from functions.domain.targets.targets import AllowedTargets
from testkit.builders import NOON, a_schedule, a_window, every

JOB = {"target": "handler:echo"}
RULES = Rules(
    now=NOON, allow_plain_http=False, allowed=AllowedTargets(("handler:*",)), max_timeout=timedelta(minutes=1)
)


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


def counted(definitions: list[dict[str, Any]], *, after: str = "", hours: int = 48) -> FireCounts:
    named = [{"tenant": "acme", "id": f"s{number}", **each, "job": JOB} for number, each in enumerate(definitions)]
    body = FireCountsBody.model_validate({"schedules": named, "hours": hours, "after": after}, context=RULES)
    return count_given(body, RULES, start=NOON)


def test_what_one_request_does_not_pay_for_is_left_to_the_next_pages():
    results, after, pages = list[dict[str, Any]](), "", 0
    while after is not None:
        page = counted([{"cron": "* * * * *"}] * 30, after=after)
        assert page["results"]
        results, after, pages = [*results, *page["results"]], page["next"], pages + 1

    assert [result["id"] for result in results] == [f"s{number}" for number in range(30)]
    assert {sum(result["minutes"].values()) for result in results} == {2_880}
    assert 5 <= pages <= 15


def test_a_definition_that_takes_more_than_a_request_pays_for_is_reported_as_such_and_does_not_hold_up_the_others():
    nasty = {
        "rrule": {
            "rule": "FREQ=MINUTELY;INTERVAL=1441;BYHOUR=3;BYMINUTE=0;COUNT=5000",
            "starts_at": "2027-01-01T20:00:00",
        }
    }

    first = counted([{"cron": "0 9 * * *"}, nasty, {"cron": "0 9 * * *"}])
    second = counted([{"cron": "0 9 * * *"}, nasty, {"cron": "0 9 * * *"}], after=first["next"] or "")
    third = counted([{"cron": "0 9 * * *"}, nasty, {"cron": "0 9 * * *"}], after=second["next"] or "")

    assert [result["id"] for page in (first, second, third) for result in page["results"]] == ["s0", "s1", "s2"]
    assert second["results"][0]["problem"]["code"] == "too_costly"
    assert (first["next"], second["next"], third["next"]) == ("1", "2", None)


@pytest.mark.parametrize("after", ["0", "2", "-1", "nightly", "1.5", "99999999999999999999"])
def test_a_page_that_no_answer_led_to_is_refused(after: str):
    with pytest.raises(InvalidSchedule, match="is no `next` of an answer"):
        counted([{"cron": "0 9 * * *"}] * 2, after=after)


def test_a_page_of_stored_schedules_goes_on_behind_the_last_that_was_counted():
    page = [replace(a_schedule(rule=CronRule("* * * * *")), schedule_id=f"s{number}") for number in range(20)]
    body = FireCountsBody.model_validate({"tenant": "acme", "hours": 48}, context=RULES)

    first = count_stored(page, body, start=NOON, goes_on_after="z")

    assert 0 < len(first["results"]) < 20
    assert first["next"] == page[len(first["results"]) - 1].schedule_id
    assert count_stored(page[:2], body, start=NOON, goes_on_after="z")["next"] == "z"
    assert count_stored([], body, start=NOON, goes_on_after="z")["next"] == "z"


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
    schedule = a_schedule(windows=(a_window("09:00", "17:00"),))

    assert spread_out(schedule, None) is schedule


def test_the_start_is_that_of_its_minute():
    assert start_of(datetime.fromisoformat("2027-03-01T12:00:59.999+01:00")) == NOON - timedelta(hours=1)
