"""Where commands register themselves: a module of this package adds its own, and `tickwheel.cli` finds them."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any, TypeVar

import typer

from tickwheel.commands.option_sets import with_options
from tickwheel.commands.page import PagedCommand, PagedGroup

C = TypeVar("C", bound=Callable[..., None])


class Commands:
    """The commands of `tickwheel`, or of a group of it such as `tickwheel schedule`.

    modules: of each command or group of `tickwheel` itself, the modules that it stands in.
    """

    def __init__(self, app: typer.Typer, *, name: str | None = None, modules: dict[str, set[str]]) -> None:
        self.app = app
        self.modules = modules
        self._name = name

    def add(self, name: str | None = None) -> Callable[[C], C]:
        """Decorates a command; without a name, its function's is its own. It may take sets of options."""

        def register(command: C) -> C:
            self.app.command(name, cls=PagedCommand)(with_options(command))
            own: Any = command
            self.modules[self._name or name or own.__name__.replace("_", "-")].add(own.__module__)
            return command

        return register

    def group(self, name: str, *, about: str) -> "Commands":
        """Further commands under a name."""
        group = typer.Typer(help=about, no_args_is_help=True, cls=PagedGroup)
        self.app.add_typer(group, name=name)
        return Commands(group, name=name, modules=self.modules)


commands = Commands(typer.Typer(), modules=defaultdict(set))
"""The commands of `tickwheel` whose modules were imported."""
