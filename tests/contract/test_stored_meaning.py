"""What is stored keeps its meaning: bytes of every kind of row and message, with what they say spelled out.

`stored_meaning.json` is only added to: what stands there has been written by a release, and is read for as long as it may be
stored. A member of an enum that is not in it yet fails the test that names it.
"""

from __future__ import annotations

import ast
import json
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from functions.domain.dead_letters.dead_letter_id import parse_dead_letter_id
from functions.domain.errors import Undecodable
from functions.domain.far_ring import timer_record
from functions.domain.jobs.job import Delivery, Precision, Priority
from functions.domain.jobs.job_id import parse_job_id
from functions.domain.jobs.overlap import Overlap
from functions.domain.jobs.retry import Jitter, Strategy
from functions.domain.jobs.stored_codes import STRATEGIES, Codes
from functions.domain.lifecycle import State
from functions.domain.operations.operation import OperationKind, OperationState
from functions.domain.operations.record import OperationRecord, decode_operation, encode_operation
from functions.domain.schedules.defaults import REQUESTED, STORED
from functions.domain.schedules.record import decode_schedule, encode_stored
from functions.domain.schedules.rules import Fold, Gap
from functions.domain.schedules.schedule import Misfire, Roll, WindowMode
from functions.domain.schedules.spread import SpreadFrom
from functions.domain.schedules.state import SkipReason, Status
from functions.domain.stage.conditions import decode_conditions, encode_conditions
from functions.domain.stage.pulse import Figure
from functions.domain.targets.breaker import BreakerState
from functions.domain.targets.flows import FlowScope
from functions.domain.targets.options import Method
from functions.domain.tenants.deletion import DeletionStage, decode_deletion, encode_deletion
from functions.domain.tenants.plan import TenantStatus, decode_tenant, encode_tenant
from scripts.synthesis import ROOT
from tests.short_run import first_of
from tests.stored_meaning import Release

STORED_BYTES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("stored_meaning.json").read_text())

VALUES_STORED: list[type[Enum]] = [
    OperationKind,
    BreakerState,
    Delivery,
    Fold,
    Gap,
    Jitter,
    Method,
    Misfire,
    OperationState,
    Overlap,
    DeletionStage,
    FlowScope,
    Precision,
    Priority,
    Roll,
    SkipReason,
    SpreadFrom,
    State,
    Status,
    Strategy,
    TenantStatus,
    WindowMode,
]
"""Enums that stand in rows or messages by their values."""

CODES = {
    "functions.domain.jobs.stored_codes": ["DELIVERIES", "STRATEGIES", "JITTERS", "PRIORITY_WORDS"],
    "functions.domain.jobs.overlap": ["CODES"],
    "functions.domain.schedules.record": ["WEEKDAY_WORDS"],
    "functions.domain.jobs.job_id": ["_DELIVERY_LETTERS"],
    "functions.adapters.dynamodb.pulses": ["_CLASSES", "_FIGURES"],
}
"""Where the others have their codes."""

OTHER_DEFAULTS = {
    "priority": "Priority.LOW",
    "delivery": "Delivery.AT_LEAST_ONCE",
    "precision": "Precision.EXACT",
    "strategy": "Strategy.FIXED",
    "attempts": "6",
    "base": "timedelta(seconds=3)",
    "cap": "timedelta(minutes=11)",
    "max_age": "timedelta(days=1)",
    "intervals": "(timedelta(minutes=1),)",
    "jitter": "'full'",
    "timeout": "timedelta(seconds=31)",
    "method": "Method.PUT",
    "timezone": "'Europe/Berlin'",
    "misfire": "Misfire.SKIP",
    "overlap": "Overlap.FORBID",
    "roll": "Roll.AFTER",
    "history": "11",
}
"""Of stored definitions and records."""

IN_PLACE = {
    "functions.domain.tenants.plan": [
        ('given.get("plan", DEFAULT_PLAN)', 'given.get("plan", "gold")'),
        ('given.get("status", TenantStatus.ACTIVE)', 'given.get("status", TenantStatus.PAUSED)'),
    ],
    "functions.domain.schedules.schedule": [
        ("else WindowMode.SKIP)", "else WindowMode.DEFER)"),
        ("(WindowMode.SCALE if isinstance", "(WindowMode.SKIP if isinstance"),
    ],
    "functions.domain.schedules.nominal_times": [
        ("schedule.gap or Gap.NEXT_VALID", "schedule.gap or Gap.SKIP"),
        ("schedule.fold or Fold.FIRST", "schedule.fold or Fold.SECOND"),
        ("schedule.gap or Gap.SKIP", "schedule.gap or Gap.NEXT_VALID"),
        ("schedule.fold or Fold.BOTH", "schedule.fold or Fold.FIRST"),
    ],
    "functions.domain.operations.record": [("_STORED_RATE = 50.0", "_STORED_RATE = 10.0")],
    "functions.domain.far_ring.timer_record": [
        ('record.get("a", 1)', 'record.get("a", 2)'),
        ('record.get("k", 0)', 'record.get("k", 5)'),
        ("else STORED.priority", "else Priority.HIGH"),
    ],
}
"""Defaults that stand where they are read, and others for them."""


def misread(release: Release) -> list[str]:
    """What it takes for something else than it says."""
    return [
        f"{stored['kind']}: {stored['about']}"
        for stored in STORED_BYTES
        if release.meaning(stored["kind"], stored["bytes"]) != stored["means"]
    ]


@pytest.mark.parametrize("stored", STORED_BYTES, ids=[f"{each['kind']}, {each['about']}" for each in STORED_BYTES])
def test_stored_bytes_say_what_they_said_when_they_were_written(this_release: Release, stored: dict[str, Any]):
    assert this_release.meaning(stored["kind"], stored["bytes"]) == stored["means"]


def without_end_of_count(written: dict[str, Any]) -> dict[str, Any]:
    """A definition of before ends of counts were stored gets one when it is written again."""
    written.get("rrule", {}).pop("last", None)
    return written


WRITES_AGAIN: dict[str, Any] = {
    "timer": lambda text: timer_record.encode_timer(timer_record.decode_timer(text, tenant="acme")),
    "alarm": lambda text: timer_record.encode_alarm(timer_record.decode_alarm(text, tenant="acme")),
    "message": lambda text: timer_record.encode_envelope(timer_record.decode_envelope(text)),
    "definition": lambda text: json.dumps(
        without_end_of_count(encode_stored(decode_schedule(text, tenant="acme", schedule_id="nightly"))),
        separators=(",", ":"),
        ensure_ascii=False,
    ),
    "tenant": lambda text: encode_tenant(decode_tenant(text)),
    "conditions": lambda text: encode_conditions(decode_conditions(text)),
    "deletion": lambda text: encode_deletion(decode_deletion(text, tenant="acme")),
    "job id": lambda text: str(parse_job_id(text)),
    "dead letter id": lambda text: str(parse_dead_letter_id(text)),
}


@pytest.mark.parametrize("kind", WRITES_AGAIN)
def test_what_is_read_is_written_again_as_it_was(kind: str):
    texts = [stored["bytes"] for stored in STORED_BYTES if stored["kind"] == kind]

    assert [WRITES_AGAIN[kind](text) for text in texts] == texts


def test_an_operation_is_written_again_as_it_was():
    texts = [stored["bytes"] for stored in STORED_BYTES if stored["kind"] == "operation"]

    records = [
        encode_operation(decode_operation(OperationRecord(*text), tenant="acme", operation_id="o1")) for text in texts
    ]

    assert [[record.asked, record.progress] for record in records] == texts


@pytest.mark.parametrize("enum", [*VALUES_STORED, Figure], ids=lambda enum: enum.__name__)
def test_every_member_that_may_be_stored_is_spelled_out_here(enum: type[Enum]):
    text = json.dumps([stored["means"] for stored in STORED_BYTES])

    missing = [member.name for member in enum if f'"{enum.__name__}.{member.name}"' not in text]

    assert [name for name in missing if (enum, name) != (State, "ABSENT")] == []  # absent is no row at all


@pytest.mark.parametrize("enum", first_of(VALUES_STORED), ids=lambda enum: enum.__name__)
def test_an_enum_whose_values_change_places_is_found_out(a_copy: Release, enum: type[Enum]):
    a_copy.becomes({enum.__module__: with_rotated_values(source_of(enum.__module__), enum.__name__)})

    assert misread(a_copy)


@pytest.mark.parametrize(
    ("module", "table"), first_of((module, table) for module, tables in CODES.items() for table in tables)
)
def test_codes_that_change_places_are_found_out(a_copy: Release, module: str, table: str):
    a_copy.becomes({module: with_rotated_codes(source_of(module), table)})

    assert misread(a_copy)


@pytest.mark.parametrize(("name", "other"), first_of(OTHER_DEFAULTS.items()))
def test_another_default_of_what_is_stored_is_found_out(a_copy: Release, name: str, other: str):
    module = "functions.domain.schedules.defaults"

    a_copy.becomes({module: with_other_default(source_of(module), name, other)})

    assert misread(a_copy)


@pytest.mark.parametrize(
    ("module", "old", "new"), first_of((module, *change) for module, changes in IN_PLACE.items() for change in changes)
)
def test_another_default_where_it_is_read_is_found_out(a_copy: Release, module: str, old: str, new: str):
    source = source_of(module)
    assert old in source

    a_copy.becomes({module: source.replace(old, new)})

    assert misread(a_copy)


def test_every_default_of_what_is_stored_is_tried():
    fields = set(STORED.__dataclass_fields__) - {"retry"} | set(STORED.retry.__dataclass_fields__)

    assert fields == set(OTHER_DEFAULTS)


@pytest.mark.parametrize(
    ("module", "old", "new"),
    first_of(
        [
            ("functions.domain.jobs.retry", "= Strategy.DECORRELATED_JITTER", "= Strategy.FIXED"),
            ("functions.domain.jobs.retry", "attempts: int = 5", "attempts: int = 25"),
            (
                "functions.domain.schedules.schedule",
                "timeout: timedelta = timedelta(seconds=30)",
                "timeout: timedelta = timedelta(1)",
            ),
            (
                "functions.domain.schedules.schedule",
                "misfire: Misfire = Misfire.FIRE_ALL",
                "misfire: Misfire = Misfire.SKIP",
            ),
            (
                "functions.domain.schedules.schedule",
                "overlap: Overlap = Overlap.ALLOW",
                "overlap: Overlap = Overlap.FORBID",
            ),
            ("functions.domain.schedules.schedule", "history: int = 10", "history: int = 3"),
            ("functions.domain.schedules.schedule", "roll: Roll = Roll.SKIP", "roll: Roll = Roll.AFTER"),
            ("functions.domain.targets.options", "method: Method = Method.POST", "method: Method = Method.PUT"),
        ]
    ),
)
def test_another_default_of_requests_changes_nothing_that_is_stored(a_copy: Release, module: str, old: str, new: str):
    source = source_of(module)
    assert old in source

    a_copy.becomes({module: source.replace(old, new)})

    assert misread(a_copy) == []


def test_a_member_that_comes_in_between_changes_nothing_that_is_stored(a_copy: Release):
    retry, codes = source_of("functions.domain.jobs.retry"), source_of("functions.domain.jobs.stored_codes")

    a_copy.becomes(
        {
            "functions.domain.jobs.retry": retry.replace(
                "    EXPONENTIAL =", '    FIBONACCI = "fibonacci"\n    EXPONENTIAL ='
            ),
            "functions.domain.jobs.stored_codes": codes.replace(
                "{Strategy.EXP", "{Strategy.FIBONACCI: 4, Strategy.EXP"
            ),
        }
    )

    assert misread(a_copy) == []


def test_a_member_without_a_code_of_its_own_is_refused():
    with pytest.raises(TypeError, match="every member of Strategy needs a code of its own"):
        Codes({Strategy.FIXED: 1})
    with pytest.raises(TypeError, match="every member of Precision needs a code of its own"):
        Codes({Precision.DEFAULT: 1, Precision.EXACT: 1})


@pytest.mark.parametrize("code", [4, -1, True, False, None, "1", 1.5, [1]])
def test_what_is_no_code_is_undecodable(code: object):
    with pytest.raises(Undecodable, match="is not a code of Strategy"):
        STRATEGIES.member_of(code)


def test_requests_and_what_is_stored_have_the_same_defaults_in_this_release():
    # The first release that gives requests another default takes that field out here, and says so in the changelog.
    assert REQUESTED == STORED


def source_of(module: str) -> str:
    return (ROOT / module.replace(".", "/")).with_suffix(".py").read_text()


def with_rotated_values(source: str, enum: str) -> str:
    """The members of an enum with each other's values."""
    tree = ast.parse(source)
    (body,) = [node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == enum]
    return _rotated(tree, [node for node in body if isinstance(node, ast.Assign)], "value")


def with_rotated_codes(source: str, table: str) -> str:
    """The members in a table with each other's codes."""
    tree = ast.parse(source)
    (found,) = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == table
    ]
    table_of_codes = found.args[0] if isinstance(found, ast.Call) else found
    assert isinstance(table_of_codes, ast.Dict)
    table_of_codes.values = [*table_of_codes.values[1:], table_of_codes.values[0]]
    return ast.unparse(tree)


def with_other_default(source: str, name: str, other: str) -> str:
    """Another value for a field of STORED, or of its retry policy."""
    tree = ast.parse(source)
    (stored,) = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "STORED"
    ]
    changed = [word for word in ast.walk(stored) if isinstance(word, ast.keyword) and word.arg == name]
    (keyword,) = changed
    keyword.value = ast.parse(other, mode="eval").body
    return ast.unparse(tree)


def _rotated(tree: ast.Module, nodes: list[Any], field: str) -> str:
    values = [getattr(node, field) for node in nodes]
    for node, value in zip(nodes, [*values[1:], values[0]], strict=True):
        setattr(node, field, value)
    return ast.unparse(tree)
