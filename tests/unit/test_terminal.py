"""How an answer is shown: to people a line a field, to a script as JSON."""

import json
from dataclasses import dataclass
from datetime import datetime

import pytest

from testkit.builders import NOON
from tickwheel.commands.api import Output


@dataclass(frozen=True)
class Answer:
    id: str
    due_at: datetime = NOON
    moved_from: str | None = None
    fires: int = 0


def test_people_are_reported_a_line_a_field_but_nothing_of_what_is_none(capsys: pytest.CaptureFixture[str]):
    Output(as_json=False).print_fields(Answer("[j1]"))

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [["id", "[j1]"], ["due", "at", "2027-03-01T12:00:00Z"], ["fires", "0"]]


def test_a_script_lists_every_field(capsys: pytest.CaptureFixture[str]):
    Output(as_json=True).print_fields(Answer("[j1]"))

    fields = {"id": "[j1]", "due_at": "2027-03-01T12:00:00Z", "moved_from": None, "fires": 0}
    assert json.loads(capsys.readouterr().out) == fields
