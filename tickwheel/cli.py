"""The command `tickwheel`.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 130 interrupted. Tables are for people; `--json` prints one JSON object.
"""

from importlib.metadata import version as version_of
from typing import Annotated

import typer

from tickwheel.commands.discovery import RootGroup

app = typer.Typer(
    name="tickwheel",
    help="Submit jobs to Tickwheel, manage schedules, tenants and dead letters, and run the local cloud.",
    cls=RootGroup,
    pretty_exceptions_enable=False,
)


def _show_version(is_asked: bool) -> None:  # typer calls it so
    if is_asked:
        typer.echo(f"tickwheel {version_of('tickwheel')}")
        raise typer.Exit


@app.callback()
def tickwheel(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of `tickwheel` itself, which stand before the command."""
    del version


if __name__ == "__main__":
    app()
