"""The command `tickwheel webhook-keys`: what receivers verify signatures with."""

from dataclasses import asdict
from typing import Annotated

import typer

from tickwheel.commands.api import Api
from tickwheel.commands.registry import commands


@commands.add()
def webhook_keys(tenant: Annotated[str, typer.Argument(metavar="TENANT")], *, api: Api) -> None:
    """Show the webhook signing keys of a tenant, the current one first."""
    keys = api.client.webhook_keys(tenant)
    api.print({"keys": [asdict(key) for key in keys]}, *(f"{key.id} {key.secret}" for key in keys))
