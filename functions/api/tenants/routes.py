"""The routes of tenants: each parses, calls one function, answers."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from aws_lambda_powertools.event_handler import Response

from functions.api.http.access import OPERATORS, TENANT_ID
from functions.api.http.answers import answer
from functions.api.http.reading import Request
from functions.api.http.route import Declaration, Routes
from functions.api.tenants import requests
from functions.api.tenants.answers import status_body, tenant_body, tenants_body, usage_body, webhook_keys_body
from functions.api.tenants.manager import TenantManager
from functions.domain.errors import InvalidJob, TenantBusy, TenantChanged, TenantClosed, TenantDeleted
from functions.domain.jobs.job import check_tenant
from functions.domain.targets.webhooks import keys_of
from functions.domain.tenants.plan import TenantStatus
from functions.ports.targets import WebhookKeys

routes = Routes("a tenant")


_OF_CHANGES = (InvalidJob, TenantDeleted, TenantChanged, TenantBusy)
_TURN: Declaration = {
    "access": OPERATORS,
    "body": requests.TurnBody,
    "is_body_required": False,
    "refuses": (*_OF_CHANGES, TenantClosed),
    "answers": {200: "Tenant"},
}
_TURN_OF_STAGE: Declaration = {**_TURN, "refuses": (TenantChanged, TenantBusy), "answers": {200: "StageStatus"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantServices:
    """What the routes of tenants work with."""

    manager: TenantManager
    webhook_keys: WebhookKeys


@routes.route("GET /v1/tenants", access=OPERATORS, query=requests.TenantsQuery, answers={200: "Tenants"}, reads=5)
def list_tenants(services: TenantServices, request: Request) -> Response[str]:
    """List the tenants that have settings of their own."""
    query = request.query_as(requests.TenantsQuery)
    listed, after = services.manager.page(after=query.after, limit=query.limit)
    return answer(HTTPStatus.OK, tenants_body(listed, after=after))


@routes.route("GET /v1/tenants/{id}", access=TENANT_ID, refuses=(InvalidJob,), answers={200: "Tenant"})
def get_tenant(services: TenantServices, _: Request, tenant: str) -> Response[str]:
    """Get a tenant."""
    return answer(HTTPStatus.OK, tenant_body(services.manager.get(tenant)))


@routes.route(
    "PUT /v1/tenants/{id}", access=OPERATORS, body=requests.TenantBody, refuses=_OF_CHANGES, answers={200: "Tenant"}
)
def put_tenant(services: TenantServices, request: Request, tenant: str) -> Response[str]:
    """Create or replace the settings of a tenant. Its status is kept."""
    body = request.body_as(requests.TenantBody)
    in_effect = services.manager.put(tenant, body.values(), seen=body.version, caller=request.caller)
    return answer(HTTPStatus.OK, tenant_body(in_effect))


@routes.route(
    "PATCH /v1/tenants/{id}",
    access=OPERATORS,
    body=requests.TenantPatchBody,
    refuses=_OF_CHANGES,
    answers={200: "Tenant"},
)
def patch_tenant(services: TenantServices, request: Request, tenant: str) -> Response[str]:
    """Update the settings of a tenant."""
    body = request.body_as(requests.TenantPatchBody)
    in_effect = services.manager.patch(tenant, body.patch(), seen=body.version, caller=request.caller)
    return answer(HTTPStatus.OK, tenant_body(in_effect))


@routes.route(
    "DELETE /v1/tenants/{id}",
    access=OPERATORS,
    query=requests.DeletionQuery,
    refuses=(InvalidJob, TenantDeleted, TenantBusy),
    answers={202: "Tenant"},
)
def delete_tenant(services: TenantServices, request: Request, tenant: str) -> Response[str]:
    """Start the deletion of a tenant and all its data. From `in_effect_by` on, nothing is accepted for it."""
    query = request.query_as(requests.DeletionQuery)
    in_effect = services.manager.delete(
        tenant, confirm=query.confirm, keeps_ledger=query.ledger == "ttl", caller=request.caller
    )
    return answer(HTTPStatus.ACCEPTED, tenant_body(in_effect))


@routes.route("POST /v1/tenants/{id}:pause", **_TURN)
def pause_tenant(services: TenantServices, request: Request, tenant: str) -> Response[str]:
    """Pause a tenant: promote and call none of its jobs."""
    return _turn(services, request, tenant, TenantStatus.PAUSED)


@routes.route("POST /v1/tenants/{id}:resume", **_TURN)
def resume_tenant(services: TenantServices, request: Request, tenant: str) -> Response[str]:
    """Resume a paused or draining tenant."""
    return _turn(services, request, tenant, TenantStatus.ACTIVE)


@routes.route("POST /v1/tenants/{id}:drain", **_TURN)
def drain_tenant(services: TenantServices, request: Request, tenant: str) -> Response[str]:
    """Drain a tenant: accept nothing new for it, and run its existing jobs."""
    return _turn(services, request, tenant, TenantStatus.DRAINING)


@routes.route(
    "GET /v1/tenants/{id}/webhook-keys", access=TENANT_ID, refuses=(InvalidJob,), answers={200: "WebhookKeys"}
)
def get_webhook_keys(services: TenantServices, _: Request, tenant: str) -> Response[str]:
    """Get the webhook signing keys of a tenant."""
    response = answer(HTTPStatus.OK, webhook_keys_body(keys_of(check_tenant(tenant), services.webhook_keys.read())))
    response.headers["Cache-Control"] = "no-store"
    return response


@routes.route(
    "GET /v1/tenants/{id}/usage",
    access=TENANT_ID,
    query=requests.UsageQuery,
    refuses=(InvalidJob,),
    answers={200: "Usage"},
    reads=5,
)
def get_usage(services: TenantServices, request: Request, tenant: str) -> Response[str]:
    """Get the approximate usage of a tenant for each UTC day."""
    query = request.query_as(requests.UsageQuery)
    return answer(HTTPStatus.OK, usage_body(services.manager.used(tenant, first=query.first, last=query.last)))


@routes.route("POST /v1/pause", **_TURN_OF_STAGE)
def pause_stage(services: TenantServices, request: Request) -> Response[str]:
    """Pause the stage: promote and call no jobs of any tenant."""
    return _turn_stage(services, request, TenantStatus.PAUSED)


@routes.route("POST /v1/resume", **_TURN_OF_STAGE)
def resume_stage(services: TenantServices, request: Request) -> Response[str]:
    """Resume the stage. Tenants that are paused themselves stay paused."""
    return _turn_stage(services, request, TenantStatus.ACTIVE)


def _turn(services: TenantServices, request: Request, tenant: str, status: TenantStatus) -> Response[str]:
    body = request.optional_body_as(requests.TurnBody)
    in_effect = services.manager.turn(tenant, status, note=body.note, seen=body.version, caller=request.caller)
    return answer(HTTPStatus.OK, tenant_body(in_effect))


def _turn_stage(services: TenantServices, request: Request, status: TenantStatus) -> Response[str]:
    body = request.optional_body_as(requests.TurnBody)
    row = services.manager.turn_stage(status, note=body.note, seen=body.version, caller=request.caller)
    return answer(HTTPStatus.OK, status_body(row))
