"""How requests find the function of a declared route, and what they bring it."""

import json
from http import HTTPStatus
from typing import Any

import pytest
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from functions.api.http.access import OPEN
from functions.api.http.answers import answer
from functions.api.http.reading import Request
from functions.api.http.route import Route, Routes
from functions.api.http.router import serve
from functions.domain.jobs.job_id import job_id_of
from testkit.builders import a_job
from testkit.events import Context, a_request

routes = Routes("a parcel")


def answers(services: str, request: Request, *arguments: str) -> Response[str]:
    return answer(HTTPStatus.OK, {"services": services, "arguments": arguments, "names": list(request.arguments)})


for asked in (
    "GET /v1/parcels",
    "GET /v1/parcels/{id}",
    "GET /v1/parcels/{id}:weigh",
    "POST /v1/parcels/{id}:send",
    "POST /v1/parcels/{id}:send-back",
    "POST /v1/parcels:send",
    "POST /v1/parcels/{id}/labels/{label}:print",
):

    @routes.route(asked, access=OPEN, answers={200: ""})
    def answer_as(services: str, request: Request, *arguments: str, route: str = asked) -> Response[str]:
        found = answers(services, request, *arguments)
        return answer(HTTPStatus.OK, {"route": route, **json.loads(found.body or "")})


def call(method: str, path: str, checks: Any = ()) -> dict[str, Any]:
    app = APIGatewayHttpResolver()
    serve(app, routes, "scales", checks=checks)
    context: Any = Context()
    return json.loads(app.resolve(a_request(method, path), context)["body"])


@pytest.mark.parametrize(
    ("request_", "route", "arguments"),
    [
        ("GET /v1/parcels", "GET /v1/parcels", []),
        ("GET /v1/parcels/p1", "GET /v1/parcels/{id}", ["p1"]),
        ("GET /v1/parcels/p1:weigh", "GET /v1/parcels/{id}:weigh", ["p1"]),
        ("GET /v1/parcels/p1%3Aweigh", "GET /v1/parcels/{id}:weigh", ["p1"]),
        ("GET /v1/parcels/p1%3aweigh", "GET /v1/parcels/{id}:weigh", ["p1"]),
        ("GET /v1/parcels/weigh", "GET /v1/parcels/{id}", ["weigh"]),
        ("POST /v1/parcels:send", "POST /v1/parcels:send", []),
        ("POST /v1/parcels/p1:send", "POST /v1/parcels/{id}:send", ["p1"]),
        ("POST /v1/parcels/p1:send-back", "POST /v1/parcels/{id}:send-back", ["p1"]),
        ("POST /v1/parcels/a:b:send", "POST /v1/parcels/{id}:send", ["a:b"]),
        ("POST /v1/parcels/a%3Ab:send", "POST /v1/parcels/{id}:send", ["a:b"]),
        ("POST /v1/parcels/send:send:send", "POST /v1/parcels/{id}:send", ["send:send"]),
        ("POST /v1/parcels/j1%7Eacme%7E1:send", "POST /v1/parcels/{id}:send", ["j1~acme~1"]),
        ("POST /v1/parcels/100%25%20é:send", "POST /v1/parcels/{id}:send", ["100% é"]),
        ("POST /v1/parcels/a%253Asend:send", "POST /v1/parcels/{id}:send", ["a%3Asend"]),
        ("GET /v1/parcels/a%2Fb", "GET /v1/parcels/{id}", ["a/b"]),
        (
            "POST /v1/parcels/p1/labels/l:2:print",
            "POST /v1/parcels/{id}/labels/{label}:print",
            ["p1", "l:2"],
        ),
    ],
)
def test_a_request_reaches_the_route_of_its_path_with_the_ids_as_they_were_given(
    request_: str, route: str, arguments: list[str]
):
    found = call(*request_.split(" "))

    assert (found["route"], found["arguments"], found["services"]) == (route, arguments, "scales")


@pytest.mark.parametrize(
    ("request_", "verb", "known"),
    [
        ("POST /v1/parcels/p1:burn", "burn", "one of :send, :send-back"),
        ("POST /v1/parcels/p1%3Aburn", "burn", "one of :send, :send-back"),
        ("POST /v1/parcels/p1", "p1", "one of :send, :send-back"),
        ("POST /v1/parcels/p1:sending", "sending", "one of :send, :send-back"),
        ("GET /v1/parcels/p1:send", "send", ":weigh to its id"),
        ("POST /v1/parcels/p1/labels/l1:burn", "burn", ":print to its id"),
        (f"POST /v1/parcels/p1:{'x' * 200}", "x" * 100, "one of :send, :send-back"),
    ],
)
def test_what_cannot_be_asked_of_a_resource_is_no_route_and_what_can_be_is_named(request_: str, verb: str, known: str):
    problem = call(*request_.split(" "))

    assert (problem["status"], problem["code"], problem["title"]) == (404, "no_such_route", "There is no such route")
    assert problem["detail"] == f"'{verb}' is nothing that can be asked of a parcel: append {known}"


@pytest.mark.parametrize("request_", ["DELETE /v1/parcels/p1:burn", "GET /v1/parcel", "GET /v1/parcels/a/b", "GET /"])
def test_a_path_without_verbs_is_for_the_resolver_to_refuse(request_: str):
    assert call(*request_.split(" "))["statusCode"] == 404


def test_every_check_is_made_before_the_function_is_called_and_of_an_unknown_verb_too():
    seen: list[tuple[str, dict[str, str]]] = []

    def refuse(route: Route, request: Request) -> None:
        seen.append((route.path, dict(request.arguments)))
        raise PermissionError

    for path in ("/v1/parcels/p1:send", "/v1/parcels/p1:burn", "/v1/parcels/p1"):
        with pytest.raises(PermissionError):
            call("POST", path, checks=[refuse])

    assert seen == [
        ("/v1/parcels/{id}:send", {"id": "p1"}),
        ("/v1/parcels/{id}", {"id": "p1", "verb": "burn"}),
        ("/v1/parcels/{id}", {"verb": "p1"}),
    ]


def test_a_point_in_a_path_is_a_point():
    dotted = Routes("a page")
    dotted.route("GET /page.json", access=OPEN, answers={200: ""})(answers)
    app = APIGatewayHttpResolver()
    serve(app, dotted, "", checks=())
    context: Any = Context()

    assert [app.resolve(a_request("GET", path), context)["statusCode"] for path in ("/page.json", "/pagexjson")] == [
        200,
        404,
    ]


def test_an_operation_has_the_name_and_the_words_of_its_function():
    described = Routes("a job")

    @described.route("GET /v1/jobs/{id}", access=OPEN, answers={200: "Job"})
    def get_old_job(_services: None, _request: Request, _id: str) -> Response[str]:
        """Tell what is known of a job."""
        return answer(HTTPStatus.OK, {})

    (route,) = described.declared
    assert (route.name, route.summary) == ("getOldJob", "Tell what is known of a job.")


def test_the_id_of_a_job_is_whole_behind_the_router():
    job_id = str(job_id_of(a_job()))

    assert call("POST", f"/v1/parcels/{job_id.replace('~', '%7E')}:send")["arguments"] == [job_id]
