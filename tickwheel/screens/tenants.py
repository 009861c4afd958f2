"""Tenants as tables for people."""

from collections.abc import Iterable

from rich.markup import escape
from rich.table import Table

from tickwheel.client.instants import format_instant
from tickwheel.client.tenants import LIMITS, Tenant
from tickwheel.screens.tables import fields_table, folded, plain_table


def tenants_table(tenants: Iterable[Tenant]) -> Table:
    """A row a tenant."""
    table = plain_table(*folded("tenant", "plan", "status", "limits of its own", "principals"))
    for tenant in tenants:
        own = ", ".join(f"{name} {tenant.limits[name]}" for name in tenant.own_limits)
        principals = "\n".join(tenant.principals)
        table.add_row(tenant.tenant, escape(tenant.plan), escape(_status_text(tenant)), own, escape(principals))
    return table


def tenant_table(tenant: Tenant) -> Table:
    """All that is known of a tenant."""
    deletion, schedules = tenant.deletion, tenant.schedules
    deleted = (f"{count:,} {part}" for part, count in deletion.deleted.items() if count) if deletion else ()
    return fields_table(
        {
            "tenant": tenant.tenant,
            "status": _status_text(tenant),
            "plan": tenant.plan,
            # A stage of another version may have fewer.
            **{name: _limit_text(tenant, name) for name in LIMITS if name in tenant.limits},
            "principals": "\n".join(tenant.principals) or "operators only",
            "version": tenant.version,
            "in effect by": format_instant(tenant.in_effect_by) if tenant.in_effect_by else None,
            "schedules": f"{schedules.count:,}" if schedules else None,
            "fires per minute": f"{schedules.fires_per_minute:,g}" if schedules else None,
            "deleting": (deletion.part or "its row") if deletion else None,
            "deleted so far": (", ".join(deleted) or "nothing") if deletion else None,
        }
    )


def _limit_text(tenant: Tenant, name: str) -> str:
    return f"{tenant.limits[name]}{' (own)' if name in tenant.own_limits else ''}"


def _status_text(tenant: Tenant) -> str:
    return f"{tenant.status}: {tenant.note}" if tenant.note else tenant.status
