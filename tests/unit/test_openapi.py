import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from functions.api.answers import UNTRACKED, accepted_body, found_body
from functions.api.find import Found
from functions.api.openapi import document
from functions.api.problems import TABLE
from functions.api.requests import JobBody
from functions.api.submit import Accepted
from functions.domain.claims import LedgerRow
from functions.domain.job_id import job_id_of
from functions.domain.lifecycle import State
from functions.domain.wheel import Ring
from tests.builders import NOON, a_job

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


def test_every_field_of_a_job_is_described():
    described = document()["components"]["schemas"]["JobBody"]

    assert set(described["properties"]) == set(JobBody.model_fields)
    assert described["required"] == ["tenant", "target"]
    assert described["additionalProperties"] is False


def test_every_code_of_a_problem_is_listed():
    codes = document()["components"]["schemas"]["Problem"]["properties"]["code"]["enum"]

    assert {code for _, code, _ in TABLE.values()} < set(codes)


@pytest.mark.parametrize("state", [*(state for state in State if state is not State.ABSENT), None])
def test_what_is_told_of_a_job_is_what_is_described(state: State | None):
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
    told = found_body(Found(job_id=job_id_of(a_job()), state=state, due_at=NOON, row=row))

    assert_described(told, "Job")
    assert told["state"] == (state or UNTRACKED)
    assert told["result"] == {"a": 1}


@pytest.mark.parametrize("ring", [*Ring, None])
def test_what_is_told_of_a_submission_is_what_is_described(ring: Ring | None):
    accepted = Accepted(job_id="j1~x", tenant="acme", due_at=NOON, state=State.SCHEDULED, ring=ring)

    assert_described(accepted_body(accepted), "Accepted")


def test_what_is_not_known_of_a_job_is_left_out():
    told = found_body(Found(job_id=job_id_of(a_job()), state=State.SCHEDULED, due_at=NOON))

    assert set(told) == {"id", "tenant", "state", "due_at", "priority", "delivery"}


@pytest.mark.parametrize(
    ("kept", "told"), [("0", 0), ("false", False), ('""', ""), ("[]", []), ("null", None), ('{"cut', '{"cut')]
)
def test_a_result_is_told_whatever_it_is(kept: str, told: Any):
    row = LedgerRow(state=State.SUCCEEDED, result=kept)

    body = found_body(Found(job_id=job_id_of(a_job()), state=State.SUCCEEDED, due_at=NOON, row=row))

    assert body["result"] == told


def assert_described(told: dict[str, Any], model: str) -> None:
    schema = document()["components"]["schemas"][model]
    assert set(schema["required"]) <= set(told) <= set(schema["properties"])
    for name, value in told.items():
        allowed = schema["properties"][name].get("enum")
        assert allowed is None or value in allowed
    json.dumps(told, allow_nan=False)


def objects(node: Any) -> Iterator[dict[str, Any]]:
    """Every object of a document."""
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from objects(value)
    elif isinstance(node, list):
        for value in node:
            yield from objects(value)
