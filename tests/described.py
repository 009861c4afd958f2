"""The API's own description as schemathesis takes it: what may be asked for, with ids that exist among it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import schemathesis
from schemathesis import Case
from schemathesis.checks import CheckFunction
from schemathesis.config import SchemathesisConfig
from schemathesis.generation.hypothesis.builder import HypothesisTestConfig, HypothesisTestMode, create_test
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from functions.api.http.problems import CONTENT_TYPE

METHODS = ("get", "put", "post", "patch", "delete")

Known = Mapping[str, Sequence[Any]]
"""What exists: ids by the beginning of their path, `/v1/jobs`, values by the name of their field, `tenant`, and
whole bodies by their model, `JobBody`."""


def operations_of(document: dict[str, Any]) -> list[str]:
    """Every operation of a description: `GET /v1/jobs/{id}`."""
    return [
        f"{method.upper()} {path}" for path, item in document["paths"].items() for method in item if method in METHODS
    ]


def for_each_case(
    document: dict[str, Any],
    operation: str,
    known: Known,
    ask: Callable[[Case], None],
    *,
    examples: int,
    coverage: bool,
) -> None:
    """Ask requests of an operation, always the same: so many made up, and with coverage those at each boundary.

    schemathesis has a plugin for this, which gives all of its tests one name under pytest 9.2.
    """
    method, path = operation.split()
    config = SchemathesisConfig.from_dict(
        {
            "generation": {
                "max-examples": examples,
                "deterministic": True,
                "database": "none",
                "with-security-parameters": False,
            },
            "phases": {"coverage": {"unexpected-methods": [], "generate-duplicate-query-parameters": True}},
        }
    )
    schema = schemathesis.openapi.from_dict(_with_known(document, known), config=config)
    modes = [HypothesisTestMode.EXAMPLES, HypothesisTestMode.FUZZING]
    modes += [HypothesisTestMode.COVERAGE] if coverage else []
    settings = schema.config.get_hypothesis_settings()
    create_test(
        operation=schema[path][method],
        test_func=ask,
        config=HypothesisTestConfig(project=schema.config, modes=modes, settings=settings),
    )()


def is_answered_properly(ctx: Any, response: Any, case: Any) -> None:
    """A check: whatever is refused is refused as a problem that is the caller's."""
    status = response.status_code
    assert status < 500, response.text
    assert (status < 400) == (response.headers["content-type"] == ["application/json"])
    if status >= 400:
        assert response.headers["content-type"] == [CONTENT_TYPE]
        assert response.json()["status"] == status


CHECKS: list[CheckFunction] = [
    is_answered_properly,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
"""Not positive_data_acceptance: what a target, a zone or a cron expression may be is more than a schema can say."""


def _with_known(document: dict[str, Any], known: Known) -> dict[str, Any]:
    described = copy.deepcopy(document)
    # Who may ask is the business of the gateway.
    del described["security"], described["components"]["securitySchemes"]
    # A job or a schedule of a batch that is refused has a result of its own: the batch is taken.
    schemas = described["components"]["schemas"]
    for batch, name in (("BatchBody", "jobs"), ("ScheduleBatchBody", "schedules")):
        listed = schemas[batch]["properties"][name]
        listed["items"] = {"anyOf": [listed["items"], {"type": "object"}]}
    for path, item in described["paths"].items():
        ids = next((ids for beginning, ids in known.items() if path.startswith(f"{beginning}/")), ())
        places = [item, *(each for name, each in item.items() if name in METHODS)]
        for parameter in [parameter for place in places for parameter in place.get("parameters", [])]:
            values = known.get(parameter["name"], ids if parameter["in"] == "path" else ())
            parameter["schema"] = _or_known(parameter["schema"], values)
            if values:
                parameter["example"] = values[0]
        for content in [each for place in places for each in place.get("requestBody", {}).get("content", {}).values()]:
            bodies = known.get(content["schema"].get("$ref", "").rpartition("/")[2], ())
            content["examples"] = {str(number): {"value": body} for number, body in enumerate(bodies)}
    for model in described["components"]["schemas"].values():
        fields = model.get("properties", {})
        fields |= {name: _or_known(field, known.get(name, ())) for name, field in fields.items()}
    return described


def _or_known(schema: dict[str, Any], values: Sequence[str]) -> dict[str, Any]:
    return {"anyOf": [{"enum": list(values)}, schema]} if values else schema
