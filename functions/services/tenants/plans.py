"""The plans of the tenants, as a process knows them: read again only when one of them has changed."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

from functions.domain.faults import fault_of
from functions.domain.jobs.id_check import SECRET_BYTES
from functions.domain.tenants.plan import Limits, Tenant, TenantPlan, TenantStatus
from functions.ports.clock import Clock
from functions.ports.recorder import Journal
from functions.ports.tenants import EVERYBODY, Revision, TenantStore
from functions.services.stage.cache_age import ReadAt

KNOWN_FOR = timedelta(seconds=30)
"""Two of these are less than the minute in which a change takes effect everywhere."""

_UNKNOWN = Tenant()


@dataclass(slots=True, kw_only=True)
class KnownPlans:
    """Plans by tenant, for many threads. stage_plans: the limits of the stage's plans by their names.

    _read_at: None before the first read. _pins: what is read next stays as it is for now; _is_pinned: it does.

    Half a read unit each half minute in which somebody asks, however many tenants there are; all rows after a change.
    """

    clock: Clock
    tenants: TenantStore
    journal: Journal
    stage_plans: Mapping[str, Limits]
    _plans: Mapping[str, TenantPlan] = field(default_factory=dict[str, TenantPlan], init=False)
    _revision: Revision = field(default_factory=Revision, init=False)
    _read_at: ReadAt | None = field(default=None, init=False)
    _pins: bool = field(default=False, init=False)
    _is_pinned: bool = field(default=False, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def of(self, tenant: str) -> TenantPlan:
        """The plan of a tenant, as of at most half a minute before.

        While the store fails, the plans that were known stay in use; raises what it raised where none were.
        """
        plans = self._read()
        return plans.get(tenant) or plans[EVERYBODY]

    def of_everybody(self) -> TenantPlan:
        """The plan of a tenant that has no row. Paused: everybody is."""
        return self._read()[EVERYBODY]

    @contextmanager
    def one_revision(self) -> Iterator[None]:
        """Answer from what the first question of the block finds: a request is not judged by two revisions of a plan.

        For blocks that end within seconds: KNOWN_FOR and the longest of them must be less than the minute in which a change
        takes effect.
        """
        self._pins = True
        try:
            yield
        finally:
            self._pins = self._is_pinned = False

    def id_secret(self) -> bytes:
        """The secret of the stage's job ids, which whoever asks first makes. It comes with what is read of the plans.

        One that is gone, or has become another, is noticed as a changed plan is: its ids are answered from rows alone.
        """
        self._read()
        revision = self._revision
        if not revision.id_secret:
            with self._lock:
                revision = self._revision
                if not revision.id_secret:
                    secret = self.tenants.keep_id_secret(os.urandom(SECRET_BYTES))
                    revision = self._revision = replace(revision, id_secret=secret)
        return revision.id_secret

    def unserved(self) -> dict[str, TenantPlan]:
        """The tenants by name that are neither served as usual nor gone: paused, draining or being deleted."""
        return {
            name: plan
            for name, plan in sorted(self._read().items())
            if name != EVERYBODY and plan.status not in (TenantStatus.ACTIVE, TenantStatus.DELETED)
        }

    def _read(self) -> Mapping[str, TenantPlan]:
        if self._is_old():
            with self._lock:
                if self._is_old():
                    self._refresh()
        self._is_pinned = self._pins
        return self._plans

    def _is_old(self) -> bool:
        is_old = self._read_at is None or self._read_at.is_older_than(KNOWN_FOR, clock=self.clock)
        return is_old and not self._is_pinned

    def _refresh(self) -> None:
        read_at = ReadAt.now(self.clock)
        try:
            # A cold start reads all rows anyway.
            if self._read_at is None or self.tenants.revision() != self._revision:
                self._revision, tenants = self.tenants.all()
                self._plans = self._plans_of(tenants)
        except Exception as error:
            if self._read_at is None:
                raise
            self.journal.event("plans_not_read", error=fault_of(error))
        self._read_at = read_at

    def _plans_of(self, tenants: Mapping[str, Tenant]) -> Mapping[str, TenantPlan]:
        everybody = tenants.get(EVERYBODY, _UNKNOWN)
        plans = {name: tenant.plan_among(self.stage_plans) for name, tenant in tenants.items()}
        plans[EVERYBODY] = everybody.plan_among(self.stage_plans)
        if everybody.status is not TenantStatus.PAUSED:
            return {name: replace(plan, stage_resumed_at=everybody.status_since) for name, plan in plans.items()}
        # Beside the status: whoever drains takes nothing in while he waits, and whoever is deleted stays so.
        return {name: replace(plan, is_stage_paused=True, note=everybody.note) for name, plan in plans.items()}
