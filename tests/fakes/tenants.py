"""Tenants in memory."""

from __future__ import annotations

from functions.domain.tenant_plan import TenantPlan, decode_plan, encode_plan


class InMemoryTenantStore:
    def __init__(self) -> None:
        self.rows: dict[str, str] = {}
        self.number = 0
        self.reads = 0

    def revision(self) -> int:
        self.reads += 1
        return self.number

    def all(self) -> tuple[int, dict[str, TenantPlan]]:
        self.reads += 1
        return self.number, {tenant: decode_plan(record) for tenant, record in self.rows.items()}

    def get(self, tenant: str) -> TenantPlan | None:
        return decode_plan(self.rows[tenant]) if tenant in self.rows else None

    def page(self, *, after: str, limit: int) -> tuple[dict[str, TenantPlan], bool]:
        found = sorted(tenant for tenant in self.rows if tenant > after)
        return {tenant: decode_plan(self.rows[tenant]) for tenant in found[:limit]}, len(found) > limit

    def change(self, tenant: str, plan: TenantPlan, *, seen: int) -> bool:
        met = self.get(tenant)
        if (met.version if met is not None else 0) != seen and met != plan:
            return False
        self.rows[tenant] = encode_plan(plan)
        self.number += 1
        return True


class GivenPlans:
    """Plans that a test sets."""

    def __init__(self) -> None:
        self.plans: dict[str, TenantPlan] = {}

    def of(self, tenant: str) -> TenantPlan:
        return self.plans.get(tenant, TenantPlan())
