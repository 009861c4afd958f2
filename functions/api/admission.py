"""Whether a tenant may hand something in, by its plan."""

from __future__ import annotations

from dataclasses import dataclass

from functions.domain.errors import PriorityNotAllowed, TenantClosed
from functions.domain.job import Priority
from functions.ports import TenantPlans


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What a tenant's plan says to what it hands in."""

    plans: TenantPlans

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
        """It takes a job of this class in. Raises TenantClosed, PriorityNotAllowed."""
        self.check_open(tenant)
        self.check_priority(tenant, priority)
