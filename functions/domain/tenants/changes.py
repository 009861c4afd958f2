"""How the row of a tenant changes: what is replaced, what is kept, and which status follows which.

    active <-> paused            a pause, and its end
    active, paused -> draining   it takes nothing in any more, and what it has runs
    draining -> active
    any -> deleting -> deleted   all of it is forgotten
    deleted -> active            only by replacing the whole row

A change that changes nothing gives back the very row: there is nothing to write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from functions.domain.errors import InvalidInput, TenantChanged, TenantClosed, TenantDeleted
from functions.domain.instants import MINUTE
from functions.domain.tenants.access import check_pattern
from functions.domain.tenants.plan import Limits, Tenant, TenantStatus, check_limit_names

EFFECTIVE_AFTER = MINUTE
"""When every process acts by a change: each reads the rows again within half of it."""

FORGOTTEN_AFTER = timedelta(days=15)
"""After its deletion a tenant may be there again: by then no queue has a message of it that a worker would take for new."""

TRANSITIONS: Mapping[TenantStatus, frozenset[TenantStatus]] = {
    TenantStatus.ACTIVE: frozenset({TenantStatus.PAUSED, TenantStatus.DRAINING, TenantStatus.DELETING}),
    TenantStatus.PAUSED: frozenset({TenantStatus.ACTIVE, TenantStatus.DRAINING, TenantStatus.DELETING}),
    TenantStatus.DRAINING: frozenset({TenantStatus.ACTIVE, TenantStatus.DELETING}),
    TenantStatus.DELETING: frozenset({TenantStatus.DELETED}),
    TenantStatus.DELETED: frozenset(),
}
"""Which status may follow which, but for the way back of a deleted tenant, which is `replaced`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantValues:
    """All that an operator says of a tenant beside its status."""

    plan: str
    limits: Limits
    principals: tuple[str, ...]
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantPatch:
    """Parts of it; None is not said. limits: by their names, None takes one of its own away."""

    plan: str | None = None
    limits: Mapping[str, Any] | None = None
    drops_limits: bool = False
    principals: tuple[str, ...] | None = None
    note: str | None = None


def replaced(name: str, tenant: Tenant, values: TenantValues, *, plans: Mapping[str, Limits], now: datetime) -> Tenant:
    """With these values and no others. A deleted tenant is active again; any other keeps its status.

    plans: of the stage. Raises InvalidInput, and TenantDeleted while it is being deleted, and until it is forgotten.
    """
    if tenant.status is TenantStatus.DELETING:
        raise TenantDeleted(name, is_over=False)
    if tenant.status is TenantStatus.DELETED and tenant.status_since and now < tenant.status_since + FORGOTTEN_AFTER:
        raise TenantDeleted(name, is_over=True, until=tenant.status_since + FORGOTTEN_AFTER)
    check_plan(values.plan, plans)
    _check_principals(values.principals)
    edited = replace(tenant, plan=values.plan, limits=values.limits, principals=values.principals, note=values.note)
    if tenant.status is TenantStatus.DELETED:
        edited = replace(edited, status=TenantStatus.ACTIVE, status_since=now)
    # A tenant that is written down for the first time has changed, even where its values are the usual ones.
    return edited if edited == tenant and tenant.version else _next(edited, now=now)


def patched(name: str, tenant: Tenant, patch: TenantPatch, *, plans: Mapping[str, Limits], now: datetime) -> Tenant:
    """With the given parts. Raises InvalidInput, and TenantDeleted."""
    if tenant.status in (TenantStatus.DELETING, TenantStatus.DELETED):
        raise TenantDeleted(name, is_over=tenant.status is TenantStatus.DELETED)
    if patch.plan is not None:
        check_plan(patch.plan, plans)
    if patch.principals is not None:
        _check_principals(patch.principals)
    edited = replace(
        tenant,
        plan=tenant.plan if patch.plan is None else patch.plan,
        limits={} if patch.drops_limits else _merged(tenant.limits, patch.limits or {}),
        principals=tenant.principals if patch.principals is None else patch.principals,
        note=tenant.note if patch.note is None else patch.note,
    )
    return tenant if edited == tenant else _next(edited, now=now)


def with_status(name: str, tenant: Tenant, status: TenantStatus, *, note: str, now: datetime) -> Tenant:
    """In another status, for this reason. The one that it has, said again, changes at most its reason.

    Raises TenantDeleted, and TenantClosed for a pause of what is draining.
    """
    if tenant.status is status:
        is_known = tenant.note == note or status is TenantStatus.ACTIVE
        return tenant if is_known else _next(replace(tenant, note=note), now=now)
    if status not in TRANSITIONS[tenant.status]:
        if tenant.status in (TenantStatus.DELETING, TenantStatus.DELETED):
            raise TenantDeleted(name, is_over=tenant.status is TenantStatus.DELETED)
        raise TenantClosed(name, tenant.status.value)
    return _next(replace(tenant, status=status, status_since=now, note=note), now=now)


def check_version(shown: str, tenant: Tenant, seen: int | None) -> None:
    """What somebody changes is what he has seen. shown: what it is, for people. Raises TenantChanged."""
    if seen is not None and seen != tenant.version:
        raise TenantChanged(shown, seen=seen, version=tenant.version)


def check_plan(plan: str, plans: Mapping[str, Limits]) -> None:
    """The stage has a plan of this name. Raises InvalidInput, with the names there are."""
    if plan not in plans:
        raise InvalidInput(
            f"plan is {plan[:80]!r}, which this stage does not have: use one of {', '.join(sorted(plans))}"
        )


def _check_principals(principals: tuple[str, ...]) -> None:
    for principal in principals:
        check_pattern(principal)


def _merged(limits: Limits, patch: Mapping[str, Any]) -> Limits:
    # Also where one is taken away: a name that is misspelt would take away nothing.
    check_limit_names(patch)
    return {name: value for name, value in {**limits, **patch}.items() if value is not None}


def _next(tenant: Tenant, *, now: datetime) -> Tenant:
    return replace(tenant, version=tenant.version + 1, changed_at=now)
