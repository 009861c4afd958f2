"""Delete tenants with all that there is of them: page by page, once nobody can add to it any more.

A deletion continues from its last step when a turn of it dies: what was deleted since is looked for again, and is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from functions.domain.audit import SCHEDULER, Action, ActionName
from functions.domain.faults import fault_of
from functions.domain.instants import from_ms, to_ms
from functions.domain.tenants.changes import with_status
from functions.domain.tenants.deletion import Deletion, begins_at
from functions.domain.tenants.plan import Tenant, TenantStatus
from functions.ports.clock import Clock
from functions.ports.recorder import AuditTrail, Journal
from functions.ports.tenants import DeletionStore, TenantData, TenantStore

LEASE = timedelta(minutes=2)
"""Prolonged by every step: a turn that dies holds its deletion no longer than this and SKEW."""

STEP = timedelta(seconds=5)
_MOST_OPEN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantDeleter:
    """Carries deletions on. longest: how long any function of the stage may run. token: a fresh owner token."""

    clock: Clock
    skew: timedelta
    longest: timedelta
    tenants: TenantStore
    deletions: DeletionStore
    tenant_data: TenantData
    journal: Journal
    token: Callable[[], str]
    audit: AuditTrail

    def carry_on(self, *, time_limit: timedelta) -> int:
        """Carry on what is open, each for its share of the time limit; how many have come to their end."""
        ends_at = self.clock.monotonic() + time_limit.total_seconds()
        waiting = self.deletions.open(limit=_MOST_OPEN)
        ended = 0
        for number, tenant in enumerate(waiting):
            share = (ends_at - self.clock.monotonic()) / (len(waiting) - number)
            if share <= 0:
                break
            try:
                ended += self._delete(tenant, ends_at=self.clock.monotonic() + share)
            except Exception as error:  # noqa: BLE001  one must not hold up the others; its next turn continues it
                self.journal.event("deletion_failed", tenant=tenant, error=fault_of(error))
                self.journal.count("operation_failures")
        return ended

    def _delete(self, tenant: str, *, ends_at: float) -> bool:
        row, now = self.tenants.get(tenant), self.clock.now()
        if row is not None and row.status is TenantStatus.DELETING and now < self._begins_at(row):
            return False
        deletion = self.deletions.take(tenant, owner=self.token(), lease_until=now + LEASE, now=now, skew=self.skew)
        if deletion is None:
            return False
        if row is None or row.status is not TenantStatus.DELETING or row.status_since != deletion.since:
            # It died when all was done but this; or it is of an earlier life of the tenant.
            self.deletions.forget(deletion)
            return False
        swept = self._sweep(deletion, ends_at=ends_at)
        return swept is not None and self._end(swept, row)

    def _begins_at(self, row: Tenant) -> datetime:
        assert row.status_since is not None  # it has changed its status
        return begins_at(row.status_since, longest=self.longest, skew=self.skew)

    def _sweep(self, deletion: Deletion, *, ends_at: float) -> Deletion | None:
        """Page by page; None while there is something left, or when somebody else has taken it."""
        recorded_at = self.clock.monotonic()
        while deletion.part is not None:
            page = self.tenant_data.sweep(deletion.tenant, deletion.part, after=deletion.after)
            deletion = deletion.advanced(deleted=page.deleted, after=page.after)
            now = self.clock.monotonic()
            is_over = now >= ends_at and deletion.part is not None
            if is_over or now - recorded_at >= STEP.total_seconds():
                lease_until = None if is_over else self.clock.now() + LEASE
                saved = self.deletions.save(deletion, lease_until=lease_until)
                if saved is None or is_over:
                    return None
                deletion, recorded_at = saved, now
        return deletion

    def _end(self, deletion: Deletion, row: Tenant) -> bool:
        now = from_ms(to_ms(self.clock.now()))
        ended = with_status(deletion.tenant, row, TenantStatus.DELETED, note=row.note, now=now)
        # What was said of it goes with it: the row says only that there was a tenant, and until when.
        ended = replace(ended, limits={}, principals=())
        if not self.tenants.change(deletion.tenant, ended, seen=row.version):
            self.deletions.save(deletion, lease_until=None)
            return False
        self.deletions.forget(deletion)
        report = {"deleted": dict(deletion.deleted)}
        self.journal.event("tenant_deleted", tenant=deletion.tenant, **report)
        name = deletion.tenant
        self.audit.note(
            Action(action=ActionName.TENANT_ERASE, caller=SCHEDULER, tenant=name, subject=name, after=report)
        )
        return True
