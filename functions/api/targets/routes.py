"""The routes of breakers: each parses, calls one function, answers."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from aws_lambda_powertools.event_handler import Response

from functions.api.http.access import BODY, QUERY
from functions.api.http.answers import answer
from functions.api.http.reading import Request
from functions.api.http.route import Routes
from functions.api.targets.answers import breakers_body, reset_body
from functions.api.targets.requests import BreakersQuery, ResetBody
from functions.domain.audit import Action, ActionName
from functions.domain.targets.breaker import CLOSED
from functions.ports.recorder import AuditTrail, Journal
from functions.ports.targets import BreakerStore

routes = Routes("a breaker")


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerServices:
    """What the routes of breakers work with."""

    breaker_store: BreakerStore
    journal: Journal
    audit: AuditTrail


@routes.route("GET /v1/breakers", access=QUERY, query=BreakersQuery, answers={200: "Breakers"}, reads=5)
def list_breakers(services: BreakerServices, request: Request) -> Response[str]:
    """List the breakers of a tenant that are not closed."""
    query = request.query_as(BreakersQuery)
    found, has_more = services.breaker_store.page(query.tenant, after=query.after, limit=query.limit)
    return answer(HTTPStatus.OK, breakers_body(found, has_more=has_more))


@routes.route("POST /v1/breakers:reset", access=BODY, body=ResetBody, answers={200: "Reset"})
def reset_breaker(services: BreakerServices, request: Request) -> Response[str]:
    """Reset a breaker: close it regardless of the state of its destination."""
    body = request.body_as(ResetBody)
    was_closed = not services.breaker_store.reset(body.tenant, body.destination)
    if not was_closed:
        services.journal.count("breakers_closed")
        services.journal.event("breaker_reset", tenant=body.tenant, destination=body.destination)
    services.audit.note(
        Action(
            action=ActionName.BREAKER_RESET,
            caller=request.caller,
            tenant=body.tenant,
            subject=body.destination,
            before={"was_closed": was_closed},
            after={"state": CLOSED},
        )
    )
    return answer(HTTPStatus.OK, reset_body(body.tenant, body.destination, was_closed=was_closed))
