"""Write down what each command of `tickwheel` says of itself: `python -m scripts.command_index`.

`tickwheel --help` reads this instead of importing every command. `make format` writes it, and a test compares.
"""

from importlib import import_module
from pathlib import Path

import typer

from tickwheel.commands import discovery
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
    return f"Listed({discovery.summary_of(text)!r}, {modules!r})"


if __name__ == "__main__":
    FILE.write_text(text_of_index(), encoding="utf-8")
