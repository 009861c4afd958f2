"""The command that prints what a tenant has used: `tickwheel tenant usage`."""

import json
from dataclasses import asdict, fields
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from tickwheel.client import Client
from tickwheel.client.tenants import Cap, Figures, ScheduleLoad, Usage
from tickwheel.commands.options import EndpointOption, JsonOption, RegionOption
from tickwheel.commands.terminal import failing_politely

_FIGURES = tuple(field.name for field in fields(Figures))


def show_usage(
    tenant: Annotated[str, typer.Argument(metavar="ID")],
    days: Annotated[int, typer.Option(min=1, max=400, help="So many UTC days until today.")] = 30,
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a tenant has used, day by day, about."""
    today = datetime.now(UTC).date()
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        found = client.tenants.usage(tenant, first=today - timedelta(days=days - 1), last=today)
    if as_json:
        typer.echo(json.dumps(_as_json(found)))
    else:
        Console().print(_table(found))
        if found.schedules is not None:
            typer.echo(_told(found.schedules))
        if found.cap is not None:
            typer.echo(_told_of_cap(found.cap))


def _told(load: ScheduleLoad) -> str:
    return (
        f"now: {load.count:,} schedules of {_limit(load.max_schedules)}, "
        f"{load.fires_per_minute:,g} fires a minute of {_limit(load.max_fires_per_minute)}"
    )


def _told_of_cap(cap: Cap) -> str:
    waiting = (
        f"{cap.waiting:,} jobs wait for it, which take {cap.waiting_days:g} days"
        if cap.waiting is not None
        else "what waits for it is not known just now"
    )
    never = "; the schedules fire more than it serves, so what waits only grows" if cap.is_exceeded_by_schedules else ""
    return f"cap: {cap.execution_rate:g} executions a second; {waiting}{never}"


def _limit(limit: float | str) -> str:
    return limit if isinstance(limit, str) else f"{limit:,g}"


def _table(found: Usage) -> Table:
    table = Table(box=None, pad_edge=False, show_footer=True)
    table.add_column("day", footer=f"{found.first} to {found.last}")
    for name in _FIGURES:
        table.add_column(name, justify="right", footer=f"{getattr(found.total, name):,}")
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
