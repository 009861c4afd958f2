"""The command that prints what a tenant has used: `tickwheel tenant usage`."""

from dataclasses import asdict, fields
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from tickwheel.client.tenants import Cap, Figures, ScheduleLoad, Usage
from tickwheel.commands.api import Api
from tickwheel.commands.tenants import TenantArgument, group
from tickwheel.screens.tables import plain_table

_FIGURES = tuple(field.name for field in fields(Figures))


@group.add("usage")
def show_usage(
    tenant: TenantArgument,
    days: Annotated[int, typer.Option(min=1, max=400, help="Number of UTC days, up to today.")] = 30,
    *,
    api: Api,
) -> None:
    """Show the approximate usage of a tenant by day."""
    today = datetime.now(UTC).date()
    found = api.client.tenants.usage(tenant, first=today - timedelta(days=days - 1), last=today)
    notes = [
        *([_load_text(found.schedules)] if found.schedules is not None else []),
        *([_cap_text(found.cap)] if found.cap is not None else []),
    ]
    api.print(_as_json(found), _table(found), *notes)


def _load_text(load: ScheduleLoad) -> str:
    return (
        f"now: {load.count:,} schedules of {_limit(load.max_schedules)}, "
        f"{load.fires_per_minute:,g} fires a minute of {_limit(load.max_fires_per_minute)}"
    )


def _cap_text(cap: Cap) -> str:
    waiting = (
        f"{cap.waiting:,} jobs wait for it, and take {cap.waiting_days:g} days to run"
        if cap.waiting is not None
        else "the number of waiting jobs is currently unknown"
    )
    never = (
        "; the schedules fire faster than it allows, so the backlog only grows" if cap.is_exceeded_by_schedules else ""
    )
    return f"cap: {cap.execution_rate:g} executions a second; {waiting}{never}"


def _limit(limit: float | str) -> str:
    return limit if isinstance(limit, str) else f"{limit:,g}"


def _table(found: Usage) -> Table:
    totals = (Column(name, justify="right", footer=f"{getattr(found.total, name):,}") for name in _FIGURES)
    table = plain_table(Column("day", footer=f"{found.first} to {found.last}"), *totals)
    table.show_footer = True
    for day, figures in found.days.items():
        table.add_row(day.isoformat(), *(f"{getattr(figures, name):,}" for name in _FIGURES))
    return table


def _as_json(found: Usage) -> dict[str, Any]:
    return {
        "tenant": found.tenant,
        "from": found.first.isoformat(),
        "until": found.last.isoformat(),
        "days": [{"day": day.isoformat(), **asdict(figures)} for day, figures in found.days.items()],
        "total": asdict(found.total),
        **({"schedules": asdict(found.schedules)} if found.schedules is not None else {}),
        **({"cap": asdict(found.cap)} if found.cap is not None else {}),
    }
