"""The command `tickwheel status`: how the stage does."""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.live import Live

from tickwheel.client import Client
from tickwheel.health import Health
from tickwheel.instants import format_instant
from tickwheel.options import EndpointOption, JsonOption, RegionOption
from tickwheel.status_screen import screen_of
from tickwheel.terminal import REFUSED, failing_politely

_WELL = frozenset({"ok", "paused"})


def status(
    watch: Annotated[bool, typer.Option("--watch", help="Look again and again, until Ctrl-C.")] = False,
    every: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="How often, with --watch.")] = 5.0,
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how the stage does: shards, queues, budgets, breakers and pauses. Exit code 1: behind, or unknown."""
    last: Health | None = None
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client, suppress(KeyboardInterrupt):
        for health in _shown(_looks(client, every=every if watch else None), as_json=as_json, in_place=watch):
            last = health
    if last is not None and last.status not in _WELL:
        raise typer.Exit(REFUSED)


def _looks(client: Client, *, every: float | None) -> Iterator[Health]:
    """every: seconds from one to the next; None for a single one."""
    yield client.health()
    while every is not None:
        time.sleep(every)
        yield client.health()


def _shown(looks: Iterator[Health], *, as_json: bool, in_place: bool) -> Iterator[Health]:
    console = Console()
    if as_json or not (in_place and console.is_terminal):
        for health in looks:
            if as_json:
                typer.echo(json.dumps(_as_json(asdict(health))))
            else:
                console.print(screen_of(health))
            yield health
        return
    with Live(console=console, screen=True, auto_refresh=False) as live:
        for health in looks:
            live.update(screen_of(health), refresh=True)
            yield health


def _as_json(value: Any) -> Any:
    """Instants in RFC 3339, durations in seconds."""
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, dict):
        return {name: _as_json(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(each) for each in value]
    return value
