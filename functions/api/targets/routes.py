"""The routes of breakers: each parses, calls one function, answers."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from functions.api.http.answers import answer
from functions.api.http.reading import body_of, caller_of, query_of, read_as
from functions.api.targets.requests import BreakersQuery, ResetBody
from functions.domain.audit import Deed, Deeds
from functions.domain.instants import format_instant
from functions.domain.targets.breaker import CLOSED, Breaker
from functions.ports.recorder import Audit, Journal
from functions.ports.targets import BreakerStore
from functions.services.telemetry.audit_trail import UNAUDITED

CONTEXT = "breakers"
"""The name under which the routes find what they need in the resolver's context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerDesk:
    """What the routes need."""

    breakers: BreakerStore
    journal: Journal
    audit: Audit = UNAUDITED


router = APIGatewayHttpRouter()


@router.get("/v1/breakers")
def list_breakers() -> Response[str]:
    """Tell a tenant's breakers that are not closed, page by page."""
    query = read_as(BreakersQuery, query_of(router.current_event))
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
    body = read_as(ResetBody, body_of(router.current_event))
    was_closed = not _desk().breakers.reset(body.tenant, body.destination)
    if not was_closed:
        _desk().journal.count("breakers_closed")
        _desk().journal.event("breaker_reset", tenant=body.tenant, destination=body.destination)
    _desk().audit.note(
        Deed(
            action=Deeds.BREAKER_RESET,
            caller=caller_of(router.current_event),
            tenant=body.tenant,
            subject=body.destination,
            before={"was_closed": was_closed},
            after={"state": CLOSED},
        )
    )
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
