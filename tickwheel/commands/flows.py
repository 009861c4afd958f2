"""The commands about flows: `tickwheel flow ...`."""

from collections.abc import Iterable
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from tickwheel.client.flows import FlowLimits
from tickwheel.commands.api import Api, fields_of
from tickwheel.commands.registry import commands
from tickwheel.commands.terminal import usage
from tickwheel.errors import InvalidJob
from tickwheel.screens.tables import folded, plain_table, right

group = commands.group("flow", about="Show and set the rate and the concurrency that jobs share which name a key.")

KeyArgument = Annotated[str, typer.Argument(metavar="KEY", help="The key by which jobs name the flow.")]
TenantOption = Annotated[
    str | None, typer.Option(help="Whose flow it is. Without it: the stage's, for operators.", show_default=False)
]


@group.add("set")
def set_limits(
    key: KeyArgument,
    *,
    tenant: TenantOption = None,
    rate: Annotated[
        str | None, typer.Option(help="Calls that may start in a unit of time: 10/s, 60/min, 500/h, 1000/d.")
    ] = None,
    burst: Annotated[int | None, typer.Option(help="Calls that may start at once after a while of none.")] = None,
    concurrency: Annotated[int | None, typer.Option(help="Calls that may run at the same time.")] = None,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="Run its jobs one after the other, by their due times.")
    ] = False,
    api: Api,
) -> None:
    """Set the limits of a flow, in place of those before."""
    if rate is None and concurrency is None and not ordered:
        usage(
            "--rate, --concurrency or both are required, or --ordered: tickwheel flow set stripe --rate 60/min --tenant acme"
        )
    try:
        limits = api.client.set_flow(
            key, tenant=tenant, rate=rate, burst=burst, concurrency=concurrency, ordered=ordered or None
        )
    except InvalidJob as invalid:
        usage(str(invalid))
    api.print_fields(limits)


@group.add()
def show(key: KeyArgument, *, tenant: TenantOption = None, api: Api) -> None:
    """Show a flow: its limits, how many jobs wait for it, and when the next one may start."""
    api.print_fields(api.client.flow(key, tenant=tenant))


@group.add("list")
def list_flows(*, tenant: TenantOption = None, api: Api) -> None:
    """List the flows whose limits were set."""
    found = list(api.client.flows(tenant=tenant))
    whose = "the stage" if tenant is None else tenant
    shown = _table(found) if found else f"no flow of {whose} has limits"
    api.print({"flows": [fields_of(flow) for flow in found]}, shown)


@group.add()
def delete(
    key: KeyArgument,
    *,
    tenant: TenantOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
    api: Api,
) -> None:
    """Delete the limits of a flow: those that its jobs bring along apply again."""
    whose = "the stage" if tenant is None else tenant
    api.confirm(f"Delete the limits of the flow {key} of {whose}?", yes=yes)
    was_set = api.client.delete_flow(key, tenant=tenant)
    said = f"deleted the limits of flow {key}" if was_set else f"flow {key} had no limits"
    api.print({"tenant": tenant, "key": key, "was_set": was_set}, said)


def _table(found: Iterable[FlowLimits]) -> Table:
    table = plain_table(*folded("key", "rate"), *right("burst", "concurrency"))
    for flow in found:
        counts = ("" if count is None else str(count) for count in (flow.burst, flow.concurrency))
        table.add_row(escape(flow.key), flow.rate or "", *counts)
    return table
