"""Where commands register themselves: a module of this package adds its own, and `tickwheel.cli` imports all of them."""

from collections.abc import Callable
from typing import Any, TypeVar

import typer
from typer.core import TyperGroup

from tickwheel.commands.option_sets import with_options

C = TypeVar("C", bound=Callable[..., None])


class _ByName(TyperGroup):
    """Commands in the order of their names, whichever modules they stand in."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx))


class Commands:
    """The commands of `tickwheel`, or of a group of it such as `tickwheel schedule`."""

    def __init__(self, app: typer.Typer) -> None:
        self.app = app

    def add(self, name: str | None = None) -> Callable[[C], C]:
        """Decorates a command; without a name, its function's is its own. It may take sets of options."""

        def register(command: C) -> C:
            self.app.command(name)(with_options(command))
            return command

        return register

    def group(self, name: str, *, about: str) -> "Commands":
        """Further commands under a name."""
        group = typer.Typer(help=about, no_args_is_help=True)
        self.app.add_typer(group, name=name)
        return Commands(group)


commands = Commands(
    typer.Typer(
        name="tickwheel",
        help="Submit jobs to Tickwheel, manage schedules, tenants and dead letters, and run the local cloud.",
        cls=_ByName,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
    )
)
"""The commands of `tickwheel` itself."""
