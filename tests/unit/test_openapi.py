import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from functions.api.dead_letters.requests import ListQuery
from functions.api.http.breaker_answers import breaker_body
from functions.api.http.problem_table import TABLE
from functions.api.jobs.answers import accepted_body, found_body
from functions.api.jobs.bodies import JobBody
from functions.api.jobs.find import JobInWheel
from functions.api.jobs.submit import Accepted
from functions.api.openapi import document
from functions.api.operations.requests import OperationBody, OperationsQuery
from functions.api.schedules.answers import backfill_body, difference_body, fires_body, schedule_body
from functions.api.schedules.backfill import Backfill
from functions.api.schedules.bodies import RULES, ScheduleBody
from functions.api.schedules.requests import ChangeQuery, PageQuery, PreviewQuery, TenantQuery
from functions.api.schedules.standing import Difference, PutKind, Run, Standing
from functions.api.targets.requests import BreakersQuery
from functions.api.tenants.requests import TenantsQuery
from functions.domain.jobs.claims import ABSENT_IS_OVER, LedgerRow
from functions.domain.jobs.job import TENANT, Delivery, Payload
from functions.domain.jobs.job_id import job_id_of
from functions.domain.lifecycle import UNTRACKED, State
from functions.domain.schedules.kept_runs import KeptRun
from functions.domain.schedules.preview import preview
from functions.domain.schedules.schedule import Fire
from functions.domain.schedules.state import SkipReason
from functions.domain.wheel import Ring
from testkit.builders import (
    NOON,
    a_breaker,
    a_job,
    a_schedule,
    a_state,
    a_stored_schedule,
    a_template,
    an_occurrence_timer,
)

METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}


def test_it_is_an_openapi_3_1_document_with_its_fixed_fields():
    description = document()

    assert re.fullmatch(r"3\.1\.\d+", description["openapi"])
    assert set(description) <= {"openapi", "info", "servers", "paths", "components", "security", "tags"}
    assert {"title", "version"} <= set(description["info"])


def test_it_is_json():
    assert json.loads(json.dumps(document(), allow_nan=False)) == document()


def test_every_reference_resolves():
    references = [node["$ref"] for node in objects(document()) if "$ref" in node]

    assert references
    for reference in references:
        node: Any = document()
        for part in reference.removeprefix("#/").split("/"):
            node = node[part.replace("~1", "/").replace("~0", "~")]
        assert isinstance(node, dict)


def test_every_schema_is_referred_to():
    references = {node["$ref"].rsplit("/", 1)[-1] for node in objects(document()) if "$ref" in node}

    assert references == set(document()["components"]["schemas"])


def test_every_operation_has_a_name_of_its_own_a_summary_and_answers():
    operations = [
        operation for item in document()["paths"].values() for method, operation in item.items() if method in METHODS
    ]

    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names))
    for operation in operations:
        assert operation["summary"]
        for status, answer in operation["responses"].items():
            assert status == "default" or re.fullmatch(r"[1-5]\d\d", status)
            assert answer["description"]


def test_every_variable_of_a_path_is_a_required_parameter():
    for path, item in document()["paths"].items():
        declared = {parameter["name"] for parameter in item.get("parameters", []) if parameter["in"] == "path"}

        assert declared == set(re.findall(r"{(\w+)}", path))
        assert all(parameter["required"] for parameter in item.get("parameters", []) if parameter["in"] == "path")


def test_every_security_requirement_is_defined():
    schemes = document()["components"]["securitySchemes"]

    assert {name for requirement in document()["security"] for name in requirement} == set(schemes)


@pytest.mark.parametrize(
    ("model", "required"),
    [(JobBody, ["target", "tenant"]), (ScheduleBody, ["job"]), (OperationBody, ["tenant", "action"])],
    ids=["a job", "a schedule", "an operation"],
)
def test_every_field_is_described(model: type[BaseModel], required: list[str]):
    described = document()["components"]["schemas"][model.__name__]

    assert set(described["properties"]) == set(model.model_fields)
    assert described["required"] == required
    assert described["additionalProperties"] is False


def test_a_schedule_has_one_rule():
    rules = document()["components"]["schemas"]["ScheduleBody"]["oneOf"]

    assert [rule["required"] for rule in rules] == [[rule] for rule in RULES]


def test_a_schedule_is_reported_with_every_field_of_its_definition():
    described = document()["components"]["schemas"]["Schedule"]["properties"]

    assert set(ScheduleBody.model_fields) < set(described)


def test_an_interval_may_be_described_by_a_plain_duration():
    described = document()["components"]["schemas"]["ScheduleBody"]["properties"]["every"]

    assert {"$ref": "#/components/schemas/EveryBody"} in described["anyOf"]
    assert len(described["anyOf"]) == 3


@pytest.mark.parametrize(
    ("path", "method", "model"),
    [
        ("/v1/schedules", "get", PageQuery),
        ("/v1/schedules/{id}", "put", ChangeQuery),
        ("/v1/schedules/{id}", "patch", ChangeQuery),
        ("/v1/schedules/{id}", "get", TenantQuery),
        ("/v1/schedules/{id}", "delete", TenantQuery),
        ("/v1/schedules/{id}:preview", "get", PreviewQuery),
        ("/v1/schedules/{id}:stats", "get", TenantQuery),
        ("/v1/schedules/{id}:pause", "post", TenantQuery),
        ("/v1/schedules/{id}:resume", "post", TenantQuery),
        ("/v1/schedules/{id}:trigger", "post", TenantQuery),
        ("/v1/schedules/{id}:backfill", "post", TenantQuery),
        ("/v1/dead-letters", "get", ListQuery),
        ("/v1/breakers", "get", BreakersQuery),
        ("/v1/operations", "get", OperationsQuery),
        ("/v1/tenants", "get", TenantsQuery),
    ],
)
def test_every_parameter_of_a_query_is_described(path: str, method: str, model: type[BaseModel]):
    parameters = document()["paths"][path][method]["parameters"]
    described = [parameter for parameter in parameters if parameter["in"] == "query"]

    assert [parameter["name"] for parameter in described] == list(model.model_fields)
    required = [parameter["name"] for parameter in described if parameter["required"]]
    assert required == (["tenant"] if "tenant" in model.model_fields else [])


def test_what_starts_jobs_or_has_a_condition_takes_an_idempotency_key():
    takers = {
        path
        for path, item in document()["paths"].items()
        for method in item.keys() - {"parameters"}
        for parameter in item[method].get("parameters", [])
        if parameter["name"] == "Idempotency-Key"
    }

    assert takers == {
        "/v1/jobs",
        "/v1/schedules/{id}",
        "/v1/schedules/{id}:pause",
        "/v1/schedules/{id}:resume",
        "/v1/schedules/{id}:trigger",
        "/v1/schedules/{id}:backfill",
        "/v1/operations",
    }


def test_every_code_of_a_problem_is_listed():
    codes = document()["components"]["schemas"]["Problem"]["properties"]["code"]["enum"]

    assert {code for _, code, _ in TABLE.values()} < set(codes)


@pytest.mark.parametrize("state", [*(state for state in State if state is not State.ABSENT), None])
def test_what_learns_of_a_job_is_what_is_described(state: State | None):
    row = LedgerRow(
        state=state or State.SCHEDULED,
        attempt=2,
        fence=3,
        rescue_count=1,
        cancel_requested=True,
        result='{"a":1}',
        error="HTTP 500",
        updated_at=NOON,
    )
    answer = found_body(JobInWheel(job_id=job_id_of(a_job()), state=state, due_at=NOON, row=row))

    assert_described(answer, "Job")
    assert answer["state"] == (state or UNTRACKED)
    assert answer["result"] == {"a": 1}


@pytest.mark.parametrize("ring", [*Ring, None])
def test_what_learns_of_a_submission_is_what_is_described(ring: Ring | None):
    accepted = Accepted(job_id="j1~x", tenant="acme", due_at=NOON, state=State.SCHEDULED, ring=ring)

    assert_described(accepted_body(accepted), "Accepted")


def test_what_learns_of_a_breaker_is_what_is_described():
    assert_described(breaker_body(a_breaker()), "Breaker")


def test_what_learns_of_a_schedule_is_what_is_described():
    row = LedgerRow(state=State.FAILED, attempt=2, error="HTTP 500", updated_at=NOON, job_id="j1~x")
    schedule = a_schedule(job=a_template(payload=Payload(pointer="schedules/acme/nightly/1")))
    job_id = job_id_of(an_occurrence_timer(schedule).job)
    standing = Standing(
        stored=a_stored_schedule(schedule=schedule),
        state=a_state(
            recent=(NOON,), fire_count=1, skips={SkipReason.OVERLAP: 2}, last_skip=(SkipReason.OVERLAP, NOON)
        ),
        next_fire=Fire(NOON, NOON),
        fire_count=1,
        runs=[Run(fire_at=NOON, job_id="j1~x", row=row), Run(fire_at=NOON, job_id="j1~y", row=None)],
        kept_runs=[
            KeptRun(job_id=job_id, has_succeeded=has_succeeded, attempt=2, ended_at=NOON, error=error)
            for has_succeeded, error in ((True, ""), (False, "http_500"))
        ],
    )

    answer = schedule_body(standing, now=NOON, stored_payload='{"a":1}')

    assert_described(answer, "Schedule")
    for name, state in (("last_successes", "succeeded"), ("last_failures", "failed")):
        assert_described(answer[name][0], "Run")
        assert [run["state"] for run in answer[name]] == [state]
    assert [run["state"] for run in answer["runs"]] == ["failed", "scheduled"]
    for run in answer["runs"]:
        assert_described(run, "Run")
    assert (answer["last_fire"], answer["last_outcome"]) == ("2027-03-01T12:00:00.000Z", "failed")
    assert answer["skips"] == {"overlap": 2}
    assert answer["job"]["payload"] == {"a": 1}


def test_what_there_is_not_of_a_schedule_is_left_out():
    standing = Standing(stored=a_stored_schedule(), state=a_state(), next_fire=None, fire_count=0)

    answer = schedule_body(standing, now=NOON)

    assert_described(answer, "Schedule")
    assert not {"next_fire", "last_fire", "last_outcome", "last_skip"} & set(answer)


@pytest.mark.parametrize(
    ("delivery", "age", "state"),
    [
        (Delivery.EXACTLY_ONCE, timedelta(0), "scheduled"),
        (Delivery.EXACTLY_ONCE, ABSENT_IS_OVER, UNTRACKED),
        (Delivery.AT_LEAST_ONCE, timedelta(0), UNTRACKED),
    ],
)
def test_a_run_without_a_row_is_scheduled_or_untracked(delivery: Delivery, age: timedelta, state: str):
    stored = a_stored_schedule(schedule=a_schedule(job=a_template(delivery=delivery)))
    run = Run(fire_at=NOON, job_id="j1~x", row=None)

    answer = schedule_body(
        Standing(stored=stored, state=a_state(), next_fire=None, fire_count=0, runs=[run]), now=NOON + age
    )

    assert answer["runs"][0]["state"] == state


def test_what_learns_of_a_preview_is_what_is_described():
    page = preview(a_schedule(spread=timedelta(minutes=5)), after=NOON, count=1)
    answer = difference_body(Difference(kind=PutKind.UPDATED, before=page.previews, after=page.previews))

    assert_described(fires_body(page), "Fires")
    assert_described(answer, "Difference")
    assert_described(answer["before"][0], "Fire")
    assert answer["before"][0]["marks"][0]["by"] == "spread"


@pytest.mark.parametrize("instant", [NOON, None])
def test_what_learns_of_a_backfill_is_what_is_described(instant: datetime | None):
    backfill = Backfill(
        backfill_id="x", count=1, first=instant, last=instant, ends_at=instant, job_ids=["j1~x"] if instant else []
    )

    assert_described(backfill_body(backfill), "Backfill")


def test_what_is_not_known_of_a_job_is_left_out():
    answer = found_body(JobInWheel(job_id=job_id_of(a_job()), state=State.SCHEDULED, due_at=NOON))

    assert set(answer) == {"id", "tenant", "state", "due_at", "priority", "delivery"}


@pytest.mark.parametrize(
    ("kept", "result"), [("0", 0), ("false", False), ('""', ""), ("[]", []), ("null", None), ('{"cut', '{"cut')]
)
def test_a_result_is_reported_whatever_it_is(kept: str, result: Any):
    row = LedgerRow(state=State.SUCCEEDED, result=kept)

    body = found_body(JobInWheel(job_id=job_id_of(a_job()), state=State.SUCCEEDED, due_at=NOON, row=row))

    assert body["result"] == result


@pytest.mark.parametrize(
    ("verb", "is_required"), [("pause", False), ("resume", False), ("trigger", False), ("backfill", True)]
)
def test_a_verb_that_needs_no_body_asks_for_none(verb: str, is_required: bool):
    body = document()["paths"][f"/v1/schedules/{{id}}:{verb}"]["post"]["requestBody"]

    assert body["required"] is is_required


def test_a_tenant_is_described_as_it_is_checked():
    (listing,) = [each for each in document()["paths"]["/v1/breakers"]["get"]["parameters"] if each["name"] == "tenant"]

    assert listing["schema"]["pattern"] == f"^{TENANT.pattern}$"


def assert_described(answer: Mapping[str, Any], model: str) -> None:
    schema = document()["components"]["schemas"][model]
    assert set(schema["required"]) <= set(answer) <= set(schema["properties"])
    for name, value in answer.items():
        allowed = schema["properties"][name].get("enum")
        assert allowed is None or value in allowed
    json.dumps(answer, allow_nan=False)


def objects(node: Any) -> Iterator[dict[str, Any]]:
    """Every object of a document."""
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from objects(value)
    elif isinstance(node, list):
        for value in node:
            yield from objects(value)


def test_the_earlier_name_of_a_remedy_is_deprecated_and_still_answered():
    explanation = document()["components"]["schemas"]["Explanation"]

    assert explanation["properties"]["would_change_it"]["deprecated"] is True
    assert {"remedy", "would_change_it"} <= set(explanation["required"])
