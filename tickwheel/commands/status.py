"""The command `tickwheel status`: how the stage does."""

import typer

from tickwheel.commands.api import Api, fields_of
from tickwheel.commands.registry import commands
from tickwheel.commands.terminal import REFUSED
from tickwheel.screens.status import screen_of

_WELL = frozenset({"ok", "paused"})


@commands.add()
def status(*, api: Api) -> None:
    """Show the health of the stage: shards, queues, budgets, breakers and pauses. Exit code 1: behind, or unknown."""
    health = api.client.health()
    body = {**fields_of(health), **api.place.as_json}
    api.print(body, screen_of(health, where=api.where(health.stage)))
    if health.status not in _WELL:
        raise typer.Exit(REFUSED)
