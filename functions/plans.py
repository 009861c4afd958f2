"""The plans of the tenants, as a process knows them: read again only when one of them has changed."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from functions.domain.tenant_plan import TenantPlan
from functions.ports import Clock, Journal, TenantStore

KNOWN_FOR = timedelta(seconds=30)
"""Two of these are less than the minute in which a change takes effect everywhere."""


@dataclass(slots=True)
class _Known:
    """What was read, when."""

    plans: Mapping[str, TenantPlan] = field(default_factory=dict[str, TenantPlan])
    revision: int | None = None
    read_at: float | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def is_old(self, now: float) -> bool:
        return self.read_at is None or now - self.read_at >= KNOWN_FOR.total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPlans:
    """Plans by tenant, for many threads. usual: of a tenant that has none of its own.

    Half a read unit each half minute in which somebody asks, however many tenants there are; all plans after a change.
    """

    clock: Clock
    store: TenantStore
    journal: Journal
    usual: TenantPlan
    _known: _Known = field(default_factory=_Known)

    def of(self, tenant: str) -> TenantPlan:
        """The plan of a tenant, as of at most half a minute before.

        While the store fails, the plans that were known go on; raises what it raised where none were.
        """
        known = self._known
        if known.is_old(self.clock.monotonic()):
            with known.lock:
                if known.is_old(now := self.clock.monotonic()):
                    self._refresh(known, now)
        return known.plans.get(tenant, self.usual)

    def _refresh(self, known: _Known, now: float) -> None:
        try:
            revision = self.store.revision()
            if known.revision is None or revision != known.revision:
                known.revision, known.plans = self.store.all()
        except Exception as error:
            if known.revision is None:
                raise
            self.journal.event("plans_not_read", error=f"{type(error).__name__}: {error}")
        known.read_at = now
