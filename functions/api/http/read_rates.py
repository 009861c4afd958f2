"""How fast callers read: each has a rate for each tenant, and one for all of them, in each process that answers him.

What a read takes from the rate follows from what it costs the stage: rows, queries, or walks over time. Nothing is written for it,
and a bounded number of callers is kept: a rate that all processes shared would cost a write a read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil, isfinite
from typing import Any
from urllib.parse import unquote

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from functions.api.http.access import TABLE, named
from functions.api.http.reading import body_of, identity_of, query_of
from functions.domain.errors import InvalidInput, ReadRateExceeded
from functions.domain.tenants.gcra import interval_of, tolerance_of
from functions.domain.tenants.plan import BURST_SECONDS
from functions.ports.clock import Clock
from functions.ports.recorder import Journal
from functions.ports.tenants import TenantPlans

MOST_CALLERS = 1_000
"""With one tenant each. Whoever has not been heard of for longest is forgotten first, and begins anew."""

OVER_ALL = 5
"""Times the rate of the default plan, at least, for all tenants together: whoever asks for one after the other has no rate for each."""

A_PREVIEW = 10
"""Fires are worked out: many steps."""

COSTS: Mapping[tuple[str, str], int] = {
    ("GET", "/v1/jobs/<job_id>/explain"): 5,
    ("GET", "/v1/schedules"): 10,
    ("POST", "/v1/schedules:fires"): 20,
    ("GET", "/v1/dead-letters"): 20,
    # Both look as far for what is meant as a list does, and may find nothing to change.
    ("POST", "/v1/dead-letters:replay"): 20,
    ("POST", "/v1/dead-letters:purge"): 20,
    ("GET", "/v1/breakers"): 5,
    ("GET", "/v1/operations"): 5,
    ("GET", "/v1/tenants"): 5,
    ("GET", "/v1/tenants/<tenant>/usage"): 5,
    ("GET", "/v1/health"): 10,
    ("GET", "/openapi.json"): 5,
}
"""Reads that a route takes. Any other GET takes one, and what changes something without looking for it none."""

_TRUE = frozenset({"1", "true", "t", "yes", "y", "on"})
"""As pydantic reads a query: https://docs.pydantic.dev/latest/api/standard_library_types/#booleans"""

_DRY_RUNS: Mapping[tuple[str, str], int] = {
    ("PUT", "/v1/schedules/<schedule_id>"): A_PREVIEW,
    ("PATCH", "/v1/schedules/<schedule_id>"): A_PREVIEW,
    ("POST", "/v1/schedules/<path>"): A_PREVIEW,
}
"""Reads that a route takes that changes nothing where its `dry_run` is said, in the query or the body."""


_Key = tuple[str, str | None]
"""A caller, and the tenant that he asks about, which is empty for what is of none; None: over all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRates:
    """Stands behind the guard: a request that it lets through has a caller who may ask.

    For each caller and tenant, and for each caller, the instant is kept at which the next read would come were they spaced evenly.
    """

    clock: Clock
    plans: TenantPlans
    journal: Journal
    _next_at: OrderedDict[_Key, datetime] = field(default_factory=OrderedDict[_Key, datetime])

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
        now = self.clock.now()
        rates: dict[_Key, float] = {(caller, tenant): plan.read_rate}
        over_all = OVER_ALL * self.plans.of_everybody().read_rate
        if isfinite(over_all):
            rates[caller, None] = max(over_all, plan.read_rate)
        next_ats = {key: max(now, self._next_at.pop(key, now)) for key in rates}
        waits = {key: _wait(next_ats[key], rate, reads, now=now) for key, rate in rates.items()}
        is_refused = any(wait.total_seconds() > 0 for wait in waits.values())
        for key, rate in rates.items():
            self._next_at[key] = next_ats[key] + (0 if is_refused else reads) * interval_of(rate)
        while len(self._next_at) > 2 * MOST_CALLERS:
            self._next_at.popitem(last=False)
        if is_refused:
            self.journal.count("reads_throttled")
            key = max(waits, key=lambda key: waits[key])
            raise ReadRateExceeded(caller, key[1] or "", rate=rates[key], retry_after=waits[key])


def _wait(next_at: datetime, rate: float, reads: int, *, now: datetime) -> timedelta:
    """When so many reads may come at a rate; none or less where they may at once."""
    interval, burst = interval_of(rate), ceil(rate * BURST_SECONDS)
    # What takes more than may be saved up is let through when all of that has been.
    return next_at + (min(reads, burst) - 1) * interval - tolerance_of(burst, interval) - now


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
