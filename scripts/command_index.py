"""Write down what each command of `tickwheel` says of itself: `python -m scripts.command_index`.

`tickwheel --help` and `tickwheel COMMAND --help` read this instead of importing commands. `make format` writes it, and a test
compares.
"""

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from tickwheel.commands import discovery
from tickwheel.commands.page import Page, PagedGroup, page_of, summary_of
from tickwheel.commands.registry import commands

FILE = Path(discovery.__file__).with_name("index.py")
HEAD = '''"""What each command says of itself, and the modules that it stands in: written by `make format` (`scripts/command_index.py`)."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Listed:
    """A command or a group of commands."""

    about: str
    modules: tuple[str, ...]


'''


def text_of_index() -> str:
    """The module, with all commands that there are."""
    modules = discovery.modules()
    for name in modules:
        import_module(f"tickwheel.commands.{name}")
    found = typer.main.get_group(commands.app).commands
    lines = [f"    {name!r}: {_listed(name, found[name].help)},\n" for name in sorted(found)]
    known = "".join(f"    {name!r},\n" for name in modules)
    index = f"INDEX: Mapping[str, Listed] = {{\n{''.join(lines)}}}\n"
    return f'{HEAD}{index}\nMODULES = frozenset((\n{known}))\n"""The modules that were looked through."""\n'


def _listed(name: str, text: str | None) -> str:
    modules = tuple(sorted(module.rpartition(".")[2] for module in commands.modules[name]))
    return f"Listed({summary_of(text)!r}, {modules!r})"


def text_of_pages() -> str:
    """The file of what `--help` says of each command, a command a line."""
    for name in discovery.modules():
        import_module(f"tickwheel.commands.{name}")
    root: Any = typer.main.get_group(commands.app)
    lines = [f"{json.dumps(path)}: {json.dumps(page.as_json())}" for path, page in pages_below(root, None, ())]
    return "{\n" + ",\n".join(sorted(lines)) + "\n}\n"


def pages_below(group: Any, parent: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Page]]:
    """Those of a group's commands, by their words."""
    context = group.make_context(path[-1] if path else "tickwheel", [], parent=parent, resilient_parsing=True)
    for name, command in group.commands.items():
        words = (*path, name)
        ctx = command.make_context(name, [], parent=context, resilient_parsing=True)
        is_group = isinstance(command, PagedGroup)
        yield " ".join(words), page_of(command, ctx, command.listed(ctx) if is_group else ())
        if is_group:
            yield from pages_below(command, context, words)


if __name__ == "__main__":
    FILE.write_text(text_of_index(), encoding="utf-8")
    discovery.PAGES.write_text(text_of_pages(), encoding="utf-8")
