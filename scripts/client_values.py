"""Bring into the client's values what the API's description has and they have not: `python -m scripts.client_values`.

A field is added as one that an answer may leave out, because the client also reads the answers of earlier releases. `make format` does
this, so that a field of an answer is declared in one place, in `answers.py`. What it cannot add, a test names.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

from functions.api.openapi import document
from tickwheel import client
from tickwheel.client import dead_letters, health, jobs, pulse, tenants
from tickwheel.client.answers import Answer, wires_of

SCHEMAS: Mapping[str, Any] = document()["components"]["schemas"]


NAMES: Mapping[type[Answer], tuple[str, ...]] = {
    dead_letters.DeadLetter: ("DeadLetter", "DeadLetterEntry"),
    dead_letters.NotDone: ("DeadLetterFailure",),
    dead_letters.Part: ("Replays", "Purges"),
    health.Listed: ("Names",),
    health.ShardsHealth: ("Shards",),
    health.SweeperHealth: ("Sweeper",),
    jobs.Cancellation: ("Cancelled",),
    jobs.Submitted: ("Accepted",),
    pulse.Standout: ("TenantCount",),
    tenants.Figures: ("UsageFigures", "UsedDay"),
    tenants.ScheduleLoad: ("Load",),
}
"""The shapes that a value is read from, where they have another name."""

UNREAD: Mapping[str, set[str]] = {
    "Fire": {"offset"},  # `local` has it
    "Operation": {"filter", "by", "to", "spread", "rate"},  # what was asked for; in `body`
    "Schedule": {*SCHEMAS["ScheduleBody"]["properties"], "next_fire.nominal_at"},  # in `definition`, and in `body`
    "UsedDay": {"day"},  # the key of the figures
}
"""Fields that a value leaves out."""

KINDS: Mapping[str, str] = {
    "array": "tuple[Any, ...]",
    "boolean": "bool",
    "integer": "int",
    "number": "float",
    "object": "Mapping[str, Any]",
    "string": "str",
}
"""What a field of a type is in a value, if nobody has said otherwise."""


def values_of_the_client() -> list[type[Answer]]:
    """The values of the client, by name."""
    for module in pkgutil.walk_packages(client.__path__, f"{client.__name__}."):
        importlib.import_module(module.name)
    found = kinds_below(Answer)
    return sorted((kind for kind in found if kind.__module__.startswith("tickwheel.")), key=lambda kind: kind.__name__)


def kinds_below(kind: type[Any]) -> Iterator[type[Any]]:
    """Its subclasses, and theirs."""
    for each in kind.__subclasses__():
        yield each
        yield from kinds_below(each)


SHAPES = {value: NAMES.get(value, (value.__name__,)) for value in values_of_the_client()}


def paths_of(value: type[Answer]) -> Iterator[str]:
    """Where the fields of a value stand in an answer."""
    for field, _, wire in wires_of(value):
        yield from (path for path in (field.name if wire.path is None else wire.path, wire.or_else) if path)


def described_paths(shape: str, read: set[str]) -> Iterator[str]:
    """The fields of a shape; those of an inner one where the value reads them one by one."""
    for name, schema in SCHEMAS[shape]["properties"].items():
        if any(path.startswith(f"{name}.") for path in read):
            yield from (f"{name}.{inner}" for inner in resolved(schema)["properties"])
        else:
            yield name


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """What a schema refers to, where it may be null, too."""
    schema = next((each for each in schema.get("anyOf", []) if each != {"type": "null"}), schema)
    return SCHEMAS[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def missing(value: type[Answer]) -> dict[str, str]:
    """The fields that a value lacks, with their types."""
    read = set(paths_of(value))
    found: dict[str, str] = {}
    for shape in SHAPES[value]:
        for path in described_paths(shape, read):
            if path not in read | UNREAD.get(shape, set()) and "." not in path:
                found[path] = _kind_of(SCHEMAS[shape]["properties"][path])
    return found


def with_fields(source: str, value: str, fields: Mapping[str, str]) -> str:
    """The source of a module in which a value has these fields too, behind its own."""
    lines = source.splitlines(keepends=True)
    start = next(number for number, line in enumerate(lines) if line.startswith(f"class {value}("))
    end = start + 1
    for number in range(start + 1, len(lines)):
        if lines[number].strip() and not lines[number].startswith(" "):
            break
        if lines[number].startswith("    ") and ": " in lines[number] and lines[number][4].isalpha():
            end = number + 1
        if lines[number].startswith(("    def ", "    @")):
            break
    added = [f"    {name}: {kind} | None = None\n" for name, kind in fields.items()]
    return "".join([*lines[:end], *added, *lines[end:]])


def main() -> None:
    """Add what is missing, and say what was added."""
    for value in SHAPES:
        if fields := missing(value):
            path = Path(inspect.getfile(value))
            path.write_text(with_fields(path.read_text(), value.__name__, fields))
            print(f"{path.name}: {value.__name__} has got {', '.join(fields)}")


def _kind_of(schema: dict[str, Any]) -> str:
    described = resolved(schema)
    if described.get("type") == "string" and "format" in described:
        return {"date-time": datetime, "date": date}.get(described["format"], str).__name__
    return KINDS.get(described.get("type", ""), "Any")


if __name__ == "__main__":
    main()
