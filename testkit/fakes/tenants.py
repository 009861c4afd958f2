"""Tenants in memory."""

from __future__ import annotations

from functions.domain.tenants.plan import Tenant, TenantPlan, decode_tenant, encode_tenant
from functions.ports.tenants import EVERYBODY, Revision


class InMemoryTenantStore:
    def __init__(self) -> None:
        self.rows: dict[str, str] = {}
        self.number = 0
        self.id_secret = b""
        self.reads = 0

    def revision(self) -> Revision:
        self.reads += 1
        return Revision(self.number, self.id_secret)

    def keep_id_secret(self, secret: bytes) -> bytes:
        self.id_secret = self.id_secret or secret
        return self.id_secret

    def all(self) -> tuple[Revision, dict[str, Tenant]]:
        self.reads += 1
        return Revision(self.number, self.id_secret), {
            tenant: decode_tenant(record) for tenant, record in self.rows.items()
        }

    def get(self, tenant: str) -> Tenant | None:
        return decode_tenant(self.rows[tenant]) if tenant in self.rows else None

    def page(self, *, after: str, limit: int) -> tuple[dict[str, Tenant], bool]:
        found = sorted(name for name in self.rows if name > after and name != EVERYBODY)
        return {tenant: decode_tenant(self.rows[tenant]) for tenant in found[:limit]}, len(found) > limit

    def change(self, name: str, tenant: Tenant, *, seen: int) -> bool:
        met = self.get(name)
        if (met.version if met is not None else 0) != seen and met != tenant:
            return False
        self.rows[name] = encode_tenant(tenant)
        self.number += 1
        return True


class GivenPlans:
    """Plans that a test sets. everybody: of those that have none here."""

    def __init__(self) -> None:
        self.plans: dict[str, TenantPlan] = {}
        self.everybody = TenantPlan()

    def of(self, tenant: str) -> TenantPlan:
        return self.everybody if self.everybody.is_paused else self.plans.get(tenant, self.everybody)

    def of_everybody(self) -> TenantPlan:
        return self.everybody
