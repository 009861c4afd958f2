"""A Lambda function's process starts without garbage collection, and has it afterwards."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from functions.adapters.clients import Late

HANDLERS = sorted(Path("functions").glob("*/handler.py"))
PROGRAM = """
import gc
from functions.runtime import startup
print(gc.isenabled(), gc.get_freeze_count() > 0)
startup.is_over()
print(gc.isenabled(), gc.get_freeze_count() > 0)
"""


def collecting(variables: dict[str, str]) -> list[str]:
    """Whether garbage is collected and whether anything is exempt from it, during the start and after it."""
    environment = {**os.environ, **variables}
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def test_a_lambda_function_collects_no_garbage_until_its_start_is_over() -> None:
    assert collecting({"AWS_LAMBDA_FUNCTION_NAME": "api"}) == ["False False", "True True"]


def test_a_process_that_is_no_lambda_function_collects_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_LAMBDA_FUNCTION_NAME", raising=False)

    assert collecting({}) == ["True False", "True False"]


@pytest.mark.parametrize("path", HANDLERS, ids=lambda path: path.parent.name)
def test_a_handler_begins_with_the_start_and_ends_with_its_end(path: Path) -> None:
    lines = ast.parse(path.read_text()).body
    imports = [ast.unparse(node) for node in lines if isinstance(node, ast.Import | ast.ImportFrom)]

    assert imports[:2] == ["from __future__ import annotations", "from functions.runtime import startup"]
    assert ast.unparse(lines[-1]) == "startup.is_over()"


def test_a_late_client_is_made_once_and_when_it_is_first_used() -> None:
    made: list[str] = []

    def make() -> str:
        made.append("client")
        return "text"

    late = Late(make)
    assert made == []
    assert (late.upper(), late.title()) == ("TEXT", "Text")
    assert made == ["client"]
