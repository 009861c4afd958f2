"""What the API answers about tenants: bodies from what the rules found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from typing import Any

from functions.api.tenants import TenantStanding
from functions.domain.deletion import Deletion, Part
from functions.domain.instants import format_instant
from functions.domain.tenant_change import EFFECTIVE_AFTER
from functions.domain.tenant_plan import LIMIT_NAMES, Tenant, write_limits
from functions.domain.usage import Days, Usage


def tenant_body(standing: TenantStanding) -> dict[str, Any]:
    """A tenant as it stands; what there is not, because it was never changed, is left out."""
    tenant = standing.tenant
    return {
        "tenant": standing.name,
        "plan": tenant.plan,
        "limits": write_limits(standing.plan),
        "own_limits": [name for name in LIMIT_NAMES if name in tenant.limits],
        "principals": list(tenant.principals),
        **status_body(tenant),
        **({"deletion": _deletion_body(standing.deletion)} if standing.deletion is not None else {}),
    }


def _deletion_body(deletion: Deletion) -> dict[str, Any]:
    return {
        "part": deletion.part.value if deletion.part is not None else None,
        "deleted": {part.value: deletion.deleted.get(part.value, 0) for part in Part},
        "ledger": "ttl" if deletion.keeps_ledger else "scan",
    }


def tenants_body(standings: Sequence[TenantStanding], *, after: str | None) -> dict[str, Any]:
    """A page of a list."""
    return {"tenants": [tenant_body(standing) for standing in standings], "next": after}


def usage_body(name: str, days: Days, used: Mapping[date, Usage]) -> dict[str, Any]:
    """What a tenant has used; a day on which there was nothing is left out."""
    return {
        "tenant": name,
        "from": days.first.isoformat(),
        "until": days.last.isoformat(),
        "days": [{"day": day.isoformat(), **asdict(usage)} for day, usage in used.items()],
        "total": asdict(sum(used.values(), Usage())),
    }


def status_body(tenant: Tenant) -> dict[str, Any]:
    """The status of a row. in_effect_by: when everything acts by its last change."""
    changed_at = tenant.changed_at
    known = {
        "status_since": format_instant(tenant.status_since) if tenant.status_since else None,
        "changed_at": format_instant(changed_at) if changed_at else None,
        "in_effect_by": format_instant(changed_at + EFFECTIVE_AFTER) if changed_at else None,
    }
    return {
        "status": tenant.status.value,
        "note": tenant.note,
        "version": tenant.version,
        **{name: value for name, value in known.items() if value is not None},
    }
