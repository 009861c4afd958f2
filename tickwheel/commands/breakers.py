"""The commands about circuit breakers: `tickwheel breakers` and `tickwheel breaker reset`."""

from collections.abc import Iterable
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from tickwheel.client.breakers import Breaker
from tickwheel.commands.api import Api, fields_of
from tickwheel.commands.registry import commands
from tickwheel.screens.tables import folded, plain_table

group = commands.group("breaker", about="Change the circuit breaker of a destination.")

TenantArgument = Annotated[str, typer.Argument(metavar="TENANT")]
_STYLES = {"open": "red", "half_open": "yellow"}


@commands.add()
def breakers(tenant: TenantArgument, *, api: Api) -> None:
    """List the destinations of a tenant whose breaker is not closed."""
    found = list(api.client.breakers(tenant))
    shown = _table(found) if found else f"every breaker of {tenant} is closed"
    api.print({"breakers": [fields_of(breaker) for breaker in found]}, shown)


@group.add()
def reset(
    tenant: TenantArgument,
    destination: Annotated[
        str,
        typer.Argument(
            metavar="DESTINATION", help="As listed by `tickwheel breakers`, or a target at that destination."
        ),
    ],
    *,
    api: Api,
) -> None:
    """Reset a breaker: close it now, so that jobs call its destination again."""
    was_open = api.client.reset_breaker(tenant, destination)
    breaker = f"the breaker of {tenant} for {destination}"
    was_closed = f"{breaker} was closed already; `tickwheel breakers {tenant}` lists them"
    api.print(
        {"tenant": tenant, "destination": destination, "was_closed": not was_open},
        f"closed {breaker}" if was_open else was_closed,
    )


def _table(found: Iterable[Breaker]) -> Table:
    table = plain_table(*folded("destination", "state", "until", "open since", "error"))
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
