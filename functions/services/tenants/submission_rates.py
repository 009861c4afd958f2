"""How fast the work of tenants comes in: all that makes work takes from one rate, whoever asks for it and however.

Jobs, triggers, backfills, replays, jobs that their owner runs now or moves, the operations that do so to many, and schedules
when they begin to fire, or begin anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from math import isfinite

from functions.domain.errors import RateExceeded
from functions.domain.faults import fault_of
from functions.domain.gcra import interval_of, room_at, tolerance_of
from functions.domain.tenants.plan import TenantPlan
from functions.ports.clock import Clock
from functions.ports.ledger import Applied
from functions.ports.recorder import Journal
from functions.ports.tenants import RateStore, TenantPlans

CLOCKS_DIFFER = timedelta(minutes=1)
"""At most, those of two processes."""

_TRIES = 4


@dataclass(frozen=True, slots=True)
class Taken:
    """So many may come in now. refusal: of the next one, as far as it was asked for."""

    count: int
    refusal: RateExceeded | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionRates:
    """What the rates of tenants say to what makes work. A tenant without one costs nothing."""

    clock: Clock
    plans: TenantPlans
    rates: RateStore
    journal: Journal

    def take(self, tenant: str, asked: int) -> Taken:
        """As many jobs of a tenant as may come in now, in one write, or a second one after a while of none."""
        plan = self.plans.of(tenant)
        if not asked or not isfinite(plan.submission_rate):
            return Taken(asked)
        count, wait = self._reserve(tenant, plan, asked)
        if count == asked:
            return Taken(count)
        refusal = RateExceeded(tenant, rate=plan.submission_rate, burst=plan.burst, retry_after=wait)
        return Taken(count, refusal)

    def _reserve(self, tenant: str, plan: TenantPlan, asked: int) -> tuple[int, timedelta]:
        """How many of the jobs may come in now, and when another may."""
        now, interval = self.clock.now(), interval_of(plan.submission_rate)
        tolerance = tolerance_of(plan.burst, interval)
        count, wait = min(asked, plan.burst), interval
        for _ in range(_TRIES):
            if not count:
                break
            try:
                answer = self.rates.spend(
                    tenant,
                    cost=count * interval,
                    now=now,
                    latest=now + tolerance - (count - 1) * interval,
                    # By no clock is more reserved at this rate: a slower one is not to be served out.
                    most=now + tolerance + interval + CLOCKS_DIFFER,
                )
            except Exception as error:  # noqa: BLE001  a limit that cannot be looked up must not keep jobs out
                self.journal.event("rate_unknown", tenant=tenant, error=fault_of(error))
                return asked, wait
            if isinstance(answer, Applied):
                return count, wait
            if answer.next_at is not None:
                count = min(count, room_at(answer.next_at, now=now, interval=interval, tolerance=tolerance))
                wait = max(interval, answer.next_at - tolerance - now)
        return 0, wait
