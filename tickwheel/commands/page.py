"""A page of help as rich would draw it, drawn without rich: to import it takes longer than all the rest of `--help`."""

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

_NARROWEST = 40
_CYAN, _DIM, _BOLD = {"fg": "cyan", "bold": True}, {"dim": True}, {"bold": True}


@dataclass(frozen=True)
class Row:
    """An option or a command, its kind of value if it has one, and what it says of itself."""

    name: str
    kind: str
    about: str


@dataclass(frozen=True)
class Page:
    """What `--help` says of a command. usage: what stands behind its name; panels: of arguments, options and commands."""

    usage: str
    about: str
    panels: Mapping[str, Sequence[Row]]

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "Page":
        """Reads what `scripts/command_index.py` has written."""
        panels = {title: [Row(*row) for row in rows] for title, rows in body["panels"].items()}
        return cls(body["usage"], body["about"], panels)

    def as_json(self) -> dict[str, Any]:
        """For a file: each row is a list."""
        panels = {title: [[row.name, row.kind, row.about] for row in rows] for title, rows in self.panels.items()}
        return {"usage": self.usage, "about": self.about, "panels": panels}

    def drawn(self, command: str) -> str:
        """Usage, text and a panel for each list, as wide as the terminal; in colours where there is one that shows them."""
        width = max(_NARROWEST, shutil.get_terminal_size().columns)
        said = "\n".join(f" {line}".rstrip() for line in _paragraphs(self.about, width - 2))
        drawn = (line for title, rows in self.panels.items() for line in _panel(title, rows, width))
        usage = "\n".join(
            f" {_styled(line, **_BOLD)}" for line in _wrapped(f"Usage: {command} {self.usage}", width - 2)
        )
        return "\n".join(("", usage, "", said, "", *drawn, "")) + "\n"


class PagedCommand(TyperCommand):
    """A command whose help is such a page."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """See `Page`."""
        formatter.write(page_of(self, ctx).drawn(ctx.command_path))


class PagedGroup(TyperGroup):
    """A group of commands whose help is such a page."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """See `Page`."""
        formatter.write(page_of(self, ctx, self.listed(ctx)).drawn(ctx.command_path))

    def listed(self, ctx: Any) -> list[Row]:
        """Its commands."""
        names = self.list_commands(ctx)
        return [Row(name, "", summary_of(self.commands[name].help)) for name in names if not self.commands[name].hidden]


def page_of(command: Any, ctx: Any, commands: Sequence[Row] = ()) -> Page:
    """What a command says of itself. commands: those of a group."""
    arguments: dict[str, list[Row]] = {"Arguments": []}
    options: dict[str, list[Row]] = {"Options": []}
    for parameter in command.get_params(ctx):
        if not getattr(parameter, "hidden", False):
            is_argument = isinstance(parameter, TyperArgument)
            usual = "Arguments" if is_argument else "Options"
            panel = getattr(parameter, "rich_help_panel", None) or usual
            (arguments if is_argument else options).setdefault(panel, []).append(_row_of(parameter, ctx))
    panels = {**arguments, **options, "Commands": list(commands)}
    usage = " ".join(command.collect_usage_pieces(ctx))
    return Page(usage, cleandoc(command.help or ""), {title: rows for title, rows in panels.items() if rows})


def summary_of(text: str | None) -> str:
    """The first paragraph of a help text, which lists of commands show."""
    return " ".join(cleandoc(text or "").partition("\n\n")[0].split())


def _row_of(parameter: Any, ctx: Any) -> Row:
    """With default and `required`, as typer says them."""
    if isinstance(parameter, TyperArgument):
        name = parameter.display_name_raw + ("..." if parameter.metavar is None and parameter.nargs != 1 else "")
    else:
        name = ", ".join([*parameter.opts, *parameter.secondary_opts])
    bounds = parameter._get_number_range_help_str()  # noqa: SLF001  # typer has no other way to say them
    kind = (parameter.display_type_rich(ctx=ctx) or "") + (f" [{bounds}]" if bounds else "")
    default = _default_of(parameter, ctx)
    about = [" ".join((parameter.help or "").split()), f"[default: {default}]" if default else ""]
    return Row(name, kind, " ".join(part for part in (*about, "[required]" if parameter.required else "") if part))


def _default_of(parameter: TyperOption | TyperArgument, ctx: Any) -> str:
    value = parameter._extract_default_help_str(ctx=ctx)  # noqa: SLF001
    is_text = isinstance(parameter.show_default, str)
    if not is_text and (value is None or not (parameter.show_default or ctx.show_default)):
        return ""
    return parameter._get_default_string(ctx=ctx, show_default_is_str=is_text, default_value=value)  # noqa: SLF001


def _panel(title: str, rows: Sequence[Row], width: int) -> Iterator[str]:
    yield _styled(f"╭─ {title} {'─' * (width - len(title) - 5)}╮", **_DIM)
    names, kinds = (max((len(getattr(row, part)) for row in rows), default=0) for part in ("name", "kind"))
    # What is too wide for a narrow terminal is told in lines below each other.
    stacked = names + kinds + 8 > width // 2
    beside = 4 if stacked else names + (kinds + 2 if kinds else 0) + 2
    edge = _styled("│", **_DIM)
    for row in rows:
        about = _wrapped(row.about, width - 4 - beside)
        if stacked:
            for line in _wrapped(f"{row.name}  {row.kind}", width - 4):
                yield f"{edge} {_styled(f'{line:<{width - 4}}', **_CYAN)} {edge}"
            yield from (f"{edge} {' ' * beside}{line:<{width - 4 - beside}} {edge}" for line in about)
            continue
        for number, line in enumerate(about or [""]):
            name, kind = (row.name, row.kind) if number == 0 else ("", "")
            kind = f"  {kind:<{kinds}}" if kinds else ""
            yield f"{edge} {_styled(f'{name:<{names}}', **_CYAN)}{kind}  {line:<{width - 4 - beside}} {edge}"
    yield _styled(f"╰{'─' * (width - 2)}╯", **_DIM)


def _paragraphs(text: str, width: int) -> Iterator[str]:
    for number, paragraph in enumerate(text.split("\n\n")):
        yield from ([""] if number else [])
        yield from _wrapped(paragraph, width)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, 1), break_on_hyphens=False)


def _styled(text: str, **style: object) -> str:
    has_colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return typer.style(text, **style) if has_colours else text  # type: ignore[arg-type]
