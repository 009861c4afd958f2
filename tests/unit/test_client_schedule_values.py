"""Schedules as values of the client: what is refused before it is sent, and how files are read."""

import json
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest

from functions.api.http.requests import Rules
from functions.api.openapi import document
from functions.api.schedules.bodies import ScheduleBody, TemplateBody, read_schedule
from functions.domain.schedules.record import encode_schedule
from testkit.builders import NOON
from tickwheel.client.flows import Flow
from tickwheel.client.jobs import Http, RetryPolicy
from tickwheel.client.schedule_parts import Calendar, Every, Recurrence, Window
from tickwheel.client.schedules import STANDING, NewSchedule
from tickwheel.errors import InvalidSchedule

RULES = Rules(now=NOON, allow_plain_http=False, max_timeout=timedelta(seconds=50))
NIGHTLY: dict[str, Any] = {"tenant": "acme", "id": "nightly", "cron": "0 3 * * *", "job": {"target": "handler:echo"}}


def test_a_schedule_sends_only_what_was_said() -> None:
    schedule = NewSchedule("nightly", tenant="acme", cron="0 3 * * *", target="handler:echo")

    assert schedule.as_json() == {"cron": "0 3 * * *", "job": {"target": "handler:echo"}}


def test_a_schedule_sends_every_field_in_the_units_of_the_api() -> None:
    assert a_full_schedule().as_json() == {
        "cron": "30 6 * * mon-fri",
        "timezone": "Europe/Berlin",
        "gap": "skip",
        "fold": "both",
        "windows": [{"start": "09:00", "end": "17:00", "days": ["mon", "fri"]}, {"start": "22:00", "end": "06:00"}],
        "window_mode": "defer",
        "calendar": {"exclude": ["2030-12-25"], "holidays": ["DE"], "weekends": True, "roll": "after"},
        "spread": 900,
        "jitter": 1.5,
        "start": "2030-01-01T00:00:00Z",
        "end": "2031-01-01T00:00:00Z",
        "max_runs": 3,
        "misfire": "coalesce",
        "max_lateness": 3600,
        "overlap": "forbid",
        "pause_after_failures": 5,
        "history": 20,
        "success_history": 3,
        "failure_history": 10,
        "job": {
            "target": "https://example.com/hook",
            "payload": {"at": "{{tickwheel.fire_time}}"},
            "priority": "high",
            "delivery": "exactly_once",
            "precision": "exact",
            "retry": {"attempts": 2, "max_age": 3600},
            "timeout": 10,
            "expires_after": 60,
            "http": {"method": "PUT", "headers": {"X-Key": "hush"}, "success": [200], "retry_on": [404]},
            "asynchronous": False,
            "tags": ["team:billing"],
            "flow": [{"key": "stripe", "rate": "60/min"}],
        },
    }


@pytest.mark.parametrize(
    ("rule", "sent"),
    [
        ({"at": datetime(2030, 1, 31, 9, tzinfo=UTC)}, {"at": "2030-01-31T09:00:00Z"}),
        ({"every": timedelta(minutes=5)}, {"every": 300}),
        (
            {"every": Every(interval=timedelta(hours=1), phase=timedelta(minutes=5))},
            {"every": {"interval": 3600, "phase": 300}},
        ),
        (
            {"every": Every(interval=timedelta(hours=1), from_end=True)},
            {"every": {"interval": 3600, "from": "end"}},
        ),
        (
            {"rrule": Recurrence("FREQ=DAILY", datetime(2030, 1, 31, 9))},  # noqa: DTZ001
            {"rrule": {"rule": "FREQ=DAILY", "starts_at": "2030-01-31T09:00:00"}},
        ),
        ({"poisson": 12.5}, {"poisson": {"per_day": 12.5}}),
    ],
    ids=str,
)
def test_every_kind_of_rule_is_sent_and_read_again(rule: dict[str, Any], sent: dict[str, Any]) -> None:
    schedule = NewSchedule("nightly", tenant="acme", target="handler:echo", **rule)

    assert schedule.as_json() == {**sent, "job": {"target": "handler:echo"}}
    assert NewSchedule.from_json({"id": "nightly", "tenant": "acme", **schedule.as_json()}) == schedule


def test_what_the_client_sends_the_api_takes_and_the_client_reads_what_the_api_stores() -> None:
    sent = a_full_schedule().as_json()

    stored = encode_schedule(read_schedule(sent, RULES).schedule("acme", "nightly"))

    again = NewSchedule.from_json({"id": "nightly", "tenant": "acme", **json.loads(json.dumps(stored))})
    assert read_schedule(again.as_json(), RULES) == read_schedule(sent, RULES)


def test_the_client_has_a_field_for_each_of_the_apis() -> None:
    fields = set(NewSchedule.__dataclass_fields__) - {"id", "tenant"}

    assert fields == (set(ScheduleBody.model_fields) - {"job"}) | set(TemplateBody.model_fields)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"id": ""}, "id: is required"),
        ({"tenant": 7}, "tenant: is a string"),
        ({"cron": None}, "rule: give exactly one of at, cron, every, rrule, poisson"),
        ({"every": timedelta(1)}, "rule: give exactly one of at, cron, every, rrule, poisson, not cron and every"),
        ({"cron": 7}, "cron: is a string"),
        ({"cron": None, "every": 60}, "every: is a timedelta"),
        ({"cron": None, "poisson": "12"}, "poisson.per_day: is a number"),
        ({"cron": None, "at": datetime(2030, 1, 1)}, "at: has no time zone"),  # noqa: DTZ001
        ({"start": datetime(2030, 1, 1)}, "start: has no time zone"),  # noqa: DTZ001
        ({"spread": timedelta(-1)}, "spread: is not negative"),
        ({"gap": "next"}, "gap: is one of next_valid, skip"),
        ({"misfire": "all"}, "misfire: is one of fire_all, coalesce, skip"),
        ({"overlap": "queue"}, "overlap: is one of allow, forbid, buffer_one, replace"),
        ({"max_runs": 1.5}, "max_runs: is a whole number"),
        ({"history": True}, "history: is a whole number"),
        ({"success_history": "3"}, "success_history: is a whole number"),
        ({"failure_history": 1.5}, "failure_history: is a whole number"),
        ({"target": ""}, "job.target: is required"),
        ({"payload": float("nan")}, "payload: is not JSON"),
        ({"priority": "urgent"}, "job.priority: is one of critical, high, normal, low"),
        ({"timeout": 5}, "job.timeout: is a timedelta"),
        ({"asynchronous": 1}, "job.asynchronous: is true or false"),
        ({"tags": "billing"}, "job.tags: is a list of texts"),
        ({"flow": ["stripe"]}, "job.flow: is a list of flows"),
    ],
    ids=str,
)
def test_what_cannot_be_sent_is_refused_with_its_field(changes: dict[str, Any], said: str) -> None:
    fields = {"id": "nightly", "tenant": "acme", "cron": "0 3 * * *", "target": "handler:echo", **changes}

    with pytest.raises(InvalidSchedule) as refused:
        NewSchedule(**fields)

    assert said in str(refused.value)


def test_a_rule_is_checked_when_it_is_made() -> None:
    interval: Any = None
    with pytest.raises(InvalidSchedule, match=r"every\.interval: is required"):
        Every(interval=interval)
    with pytest.raises(InvalidSchedule, match=r"rrule\.starts_at: is a local time"):
        Recurrence("FREQ=DAILY", datetime(2030, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"colour": "red"}, "colour: is not a field of a schedule"),
        ({"job": {"target": "handler:echo", "colour": "red"}}, "job.colour: is not a field of a schedule's job"),
        ({"job": "handler:echo"}, "job: is a JSON object"),
        ({"job": None}, "job.target: is required"),
        ({"job": {"target": "handler:echo", "payload_pointer": "x"}}, "job.payload_pointer: is not a field"),
        ({"job": {"target": "handler:echo", "timeout": "soon"}}, "job.timeout: 'soon' is not a duration"),
        ({"job": {"target": "handler:echo", "retry": {"attempts": "3"}}}, "retry.attempts: is a whole number"),
        ({"job": {"target": "handler:echo", "http": {"headers": 7}}}, "http.headers: is a mapping of names to texts"),
        ({"job": {"target": "handler:echo", "http": {"verb": "PUT"}}}, "http.verb: is not a field"),
        ({"cron": None, "at": "2030-01-01T00:00:00"}, "at: '2030-01-01T00:00:00' has no offset"),
        ({"cron": None, "every": "soon"}, "every: 'soon' is not a duration"),
        ({"cron": None, "every": {"phase": 1}}, "every.interval: is required"),
        ({"cron": None, "every": {"interval": 60, "from": "middle"}}, "every.from: is one of start, end"),
        ({"cron": None, "every": {"interval": 60, "often": 1}}, "every.often: is not a field of an interval"),
        ({"cron": None, "rrule": "FREQ=DAILY"}, "rrule: is a JSON object such as"),
        ({"cron": None, "rrule": {"rule": "X", "starts_at": "2030-01-01T00:00:00Z"}}, "has an offset: leave it out"),
        ({"cron": None, "rrule": {"rule": "X", "starts_at": 5}}, "5 is not a local time"),
        ({"cron": None, "poisson": 5}, "poisson: is a JSON object such as"),
        ({"windows": "mon-fri"}, "windows: is a list of windows"),
        ({"windows": ["mon-fri 9-17"]}, "'mon-fri 9-17' is not a window: write mon-fri 09:00-17:00"),
        ({"windows": ["friday 09:00-17:00"]}, "'friday' is not a day: write mon, mon-fri or sat,sun"),
        ({"windows": [{"start": "09:00", "end": "24:00"}]}, "'24:00' is not a time of day: write 09:00, and 00:00 for"),
        ({"windows": [{"start": "09:00"}]}, "is not a window"),
        ({"calendar": ["DE"]}, "calendar: is a JSON object"),
        ({"calendar": {"exclude": ["25.12.2030"]}}, "'25.12.2030' is not a date: write 2030-12-25"),
        ({"calendar": {"exclude": "2030-12-25"}}, "'2030-12-25' is not a list"),
        ({"calendar": {"holidays": "DE"}}, "'DE' is not a list"),
        ({"calendar": {"roll": "next"}}, "calendar.roll: is one of before, after, skip"),
        ({"calendar": {"holiday": []}}, "calendar.holiday: is not a field of a calendar"),
        ({"spread": "soon"}, "spread: 'soon' is not a duration"),
        ({"start": "noon"}, "start: 'noon' is not a time"),
        ({"status": "paused"}, "status: would be lost, and the schedule would go on"),
    ],
    ids=str,
)
def test_json_that_is_no_schedule_is_refused_with_its_field(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        NewSchedule.from_json({**NIGHTLY, **changes})

    assert said in str(refused.value)
    assert "rule: give exactly one" not in str(refused.value)


def test_every_problem_of_a_line_is_named_once() -> None:
    with pytest.raises(InvalidSchedule) as refused:
        NewSchedule.from_json({"id": "a", "every": "soon", "spread": "wide", "job": {}})

    assert [problem.field for problem in refused.value.problems] == ["every", "spread", "tenant", "job.target"]


@pytest.mark.parametrize("body", [None, [], "nightly"])
def test_what_is_no_object_is_refused(body: Any) -> None:
    with pytest.raises(InvalidSchedule, match="schedule: is a JSON object"):
        NewSchedule.from_json(body)


def test_what_the_scheduler_reports_a_schedule_can_be_put_again() -> None:
    answer = {**NIGHTLY, **dict.fromkeys(STANDING, "x"), "status": "active"}

    assert NewSchedule.from_json(answer) == NewSchedule.from_json(NIGHTLY)


def test_the_client_knows_all_that_the_scheduler_says_beside_the_definition() -> None:
    described = set(document()["components"]["schemas"]["Schedule"]["properties"])

    assert described - set(ScheduleBody.model_fields) - {"id", "tenant"} == STANDING


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("09:00-17:00", Window(time(9), time(17))),
        ("mon-fri 09:00-17:00", Window(time(9), time(17), ["mon", "tue", "wed", "thu", "fri"])),
        ("SAT,sun 22:00 - 00:00", Window(time(22), time(0), ["sat", "sun"])),
        ("fri-mon,wed 00:00-06:00", Window(time(0), time(6), ["fri", "sat", "sun", "mon", "wed"])),
        ("mon-mon 09:00-10:00", Window(time(9), time(10), ["mon"])),
    ],
)
def test_a_window_may_be_written_as_a_text(text: str, window: Window) -> None:
    assert Window.parse(text) == window


def a_full_schedule() -> NewSchedule:
    return NewSchedule(
        "nightly",
        tenant="acme",
        cron="30 6 * * mon-fri",
        timezone="Europe/Berlin",
        gap="skip",
        fold="both",
        windows=[Window(time(9), time(17), ["mon", "fri"]), Window(time(22), time(6))],
        window_mode="defer",
        calendar=Calendar(exclude=[date(2030, 12, 25)], holidays=["DE"], weekends=True, roll="after"),
        spread=timedelta(minutes=15),
        jitter=timedelta(seconds=1.5),
        start=datetime(2030, 1, 1, tzinfo=UTC),
        end=datetime(2031, 1, 1, tzinfo=UTC),
        max_runs=3,
        misfire="coalesce",
        max_lateness=timedelta(hours=1),
        overlap="forbid",
        pause_after_failures=5,
        history=20,
        success_history=3,
        failure_history=10,
        target="https://example.com/hook",
        payload={"at": "{{tickwheel.fire_time}}"},
        priority="high",
        delivery="exactly_once",
        precision="exact",
        retry=RetryPolicy(attempts=2, max_age=timedelta(hours=1)),
        timeout=timedelta(seconds=10),
        expires_after=timedelta(minutes=1),
        http=Http(method="PUT", headers={"X-Key": "hush"}, success=[200], retry_on=[404]),
        asynchronous=False,
        tags=["team:billing"],
        flow=[Flow("stripe", rate="60/min")],
    )
