"""Tables for people: without borders, and none of their texts is cut."""

import json
from collections.abc import Mapping
from typing import Any

from rich.markup import escape
from rich.table import Column, Table

_SHOWN = 400


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
