"""Change tenants, and report them. Who may act for a tenant is decided before: see `access`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from typing import Any

from functions.domain.audit import Action, ActionName
from functions.domain.errors import InvalidInput, TenantBusy
from functions.domain.instants import to_the_millisecond
from functions.domain.jobs.job import check_new_tenant, check_tenant
from functions.domain.schedules.load import Load
from functions.domain.tenants import changes
from functions.domain.tenants.backlog import Backlog
from functions.domain.tenants.deletion import Deletion
from functions.domain.tenants.plan import Limits, Tenant, TenantPlan, TenantStatus, encode_tenant
from functions.domain.tenants.usage import Days, Usage, days_asked
from functions.ports.clock import Clock
from functions.ports.recorder import AuditTrail, Journal
from functions.ports.schedules import ScheduleStore
from functions.ports.tenants import EVERYBODY, DeletionStore, TenantStore, UsageStore

_TRIES = 4
_THE_STAGE = "the stage"

_TURNS = {
    TenantStatus.PAUSED: ActionName.TENANT_PAUSE,
    TenantStatus.DRAINING: ActionName.TENANT_DRAIN,
    TenantStatus.ACTIVE: ActionName.TENANT_RESUME,
}
_STAGE_TURNS = {TenantStatus.PAUSED: ActionName.STAGE_PAUSE, TenantStatus.ACTIVE: ActionName.STAGE_RESUME}

Edit = Callable[..., Tenant]
"""How a row changes: of its name, of the row, and `now`; the very row, where nothing does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantInEffect:
    """A tenant as it stands. tenant: what is stored of it. plan: what it may do by that. deletion: how far that is.

    load: what its schedules come to, where that was asked for.
    """

    name: str
    tenant: Tenant
    plan: TenantPlan
    deletion: Deletion | None = None
    load: Load | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReport:
    """What a tenant has used on each of some days on which there was anything, and what its schedules come to now.

    backlog: what waits for its cap; None where it has none, or that cannot be known.
    """

    name: str
    days: Days
    used: Mapping[date, Usage]
    plan: TenantPlan
    load: Load
    backlog: Backlog | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantManager:
    """The verbs of tenants. plans: the limits of the stage's plans by their names. caller: who asks, for the audit line.

    backlogs: what of a tenant waits for its cap.
    seen: the version that somebody changes; None for whichever there is. Changes raise TenantChanged where it is another
    by now, and TenantBusy.
    """

    clock: Clock
    store: TenantStore
    usage: UsageStore
    deletions: DeletionStore
    schedules: ScheduleStore
    journal: Journal
    plans: Mapping[str, Limits]
    audit: AuditTrail
    backlogs: Callable[[str], Backlog | None] = lambda _: None

    def get(self, name: str) -> TenantInEffect:
        """Any tenant, whether it has a row or not. Raises InvalidInput for what is no tenant's id."""
        tenant = self.store.get(check_tenant(name)) or Tenant()
        deletion = self.deletions.get(name) if tenant.status is TenantStatus.DELETING else None
        return replace(self._in_effect(name, tenant, deletion), load=self.schedules.load(name))

    def page(self, *, after: str, limit: int) -> tuple[list[TenantInEffect], str | None]:
        """Tenants that have a row, in the order of their names; where the next page begins, None at the end."""
        found, has_more = self.store.page(after=after, limit=limit)
        listed = [self._in_effect(name, tenant) for name, tenant in found.items()]
        return listed, listed[-1].name if has_more and listed else None

    def used(self, name: str, *, first: date | None, last: date | None) -> UsageReport:
        """What it has used on each of these days: until today unless it is said. Raises InvalidInput."""
        days = days_asked(first, last, today=self.clock.now().date())
        tenant = self.store.get(check_tenant(name)) or Tenant()
        return UsageReport(
            name=name,
            days=days,
            used=self.usage.days(name, days),
            plan=tenant.plan_among(self.plans),
            load=self.schedules.load(name),
            backlog=self.backlogs(name),
        )

    def put(self, name: str, values: changes.TenantValues, *, seen: int | None, caller: str) -> TenantInEffect:
        """Replace all but the status. Raises InvalidInput, TenantDeleted while it is being deleted."""
        check_new_tenant(name)
        edit = partial(changes.replaced, values=values, plans=self.plans)
        return self._in_effect(name, self._change(name, edit, action=ActionName.TENANT_PUT, seen=seen, caller=caller))

    def patch(self, name: str, patch: changes.TenantPatch, *, seen: int | None, caller: str) -> TenantInEffect:
        """Change parts. Raises InvalidInput, TenantDeleted."""
        check_tenant(name)
        edit = partial(changes.patched, patch=patch, plans=self.plans)
        return self._in_effect(name, self._change(name, edit, action=ActionName.TENANT_PATCH, seen=seen, caller=caller))

    def turn(self, name: str, status: TenantStatus, *, note: str, seen: int | None, caller: str) -> TenantInEffect:
        """Give it another status. Raises InvalidInput, TenantDeleted, TenantClosed."""
        check_tenant(name)
        edit = partial(changes.with_status, status=status, note=note)
        return self._in_effect(name, self._change(name, edit, action=_TURNS[status], seen=seen, caller=caller))

    def delete(self, name: str, *, confirm: str, keeps_ledger: bool, caller: str) -> TenantInEffect:
        """Begin to delete it with all that there is of it; once more, and it continues as it was begun.

        confirm: its id again. keeps_ledger: its ledger rows go by their ttl. Raises InvalidInput, TenantDeleted once it is.
        """
        check_tenant(name)
        if confirm != name:
            raise InvalidInput(f"confirm is {confirm[:80]!r}, but must be {name!r}, the tenant that is to be deleted")

        def edit(name: str, tenant: Tenant, *, now: datetime) -> Tenant:
            return changes.with_status(name, tenant, TenantStatus.DELETING, note=tenant.note, now=now)

        tenant = self._change(name, edit, action=ActionName.TENANT_DELETE, seen=None, caller=caller)
        assert tenant.status_since is not None  # it has this status
        # Behind the change: what dies in between is begun again by whoever asks again.
        deletion = self.deletions.begin(Deletion(tenant=name, since=tenant.status_since, keeps_ledger=keeps_ledger))
        return self._in_effect(name, tenant, deletion)

    def turn_stage(self, status: TenantStatus, *, note: str, seen: int | None, caller: str) -> Tenant:
        """Pause everybody, or end that: what each tenant's own status is stays."""
        edit = partial(changes.with_status, status=status, note=note)
        return self._change(EVERYBODY, edit, action=_STAGE_TURNS[status], seen=seen, caller=caller)

    def _change(self, name: str, edit: Edit, *, action: ActionName, seen: int | None, caller: str) -> Tenant:
        shown = _THE_STAGE if name == EVERYBODY else f"tenant {name}"
        for _ in range(_TRIES):
            before = self.store.get(name) or Tenant()
            changes.check_version(shown, before, seen)
            after = edit(name, before, now=to_the_millisecond(self.clock.now()))
            if after != before and not self.store.change(name, after, seen=before.version):
                continue
            states = {"before": _described(before), "after": _described(after)}
            if after != before:
                self.journal.event(
                    "tenant_changed", caller=caller, tenant=name, what=action.value.rpartition(".")[2], **states
                )
            # Also where nothing has changed: whoever repeats a request may have got no answer, and its line may be lost.
            tenant = "" if name == EVERYBODY else name
            self.audit.note(Action(action=action, caller=caller, tenant=tenant, subject=tenant, **states))
            return after
        raise TenantBusy(shown)

    def _in_effect(self, name: str, tenant: Tenant, deletion: Deletion | None = None) -> TenantInEffect:
        return TenantInEffect(name=name, tenant=tenant, plan=tenant.plan_among(self.plans), deletion=deletion)


def _described(tenant: Tenant) -> Any:
    """A row for the log: what has its usual value is left out."""
    return json.loads(encode_tenant(tenant))
