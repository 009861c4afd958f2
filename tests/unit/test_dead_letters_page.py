"""docs/dead-letters.md: its examples are taken by what they are for, and its numbers are those of the code."""

import re
import shlex

import pytest

from functions.adapters.dynamodb.dead_letters import RAW_LIMIT
from functions.api.dead_letters import answers as dead_letter_answers
from functions.api.dead_letters import finder as dead_letters
from functions.api.dead_letters import replay
from functions.api.dead_letters.requests import ListQuery
from functions.api.http.problem_table import TABLE
from functions.domain.dead_letters.dead_letter_id import DEAD_LETTER_LIFE
from tests.api_server import Answer, ApiServer, Request
from tests.command_line import run
from tests.pages import commands, read_page, table, words_of
from tests.unit.test_client_dead_letters import ID, dead_letter_json, page_json, part_json

PAGE = read_page("dead-letters.md")
WORDS = words_of(PAGE)


def answer(request: Request) -> Answer:
    if request.path.endswith((":replay", ":purge")) and "~" not in request.path:
        is_dry_run = request.json.get("dry_run", False)
        counted = {**page_json(dead_letter_json()), "matched": 1}
        return Answer(200, counted if is_dry_run else part_json())
    if request.path.endswith(":replay"):
        return Answer(200, {"id": ID, "job_id": "j1~x", "outcome": "already_replayed", "state": "running"})
    return Answer(200, dead_letter_json() if "~" in request.path else page_json(dead_letter_json()))


@pytest.mark.parametrize("command", commands(PAGE))
def test_every_command_is_taken(command: str):
    arguments = [ID if word == "ID" else word for word in shlex.split(command)[1:]]
    with ApiServer(otherwise=answer) as server:
        result = run(*arguments, server=server, typed="y\n")

    assert result.exit_code == 0, result.output


def test_every_part_of_a_filter_is_explained():
    rows = table(PAGE, "| filter | meaning |")
    explained = {name for row in rows for name in re.findall(r"`([a-z_]+)`", row[0])}

    assert explained == set(ListQuery.model_fields) - {"limit", "after"}


def test_every_code_of_a_replay_is_one_that_the_api_answers():
    codes = set(re.findall(r"\| (?:404|409|503) `([a-z_]+)` \|", PAGE))

    assert len(codes) == 5
    assert codes <= {code for _, code, _ in TABLE.values()}


def test_its_numbers_are_those_of_the_code():
    sentences = (
        f"for {DEAD_LETTER_LIFE.days} days",
        f"makes at most {dead_letters.MOST_QUERIES} queries",
        f"the last {dead_letters.USUAL_REACH.total_seconds() / 3_600:g} hours",
        f"at most {replay.MOST_DEAD_LETTERS} dead letters",
        f"marked {replay.ROW_IS_SURE.days} days ago",
        f"that failed within {replay.ROW_IS_SURE.days} days",
        f"at most {replay.FARTHEST.total_seconds() / 3_600:g} hours ahead",
        f"the first {RAW_LIMIT:,} characters",
        "the newest ten",
        f"{ListQuery(tenant='acme').limit} per page",
    )

    assert [text for text in sentences if text not in WORDS] == []
    assert dead_letter_answers.MOST_SHOWN == 10
