"""The route of the stage's health."""

from __future__ import annotations

from http import HTTPStatus

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from functions.api.http.answers import answer
from functions.api.stage.answers import health_body
from functions.api.stage.health import HealthReader

CONTEXT = "health"
"""The name under which the route finds what it needs in the resolver's context."""

router = APIGatewayHttpRouter()


@router.get("/v1/health")
def get_health() -> Response[str]:
    """Tell how the stage does."""
    reader: HealthReader = router.context[CONTEXT]
    return answer(HTTPStatus.OK, health_body(reader.read()))
