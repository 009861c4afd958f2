"""The plans of a world's tenants: rows that an operator writes, and that every process reads for itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from math import inf
from typing import Any

from functions.domain.tenants.plan import DEFAULT_PLAN, LIMITS, Tenant, TenantPlan
from functions.ports.clock import Clock
from functions.ports.recorder import Journal
from functions.ports.tenants import EVERYBODY, Revision, TenantStore
from functions.services.tenants.plans import KnownPlans

STAGE = {DEFAULT_PLAN: {"max_pending": 1_000_000}}
"""What waits of a tenant is counted where its number has a limit: here it has one that nobody comes near."""


class OperatedPlans:
    """given: what was said last of each tenant, EVERYBODY's plan among them."""

    def __init__(self, store: TenantStore, *, id_secret: bytes) -> None:
        self.given: dict[str, TenantPlan] = {}
        self._store = store
        self._read: tuple[Revision, dict[str, Tenant]] = Revision(), {}
        store.keep_id_secret(id_secret)

    def of(self, tenant: str) -> TenantPlan:
        """What was said of a tenant last, whoever knows it by now."""
        return self.given.get(tenant, TenantPlan())

    @property
    def everybody(self) -> TenantPlan:
        """What was said of those of whom nothing was said."""
        return self.of(EVERYBODY)

    def put(self, tenant: str, plan: TenantPlan, *, now: datetime) -> None:
        """From now on a tenant has this plan, if its limits are none that the plans of this stage have."""
        if plan.status is not self.of(tenant).status:
            plan = replace(plan, changed_at=now)
        met = self._store.get(tenant)
        seen = met.version if met is not None else 0
        is_written = self._store.change(tenant, _row_of(plan, version=seen + 1), seen=seen)
        assert is_written, "somebody else has changed a plan"
        self.given[tenant] = plan

    def lift(self, *, now: datetime) -> None:
        """Nobody is paused or capped any more."""
        for tenant, plan in list(self.given.items()):
            self.put(tenant, TenantPlan(changed_at=plan.changed_at), now=now)
        self.given.clear()

    def known_to(self, clock: Clock, journal: Journal) -> KnownPlans:
        """What a new process knows of them: it reads when it first asks, and again when that has become old."""
        store: Any = self  # it asks for no more of it
        return KnownPlans(clock=clock, tenants=store, journal=journal, stage_plans=STAGE)

    def revision(self) -> Revision:
        """Read by whoever knew them half a minute before."""
        return self._store.revision()

    def all(self) -> tuple[Revision, dict[str, Tenant]]:
        """What a process reads that has just begun: rows that have not changed were read by one before it."""
        if self._store.revision() != self._read[0]:
            self._read = self._store.all()
        return self._read


def _row_of(plan: TenantPlan, *, version: int) -> Tenant:
    usual = TenantPlan()
    said = {name: value for name in LIMITS if (value := getattr(plan, name)) not in (inf, getattr(usual, name))}
    return Tenant(limits=said, status=plan.status, status_since=plan.changed_at, note=plan.note, version=version)
