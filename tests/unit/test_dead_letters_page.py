"""docs/dead-letters.md: its examples are taken by what they are for, and its numbers are those of the code."""

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from functions.adapters.dynamodb.dead_letters import RAW_LIMIT
from functions.api.dead_letters import answers as dead_letter_answers
from functions.api.dead_letters import finder as dead_letters
from functions.api.dead_letters import replay
from functions.api.dead_letters.requests import ListQuery, ReplayBody
from functions.api.http.problem_table import TABLE
from functions.domain.dead_letters.dead_letter_id import DEAD_LETTER_LIFE
from tests.api_server import Answer, ApiServer, Request
from tests.unit.test_client_dead_letters import ID, dead_letter_json, page_json, part_json
from tickwheel.cli import app

PAGE = (Path(__file__).parents[2] / "docs" / "dead-letters.md").read_text()
WORDS = re.sub(r"\s+", " ", PAGE)


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def commands() -> list[str]:
    return [line for block in blocks("sh") for line in block.splitlines() if line.startswith("tickwheel ")]


def answer(request: Request) -> Answer:
    if request.path.endswith((":replay", ":purge")) and "~" not in request.path:
        is_dry_run = request.json.get("dry_run", False)
        counted = {**page_json(dead_letter_json()), "matched": 1}
        return Answer(200, counted if is_dry_run else part_json())
    if request.path.endswith(":replay"):
        return Answer(200, {"id": ID, "job_id": "j1~x", "outcome": "already_replayed", "state": "running"})
    return Answer(200, dead_letter_json() if "~" in request.path else page_json(dead_letter_json()))


@pytest.mark.parametrize("command", commands())
def test_every_command_is_taken(command: str):
    arguments = [ID if word == "ID" else word for word in shlex.split(command)[1:]]
    with ApiServer(otherwise=answer) as server:
        result = CliRunner().invoke(app, arguments, env={"TICKWHEEL_ENDPOINT": server.url}, input="y\n")

    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("example", blocks("json"))
def test_every_body_is_taken(example: str):
    ReplayBody.model_validate(json.loads(example))


def test_every_program_compiles():
    for program in blocks("python"):
        compile(program, "docs/dead-letters.md", "exec")


def test_every_part_of_a_filter_is_explained():
    table = PAGE[PAGE.index("| filter | means |") :].split("\n\n", 1)[0]
    explained = {name for line in table.splitlines()[2:] for name in re.findall(r"`([a-z_]+)`", line.split("|")[1])}

    assert explained == set(ListQuery.model_fields) - {"limit", "after"}


def test_every_code_of_a_replay_is_one_that_the_api_answers():
    told = set(re.findall(r"\| (?:404|409|503) `([a-z_]+)` \|", PAGE))

    assert len(told) == 5
    assert told <= {code for _, code, _ in TABLE.values()}


def test_its_numbers_are_those_of_the_code():
    assert f"for {DEAD_LETTER_LIFE.days} days" in WORDS
    assert f"makes at most {dead_letters.MOST_QUERIES} queries" in WORDS
    assert f"the last {dead_letters.USUAL_REACH.total_seconds() / 3_600:g} hours" in WORDS
    assert f"at most {replay.MOST_DEAD_LETTERS} letters" in WORDS
    assert f"marked {replay.ROW_IS_SURE.days} days ago" in WORDS
    assert f"that failed within {replay.ROW_IS_SURE.days} days" in WORDS
    assert f"at most {replay.FARTHEST.total_seconds() / 3_600:g} hours ahead" in WORDS
    assert f"the first {RAW_LIMIT:,} characters" in WORDS
    assert dead_letter_answers.MOST_SHOWN == 10
    assert "the newest ten" in WORDS
    assert f"{ListQuery(tenant='acme').limit} a page" in WORDS
