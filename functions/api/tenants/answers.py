"""What the API answers about tenants: bodies from what the rules found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, cast

from functions.api.http.answers import without_empty
from functions.api.tenants.manager import TenantStanding, UsageStanding
from functions.domain.instants import format_instant
from functions.domain.schedules.load import Load
from functions.domain.targets.webhooks import WebhookKey
from functions.domain.tenants.changes import EFFECTIVE_AFTER
from functions.domain.tenants.deletion import Deletion, Part
from functions.domain.tenants.plan import LIMIT_NAMES, Tenant, TenantPlan, write_limits
from functions.domain.tenants.usage import Usage

if TYPE_CHECKING:
    from functions.api.tenants import shapes


def tenant_body(standing: TenantStanding) -> shapes.Tenant:
    """A tenant as it stands; what there is not, because it was never changed, is left out."""
    tenant = standing.tenant
    body: shapes.Tenant = {
        "tenant": standing.name,
        "plan": tenant.plan,
        "limits": write_limits(standing.plan),
        "own_limits": [name for name in LIMIT_NAMES if name in tenant.limits],
        "principals": list(tenant.principals),
        **status_body(tenant),
    }
    if standing.load is not None:
        body["schedules"] = _load_body(standing.load, standing.plan)
    if standing.deletion is not None:
        body["deletion"] = _deletion_body(standing.deletion)
    return body


def _load_body(load: Load, plan: TenantPlan) -> shapes.Load:
    limits = write_limits(plan)
    return {
        "count": load.schedules,
        "fires_per_minute": round(load.fires_per_minute, 2),
        "max_schedules": limits["max_schedules"],
        "max_fires_per_minute": limits["max_fires_per_minute"],
    }


def _deletion_body(deletion: Deletion) -> shapes.Deletion:
    return {
        "part": deletion.part.value if deletion.part is not None else None,
        "deleted": {part.value: deletion.deleted.get(part.value, 0) for part in Part},
        "ledger": "ttl" if deletion.keeps_ledger else "scan",
    }


def tenants_body(standings: Sequence[TenantStanding], *, after: str | None) -> shapes.Tenants:
    """A page of a list."""
    return {"tenants": [tenant_body(standing) for standing in standings], "next": after}


def usage_body(standing: UsageStanding) -> shapes.Usage:
    """What a tenant has used; a day on which there was nothing is left out."""
    body: shapes.Usage = {
        "tenant": standing.name,
        "from": standing.days.first.isoformat(),
        "until": standing.days.last.isoformat(),
        "days": [{"day": day.isoformat(), **_figures_body(usage)} for day, usage in standing.used.items()],
        "total": _figures_body(sum(standing.used.values(), Usage())),
        "schedules": _load_body(standing.load, standing.plan),
    }
    if standing.plan.has_rate:
        body["cap"] = _cap_body(standing)
    return body


def _figures_body(usage: Usage) -> shapes.UsageFigures:
    return cast("shapes.UsageFigures", asdict(usage))


def _cap_body(standing: UsageStanding) -> shapes.Cap:
    """What waits for the cap of its rate, and whether its schedules alone fire more than that serves."""
    backlog, rate = standing.backlog, standing.plan.execution_rate
    return {
        "execution_rate": rate,
        "waiting": backlog.count if backlog is not None else None,
        "waiting_days": round(backlog.takes / timedelta(days=1), 1) if backlog is not None else None,
        "is_exceeded_by_schedules": standing.load.exceeds(rate),
    }


def status_body(tenant: Tenant) -> shapes.StageStatus:
    """The status of a row. in_effect_by: when everything acts by its last change."""
    changed_at = tenant.changed_at
    body: shapes.StageStatus = {
        "status": tenant.status.value,
        "note": tenant.note,
        "version": tenant.version,
        "status_since": format_instant(tenant.status_since) if tenant.status_since else "",
        "changed_at": format_instant(changed_at) if changed_at else "",
        "in_effect_by": format_instant(changed_at + EFFECTIVE_AFTER) if changed_at else "",
    }
    return without_empty(body, "status_since", "changed_at", "in_effect_by")


def webhook_keys_body(keys: Sequence[WebhookKey]) -> shapes.WebhookKeys:
    """A tenant's keys, the current one first."""
    return {"keys": [{"id": key.id, "secret": key.shown} for key in keys]}
