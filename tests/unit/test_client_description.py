"""The values of the client are those that the API's description says it answers with, field by field."""

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import MISSING
from datetime import date, datetime, timedelta
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import pytest

from functions.api.openapi import document
from tickwheel import client
from tickwheel.client import dead_letters, health, jobs, pulse, tenants
from tickwheel.client.answers import Answer, wires_of

SCHEMAS: Mapping[str, Any] = document()["components"]["schemas"]


def values_of_the_client() -> list[type[Answer]]:
    for module in pkgutil.walk_packages(client.__path__, f"{client.__name__}."):
        importlib.import_module(module.name)
    found = kinds_below(Answer)
    return sorted((kind for kind in found if kind.__module__.startswith("tickwheel.")), key=lambda kind: kind.__name__)


def kinds_below(kind: type[Any]) -> Iterator[type[Any]]:
    for each in kind.__subclasses__():
        yield each
        yield from kinds_below(each)


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

CALLS = {
    "Deleted",
    "FireCounts",
    "Fires",
    "FlowForgotten",
    "Matches",
    "Purge",
    "Reset",
    "Results",
    "Triggered",
    "WebhookKeys",
}
"""Answers that are no value: what a call returns of them is a list, an id, a count, or nothing."""

UNREAD: Mapping[str, set[str]] = {
    "Fire": {"offset"},  # `local` has it
    "Operation": {"filter", "by", "to", "spread", "rate"},  # what was asked for; in `body`
    "Schedule": {*SCHEMAS["ScheduleBody"]["properties"], "next_fire.nominal_at"},  # in `definition`, and in `body`
    "UsedDay": {"day"},  # the key of the figures
}
"""Fields that a value leaves out."""

SHAPES = {value: NAMES.get(value, (value.__name__,)) for value in values_of_the_client()}

KINDS: Mapping[str, tuple[type, ...]] = {
    "array": (tuple,),
    "boolean": (bool,),
    "integer": (int, timedelta),
    "number": (float, timedelta),
    "object": (Mapping, Answer),
}


@pytest.mark.parametrize("value", SHAPES, ids=lambda value: value.__name__)
def test_a_value_has_the_fields_of_its_shape_and_no_others(value: type[Answer]) -> None:
    read = set(paths_of(value))
    described: set[str] = set()

    for shape in SHAPES[value]:
        fields = set(described_paths(shape, read))
        assert fields - read == UNREAD.get(shape, set()), shape
        described |= fields
    assert read <= described


@pytest.mark.parametrize("value", SHAPES, ids=lambda value: value.__name__)
def test_what_an_answer_may_leave_out_or_may_have_as_null_its_value_may_be_without(value: type[Answer]) -> None:
    for field, hint, wire in wires_of(value):
        schema, may_be_missing = at(SHAPES[value][0], field.name if wire.path is None else wire.path)
        may_be_none = hint is Any or NoneType in get_args(hint)
        has_default = field.default is not MISSING or field.default_factory is not MISSING
        if schema is not None:
            assert may_be_none or has_default or not may_be_missing, field.name
            assert may_be_none or {"type": "null"} not in schema.get("anyOf", []), field.name


@pytest.mark.parametrize("value", SHAPES, ids=lambda value: value.__name__)
def test_a_field_is_of_the_type_that_is_described(value: type[Answer]) -> None:
    for field, hint, wire in wires_of(value):
        schema, _ = at(SHAPES[value][0], field.name if wire.path is None else wire.path)
        if schema is None or wire.read is not None or not (kinds := kinds_of(schema)):
            continue
        given = [kind for kind in get_args(hint) if kind is not NoneType] if NoneType in get_args(hint) else [hint]
        if get_origin(given[0]) is Literal:
            assert set(get_args(given[0])) == set(resolved(schema)["enum"]), field.name
        else:
            assert issubclass(get_origin(given[0]) or given[0], kinds), field.name


def test_every_answer_is_a_value_of_the_client_or_a_page_of_them() -> None:
    held = {shape for shapes in SHAPES.values() for shape in shapes}
    pages = {name for name, schema in SCHEMAS.items() if "next" in schema.get("properties", {})}

    assert set(answered()) - held - pages - CALLS == set()
    assert set(answered()) >= CALLS


def paths_of(value: type[Answer]) -> Iterator[str]:
    for field, _, wire in wires_of(value):
        yield from (path for path in (field.name if wire.path is None else wire.path, wire.or_else) if path)


def described_paths(shape: str, read: set[str]) -> Iterator[str]:
    """The fields of a shape; those of an inner one where the value reads them one by one."""
    for name, schema in SCHEMAS[shape]["properties"].items():
        if any(path.startswith(f"{name}.") for path in read):
            yield from (f"{name}.{inner}" for inner in resolved(schema)["properties"])
        else:
            yield name


def at(shape: str, path: str) -> tuple[dict[str, Any] | None, bool]:
    """What is described at a path, None for the whole, and whether it may be missing."""
    schema, may_be_missing = {"$ref": f"#/components/schemas/{shape}"}, False
    for name in path.split("."):
        whole = resolved(schema)
        if name not in whole["properties"]:
            return None, True
        may_be_missing |= name not in whole.get("required", ())
        schema = whole["properties"][name]
    return schema, may_be_missing


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    schema = next((each for each in schema.get("anyOf", []) if each != {"type": "null"}), schema)
    return SCHEMAS[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def kinds_of(schema: dict[str, Any]) -> tuple[type, ...]:
    """The types that a value of it may have; none where any is as good."""
    described = resolved(schema)
    if described.get("type") == "string":
        return {"date-time": (datetime,), "date": (date,)}.get(described.get("format", ""), (str,))
    return KINDS.get(described.get("type", ""), ())


def answered() -> Iterator[str]:
    """The shapes of all answers that are no refusals."""
    for item in document()["paths"].values():
        for operation in item.values():
            for status, answer in operation["responses"].items() if "responses" in operation else ():
                for content in answer.get("content", {}).values() if status.startswith("2") else ():
                    for schema in content["schema"].get("oneOf", [content["schema"]]):
                        yield from [schema["$ref"].rpartition("/")[2]] if "$ref" in schema else []
