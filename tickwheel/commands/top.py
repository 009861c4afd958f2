"""The command `tickwheel top`: what goes on in the stage, as long as one looks."""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live

from tickwheel.client import Client
from tickwheel.client.health import Health
from tickwheel.commands.api import Api, fields_of
from tickwheel.commands.registry import commands
from tickwheel.screens.top import top_of

_USUALLY_EVERY = 5.0


@commands.add()
def top(
    *,
    every: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            metavar="SECONDS",
            help="Seconds between updates. Default: 5, or a single one without a terminal.",
            show_default=False,
        ),
    ] = None,
    api: Api,
) -> None:
    """Watch rates, lag, queues, breakers and the busiest tenants, until Ctrl-C."""
    console = Console()
    if every is None and console.is_terminal:
        every = _USUALLY_EVERY
    with suppress(KeyboardInterrupt):
        looks = _looks(api.client, every=every)
        if api.as_json:
            for health in looks:
                typer.echo(json.dumps({**fields_of(health), **api.place.as_json}))
        elif console.is_terminal:
            with Live(console=console, screen=True, auto_refresh=False) as live:
                for health in looks:
                    live.update(top_of(health, where=api.where(health.stage)), refresh=True)
        else:
            for health in looks:
                console.print(top_of(health, where=api.where(health.stage)))


def _looks(client: Client, *, every: float | None) -> Iterator[Health]:
    """every: seconds from one to the next; None for a single one."""
    yield client.health()
    while every is not None:
        time.sleep(every)
        yield client.health()
