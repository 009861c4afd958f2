"""The command `tickwheel status`: how the stage does."""

import json
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

import typer
from rich.console import Console

from tickwheel.client import Client
from tickwheel.client.instants import format_instant
from tickwheel.commands.options import EndpointOption, JsonOption, RegionOption
from tickwheel.commands.terminal import REFUSED, failing_politely
from tickwheel.screens.status import screen_of

_WELL = frozenset({"ok", "paused"})


def status(
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how the stage does: shards, queues, budgets, breakers and pauses. Exit code 1: behind, or unknown."""
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        health = client.health()
    if as_json:
        typer.echo(json.dumps(as_json_value(asdict(health))))
    else:
        Console().print(screen_of(health))
    if health.status not in _WELL:
        raise typer.Exit(REFUSED)


def as_json_value(value: Any) -> Any:
    """Instants in RFC 3339, durations in seconds."""
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, dict):
        return {name: as_json_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_json_value(each) for each in value]
    return value
