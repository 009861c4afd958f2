"""The vocabulary of the log, the code that speaks it, and the page that explains it."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from functions.domain.events import EVENTS, KEYS, Shape
from scripts.list_events import PAGE, tables
from testkit.fakes import RecordingJournal

FUNCTIONS = Path(__file__).resolve().parents[2] / "functions"
TELLERS = frozenset({"event", "_tell"})
"""The methods whose first argument is the name of an event."""


class Line(NamedTuple):
    place: str
    name: str
    keys: frozenset[str]
    is_open: bool
    """Some of its keys are made at run time."""


def lines_of(source: str, place: str = "") -> Iterator[Line]:
    """The lines of the log that some code writes, where it says their names."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TELLERS:
            named = node.args[0] if node.args else None
            if isinstance(named, ast.Constant):
                keys = frozenset(keyword.arg for keyword in node.keywords if keyword.arg)
                is_open = node.func.attr != "event" or any(keyword.arg is None for keyword in node.keywords)
                yield Line(f"{place}:{node.lineno}", str(named.value), keys, is_open)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "logger.error":
            (name,), (extra,) = node.args, node.keywords
            assert isinstance(name, ast.Constant)
            assert isinstance(extra.value, ast.Dict)
            keys = frozenset(str(key.value) for key in extra.value.keys if isinstance(key, ast.Constant))
            yield Line(f"{place}:{node.lineno}", str(name.value), keys, is_open=False)
        # Where a name comes by way of a variable.
        values = [node.value] if isinstance(node, ast.keyword) and node.arg == "event" else []
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["event"]:
            values = [node.value]
        for value in (part for found in values for part in ast.walk(found)):
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield Line(f"{place}:{value.lineno}", value.value, frozenset(), is_open=True)


LINES = [
    line
    for file in sorted(FUNCTIONS.rglob("*.py"))
    for line in lines_of(file.read_text(), str(file.relative_to(FUNCTIONS)))
]


def test_the_code_says_nothing_that_is_not_in_the_vocabulary():
    assert len(LINES) > 60
    assert [line for line in LINES if line.name not in EVENTS] == []


def test_everything_in_the_vocabulary_is_said_somewhere():
    assert set(EVENTS) - {line.name for line in LINES} == set()


def test_every_line_has_the_keys_of_its_event():
    wrong = [
        (
            line.place,
            line.name,
            EVENTS[line.name].fault(line.keys | set(EVENTS[line.name].keys if line.is_open else ())),
        )
        for line in LINES
    ]
    assert [fault for fault in wrong if fault[2]] == []


def test_every_key_is_explained_and_every_explained_key_is_used():
    used = {key for shape in EVENTS.values() for key in (*shape.keys, *shape.optional)}
    assert used == set(KEYS)


def test_no_key_is_named_after_what_must_not_be_logged():
    secret = {"payload", "body", "headers", "result", "text", "target", "url", "secret", "idempotency_key"}
    assert set(KEYS) & secret == set()


def test_a_key_is_not_said_twice_of_an_event():
    for shape in EVENTS.values():
        assert len({*shape.keys, *shape.optional}) == len(shape.keys) + len(shape.optional)


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ({"a", "b"}, ""),
        ({"a", "b", "c"}, ""),
        ({"a", "c"}, "lacks b"),
        ({"a", "b", "d"}, "must not have d"),
        ({"d"}, "lacks a, b and must not have d"),
    ],
)
def test_a_line_with_other_keys_is_at_fault(keys: set[str], fault: str):
    assert Shape("something", ("a", "b"), ("c",)).fault(keys) == fault


def test_the_journal_of_the_tests_refuses_what_the_vocabulary_does_not_know():
    journal = RecordingJournal()
    journal.event("schedule_healed", schedule="acme#nightly")

    with pytest.raises(AssertionError, match="not in the vocabulary"):
        journal.event("job_seattled", job_id="j1")
    with pytest.raises(AssertionError, match="lacks schedule and must not have job_id"):
        journal.event("schedule_healed", job_id="j1")


def test_a_name_is_found_however_it_is_said():
    source = 'j.event("a", x=1)\nj.event("b", **more)\ns._tell("c", 1)\nf(event="d")\nevent = "e" if x else "f"\nj.event(event)'
    assert [(line.name, line.is_open) for line in sorted(lines_of(source))] == [
        ("a", False),
        ("b", True),
        ("c", True),
        ("d", True),
        ("e", True),
        ("f", True),
    ]


def test_the_page_explains_the_vocabulary():
    assert tables() in PAGE.read_text(), "run python -m scripts.list_events"
