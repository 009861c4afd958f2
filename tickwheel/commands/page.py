"""A page of help as rich would draw it, drawn without rich."""

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import typer

_NARROWEST = 40
_CYAN, _DIM, _BOLD = {"fg": "cyan", "bold": True}, {"dim": True}, {"bold": True}


@dataclass(frozen=True)
class Row:
    """An option or a command, its kind of value if it has one, and what it says of itself."""

    name: str
    kind: str
    about: str


def page_of(usage: str, about: str, panels: Mapping[str, Sequence[Row]]) -> str:
    """Usage, text and a panel for each list, as wide as the terminal; in colours where there is one that shows them."""
    width = max(_NARROWEST, shutil.get_terminal_size().columns)
    said = "\n".join(f" {line}" for line in _wrapped(about, width - 2))
    drawn = (line for title, rows in panels.items() for line in _panel(title, rows, width))
    return "\n".join(("", f" {_styled(usage, **_BOLD)}", "", said, "", *drawn, "")) + "\n"


def _panel(title: str, rows: Sequence[Row], width: int) -> Iterator[str]:
    yield _styled(f"╭─ {title} {'─' * (width - len(title) - 5)}╮", **_DIM)
    names, kinds = (max((len(getattr(row, part)) for row in rows), default=0) for part in ("name", "kind"))
    beside = names + (kinds + 2 if kinds else 0) + 2
    edge = _styled("│", **_DIM)
    for row in rows:
        for number, line in enumerate(_wrapped(row.about, width - 4 - beside) or [""]):
            name, kind = (row.name, row.kind) if number == 0 else ("", "")
            kind = f"  {kind:<{kinds}}" if kinds else ""
            yield f"{edge} {_styled(f'{name:<{names}}', **_CYAN)}{kind}  {line:<{width - 4 - beside}} {edge}"
    yield _styled(f"╰{'─' * (width - 2)}╯", **_DIM)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, 1), break_on_hyphens=False)


def _styled(text: str, **style: object) -> str:
    has_colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return typer.style(text, **style) if has_colours else text  # type: ignore[arg-type]
