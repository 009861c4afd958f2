"""The routes of breakers: each parses, calls one function, answers."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter
from pydantic import BaseModel, ValidationError

from functions.api.answers import answer
from functions.api.breaker_requests import BreakersQuery, ResetBody
from functions.api.problems import Misshapen
from functions.api.requests import parse_body
from functions.domain.breaker import CLOSED, Breaker
from functions.domain.errors import InvalidInput
from functions.domain.instants import format_instant
from functions.ports import BreakerStore, Journal

CONTEXT = "breakers"
"""The name under which the routes find what they need in the resolver's context."""

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerDesk:
    """What the routes need."""

    breakers: BreakerStore
    journal: Journal


router = APIGatewayHttpRouter()


@router.get("/v1/breakers")
def list_breakers() -> Response[str]:
    """Tell a tenant's breakers that are not closed, page by page."""
    query = _read(BreakersQuery, dict(router.current_event.query_string_parameters or {}))
    found, has_more = _desk().breakers.page(query.tenant, after=query.after, limit=query.limit)
    return answer(
        HTTPStatus.OK,
        {
            "breakers": [breaker_body(breaker) for breaker in found],
            "next": found[-1].destination if has_more and found else None,
        },
    )


@router.post("/v1/breakers:reset")
def reset_breaker() -> Response[str]:
    """Close a breaker, whatever its destination does."""
    body = _read(ResetBody, _body())
    was_closed = not _desk().breakers.reset(body.tenant, body.destination)
    if not was_closed:
        _desk().journal.count("breakers_closed")
        _desk().journal.event("breaker_reset", tenant=body.tenant, destination=body.destination)
    return answer(
        HTTPStatus.OK,
        {"tenant": body.tenant, "destination": body.destination, "state": CLOSED, "was_closed": was_closed},
    )


def breaker_body(breaker: Breaker) -> dict[str, Any]:
    """A breaker as it stands."""
    return {
        "tenant": breaker.tenant,
        "destination": breaker.destination,
        "state": breaker.state.value,
        "opened_at": format_instant(breaker.opened_at),
        "until": format_instant(breaker.until),
        "error_class": breaker.error_class,
    }


def _desk() -> BreakerDesk:
    return router.context[CONTEXT]


def _body() -> Any:
    return parse_body(router.current_event.body, is_base64=bool(router.current_event.is_base64_encoded))


def _read(model: type[Model], raw: Any) -> Model:
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise Misshapen(InvalidInput, error) from None
