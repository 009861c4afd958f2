"""Which commands there are, and what they say of themselves, without an import of their modules."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import dropwhile
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import typer
from typer.core import TyperGroup

from tickwheel import commands
from tickwheel.commands.index import INDEX, MODULES
from tickwheel.commands.page import Page, PagedGroup, Row, summary_of
from tickwheel.commands.registry import commands as registered

PAGES = Path(__file__).with_name("pages.json")
"""What `--help` says of each command: written by `make format`, read so that no command is imported for it."""


def modules() -> list[str]:
    """The names of all modules of commands."""
    return [module.name for module in iter_modules(commands.__path__)]


def written_page(words: Sequence[str]) -> Page | None:
    """The help of a command by its words, such as `schedule` and `create`; None where it is newer than what is written."""
    if not words or not PAGES.exists():
        return None
    body = json.loads(PAGES.read_text(encoding="utf-8")).get(" ".join(words))
    return None if body is None else Page.from_json(body)


@dataclass(frozen=True)
class Completion:
    """What a shell is offered, as typer's completion reads it."""

    value: str
    help: str
    type: str = "plain"


class RootGroup(PagedGroup):
    """`tickwheel` itself: commands by name, each imported when it is asked for.

    What the index does not have, because it is newer, is imported to be listed.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, sorted."""
        del ctx
        if newer := [module for module in modules() if module not in MODULES]:
            self._import(newer)
        return sorted({*INDEX, *self.commands})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command; None, after an import of all, where none has the name."""
        del ctx
        if cmd_name not in self.commands:
            listed = INDEX.get(cmd_name)
            self._import(modules() if listed is None else listed.modules)
        return self.commands.get(cmd_name)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Without arguments it shows its help, as typer does, and exits with 2."""
        if ctx.resilient_parsing:
            # A shell asks what may stand next: no value of an option of `tickwheel` itself changes that, and typer reads
            # each by way of pydantic, whose import takes longer than the answer.
            ctx.args = list(dropwhile(lambda word: word.startswith("-"), args))
            return ctx.args
        if not args:
            typer.echo(ctx.get_help())
            raise typer.Exit(2)
        if args[-1] == "--help" and (page := written_page(args[:-1])) is not None:
            typer.echo(page.drawn(f"{ctx.command_path} {' '.join(args[:-1])}"))
            raise typer.Exit
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Names of commands, with what the index says of them; and options."""
        listed = [Completion(name, about) for name, about in self._listed(ctx) if name.startswith(incomplete)]
        # typer's own would import every command to ask for its help.
        return [*listed, *super(TyperGroup, self).shell_complete(ctx, incomplete)]

    def listed(self, ctx: Any) -> list[Row]:
        """All commands, with what the index says of them."""
        return [Row(name, "", about) for name, about in self._listed(ctx)]

    def _listed(self, ctx: Any) -> list[tuple[str, str]]:
        return [
            (name, INDEX[name].about if name in INDEX else summary_of(self.commands[name].help))
            for name in self.list_commands(ctx)
        ]

    def _import(self, names: Iterable[str]) -> None:
        for name in names:
            import_module(f"{commands.__name__}.{name}")
        self.commands = {**self.commands, **typer.main.get_group(registered.app).commands}
