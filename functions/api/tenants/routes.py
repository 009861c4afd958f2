"""The routes of tenants: each parses, calls one function, answers. A verb is what follows the colon in a path."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from functions.api.http.answers import answer, problem_answer
from functions.api.http.problems import problem
from functions.api.http.reading import body_of, caller_of, query_of, read_as
from functions.api.tenants.answers import status_body, tenant_body, tenants_body, usage_body
from functions.api.tenants.manager import TenantManager
from functions.api.tenants.requests import (
    DeletionQuery,
    TenantBody,
    TenantPatchBody,
    TenantsQuery,
    TurnBody,
    UsageQuery,
)
from functions.domain.tenants.plan import TenantStatus

CONTEXT = "tenants"
"""The name under which the routes find what they need in the resolver's context."""

VERBS = {"pause": TenantStatus.PAUSED, "resume": TenantStatus.ACTIVE, "drain": TenantStatus.DRAINING}

router = APIGatewayHttpRouter()


@router.get("/v1/tenants")
def list_tenants() -> Response[str]:
    """Tell the tenants that have a row, page by page."""
    query = read_as(TenantsQuery, query_of(router.current_event))
    standings, after = _manager().page(after=query.after, limit=query.limit)
    return answer(HTTPStatus.OK, tenants_body(standings, after=after))


@router.get("/v1/tenants/<tenant>")
def get_tenant(tenant: str) -> Response[str]:
    """Tell a tenant as it stands."""
    return answer(HTTPStatus.OK, tenant_body(_manager().get(unquote(tenant))))


@router.get("/v1/tenants/<tenant>/usage")
def get_usage(tenant: str) -> Response[str]:
    """Tell what a tenant has used, day by day."""
    query = read_as(UsageQuery, query_of(router.current_event))
    standing = _manager().used(unquote(tenant), first=query.first, last=query.last)
    return answer(HTTPStatus.OK, usage_body(standing))


@router.put("/v1/tenants/<tenant>")
def put_tenant(tenant: str) -> Response[str]:
    """Replace all of a tenant but its status."""
    body = read_as(TenantBody, body_of(router.current_event))
    standing = _manager().put(unquote(tenant), body.values(), seen=body.version, caller=_caller())
    return answer(HTTPStatus.OK, tenant_body(standing))


@router.patch("/v1/tenants/<tenant>")
def patch_tenant(tenant: str) -> Response[str]:
    """Change parts of a tenant."""
    body = read_as(TenantPatchBody, body_of(router.current_event))
    standing = _manager().patch(unquote(tenant), body.patch(), seen=body.version, caller=_caller())
    return answer(HTTPStatus.OK, tenant_body(standing))


@router.delete("/v1/tenants/<tenant>")
def delete_tenant(tenant: str) -> Response[str]:
    """Begin to delete a tenant with all that there is of it."""
    query = read_as(DeletionQuery, query_of(router.current_event))
    standing = _manager().delete(
        unquote(tenant), confirm=query.confirm, keeps_ledger=query.ledger == "ttl", caller=_caller()
    )
    return answer(HTTPStatus.ACCEPTED, tenant_body(standing))


@router.post("/v1/tenants/<path>")
def act_on_tenant(path: str) -> Response[str]:
    """Do what the verb of the path says: pause, resume or drain a tenant."""
    tenant, _, verb = unquote(path).rpartition(":")
    if verb not in VERBS:
        detail = f"{verb[:100]!r} is nothing that can be asked of a tenant: append one of :{', :'.join(VERBS)}"
        no_route = problem(HTTPStatus.NOT_FOUND, "no_such_route", "There is no such route", detail=detail)
        return problem_answer(no_route)
    body = _turn_body()
    standing = _manager().turn(tenant, VERBS[verb], note=body.note, seen=body.version, caller=_caller())
    return answer(HTTPStatus.OK, tenant_body(standing))


@router.post("/v1/pause")
def pause_stage() -> Response[str]:
    """Stop all tenants' jobs from being promoted and called."""
    return _turn_stage(TenantStatus.PAUSED)


@router.post("/v1/resume")
def resume_stage() -> Response[str]:
    """End the pause of the stage."""
    return _turn_stage(TenantStatus.ACTIVE)


def _turn_stage(status: TenantStatus) -> Response[str]:
    body = _turn_body()
    row = _manager().turn_stage(status, note=body.note, seen=body.version, caller=_caller())
    return answer(HTTPStatus.OK, status_body(row))


def _turn_body() -> TurnBody:
    raw: Any = body_of(router.current_event) if router.current_event.body else {}
    return read_as(TurnBody, raw)


def _caller() -> str:
    return caller_of(router.current_event)


def _manager() -> TenantManager:
    return router.context[CONTEXT]
