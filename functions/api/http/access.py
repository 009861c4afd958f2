"""Who may ask for what: the one place that decides it, before a route reads or writes anything.

Every route has a row in a table, which says where in a request tenants are named. A caller must be allowed to act for
each of them; a route that has no row is refused. What does not parse names no tenant: its route refuses it, with the same
functions, before it does anything. So nobody learns from an answer whether what belongs to another tenant exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from functions.api.http.reading import body_of, identity_of, query_of
from functions.domain.dead_letters.letter_id import parse_letter_id
from functions.domain.errors import Forbidden, InvalidInput, TenantClosed
from functions.domain.far_ring.timer_key import NO_TENANT
from functions.domain.jobs.job import TENANT
from functions.domain.jobs.job_id import parse_job_id
from functions.domain.tenants.access import Caller, is_operator, may_act
from functions.ports.tenants import TenantPlans


@dataclass(frozen=True, slots=True)
class Request:
    """A request as its route reads it. arguments: the variable parts of its path; body: its JSON, None where there is none."""

    arguments: Mapping[str, str]
    query: Mapping[str, str]
    body: Any


Place = Callable[[Request], Iterable[Any]]
"""Where a request names tenants: whatever is written there, be it a tenant's id or not."""


def in_query(request: Request) -> Iterable[Any]:
    """`?tenant=`."""
    yield request.query.get("tenant")


def in_body(request: Request) -> Iterable[Any]:
    """`{"tenant": ...}`, and those of lists of jobs and schedules in it."""
    if not isinstance(request.body, dict):
        return
    yield request.body.get("tenant")
    for name in ("jobs", "schedules"):
        listed = request.body.get(name)
        if isinstance(listed, list):
            yield from (each.get("tenant") for each in listed if isinstance(each, dict))


def in_path(request: Request) -> Iterable[Any]:
    """The part of the path that is a tenant's id."""
    yield unquote(request.arguments["tenant"])


def in_job_id(request: Request) -> Iterable[Any]:
    """The id of a job, which names its tenant; a verb may follow it."""
    for text in _ids(request.arguments, "job_id"):
        with suppress(InvalidInput):
            yield parse_job_id(text).tenant


def in_letter_id(request: Request) -> Iterable[Any]:
    """The id of a dead letter, which names its tenant; a verb may follow it."""
    for text in _ids(request.arguments, "letter_id"):
        with suppress(InvalidInput):
            yield parse_letter_id(text).tenant


@dataclass(frozen=True, slots=True)
class Access:
    """What a route asks of its caller. is_open: nothing; for_operators: that he is one."""

    places: tuple[Place, ...] = ()
    is_open: bool = False
    for_operators: bool = False


OPEN = Access(is_open=True)
OPERATORS = Access(for_operators=True)
QUERY = Access((in_query,))
BODY = Access((in_query, in_body))
JOB = Access((in_job_id, in_query, in_body))
LETTER = Access((in_letter_id, in_query, in_body))
PATH = Access((in_path, in_query, in_body))

TABLE: Mapping[tuple[str, str], Access] = {
    ("POST", "/v1/jobs"): BODY,
    ("POST", "/v1/jobs:batch"): BODY,
    ("GET", "/v1/jobs/<job_id>"): JOB,
    ("DELETE", "/v1/jobs/<job_id>"): JOB,
    ("PATCH", "/v1/jobs/<job_id>"): JOB,
    ("POST", "/v1/jobs/<path>"): JOB,
    ("GET", "/v1/jobs/<job_id>/explain"): JOB,
    ("POST", "/v1/jobs/<job_id>/heartbeat"): JOB,
    ("POST", "/v1/jobs/<job_id>/complete"): JOB,
    ("POST", "/v1/jobs/<job_id>/fail"): JOB,
    ("GET", "/v1/schedules"): QUERY,
    ("POST", "/v1/schedules:fires"): BODY,
    ("PUT", "/v1/schedules/<schedule_id>"): BODY,
    ("PATCH", "/v1/schedules/<schedule_id>"): BODY,
    ("GET", "/v1/schedules/<path>"): QUERY,
    ("DELETE", "/v1/schedules/<schedule_id>"): BODY,
    ("POST", "/v1/schedules/<path>"): BODY,
    ("GET", "/v1/dead-letters"): QUERY,
    ("POST", "/v1/dead-letters:replay"): BODY,
    ("POST", "/v1/dead-letters:purge"): BODY,
    ("GET", "/v1/dead-letters/<letter_id>"): LETTER,
    ("POST", "/v1/dead-letters/<path>"): LETTER,
    ("DELETE", "/v1/dead-letters/<letter_id>"): LETTER,
    ("GET", "/v1/breakers"): QUERY,
    ("POST", "/v1/breakers:reset"): BODY,
    ("GET", "/v1/operations"): QUERY,
    ("POST", "/v1/operations"): BODY,
    ("GET", "/v1/operations/<tenant>/<operation_id>"): PATH,
    ("POST", "/v1/operations/<tenant>/<path>"): PATH,
    ("GET", "/v1/tenants"): OPERATORS,
    ("GET", "/v1/tenants/<tenant>"): PATH,
    ("PUT", "/v1/tenants/<tenant>"): OPERATORS,
    ("PATCH", "/v1/tenants/<tenant>"): OPERATORS,
    ("DELETE", "/v1/tenants/<tenant>"): OPERATORS,
    ("POST", "/v1/tenants/<path>"): OPERATORS,
    ("GET", "/v1/tenants/<tenant>/webhook-keys"): PATH,
    ("GET", "/v1/tenants/<tenant>/usage"): PATH,
    ("POST", "/v1/pause"): OPERATORS,
    ("POST", "/v1/resume"): OPERATORS,
    ("GET", "/v1/health"): OPERATORS,
    ("GET", "/openapi.json"): OPEN,
}
"""Every route by its method and its path, as the resolver has it."""


_JUDGE_EACH = ("/v1/jobs:batch",)
"""Routes that tell each of many jobs whether its tenant takes it in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Stands before every route. operators: patterns of who may act for everybody.

    tenant_claim: of a token, which names its tenant; empty where the stage takes no tokens.
    """

    plans: TenantPlans
    operators: tuple[str, ...]
    tenant_claim: str = ""

    def admit(self, app: APIGatewayHttpResolver, next_middleware: Callable[..., Response]) -> Response:
        """Raises Forbidden; otherwise the answer of the route."""
        route = app.context["_route"]
        # The route of the resolver's own that tells that there is none takes any path, even none.
        if route.rule.match(""):
            return next_middleware(app)
        row = TABLE.get((route.method, route.path))
        arguments = app.context["_route_args"]
        self.check(app.current_event, row, arguments=arguments)
        if row is not None and route.method != "GET" and route.path not in _JUDGE_EACH:
            for tenant in named(row, app.current_event, arguments):
                self._check_not_deleted(tenant)
        return next_middleware(app)

    def check(self, event: APIGatewayProxyEventV2, row: Access | None, *, arguments: Mapping[str, str]) -> None:
        """Whether a request may reach its route. row: of the route, None where it has none. Raises Forbidden."""
        caller = identity_of(event, tenant_claim=self.tenant_claim)
        if row is None:
            raise Forbidden(caller.shown, remedy="this route is not open to anybody yet")
        if row.is_open or is_operator(caller, self.operators):
            return
        if row.for_operators:
            raise Forbidden(
                caller.shown, remedy="ask one, or sign as the role that the stage's output OperatorRoleArn names"
            )
        for tenant in named(row, event, arguments):
            self._check_tenant(caller, tenant)

    def _check_not_deleted(self, tenant: str) -> None:
        """Nothing is written for who is deleted, not even that a job is cancelled. Raises TenantClosed."""
        plan = self.plans.of(tenant)
        if plan.is_deleted:
            raise TenantClosed(tenant, plan.status.value)

    def _check_tenant(self, caller: Caller, tenant: str) -> None:
        if tenant == NO_TENANT:
            raise Forbidden(caller.shown, remedy="what belongs to no tenant is for operators")
        # A token says for whom it is: no plan is needed for that.
        principals = () if caller.is_token else self.plans.of(tenant).principals
        if not may_act(caller, tenant, principals=principals, operators=self.operators):
            raise Forbidden(caller.shown, tenant=tenant, remedy=_remedy(caller, tenant))


def named(row: Access, event: APIGatewayProxyEventV2, arguments: Mapping[str, str]) -> list[str]:
    """The tenants that a request names, in order: whatever could be the id of one."""
    body: Any = None
    if in_body in row.places and event.body:
        with suppress(InvalidInput):
            body = body_of(event)
    request = Request(arguments, query_of(event), body)
    found = {name for place in row.places for name in place(request) if isinstance(name, str)}
    return sorted(name for name in found if name == NO_TENANT or TENANT.fullmatch(name))


def _ids(arguments: Mapping[str, str], name: str) -> list[str]:
    """An id of a path, as its route reads it: whole, or up to its verb."""
    if name in arguments:
        return [unquote(arguments[name])]
    return [unquote(arguments["path"]).rpartition(":")[0]]


def _remedy(caller: Caller, tenant: str) -> str:
    if caller.is_token:
        return f"its token names tenant {caller.tenant}" if caller.tenant else "its token names no tenant"
    return f"an operator allows it by `tickwheel tenant set {tenant} --principal {caller.shown}`"
