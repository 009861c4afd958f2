"""How fast callers read: each has a rate for each tenant, in each process that answers him.

What a read takes from the rate follows from what it costs the stage: rows, queries, or walks over time. Nothing is written for it,
and a bounded number of callers is kept: a rate that all processes shared would cost a write a read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import isfinite
from typing import Any
from urllib.parse import unquote

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from functions.api.access import TABLE, named
from functions.api.reading import body_of, identity_of, query_of
from functions.domain.errors import InvalidInput, ReadRateExceeded
from functions.domain.gcra import interval_of, tolerance_of
from functions.ports import Clock, Journal, TenantPlans

MOST_CALLERS = 1_000
"""With one tenant each. Whoever has not been heard of for longest is forgotten first, and begins anew."""

A_PREVIEW = 10
"""Fires are worked out: many steps."""

COSTS: Mapping[tuple[str, str], int] = {
    ("GET", "/v1/jobs/<job_id>/explain"): 5,
    ("GET", "/v1/schedules"): 10,
    ("POST", "/v1/schedules:fires"): 20,
    ("GET", "/v1/dead-letters"): 20,
    ("GET", "/v1/breakers"): 5,
    ("GET", "/v1/operations"): 5,
    ("GET", "/v1/tenants"): 5,
    ("GET", "/v1/tenants/<tenant>/usage"): 5,
    ("GET", "/v1/health"): 10,
    ("GET", "/openapi.json"): 5,
}
"""Reads that a route takes. Any other GET takes one, and what changes something none."""

_TRUE = frozenset({"1", "true", "t", "yes", "y", "on"})
"""As pydantic reads a query: https://docs.pydantic.dev/latest/api/standard_library_types/#booleans"""

_DRY_RUNS: Mapping[tuple[str, str], int] = {
    ("PUT", "/v1/schedules/<schedule_id>"): A_PREVIEW,
    ("PATCH", "/v1/schedules/<schedule_id>"): A_PREVIEW,
    ("POST", "/v1/schedules/<path>"): A_PREVIEW,
    ("POST", "/v1/dead-letters:replay"): 20,
    ("POST", "/v1/dead-letters:purge"): 20,
}
"""Reads that a route takes that changes nothing where its `dry_run` is said, in the query or the body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRates:
    """Stands behind the guard: a request that it lets through has a caller who may ask.

    For each caller and tenant the instant is kept at which the next read would come were they spaced evenly.
    """

    clock: Clock
    plans: TenantPlans
    journal: Journal
    _next_at: OrderedDict[tuple[str, str], datetime] = field(default_factory=OrderedDict[tuple[str, str], datetime])

    def admit(self, app: APIGatewayHttpResolver, next_middleware: Callable[..., Response]) -> Response:
        """The answer of the route. Raises ReadRateExceeded."""
        route, event, arguments = app.context["_route"], app.current_event, app.context["_route_args"]
        row = TABLE.get((route.method, route.path))
        reads = reads_of(route.method, route.path, event, arguments) if row is not None else 0
        if row is not None and reads:
            tenant = next(iter(named(row, event, arguments)), "")
            self.take(identity_of(event).shown, tenant, reads)
        return next_middleware(app)

    def take(self, caller: str, tenant: str, reads: int) -> None:
        """So many reads of one caller. tenant: empty for what is of none. Raises ReadRateExceeded."""
        plan = self.plans.of(tenant) if tenant else self.plans.of_everybody()
        if not isfinite(plan.read_rate):
            return
        now, interval, key = self.clock.now(), interval_of(plan.read_rate), (caller, tenant)
        next_at = max(now, self._next_at.pop(key, now))
        # What takes more than may be saved up is let through when all of that has been.
        ahead = (min(reads, plan.read_burst) - 1) * interval
        wait = next_at + ahead - tolerance_of(plan.read_burst, interval) - now
        is_refused = wait.total_seconds() > 0
        self._next_at[key] = next_at if is_refused else next_at + reads * interval
        if len(self._next_at) > MOST_CALLERS:
            self._next_at.popitem(last=False)
        if is_refused:
            self.journal.count("reads_throttled")
            raise ReadRateExceeded(caller, tenant, rate=plan.read_rate, retry_after=wait)


def reads_of(method: str, route: str, event: APIGatewayProxyEventV2, arguments: Mapping[str, str]) -> int:
    """How many reads a request takes; 0 for one that is none."""
    if (method, route) in COSTS:
        return COSTS[method, route]
    if method == "GET" and unquote(arguments.get("path", "")).endswith(":preview"):
        return A_PREVIEW
    if (method, route) in _DRY_RUNS:
        return _DRY_RUNS[method, route] if _is_dry(event) else 0
    return int(method == "GET")


def _is_dry(event: APIGatewayProxyEventV2) -> bool:
    """Whether it says that nothing is to be changed, as its route reads it; what it cannot read it refuses."""
    if query_of(event).get("dry_run", "").lower() in _TRUE:
        return True
    try:
        body: Any = body_of(event) if event.body else None
    except InvalidInput:
        return False
    return isinstance(body, dict) and body.get("dry_run") is True
