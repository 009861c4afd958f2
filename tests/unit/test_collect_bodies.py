"""`collect` in requests, in the client and in the command; and what is said of a job that waits in its collection."""

import json
from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from functions.api.http import requests
from functions.api.http.problems import problem_of
from functions.api.jobs.bodies import JobBody
from functions.api.schedules.bodies import ScheduleBody
from functions.domain.errors import InvalidSchedule
from functions.domain.explanation.facts import Reason
from functions.domain.instants import HOUR, MINUTE
from functions.domain.jobs.collect import Collect
from functions.domain.jobs.description import collect_body
from functions.domain.jobs.job_id import parse_job_id
from functions.domain.schedules.record import decode_schedule, encode_schedule
from functions.domain.tenants.plan import TenantPlan, TenantStatus
from testkit.builders import NOON, a_submission
from testkit.scheduler import World, pass_time
from tickwheel.client import Collect as Terms
from tickwheel.client import NewJob
from tickwheel.errors import InvalidJob

RULES = requests.Rules(now=NOON, allow_plain_http=False, max_timeout=timedelta(minutes=15))
HOURLY = {"key": "export", "for": "PT1H"}


def problems_of(refused: ValidationError) -> list[dict[str, Any]]:
    """As the API answers them."""
    problem = json.loads(json.dumps(problem_of(refused), allow_nan=False))
    assert problem["status"] == 422
    return problem["errors"]


def body(collect: Any, **given: Any) -> JobBody:
    fields = {"tenant": "acme", "target": "https://example.com/hook", "collect": collect, **given}
    return JobBody.model_validate(fields, context=RULES)


@pytest.mark.parametrize(
    ("asked", "terms"),
    [
        (HOURLY, Collect(key="export", window=HOUR)),
        ({"key": "export", "for": 90, "max": 500}, Collect(key="export", window=timedelta(seconds=90), most=500)),
        (
            {"key": "digest", "at": "0 7 * * *", "timezone": "Europe/Berlin"},
            Collect(key="digest", at="0 7 * * *", timezone="Europe/Berlin"),
        ),
    ],
)
def test_a_request_says_what_is_collected(asked: dict[str, Any], terms: Collect):
    assert body(asked).submission(now=NOON).collect == terms


@pytest.mark.parametrize(
    ("collect", "field", "message"),
    [
        ("export", "collect", "must be a JSON object"),
        ({"for": "PT1H"}, "collect.key", "is required"),
        ({"key": "a b", "for": "PT1H"}, "collect.key", "must match [A-Za-z0-9._:-]{1,64}"),
        ({"key": "a"}, "collect", "needs for or at"),
        ({"key": "a", "for": "PT0.5S"}, "collect.for", "must be from 1 second to 31 days"),
        ({"key": "a", "for": "P32D"}, "collect.for", "must be from 1 second to 31 days"),
        ({"key": "a", "for": 1, "max": 501}, "collect.max", "less than or equal to 500"),
        ({"key": "a", "for": 1, "max": 0}, "collect.max", "greater than or equal to 1"),
        ({"key": "a", "for": 1, "max": "7"}, "collect.max", "valid integer"),
        ({"key": "a", "at": "often"}, "collect.at", "has 1 fields"),
        ({"key": "a", "at": "0 0 31 2 *"}, "collect.at", "never fires"),
        ({"key": "a", "at": "0 7 * * *", "timezone": "Mars/Base"}, "collect.timezone", "Mars/Base"),
        ({"key": "a", "for": 1, "timezone": "Europe/Berlin"}, "collect", "timezone without at"),
        ({"key": "a", "for": 1, "window": 2}, "collect.window", "is not a field here"),
    ],
)
def test_terms_that_are_none_are_refused_with_their_field(collect: Any, field: str, message: str):
    with pytest.raises(ValidationError) as refused:
        body(collect)

    (problem,) = problems_of(refused.value)
    assert problem["field"] == field
    assert message in problem["message"]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"delivery": "at_least_once"}, "delivery"),
        ({"delivery": "at_most_once"}, "delivery"),
        ({"precision": "exact"}, "precision"),
        ({"expires_after": 60}, "expires_after"),
        ({"run_deadline": 60}, "run_deadline"),
        ({"flow": [{"key": "stripe"}]}, "flow"),
        ({"payload": "x" * 8_192}, "payloads of at most 8192 bytes"),
    ],
)
def test_what_does_not_go_together_is_refused(given: dict[str, Any], name: str):
    with pytest.raises(ValidationError) as refused:
        body(HOURLY, **given)

    (problem,) = problems_of(refused.value)
    assert (problem["field"], name in problem["message"]) == ("collect", True)


def test_the_job_of_a_schedule_may_be_collected():
    job = {"target": "https://example.com/hook", "collect": {**HOURLY, "max": 20}}
    asked = ScheduleBody.model_validate({"cron": "0 3 * * *", "job": job}, context=RULES)

    schedule = asked.schedule("acme", "nightly")

    assert schedule.job.collect == Collect(key="export", window=HOUR, most=20)
    assert decode_schedule(_written(schedule), tenant="acme", schedule_id="nightly") == schedule


@pytest.mark.parametrize(("name", "value"), [("overlap", "forbid"), ("max_lateness", "PT1H")])
def test_a_schedule_whose_runs_wait_for_others_neither_keeps_them_apart_nor_drops_them(name: str, value: str):
    job = {"target": "https://example.com/hook", "collect": HOURLY}
    asked = ScheduleBody.model_validate({"cron": "0 3 * * *", "job": job, name: value}, context=RULES)

    with pytest.raises(InvalidSchedule) as refused:
        asked.schedule("acme", "nightly")

    assert refused.value.field == name


def _written(schedule: Any) -> str:
    return json.dumps(encode_schedule(schedule))


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("export,for=1h", Terms("export", window=HOUR)),
        ("export,for=90s,max=20", Terms("export", window=timedelta(seconds=90), most=20)),
        (
            "digest,at=0 7,19 * * 1,3,timezone=Europe/Berlin",
            Terms("digest", at="0 7,19 * * 1,3", timezone="Europe/Berlin"),
        ),
    ],
)
def test_the_command_reads_terms(text: str, terms: Terms):
    assert Terms.parse(text) == terms


@pytest.mark.parametrize(
    "text", ["", "export", "export,for=often", "export,max=ten,for=1h", "export,every=1h", "a,b,for=1h"]
)
def test_terms_that_the_command_cannot_read_are_refused(text: str):
    with pytest.raises(ValueError, match=r"."):
        Terms.parse(text)


def test_terms_of_the_client_are_those_of_the_api():
    job = NewJob("https://example.com/hook", tenant="acme", collect=Terms("export", window=HOUR, most=20))

    sent = job.as_json()

    assert sent["collect"] == {"key": "export", "for": 3600, "max": 20}
    assert body(sent["collect"]).submission(now=NOON).collect == Collect(key="export", window=HOUR, most=20)
    assert NewJob.from_json(sent) == job


@pytest.mark.parametrize(
    ("collect", "problem"),
    [
        ("export", "collect: is a JSON object"),
        ({"for": 60}, "collect.key: is required"),
        ({"key": "a"}, "collect: needs window"),
        ({"key": "a", "for": "often"}, "collect.for"),
        ({"key": "a", "for": 60, "max": "many"}, "collect.max: is a whole number"),
        ({"key": "a", "for": 60, "every": 60}, "collect.every: is not a field"),
    ],
)
def test_the_client_names_every_problem_of_terms(collect: Any, problem: str):
    with pytest.raises(InvalidJob) as refused:
        NewJob.from_json({"target": "handler:x", "tenant": "acme", "collect": collect})

    assert problem in str(refused.value)


def test_terms_that_are_none_are_refused_before_they_are_sent():
    with pytest.raises(InvalidJob, match="collect: is a Collect"):
        NewJob("handler:x", tenant="acme", collect={"key": "export"})  # type: ignore[arg-type]


def test_a_job_is_described_with_its_terms():
    assert collect_body(Collect(key="export", window=HOUR)) == {"key": "export", "for": "PT1H"}
    assert collect_body(Collect(key="d", at="0 7 * * *", timezone="Europe/Berlin", most=7)) == {
        "key": "d",
        "max": 7,
        "at": "0 7 * * *",
        "timezone": "Europe/Berlin",
    }


@pytest.mark.parametrize("key", [None, "order-7"])
def test_a_job_that_waits_in_its_collection_is_said_to_and_until_when(key: str | None):
    world = World()
    accepted = world.submit(a_submission(collect=Collect(key="export", window=HOUR), idempotency_key=key))
    pass_time(world, until=NOON + MINUTE)

    found, why = world.explainer().explain(parse_job_id(accepted.job_id))

    assert (why.reason, why.at, found.state) == (Reason.COLLECTED, NOON + HOUR, "scheduled")
    assert "2027-03-01T13:00:00.000Z" in why.detail

    world.plans.plans["acme"] = TenantPlan(status=TenantStatus.PAUSED)
    assert world.explainer().explain(parse_job_id(accepted.job_id))[1].reason is Reason.TENANT_PAUSED
