"""Which commands there are, and what they say of themselves, without an import of their modules."""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from inspect import cleandoc
from itertools import dropwhile
from pkgutil import iter_modules
from typing import Any

import typer
from typer.core import TyperGroup, TyperOption

from tickwheel import commands
from tickwheel.commands.index import INDEX, MODULES
from tickwheel.commands.page import Row, page_of
from tickwheel.commands.registry import commands as registered


def modules() -> list[str]:
    """The names of all modules of commands."""
    return [module.name for module in iter_modules(commands.__path__)]


def summary_of(text: str | None) -> str:
    """The first paragraph of a help text, which lists of commands show."""
    return " ".join(cleandoc(text or "").partition("\n\n")[0].split())


@dataclass(frozen=True)
class Completion:
    """What a shell is offered, as typer's completion reads it."""

    value: str
    help: str
    type: str = "plain"


class RootGroup(TyperGroup):
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
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Names of commands, with what the index says of them; and options."""
        listed = [Completion(name, about) for name, about in self._listed(ctx) if name.startswith(incomplete)]
        # typer's own would import every command to ask for its help.
        return [*listed, *super(TyperGroup, self).shell_complete(ctx, incomplete)]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The page, drawn without rich: to import it takes longer than all the rest of `tickwheel --help`."""
        options = [
            Row(", ".join(option.opts), option.display_type_rich(ctx) or "", option.help or "")
            for option in self.get_params(ctx)
            if isinstance(option, TyperOption) and not option.hidden
        ]
        listed = [Row(name, "", about) for name, about in self._listed(ctx)]
        usage = f"Usage: {ctx.command_path} {' '.join(self.collect_usage_pieces(ctx))}"
        formatter.write(page_of(usage, self.help or "", {"Options": options, "Commands": listed}))

    def _listed(self, ctx: Any) -> list[tuple[str, str]]:
        return [
            (name, INDEX[name].about if name in INDEX else summary_of(self.commands[name].help))
            for name in self.list_commands(ctx)
        ]

    def _import(self, names: Iterable[str]) -> None:
        for name in names:
            import_module(f"{commands.__name__}.{name}")
        self.commands = {**self.commands, **typer.main.get_group(registered.app).commands}
