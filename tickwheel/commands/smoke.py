"""The command `tickwheel smoke`: what a deployed stage must do, looked at on its own account."""

import signal
from typing import Annotated

import typer

from tickwheel.commands.engine_modules import Engine
from tickwheel.commands.registry import commands
from tickwheel.commands.terminal import failing_politely


@commands.add()
def smoke(
    *,
    stage: Annotated[
        str, typer.Option(help="A stage in infra/stage.py; local is the cloud of `tickwheel local up`.")
    ] = "dev",
    quick: Annotated[bool, typer.Option("--quick", help="Only the short list, which takes a minute or two.")] = False,
    long: Annotated[bool, typer.Option("--long", help="Also what takes long: see --list.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="CHECK", help="Only this check, long or not. May be repeated.", show_default=False),
    ] = None,
    previous: Annotated[
        str | None,
        typer.Option(metavar="REVISION", help="Release that `roll back` deploys in between.", show_default=False),
    ] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List the checks and what they prove, and exit.")] = False,
) -> None:
    """Prove on its account that a deployed stage keeps its promises. Says first how long it takes and what it costs. Exit code 1: it does not."""
    arguments = ["--stage", stage]
    arguments += [f"--{name}" for name, asked in (("quick", quick), ("long", long), ("list", list_all)) if asked]
    arguments += [argument for name in only or () for argument in ("--only", name)]
    arguments += ["--previous", previous] if previous is not None else []
    with failing_politely(as_json=False):
        (program,) = Engine(extra="cdk", needs_node=True).load("smoke.__main__")
        # Whoever ends a run wants what it has changed put back, too.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        raise typer.Exit(program.main(arguments, prog="tickwheel smoke"))
