"""The examples of pages: bodies are taken by what they are for, programs compile."""

import json
from pathlib import Path

import pytest
from pydantic import BaseModel

from functions.api.dead_letters.requests import ReplayBody
from functions.api.operations.requests import OperationBody
from tests.pages import blocks, read_page


@pytest.mark.parametrize(
    ("model", "example"),
    [
        (model, example)
        for page, model in (("dead-letters.md", ReplayBody), ("many-jobs.md", OperationBody))
        for example in blocks(read_page(page), "json")
    ],
)
def test_every_body_is_taken(model: type[BaseModel], example: str):
    model.model_validate(json.loads(example))


@pytest.mark.parametrize(
    "page",
    [
        "breakers.md",
        "collect.md",
        "construct.md",
        "dead-letters.md",
        "flows.md",
        "health.md",
        "many-jobs.md",
        "python-client.md",
        "schedules.md",
        "tenants.md",
        "testing.md",
        "using.md",
    ],
)
def test_every_program_compiles(page: str):
    programs = blocks(read_page(page), "python")

    assert programs
    for program in programs:
        compile(program, page, "exec")


def test_the_programs_of_a_users_tests_are_those_that_run():
    examples = Path(__file__).parents[2] / "examples" / "testing"
    running = "".join((examples / name).read_text() for name in ("test_orders.py", "test_shop.py"))
    *quoted, of_the_local_cloud = blocks(read_page("testing.md"), "python")

    assert len(quoted) == 6
    for program in quoted:
        assert program in running
    assert 'Client(context="local")' in of_the_local_cloud
