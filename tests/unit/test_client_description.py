"""The values of the client are those that the API's description says it answers with, field by field."""

import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import MISSING
from datetime import date, datetime, timedelta
from types import NoneType
from typing import Any, get_args, get_origin

import pytest

from functions.api.openapi import document
from scripts.client_values import SCHEMAS, SHAPES, UNREAD, described_paths, missing, paths_of, resolved, with_fields
from tickwheel.client.answers import Answer, wires_of
from tickwheel.client.words import Word

CALLS = {
    "Deleted",
    "FireCounts",
    "Fires",
    "FlowForgotten",
    "JobPayload",
    "Matches",
    "Purge",
    "Reset",
    "Results",
    "ScheduleResults",
    "Triggered",
    "WebhookKeys",
}
"""Answers that are no value: what a call returns of them is a list, an id, a count, or nothing."""

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
        if "enum" in resolved(schema):
            assert issubclass(given[0], Word), f"{field.name}: add an enum to tickwheel/client/words.py"
            assert set(resolved(schema)["enum"]) <= set(given[0]), field.name
        else:
            assert issubclass(get_origin(given[0]) or given[0], kinds), field.name


def test_a_word_is_one_that_some_answer_has() -> None:
    described: dict[type[Word], set[str]] = defaultdict(set)
    for value in SHAPES:
        for field, hint, wire in wires_of(value):
            schema, _ = at(SHAPES[value][0], field.name if wire.path is None else wire.path)
            for kind in (hint, *get_args(hint)):
                if isinstance(kind, type) and issubclass(kind, Word) and schema is not None:
                    described[kind] |= set(resolved(schema)["enum"])

    assert described == {kind: set(kind) for kind in Word.__subclasses__()}


def test_every_answer_is_a_value_of_the_client_or_a_page_of_them() -> None:
    held = {shape for shapes in SHAPES.values() for shape in shapes}
    pages = {name for name, schema in SCHEMAS.items() if "next" in schema.get("properties", {})}

    assert set(answered()) - held - pages - CALLS == set()
    assert set(answered()) >= CALLS


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


def test_a_field_that_a_value_lacks_is_added_by_the_command_and_nothing_is_lacking_now() -> None:
    assert {value.__name__: missing(value) for value in SHAPES if missing(value)} == {}


def test_a_field_is_added_behind_those_of_its_value() -> None:
    source = textwrap.dedent(
        '''
        class Job(Answer):
            """A job: its id."""

            id: str
            error: str | None = None

            @property
            def key(self) -> str:
                of: str = self.id
                return of


        class Other(Answer):
            id: str
        '''
    )

    changed = with_fields(source, "Job", {"lease_until": "datetime"})

    assert changed == source.replace(
        "    error: str | None = None\n", "    error: str | None = None\n    lease_until: datetime | None = None\n"
    )
