"""The routes of the stage: how it does, and what its API is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from aws_lambda_powertools.event_handler import Response

from functions.api.http.access import OPEN, OPERATORS
from functions.api.http.answers import answer
from functions.api.http.reading import Request
from functions.api.http.route import Routes
from functions.api.stage.answers import health_body
from functions.api.stage.health import HealthReader

routes = Routes("a stage")


@dataclass(frozen=True, slots=True, kw_only=True)
class StageServices:
    """What the routes of the stage work with. document: the description of the API, as it is served."""

    health: HealthReader
    document: Callable[[], str]


@routes.route("GET /v1/health", access=OPERATORS, answers={200: "Health"}, reads=10)
def get_health(services: StageServices, _: Request) -> Response[str]:
    """Get the health of the stage."""
    return answer(HTTPStatus.OK, health_body(services.health.read()))


@routes.route("GET /openapi.json", access=OPEN, answers={200: ""}, reads=5)
def describe(services: StageServices, _: Request) -> Response[str]:
    """Get the OpenAPI document of this API."""
    return Response(status_code=HTTPStatus.OK, content_type="application/json", body=services.document())
