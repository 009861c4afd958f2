"""How fast callers read: each has a rate for each tenant, and one for all of them, in each process that answers him.

What a read takes from the rate follows from what it costs the stage: rows, queries, or walks over time. Nothing is written for it,
and a bounded number of callers is kept: a rate that all processes shared would cost a write a read.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil, isfinite

from functions.api.http.reading import Request
from functions.api.http.route import Route
from functions.domain.errors import InvalidInput, ReadRateExceeded
from functions.domain.gcra import interval_of, tolerance_of
from functions.domain.tenants.plan import BURST_SECONDS
from functions.ports.clock import Clock
from functions.ports.recorder import Journal
from functions.ports.tenants import TenantPlans

MOST_CALLERS = 1_000
"""With one tenant each. The one that asked longest ago is forgotten first, and begins anew."""

OVER_ALL = 5
"""Times the rate of the default plan, at least, for all tenants together: whoever asks for one after the other has no rate for each."""

_TRUE = frozenset({"1", "true", "t", "yes", "y", "on"})
"""What pydantic reads as true in a query: https://docs.pydantic.dev/latest/api/standard_library_types/#booleans"""

_Key = tuple[str, str | None]
"""A caller, and the tenant that he asks about, which is empty for what is of none; None: over all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRates:
    """Stands behind the access check: a request that it lets through has a caller who may ask.

    For each caller and tenant, and for each caller, the instant is kept at which the next read would come were they spaced evenly.
    """

    clock: Clock
    plans: TenantPlans
    journal: Journal
    _next_at: OrderedDict[_Key, datetime] = field(default_factory=OrderedDict[_Key, datetime])

    def check(self, route: Route, request: Request) -> None:
        """Take what a request costs. Raises ReadRateExceeded."""
        reads = reads_of(route, request)
        if reads:
            tenant = next(iter(route.access.tenants_of(request)), "")
            self.take(request.identity().shown, tenant, reads)

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


def reads_of(route: Route, request: Request) -> int:
    """How many reads a request takes; 0 for one that is none."""
    if route.reads is not None:
        return route.reads
    if route.dry_run_reads:
        return route.dry_run_reads if _is_dry(request) else 0
    return int(route.method == "GET")


def _is_dry(request: Request) -> bool:
    """Whether it says that nothing is to be changed, as its route reads it; what it cannot read it refuses."""
    if request.query.get("dry_run", "").lower() in _TRUE:
        return True
    try:
        body = request.body if request.has_body else None
    except InvalidInput:
        return False
    return isinstance(body, dict) and body.get("dry_run") is True
