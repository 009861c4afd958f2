"""The commands about contexts: `tickwheel context ...`."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from tickwheel.client.contexts import (
    LOCAL,
    Context,
    add_context,
    context_in_use,
    list_contexts,
    remove_context,
    use_context,
)
from tickwheel.commands.api import Output
from tickwheel.commands.registry import commands
from tickwheel.local.state import read_running
from tickwheel.screens.tables import folded, plain_table

group = commands.group("context", about="Name the schedulers that you work with, and say which one commands use.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help=f"Name of the context, or {LOCAL}: the local cloud.")]


@group.add()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the context, such as prod.")],
    *,
    endpoint: Annotated[str, typer.Option(help="Address of the API: ApiEndpoint of the deployment.")],
    profile: Annotated[str | None, typer.Option(help="Profile of AWS that requests are signed with.")] = None,
    region: Annotated[str | None, typer.Option(help="Region to sign for. Default: the region in the address.")] = None,
    output: Output,
) -> None:
    """Add a context. It contains no secrets, and is in your folder of settings."""
    context = Context(name=name, endpoint=endpoint, profile=profile, region=region)
    add_context(context)
    hint = "" if context_in_use() == name else f"; `tickwheel context use {name}` makes commands use it"
    output.print(asdict(context), f"added {name} ({context.endpoint}){hint}")


@group.add()
def use(name: NameArgument, *, output: Output) -> None:
    """Use a context in commands that name none."""
    use_context(name)
    output.print({"context": name}, f"commands use {name}")


@group.add("list")
def list_all(*, output: Output) -> None:
    """List the contexts. That in use has a mark."""
    found, in_use = list_contexts(), context_in_use()
    body = [{**asdict(context), "in_use": context.name == in_use} for context in found]
    output.print({"contexts": body, "in_use": in_use}, _table(found, in_use))


@group.add()
def remove(name: NameArgument, *, output: Output) -> None:
    """Remove a context."""
    was_in_use = context_in_use() == name
    remove_context(name)
    output.print({"removed": name}, f"removed {name}" + (": no context is in use now" if was_in_use else ""))


def _table(found: list[Context], in_use: str | None) -> Table:
    table = plain_table(*folded("", "context", "endpoint", "profile", "region"))
    for each in found:
        cells = (each.name, each.endpoint, each.profile or "", each.region or "")
        table.add_row("*" if each.name == in_use else "", *map(escape, cells))
    running = read_running()
    local = running.api_endpoint if running is not None else None
    table.add_row("*" if in_use == LOCAL else "", LOCAL, escape(local or "does not run"), "", "")
    return table
