"""The routes of flows: each parses, calls one function, answers."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from aws_lambda_powertools.event_handler import Response

from functions.api.http.access import QUERY_OR_STAGE
from functions.api.http.answers import answer
from functions.api.http.reading import Request, read_as
from functions.api.http.route import Routes
from functions.api.targets import flow_answers as answers
from functions.api.targets.flow_requests import FlowLimitsBody, FlowPath, FlowQuery, FlowsQuery
from functions.domain.audit import Action, ActionName
from functions.domain.errors import FlowNotFound, FlowsExceeded, InvalidJob
from functions.domain.jobs.description import limits_body
from functions.domain.targets.flows import KEY, MAX_SET, FlowId, FlowLimits
from functions.ports.flows import FlowStore
from functions.ports.recorder import AuditTrail
from functions.services.far_ring.flow_reader import FlowReader

routes = Routes(
    "a flow",
    key={
        "schema": {"type": "string", "pattern": f"^{KEY.pattern}$"},
        "description": "The key by which jobs name the flow.",
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowServices:
    """What the routes of flows work with."""

    flows: FlowStore
    flow_reader: FlowReader
    audit: AuditTrail


@routes.route("GET /v1/flows", access=QUERY_OR_STAGE, query=FlowsQuery, answers={200: "Flows"}, reads=5)
def list_flows(services: FlowServices, request: Request) -> Response[str]:
    """List the flows of a tenant, or of the stage, whose limits were set."""
    query = request.query_as(FlowsQuery)
    found, has_more = services.flows.page(query.owner, after=query.after, limit=query.limit)
    return answer(HTTPStatus.OK, answers.flows_body(query.owner, found, has_more=has_more))


@routes.route(
    "GET /v1/flows/{key}",
    access=QUERY_OR_STAGE,
    query=FlowQuery,
    refuses=(FlowNotFound,),
    answers={200: "FlowFigures"},
    reads=20,
)
def get_flow(services: FlowServices, request: Request, key: str) -> Response[str]:
    """Get a flow: its limits, how many jobs wait for it, and when the next one may start."""
    flow = _flow(request, key)
    figures = services.flow_reader.figures(flow)
    if figures is None:
        raise FlowNotFound(flow.key, tenant=flow.tenant)
    return answer(HTTPStatus.OK, answers.figures_body(flow, figures))


@routes.route(
    "PUT /v1/flows/{key}",
    access=QUERY_OR_STAGE,
    query=FlowQuery,
    body=FlowLimitsBody,
    refuses=(InvalidJob, FlowsExceeded),
    answers={200: "FlowLimits"},
    reads=5,
)
def put_flow(services: FlowServices, request: Request, key: str) -> Response[str]:
    """Set the limits of a flow, whatever its jobs say. Repeating it changes nothing."""
    flow = _flow(request, key)
    limits = request.body_as(FlowLimitsBody).limits()
    assert limits is not None  # the body has one of them
    if limits.is_ordered and flow.tenant is None:
        raise InvalidJob("is for the flows of tenants: name one with ?tenant=", field="ordered", value=True)
    before = services.flows.limits(flow)
    if before is None:
        _check_count(services.flows, flow)
    services.flows.set_limits(flow, limits)
    _note(services, request, ActionName.FLOW_PUT, flow, before=before, after=limits)
    return answer(HTTPStatus.OK, answers.limits_body(flow, limits))


@routes.route("DELETE /v1/flows/{key}", access=QUERY_OR_STAGE, query=FlowQuery, answers={200: "FlowForgotten"}, reads=5)
def delete_flow(services: FlowServices, request: Request, key: str) -> Response[str]:
    """Delete the limits of a flow: those that its jobs bring along apply again."""
    flow = _flow(request, key)
    before = services.flows.limits(flow)
    was_set = services.flows.forget_limits(flow)
    _note(services, request, ActionName.FLOW_DELETE, flow, before=before, after=None)
    return answer(HTTPStatus.OK, answers.forgotten_body(flow, was_set=was_set))


def _flow(request: Request, key: str) -> FlowId:
    query = request.query_as(FlowQuery)
    return query.flow(read_as(FlowPath, {"key": key}).key)


def _check_count(flows: FlowStore, flow: FlowId) -> None:
    """Raises FlowsExceeded where another flow may get no limits. Of two at once both may get some."""
    found, has_more = flows.page(flow.owner, after="", limit=MAX_SET)
    if len(found) >= MAX_SET or has_more:
        raise FlowsExceeded(flow.tenant, count=len(found), limit=MAX_SET)


def _note(
    services: FlowServices,
    request: Request,
    action: ActionName,
    flow: FlowId,
    *,
    before: FlowLimits | None,
    after: FlowLimits | None,
) -> None:
    services.audit.note(
        Action(
            action=action,
            caller=request.caller,
            tenant=flow.tenant or "",
            subject=flow.key,
            before=limits_body(before) if before is not None else None,
            after=limits_body(after) if after is not None else None,
        )
    )
