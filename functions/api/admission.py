"""Whether a tenant may hand something in: by its plan, its rate, and how the stage stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import isfinite

from functions.conditions import KnownConditions
from functions.domain.errors import PriorityNotAllowed, RateExceeded, Shed, TenantClosed, TickwheelError
from functions.domain.faults import fault_of
from functions.domain.gcra import interval_of, room_at, tolerance_of
from functions.domain.job import Priority
from functions.domain.submission import Submission
from functions.domain.tenant_plan import TenantPlan
from functions.ports import Applied, Clock, Journal, RateStore, TenantPlans

SHED_FOR = timedelta(minutes=1)
"""How the stage stands is published once a minute."""

CLOCKS_DIFFER = timedelta(minutes=1)
"""At most, those of two processes."""

_TRIES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What the plans of tenants, and the stage, say to what is handed in."""

    clock: Clock
    plans: TenantPlans
    rates: RateStore
    conditions: KnownConditions
    journal: Journal

    def check_open(self, tenant: str) -> None:
        """It takes something in. Raises TenantClosed."""
        plan = self.plans.of(tenant)
        if plan.is_closed:
            raise TenantClosed(tenant, plan.status.value)

    def check_priority(self, tenant: str, priority: Priority) -> None:
        """Its jobs may have this class. Raises PriorityNotAllowed."""
        top = self.plans.of(tenant).top_priority
        if priority < top:
            raise PriorityNotAllowed(tenant, priority=priority.name.lower(), top=top.name.lower())

    def check(self, tenant: str, priority: Priority) -> None:
        """It takes something of this class in. Raises TenantClosed, PriorityNotAllowed."""
        self.check_open(tenant)
        self.check_priority(tenant, priority)

    def check_shed(self, priority: Priority) -> None:
        """The stage takes jobs of this class in. Raises Shed."""
        conditions = self.conditions.now()
        if conditions is not None and priority in conditions.shed:
            self.journal.count("submissions_shed")
            lag = timedelta(seconds=max(conditions.lags.values(), default=0))
            raise Shed(priority.name.lower(), lag=lag, retry_after=SHED_FOR)

    def take(self, submissions: Sequence[Submission]) -> list[TickwheelError | None]:
        """What keeps each submission out, in order: of a tenant that is too fast, the last ones. None lets it in.

        A write for each tenant among them whose rate is limited, a second one after a while of none.
        """
        refused: dict[int, TickwheelError] = {}
        by_tenant: dict[str, list[int]] = {}
        for index, submission in enumerate(submissions):
            by_tenant.setdefault(submission.tenant, []).append(index)
        for tenant, indexes in by_tenant.items():
            plan = self.plans.of(tenant)
            if isfinite(plan.submission_rate):
                count, wait = self._reserve(tenant, plan, len(indexes))
                for index in indexes[count:]:
                    refused[index] = RateExceeded(tenant, rate=plan.submission_rate, burst=plan.burst, retry_after=wait)
        if refused:
            self.journal.count("submissions_throttled", len(refused))
        return [refused.get(index) for index in range(len(submissions))]

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
