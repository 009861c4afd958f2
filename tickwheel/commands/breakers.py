"""The commands about circuit breakers: `tickwheel breakers` and `tickwheel breaker reset`."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tickwheel.client import Client
from tickwheel.client.breakers import Breaker
from tickwheel.client.instants import format_instant
from tickwheel.commands.options import EndpointOption, JsonOption, RegionOption
from tickwheel.commands.terminal import failing_politely

app = typer.Typer(help="Change the circuit breaker of a destination.", no_args_is_help=True)

TenantArgument = Annotated[str, typer.Argument(metavar="TENANT")]
_STYLES = {"open": "red", "half_open": "yellow"}


def breakers(
    tenant: TenantArgument,
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the destinations that a tenant's jobs leave alone because they fail."""
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        found = list(client.breakers(tenant))
    if as_json:
        typer.echo(json.dumps({"breakers": [_as_json(breaker) for breaker in found]}))
    elif found:
        Console().print(_table(found))
    else:
        typer.echo(f"every breaker of {tenant} is closed")


@app.command()
def reset(
    tenant: TenantArgument,
    destination: Annotated[
        str,
        typer.Argument(metavar="DESTINATION", help="As `tickwheel breakers` lists it, or a target that goes there."),
    ],
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Close a breaker now: the jobs of its destination run again."""
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        was_open = client.reset_breaker(tenant, destination)
    if as_json:
        typer.echo(json.dumps({"tenant": tenant, "destination": destination, "was_closed": not was_open}))
    elif was_open:
        typer.echo(f"closed the breaker of {tenant} for {destination}")
    else:
        typer.echo(
            f"the breaker of {tenant} for {destination} was closed already; `tickwheel breakers {tenant}` lists them"
        )


def _table(found: Iterable[Breaker]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("destination", "state", "until", "open since", "error"):
        table.add_column(heading, overflow="fold")
    for breaker in found:
        style = _STYLES.get(breaker.state, "")
        table.add_row(
            escape(breaker.destination),
            f"[{style}]{breaker.state}[/{style}]" if style else escape(breaker.state),
            f"{breaker.until:%Y-%m-%d %H:%M:%S}",
            f"{breaker.opened_at:%Y-%m-%d %H:%M:%S}",
            escape(breaker.error_class),
        )
    return table


def _as_json(breaker: Breaker) -> dict[str, str]:
    return {
        name: format_instant(value) if isinstance(value, datetime) else value for name, value in asdict(breaker).items()
    }
