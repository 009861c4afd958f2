"""The programs of docs/handlers.md, as a newcomer copies them: the folder, the application, the test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from functions.domain.targets.handler_names import HandlerNames
from infra.handler_names import read_handlers
from tests.pages import blocks, read_page

PAGE = read_page("handlers.md")
ROOT = Path(__file__).parents[2]
FOLDER, APP, TEST = blocks(PAGE, "python")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "billing.py").write_text(FOLDER)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(project: Path, *arguments: str, **variables: str) -> str:
    """What Python prints in a process of its own, as a newcomer runs it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=project,
        env={**environment, **variables, "PYTHONPATH": f"{ROOT}{os.pathsep}{project}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_folder_has_the_handlers_that_the_page_says(project: Path) -> None:
    names = sorted(read_handlers("./jobs").modules)

    assert f"`running {', '.join(f'handler:{name}' for name in names)}`" in PAGE


def test_the_application_makes_the_stacks_with_a_layer_of_the_handlers(project: Path) -> None:
    (project / "app.py").write_text(APP)

    run(project, "app.py", CDK_OUTDIR="out", CDK_CONTEXT_JSON=json.dumps({"aws:cdk:bundling-stacks": []}))

    (template,) = [path.read_text() for path in (project / "out").glob("*.template.json") if "Storage" not in path.name]
    assert "The handlers that jobs call" in template
    assert "The names of handlers" in template


def test_the_test_runs_where_the_folder_is(project: Path) -> None:
    (project / "test_billing.py").write_text(TEST)

    assert "1 passed" in run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_billing.py")


def test_the_refusal_that_the_page_shows_is_the_one_that_is_answered() -> None:
    said = HandlerNames({"echo", "trial", "invoice", "remind"}).objection("invoce")

    assert f"target: {said}" in PAGE
