"""Every Lambda as it is built at its cold start: each part is one of its process, and nothing is left deaf."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from functions.services.telemetry.audit_trail import Trail
from functions.services.telemetry.pulse import PulseTally
from functions.services.telemetry.usage import UsageTally
from tests.integration.stage import Stage

LAMBDAS = ("api", "scanner", "worker", "sweeper", "operations", "dead_letters")
HEARS = {"UsageCounter": UsageTally, "PendingCounter": UsageTally, "PulseCounter": PulseTally, "AuditTrail": Trail}
"""Who hears in a Lambda what is given to a port."""

SHARED = ("clock", "journal", "ledger", "materialiser", "ends", "settler", "placer", "stops")
"""Names of fields by which all of a process mean the same thing."""


@pytest.mark.parametrize("name", LAMBDAS)
def test_whatever_hears_of_something_is_there_in_every_lambda(stage: Stage, name: str):
    parts = list(parts_of(stage, name))

    assert parts
    assert [
        f"{type(part).__name__}.{field}"
        for part, field, value in parts
        if not isinstance(value, HEARS.get(kind_of(part, field), object))
    ] == []


def test_every_port_that_hears_is_a_field_of_some_part(stage: Stage):
    kinds = {kind_of(part, field) for name in LAMBDAS for part, field, _ in parts_of(stage, name)}

    assert set(HEARS) <= kinds


@pytest.mark.parametrize("name", LAMBDAS)
def test_a_process_has_one_of_each_thing(stage: Stage, name: str):
    parts = list(parts_of(stage, name))

    for shared in SHARED:
        assert len({id(value) for _, field, value in parts if field == shared}) <= 1, shared


def parts_of(stage: Stage, name: str) -> Iterator[tuple[Any, str, Any]]:
    """All that a Lambda is made of: whose field, its name, and what stands in it."""
    seen: set[int] = set()
    waiting = [value for value in vars(stage.module(name)).values() if is_part(value)]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        for field in fields(part):
            value = getattr(part, field.name)
            yield part, field.name, value
            if is_part(value):
                waiting.append(value)


def kind_of(part: Any, field: str) -> str:
    """As what a part asks for it."""
    return next(str(each.type) for each in fields(part) if each.name == field)


def is_part(value: object) -> bool:
    """Whether it is something that was built of others."""
    return is_dataclass(value) and not isinstance(value, type) and type(value).__module__.startswith("functions.")
