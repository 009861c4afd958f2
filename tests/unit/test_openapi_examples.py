"""The examples of the API's description are requests that it takes and answers that it gives."""

from datetime import timedelta
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from functions.api.http.openapi_parts import refusals_of
from functions.api.http.problem_table import TABLE
from functions.api.http.problems import CONTENT_TYPE
from functions.api.http.requests import Rules
from functions.api.http.route import Route
from functions.api.http.shapes import JobId
from functions.api.jobs.requests import patched as patched_job
from functions.api.openapi import document
from functions.api.route_table import ROUTES
from functions.api.schedules.bodies import read_schedule
from functions.api.schedules.patch import patched as patched_schedule
from functions.domain.jobs.job_id import parse_job_id
from testkit.builders import NOON, a_job, a_schedule

RULES = Rules(now=NOON, allow_plain_http=False, max_timeout=timedelta(seconds=50))


def of(route: Route) -> dict[str, Any]:
    return document()["paths"][route.path][route.method.lower()]


def name_of(route: Route) -> str:
    return route.name


@pytest.mark.parametrize("route", [route for route in ROUTES if any(route.answers.values())], ids=name_of)
def test_every_answer_has_an_example_that_fits_it(route: Route) -> None:
    for answer in of(route)["responses"].values():
        for content in answer["content"].values():
            check(content)


@pytest.mark.parametrize("route", [route for route in ROUTES if route.body is not None], ids=name_of)
def test_every_body_has_an_example_that_fits_it_and_is_taken(route: Route) -> None:
    (content,) = of(route)["requestBody"]["content"].values()
    check(content)

    match route.body:
        case "JobPatch":
            assert patched_job(a_job(), '"kept"', content["example"], RULES).payload == '"kept"'
        case "SchedulePatch":
            schedule = a_schedule()
            assert patched_schedule(schedule, content["example"], RULES) != schedule
        case str() | None:
            pytest.fail(f"nothing reads a {route.body}")
        case model if model.__name__ == "ScheduleBody":
            assert read_schedule(content["example"], RULES)
        case model if model.__name__ == "BatchBody":
            job = next(route.body for route in ROUTES if route.name == "submitJob")
            for each in content["example"]["jobs"]:
                assert read(job, each)
        case model:
            assert read(model, content["example"])


@pytest.mark.parametrize("route", ROUTES, ids=name_of)
def test_every_operation_lists_its_refusals_by_their_codes(route: Route) -> None:
    responses = of(route)["responses"]

    for error in refusals_of(route):
        status, code, title = TABLE[error]
        listed = responses[str(int(status))]
        assert f"{code}: {title}" in listed["description"]
        assert listed["content"][CONTENT_TYPE]["example"]["status"] == status
    assert responses["401"]["content"]["application/json"]["example"] == {"message": "Unauthorized"}
    assert {"401", "403"} <= set(responses)


def test_no_route_names_a_refusal_twice() -> None:
    for route in ROUTES:
        refusals = refusals_of(route)
        assert len(refusals) == len(set(refusals)), route.path


def test_the_example_of_a_job_is_the_id_of_one() -> None:
    (example,) = get_args(JobId)[1].examples

    assert str(parse_job_id(example)) == example


def read(model: Any, example: Any) -> BaseModel:
    return model.model_validate(example, context=RULES)


def check(content: dict[str, Any]) -> None:
    components = {"components": document()["components"]}
    Draft202012Validator({**content["schema"], **components}).validate(content["example"])
