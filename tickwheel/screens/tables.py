"""Tables for people: without borders, and none of their texts is cut. No id is broken, however narrow the terminal is."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text

_SHOWN = 400
_LONGEST_ID = 200
_LONGEST_WITHOUT = 40  # of a longer word, which is none
_BETWEEN = 2


def plain_table(*columns: Column) -> Table:
    """A table with headings, no borders and no rows yet."""
    return Table(*columns, box=None, pad_edge=False)


def folded(*headings: str) -> list[Column]:
    """Columns of texts, on several lines where they are long."""
    return [Column(heading, overflow="fold") for heading in headings]


def right(*headings: str) -> list[Column]:
    """Columns of numbers."""
    return [Column(heading, justify="right") for heading in headings]


def shortened(value: Any) -> Any:
    """A value as it is, or the beginning of its JSON where that is longer than a few lines."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return value if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text):,} characters)"


def fields_table(fields: Mapping[str, Any]) -> Table:
    """A row a field, in JSON where it is no text; those that are None are left out."""
    table = Table(Column(style="bold"), Column(overflow="fold"), show_header=False, box=None, pad_edge=False)
    for name, value in fields.items():
        if value is not None:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            table.add_row(name.replace("_", " "), escape(text))
    return table


def show_table(table: Table, console: Console) -> None:
    """Prints a table without breaking a word that may be an id: people copy them.

    Where the terminal is too narrow for that, each row becomes lines of heading and value. What is no terminal gets lines
    as long as the ids need.
    """
    needed = sum(least := _widths(table, _longest_word)) + _BETWEEN * (len(table.columns) - 1)
    is_list = table.show_header and not table.show_footer
    if needed > console.width and console.is_terminal and is_list:
        for number, row in enumerate(zip(*(column.cells for column in table.columns), strict=True)):
            headings = (_text(column.header).plain for column in table.columns)
            if number:
                console.print()
            show_table(_record(dict(zip(headings, map(_text, row), strict=True))), console)
        return
    width = max(console.width, needed)
    for column, columns_width in zip(table.columns, _shared(least, _widths(table, _longest_line), width), strict=True):
        column.width = columns_width
    narrow = console.width
    console.width = width  # a terminal wraps longer lines itself, and copies them whole
    console.print(table, crop=False)
    console.width = narrow


def _record(lines: Mapping[str, Text]) -> Table:
    table = Table(Column(style="bold"), Column(overflow="fold"), show_header=False, box=None, pad_edge=False)
    for heading, value in lines.items():
        if value.plain:
            table.add_row(heading, value)
    return table


def _widths(table: Table, of: Callable[[str], int]) -> list[int]:
    return [max(map(of, _texts(column, table)), default=0) for column in table.columns]


def _shared(least: Sequence[int], most: Sequence[int], width: int) -> list[int]:
    """Columns as wide as they need to be, and what is left for those whose texts are folded most."""
    widths = list(least)
    left = width - sum(widths) - _BETWEEN * (len(widths) - 1)
    while left > 0:
        wants, column = max((most[each] - widths[each], each) for each in range(len(widths)))
        if wants <= 0:
            break
        widths[column] += 1
        left -= 1
    return widths


def _texts(column: Column, table: Table) -> Iterator[str]:
    if table.show_header:
        yield _text(column.header).plain
    yield from (_text(cell).plain for cell in column.cells)
    if table.show_footer:
        yield _text(column.footer).plain


def _longest_word(text: str) -> int:
    return max(
        (min(cell_len(word), _LONGEST_WITHOUT) if len(word) > _LONGEST_ID else cell_len(word) for word in text.split()),
        default=0,
    )


def _longest_line(text: str) -> int:
    return max(map(cell_len, text.splitlines()), default=0)


def _text(cell: RenderableType) -> Text:
    return cell if isinstance(cell, Text) else Text.from_markup(str(cell))
