"""docs/many-jobs.md: its examples are taken by what they are for, and its numbers are those of the code."""

import re
import shlex
from pathlib import Path

import pytest

from functions.adapters.s3.exports import URL_LIFE
from functions.api.http.problem_table import TABLE
from functions.api.operations import manager as operations
from functions.api.operations.answers import operation_body
from functions.api.operations.requests import OperationBody
from functions.domain.operations.operation import (
    MAX_EXAMPLES,
    MAX_RATE,
    MIN_RATE,
    MOST_REACH,
    OPERATION_LIFE,
    USUAL_RATE,
    USUAL_REACH,
    OperationKind,
    OperationState,
)
from functions.operations import executor as work
from tests.api_server import Answer, ApiServer, Request
from tests.command_line import run
from tests.pages import commands, read_page, table, words_of
from tests.unit.test_client_operations import ID, a_part, operation_json
from tests.unit.test_operations import Office

PAGE = read_page("many-jobs.md")
WORDS = words_of(PAGE)


@pytest.mark.parametrize("command", commands(PAGE))
def test_every_command_is_taken(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    arguments = [ID if word == "ID" else word for word in shlex.split(command)[1:]]

    def answer(request: Request) -> Answer:
        if request.path == "/file":
            return a_part("{}")
        asked = request.json if request.method == "POST" else {"action": "export"}
        parts = {"parts": [f"{server.url}/file"]} if asked["action"] == "export" else {}
        body = operation_json(action=asked["action"], dry_run=asked.get("dry_run", False), **parts)
        return Answer(202 if request.method == "POST" else 200, body)

    with ApiServer(otherwise=answer) as server:
        result = run(*arguments, server=server, typed="y\n")

    assert result.exit_code == 0, result.output


def test_every_part_of_a_filter_and_of_an_action_is_explained():
    filters = {name for row in table(PAGE, "| filter | meaning |") for name in re.findall(r"`([a-z_]+)`", row[0])}
    rows = table(PAGE, "| action | fields | effect |")
    said = {name for row in rows for name in re.findall(r"`([a-z_]+)`", row[1])}

    assert {name for row in rows for name in re.findall(r"`([a-z_]+)`", row[0])} == {
        action.value for action in OperationKind
    }
    assert filters | said == set(OperationBody.model_fields) - {"action", "dry_run"}


def test_every_state_and_every_field_of_progress_is_explained():
    answer = operation_body(Office().accept())
    explained = {name for row in table(PAGE, "| field | meaning |") for name in re.findall(r"`([a-z_]+)`", row[0])}

    assert explained == {"share", "examined", "matched", "done", "refused", "examples"} <= set(answer)
    assert all(f"`{state.value}`" in PAGE for state in OperationState)


def test_every_code_of_the_api_is_one_that_it_answers():
    codes = set(re.findall(r"(?:409|429) `([a-z_]+)`", PAGE))

    assert codes == {"key_reused", "too_many_operations"} <= {code for _, code, _ in TABLE.values()}


def test_its_numbers_are_those_of_the_code():
    sentences = (
        f"at most {MOST_REACH.days} days back",
        "is an hour ago",
        f"{MIN_RATE:g} to {MAX_RATE:,.0f}, by default {USUAL_RATE:g}",
        f"the first {MAX_EXAMPLES} are returned",
        f"the first {MAX_EXAMPLES} jobs",
        f"may have {operations.MOST_OPEN} operations that have not ended",
        f"until {OPERATION_LIFE.days} days after its end",
        f"for {URL_LIFE.total_seconds() / 60:g} minutes",
        "ten turns in a row",
        "in three turns",
        "1,440 queries a day",
    )

    assert [text for text in sentences if text not in WORDS] == []
    assert USUAL_REACH.total_seconds() == 3_600
    assert work.MOST_FAILURES == 10
    assert work.ENOUGH_FAILURES == 3
