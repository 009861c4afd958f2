import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from functions.api.http.problems import Misshapen, problem_of
from functions.api.http.requests import Rules
from functions.api.schedules.bodies import read_schedule
from functions.domain.errors import InvalidSchedule
from functions.domain.far_ring.timer_record import PAYLOAD_LIMIT
from functions.domain.jobs.job import Delivery, Payload, Precision, Priority
from functions.domain.jobs.overlap import Overlap
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.schedules.record import encode_schedule
from functions.domain.schedules.rules import At, CronRule, Fold, Gap, Poisson, RecurrenceRule, Rule
from functions.domain.schedules.schedule import Calendar, Misfire, Roll, Schedule, WindowMode
from functions.domain.targets.flows import FlowLimits, NamedFlow, Rate
from functions.domain.targets.options import Method, TargetOptions
from testkit.builders import NOON, a_window, every

RULES = Rules(now=NOON, allow_plain_http=False, max_timeout=timedelta(seconds=50))
JOB = {"target": "https://example.com/hook"}
DURATION = "must be seconds, or an ISO 8601 duration such as PT90S or P1DT2H, without years or months"
EXTRA = "is not a field here"
FIVE_FIELDS = "but must have 5, minute, hour, day of month, month, day of week"


BAD_VALUES: list[tuple[str, Any, str]] = [
    ("at", "tomorrow", "must be an RFC 3339 instant such as 2027-01-31T09:00:00+01:00"),
    ("at", "2027-03-02T09:00:00", "has no offset from UTC: append Z or one such as +01:00"),
    ("at", 1_803_902_400, "must be an RFC 3339 text such as 2027-01-31T09:00:00+01:00"),
    ("cron", "0 3 * *", f"has 4 fields, {FIVE_FIELDS}"),
    (
        "cron",
        "0 0 3 * * *",
        'is an expression with seconds, as Quartz, Spring and robfig/cron have it; write {"cron": "0 3',
    ),
    ("cron", "", f"has 0 fields, {FIVE_FIELDS}"),
    ("cron", "61 * * * *", "is not a cron expression: its minute, '61': is not acceptable, out of range"),
    ("cron", "0 0 31 2 *", "never fires: there is no such day"),
    ("cron", "R * * * *", "'r' in the minute is a choice by hash or chance: write a number, and use spread"),
    ("cron", "@weekday", "@weekday is not supported: the macros are @yearly"),
    ("cron", 7, "Input should be a valid string"),
    ("every.interval", "soon", DURATION),
    ("every.interval", "P1Y", DURATION),
    ("every.interval", 0, "must be from 1 second to ten years"),
    ("every.interval", 0.999, "must be from 1 second to ten years"),
    ("every.interval", "P3661D", "must be from 1 second to ten years"),
    ("every.interval", -1, "must be a number of seconds from 0 up"),
    ("every.interval", True, "must be seconds, or an ISO 8601 duration such as PT90S"),
    ("every.from", "middle", "Input should be 'start' or 'end'"),
    ("every.often", 1, EXTRA),
    ("rrule.rule", "FREQ=SECONDLY", "FREQ=SECONDLY is not one of YEARLY, MONTHLY, WEEKLY, DAILY, HOURLY, MINUTELY"),
    ("rrule.rule", "DTSTART:20270101T000000", "has a DTSTART: give that as starts_at"),
    (
        "rrule.starts_at",
        "2027-01-01T00:00:00Z",
        "must be a local time such as 2027-01-31T09:00:00, without an offset",
    ),
    ("rrule.starts_at", "2027-02-30T00:00:00", "is not a time that exists: day is out of range for month"),
    ("rrule.starts_at", "1899-12-31T23:59:59", "is earlier than 1900-01-01T00:00:00"),
    ("rrule.starts_at", "9999-12-31T23:59", "is later than 2200-01-01T00:00:00"),
    ("rrule.starts_at", 5, "must be a local time such as 2027-01-31T09:00:00, without an offset"),
    ("poisson.per_day", 0, "must be from one event in ten years to 86400 a day"),
    ("poisson.per_day", 86_401, "must be from one event in ten years to 86400 a day"),
    ("poisson.per_day", float("nan"), "must be from one event in ten years to 86400 a day"),
    ("poisson.per_day", "5", "Input should be a valid number"),
    ("poisson.per_day", True, "Input should be a valid number"),
    ("timezone", "Berlin", "'Berlin' is not an IANA time zone: did you mean Europe/Berlin"),
    ("timezone", "+01:00", "'+01:00' is an offset, which says nothing of clock changes: name a place such as"),
    ("timezone", None, "Input should be a valid string"),
    ("gap", "next", "Input should be 'next_valid' or 'skip'"),
    ("fold", "third", "Input should be 'first', 'second' or 'both'"),
    ("windows", {"start": "09:00"}, "must be a list"),
    ("windows", [{"start": "09:00", "end": "10:00"}] * 51, "must have at most 50 entries, but has 51"),
    ("window_mode", "drop", "Input should be 'skip', 'defer' or 'scale'"),
    ("window_mode", "defer", "needs windows"),
    ("calendar.holidays", ["Atlantis"], "no holidays are known for 'Atlantis'"),
    ("calendar.holidays", ["DE-XX"], "DE has no holidays of its own for 'XX'"),
    ("calendar.holidays", "DE", "must be a list"),
    ("calendar.weekends", "yes", "Input should be a valid boolean"),
    ("calendar.roll", "next", "Input should be 'before', 'after' or 'skip'"),
    ("calendar.holiday", ["DE"], EXTRA),
    ("spread", "P2D", "must be whole seconds, at most a day"),
    ("spread", 0.5, "must be whole seconds, at most a day"),
    ("jitter", "PT24H1S", "must be at most a day"),
    ("jitter", "a bit", DURATION),
    ("start", "noon", "must be an RFC 3339 instant such as 2027-01-31T09:00:00+01:00"),
    ("end", 5, "must be an RFC 3339 text such as 2027-01-31T09:00:00+01:00"),
    ("max_runs", 0, "Input should be greater than or equal to 1"),
    ("max_runs", "3", "Input should be a valid integer"),
    ("misfire", "all", "Input should be 'fire_all', 'coalesce' or 'skip'"),
    ("max_lateness", 0, "must be from 1 second to 14 days"),
    ("overlap", "queue", "Input should be 'allow', 'forbid', 'buffer_one' or 'replace'"),
    ("pause_after_failures", 0, "Input should be greater than or equal to 1"),
    ("pause_after_failures", 101, "Input should be less than or equal to 100"),
    ("history", 51, "Input should be less than or equal to 50"),
    ("history", -1, "Input should be greater than or equal to 0"),
    ("success_history", 11, "Input should be less than or equal to 10"),
    ("success_history", -1, "Input should be greater than or equal to 0"),
    ("failure_history", 11, "Input should be less than or equal to 10"),
    ("failure_history", True, "Input should be a valid integer"),
    ("job", "x", "must be a JSON object"),
    ("job.target", "ftp://example.com", "has an unknown scheme: known are https://, handler: and arn:"),
    ("job.target", "http://example.com", "http:// is not allowed in this stage: use https://"),
    (
        "job.payload",
        "{{tickwheel.fire}}",
        "refers to {{tickwheel.fire…, which there is not: known are {{tickwheel.",
    ),
    ("job.payload", {"a": ["x {{tickwheel.index"]}, "refers to {{tickwheel.index…, which there is not"),
    ("job.payload", "x" * PAYLOAD_LIMIT, f"is {PAYLOAD_LIMIT + 2} bytes as compact JSON, but at most"),
    ("job.timeout", 51, "must be at least a millisecond and at most 50 s in this stage"),
    ("job.priority", "urgent", "must be one of critical, high, normal, low"),
    ("job.expires_after", "P15D", "must be above 0 and at most 14 days"),
    ("job.retry.attempts", 0, "Input should be greater than or equal to 1"),
    ("job.retry.max_age", "P31D", "must be from 1 second to 30 days"),
    ("job.http.method", "HEAD", "Input should be 'POST', 'PUT', 'PATCH', 'DELETE' or 'GET'"),
    ("job.http.headers", {"Host": "x"}, "is a header that Tickwheel or the connection sets itself: Host"),
    ("job.asynchronous", True, "is for Lambda functions only: leave it out"),
    ("job.tags", ["a", "a"], "must differ from each other"),
    ("job.flow", [{"key": "a"}, {"key": "a"}], "must differ from each other"),
    ("job.flow", {"key": "a"}, "must be a list"),
    ("job.tenant", "acme", EXTRA),
    ("job.payload_pointer", "schedules/else/x", "is where a large payload is kept: give the payload itself"),
    ("time_zone", "UTC", EXTRA),
    ("id", "nightly", EXTRA),
]
"""A field, a value that it does not take, and how the answer to it begins."""


def test_a_schedule_needs_only_a_rule_and_a_target():
    schedule = a_schedule(cron="0 3 * * *")

    assert (schedule.uid, schedule.rule, schedule.timezone) == ("acme#nightly", CronRule("0 3 * * *"), "UTC")
    assert (schedule.misfire, schedule.overlap, schedule.history) == (Misfire.FIRE_ALL, Overlap.ALLOW, 10)
    assert schedule.job.target == "https://example.com/hook"
    assert (schedule.job.payload, schedule.job.retry) == (Payload(), RetryPolicy())


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"at": "2027-03-01T14:00:00+01:00"}, At(NOON + timedelta(hours=1))),
        ({"at": "2027-03-01T13:00:00.0001Z"}, At(NOON + timedelta(hours=1, milliseconds=1))),
        ({"cron": "@daily"}, CronRule("@daily")),
        ({"every": 90}, every(seconds=90)),
        ({"every": 1.5}, every(seconds=1.5)),
        ({"every": "PT1H30M"}, every(minutes=90)),
        (
            {"every": {"interval": "PT1H", "phase": 60}},
            every(hours=1, phase=timedelta(minutes=1)),
        ),
        ({"every": {"interval": 60, "from": "start"}}, every(minutes=1)),
        ({"every": {"interval": 60, "from": "end"}}, every(minutes=1, from_end=True)),
        (
            {"rrule": {"rule": "FREQ=MONTHLY;BYDAY=-1FR", "starts_at": "2027-01-29T09:00:00"}},
            RecurrenceRule("FREQ=MONTHLY;BYDAY=-1FR", datetime(2027, 1, 29, 9)),  # noqa: DTZ001
        ),
        (
            {"rrule": {"rule": "FREQ=DAILY", "starts_at": "2027-01-29 09:00"}},
            RecurrenceRule("FREQ=DAILY", datetime(2027, 1, 29, 9)),  # noqa: DTZ001
        ),
        ({"poisson": {"per_day": 12}}, Poisson(12.0)),
    ],
    ids=str,
)
def test_every_kind_of_rule_is_read(given: dict[str, Any], rule: Rule):
    assert a_schedule(**given).rule == rule


def test_a_schedule_may_say_everything():
    schedule = a_schedule(
        cron="30 6 * * mon-fri",
        timezone="Europe/Berlin",
        gap="skip",
        fold="both",
        windows=[{"start": "09:00", "end": "17:30", "days": ["mon", "fri"]}, {"start": "22:00", "end": "00:00"}],
        window_mode="defer",
        calendar={"exclude": ["2027-12-24"], "holidays": ["DE-BY", "NYSE"], "weekends": True, "roll": "after"},
        spread="PT15M",
        jitter=30,
        start="2027-03-02T00:00:00Z",
        end="2028-03-02T00:00:00+01:00",
        max_runs=3,
        misfire="coalesce",
        max_lateness="PT1H",
        overlap="buffer_one",
        pause_after_failures=5,
        history=50,
        success_history=1,
        failure_history=10,
        job={
            **JOB,
            "payload": {"at": "{{tickwheel.fire_time}}"},
            "priority": "high",
            "precision": "exact",
            "retry": {"strategy": "linear", "base": 1.5, "max_age": "PT6H"},
            "timeout": "PT45S",
            "expires_after": 3600,
            "http": {"method": "PUT", "headers": {"X-Key": "hush"}, "success": [200, 409], "retry_on": [404]},
            "tags": ["team:billing", "eu"],
            "flow": [{"key": "stripe", "rate": "60/min"}],
        },
    )

    assert schedule.windows == (
        a_window("09:00", "17:30", "mon fri"),
        a_window("22:00", "00:00"),
    )
    assert (schedule.gap, schedule.fold, schedule.window_mode) == (
        Gap.SKIP,
        Fold.BOTH,
        WindowMode.DEFER,
    )
    assert schedule.calendar == Calendar(
        excluded=frozenset({date(2027, 12, 24)}), holidays=("DE-BY", "NYSE"), weekends=True, roll=Roll.AFTER
    )
    assert (schedule.spread, schedule.jitter) == (timedelta(minutes=15), timedelta(seconds=30))
    assert (schedule.start, schedule.end) == (datetime(2027, 3, 2, tzinfo=UTC), datetime(2028, 3, 1, 23, tzinfo=UTC))
    assert (schedule.max_runs, schedule.misfire, schedule.max_lateness) == (
        3,
        Misfire.COALESCE,
        timedelta(hours=1),
    )
    assert (schedule.overlap, schedule.pause_after_failures, schedule.history) == (Overlap.BUFFER_ONE, 5, 50)
    assert schedule.keeps == (1, 10)
    job = schedule.job
    assert (job.payload.text, job.priority, job.precision) == (
        '{"at":"{{tickwheel.fire_time}}"}',
        Priority.HIGH,
        Precision.EXACT,
    )
    assert (job.retry.strategy, job.retry.base) == (Strategy.LINEAR, timedelta(seconds=1.5))
    assert job.retry.max_age == timedelta(hours=6)
    assert job.options == TargetOptions(
        method=Method.PUT, headers=(("X-Key", "hush"),), success_codes=(200, 409), retry_codes=(404,)
    )
    assert job.tags == ("team:billing", "eu")
    assert job.flows == (NamedFlow(key="stripe", limits=FlowLimits(rate=Rate(60, "min"))),)
    assert (job.timeout, job.expires_after, job.delivery) == (
        timedelta(seconds=45),
        timedelta(hours=1),
        Delivery.EXACTLY_ONCE,
    )


@pytest.mark.parametrize(
    "given",
    [
        {"cron": "30 6 * * *", "windows": [{"start": "22:00", "end": "06:00", "days": ["sat"]}], "spread": "PT15M"},
        {"every": {"interval": 90.5, "phase": 1}, "start": "2027-03-02T00:00:00.0001Z", "max_runs": 3},
        {"rrule": {"rule": "FREQ=DAILY", "starts_at": "2027-01-01T00:00"}, "calendar": {"holidays": ["US"]}},
        {"poisson": {"per_day": 5.5}, "job": {**JOB, "retry": {"base": "PT1H"}, "payload": [None, 1.0, "é"]}},
        {
            "at": "2027-03-02T00:00:00Z",
            "job": {
                **JOB,
                "http": {"method": "GET", "headers": {"B": "2", "A": "1"}, "success": [409, 200], "retry_on": [404]},
                "tags": ["b", "a"],
                "retry": {"max_age": 3_600},
            },
        },
        {"cron": "0 1 * * *", "job": {**JOB, "retry": {"intervals": [60, 300, 1800], "jitter": "full"}}},
        {"cron": "0 2 * * *", "job": {**JOB, "retry": {"intervals": [60, 300, 1800], "attempts": 5}}},
        {"cron": "0 3 * * *", "job": {**JOB, "retry": {"strategy": "fixed", "jitter": "equal"}}},
    ],
    ids=str,
)
def test_what_is_stored_is_read_as_the_same_schedule(given: dict[str, Any]):
    schedule = a_schedule(**given)

    written = json.loads(json.dumps(encode_schedule(schedule)))

    assert read_schedule(written, RULES).schedule("acme", "nightly") == schedule


@pytest.mark.parametrize(("field", "given", "message"), BAD_VALUES, ids=lambda value: str(value)[:24])
def test_a_bad_value_is_refused_with_its_field_and_what_to_do(field: str, given: Any, message: str):
    error = the_problem_of(with_value(field, given))

    assert error["field"] == field
    assert error["message"].startswith(message)


@pytest.mark.parametrize(
    ("field", "given", "message"),
    [
        ("windows.0.start", {"start": "9:00", "end": "17:00"}, "must be a local time of day such as 09:00"),
        ("windows.0.end", {"start": "09:00", "end": "24:00"}, "must be a local time of day such as 09:00; midnight is"),
        ("windows.0.end", {"start": "09:00"}, "is required"),
        ("windows.0.days", {"start": "09:00", "end": "17:00", "days": []}, "names no day: leave it out for every day"),
        ("windows.0.days.1", {"start": "09:00", "end": "17:00", "days": ["mon", "monday"]}, "Input should be 'mon', "),
        ("windows.0.until", {"start": "09:00", "end": "17:00", "until": 1}, EXTRA),
        ("windows.0", "mon-fri 09:00-17:00", "must be a JSON object"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_bad_part_of_a_list_is_named_with_its_place(field: str, given: Any, message: str):
    error = the_problem_of({"cron": "0 3 * * *", "job": JOB, "windows": [given]})

    assert error["field"] == field
    assert error["message"].startswith(message)


@pytest.mark.parametrize(
    ("exclude", "message"),
    [
        ("25.12.2027", "must be a date such as 2027-12-25"),
        (20271225, "must be a date such as 2027-12-25"),
        ("2027-02-30", "is not a date that exists: day is out of range for month"),
    ],
)
def test_a_bad_date_of_a_calendar_is_named_with_its_place(exclude: Any, message: str):
    error = the_problem_of({"cron": "0 3 * * *", "job": JOB, "calendar": {"exclude": ["2027-12-24", exclude]}})

    assert (error["field"], error["message"]) == ("calendar.exclude.1", message)


@pytest.mark.parametrize(
    ("given", "field", "message"),
    [
        (
            {"every": {"interval": 60, "phase": 60}},
            "every.phase",
            "must be from 0 up to, and not including, the interval",
        ),
        ({"every": {"interval": 60, "phase": 5, "from": "end"}}, "every.phase", "has no meaning from end to start"),
        ({"every": {"phase": 5}}, "every.interval", "is required"),
        ({"rrule": {"rule": "FREQ=DAILY"}}, "rrule.starts_at", "is required"),
        ({"rrule": "FREQ=DAILY"}, "rrule", "must be a JSON object"),
        ({"poisson": 5}, "poisson", "must be a JSON object"),
        (
            {"cron": "0 3 * * *", "windows": [{"start": "09:00", "end": "17:00"}], "window_mode": "scale"},
            "window_mode",
            "scale is for poisson only: use skip or defer",
        ),
        (
            {"cron": "0 3 * * *", "start": "2027-03-02T00:00:00Z", "end": "2027-03-01T00:00:00Z"},
            "end",
            "must be after start",
        ),
        (
            {"cron": "0 3 * * *", "overlap": "forbid", "job": {**JOB, "delivery": "at_least_once"}},
            "overlap",
            "forbid needs delivery exactly_once: of other jobs nobody knows when they end",
        ),
        (
            {"cron": "0 3 * * *", "success_history": 3, "job": {**JOB, "delivery": "at_most_once"}},
            "success_history",
            "needs delivery exactly_once: of other jobs nobody knows how they end",
        ),
        (
            {"cron": "0 3 * * *", "pause_after_failures": 3, "job": {**JOB, "delivery": "at_most_once"}},
            "pause_after_failures",
            "needs delivery exactly_once: of other jobs nobody knows how they end",
        ),
        (
            {"every": {"interval": 60, "from": "end"}, "job": {**JOB, "delivery": "at_least_once"}},
            "every.from",
            "from end to start needs delivery exactly_once: of other jobs nobody knows when they end",
        ),
        ({"cron": "0 3 * * *", "job": {}}, "job.target", "is required"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_fields_that_contradict_each_other_are_named(given: dict[str, Any], field: str, message: str):
    error = the_problem_of({"job": JOB, **given})

    assert (error["field"], error["message"]) == (field, message)


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, "none of them"),
        ({"cron": None}, "none of them"),
        ({"cron": "0 3 * * *", "every": 60}, "cron and every"),
        ({"poisson": {"per_day": 1}, "at": "2027-03-02T00:00:00Z"}, "at and poisson"),
    ],
)
def test_a_schedule_has_exactly_one_rule(given: dict[str, Any], names: str):
    error = the_problem_of({"job": JOB, **given})

    assert error["field"] == "rule"
    assert error["message"] == f"must be exactly one of at, cron, every, rrule, poisson, but this has {names}"


def test_several_problems_of_one_definition_are_all_named():
    errors = problems_in(
        {"cron": "0 3 * *", "timezone": "Berlin", "spread": -1, "job": {"target": "x", "payload": "{{tickwheel.no}}"}}
    )

    assert [error["field"] for error in errors] == ["timezone", "cron", "spread", "job.target", "job.payload"]


def test_what_is_another_programs_is_translated_for_the_zone_of_the_definition():
    (error,) = problems_in({"cron": "cron(30 6 ? * 2-6 *)", "timezone": "Europe/Berlin", "job": JOB})

    instead = {"cron": "30 6 * * mon-fri", "timezone": "Europe/Berlin", "gap": "skip"}
    assert (error["field"], error["value"], error["instead"]) == ("cron", "cron(30 6 ? * 2-6 *)", [instead])
    assert error["message"].endswith(f"write {json.dumps(instead)}")


@pytest.mark.parametrize("body", [None, 7, "text", [], [{"cron": "0 3 * * *"}]])
def test_a_definition_that_is_no_object_is_refused_as_a_whole(body: Any):
    error = the_problem_of(body)

    assert (error["field"], error["message"]) == ("body", "must be a JSON object")


@pytest.mark.parametrize(
    "job",
    [
        {**JOB, "payload": {"key": "hush {{tickwheel.secret}}"}},
        {"target": "https://me:hush@example.com"},
        ["hush"],
        "hush",
        {**JOB, "http": "hush"},
        {**JOB, "http": {"headers": {"X-Key": "hush\n"}}},
        {**JOB, "http": {"headers": {"X-Key": ["hush"]}}},
        {**JOB, "http": {"header": {"X-Key": "hush"}}},
        {**JOB, "headers": {"X-Key": "hush"}},
    ],
)
def test_what_may_be_secret_of_a_refused_job_is_not_shown(job: Any):
    assert "hush" not in json.dumps(problems_in({"cron": "0 3 * * *", "job": job}))


def a_schedule(**fields: Any) -> Schedule:
    return read_schedule({"job": JOB, **fields}, RULES).schedule("acme", "nightly")


def with_value(field: str, given: Any) -> dict[str, Any]:
    """A good definition but for one value, which stands at a path of names."""
    rule = {
        "at": {"at": "2027-03-02T00:00:00Z"},
        "every": {"every": {"interval": 60}},
        "rrule": {"rrule": {"rule": "FREQ=DAILY", "starts_at": "2027-01-01T00:00:00"}},
        "poisson": {"poisson": {"per_day": 5}},
    }
    *path, name = field.split(".")
    body: dict[str, Any] = {"job": dict(JOB), **rule.get(field.partition(".")[0], {"cron": "0 3 * * *"})}
    inner = body
    for part in path:
        inner = inner.setdefault(part, {})
    inner[name] = given
    return body


def the_problem_of(body: Any) -> dict[str, Any]:
    [error] = problems_in(body)
    return error


def problems_in(body: Any) -> list[dict[str, Any]]:
    """What the API answers to a definition, after its way through JSON."""
    with pytest.raises((Misshapen, InvalidSchedule)) as refused:
        read_schedule(body, RULES).schedule("acme", "nightly")
    problem = json.loads(json.dumps(problem_of(refused.value), allow_nan=False))
    assert (problem["status"], problem["code"]) == (422, "invalid_schedule")
    for error in problem["errors"]:
        assert f"{error['field']} {error['message']}" in problem["detail"]
    return problem["errors"]
