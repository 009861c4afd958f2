"""`tickwheel --help`, `--version` and completion: what they say, and how little they import for it."""

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from scripts.command_index import text_of_index
from tests.command_line import run
from tickwheel.cli import app
from tickwheel.commands.index import INDEX, MODULES

ROOT = Path(__file__).resolve().parents[2]
SLOW = {
    "attr",
    "boto3",
    "botocore",
    "functions",
    "httpx",
    "infra",
    "markdown_it",
    "matplotlib",
    "pydantic",
    "rich",
    "yaml",
}
"""Packages, any of which takes longer to import than `tickwheel --help` may take."""

MODULES_THEN = """
import json, sys
from tickwheel.cli import app
try:
    app(prog_name="tickwheel")
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def modules_after(*arguments: str, **environment: str) -> tuple[str, set[str]]:
    """What a fresh `tickwheel` prints, and the modules that it has then."""
    command = [sys.executable, "-c", MODULES_THEN, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    return ended.stdout, set(json.loads(ended.stderr.splitlines()[-1]))


@pytest.mark.parametrize(
    ("arguments", "environment", "said"),
    [
        (["--help"], {}, "webhook-keys"),
        ([], {}, "webhook-keys"),
        (["--version"], {}, version("tickwheel")),
        (
            [],
            {"_TICKWHEEL_COMPLETE": "complete_bash", "COMP_WORDS": "tickwheel sub", "COMP_CWORD": "1"},
            "submit",
        ),
    ],
    ids=["help", "nothing", "version", "completion"],
)
def test_what_is_asked_often_imports_no_command_and_nothing_slow(
    arguments: list[str], environment: dict[str, str], said: str
) -> None:
    printed, modules = modules_after(*arguments, **environment)

    assert said in printed
    assert {name.partition(".")[0] for name in modules} & SLOW == set()
    ours = {name for name in modules if name.startswith("tickwheel.")}
    assert {name for name in ours if not name.startswith("tickwheel.commands.")} <= {
        "tickwheel.cli",
        "tickwheel.commands",
        *(name for name in ours if name.count(".") == 1 and type(sys.modules.get(name)).__name__ == "_Former"),
    }
    assert {name for name in ours if name.startswith("tickwheel.commands.")} == {
        f"tickwheel.commands.{name}" for name in ("discovery", "index", "option_sets", "page", "registry")
    }


def test_the_index_has_what_each_command_says_of_itself() -> None:
    written: dict[str, object] = {"__name__": "index"}
    sys.modules["index"] = sys.modules[__name__]  # where its dataclass looks itself up
    try:
        exec(compile(text_of_index(), "index.py", "exec"), written)
    finally:
        del sys.modules["index"]

    listed = written["INDEX"]
    assert isinstance(listed, dict)
    assert {name: vars(each) for name, each in listed.items()} == {name: vars(each) for name, each in INDEX.items()}, (
        "run `make format`"
    )
    assert written["MODULES"] == MODULES


def words_of(page: str) -> list[str]:
    return page.translate(str.maketrans("│╭╮╰╯─", "      ")).split()


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_the_help_says_what_typer_would_say(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    with group.make_context("tickwheel", [], resilient_parsing=True) as ctx:
        TyperGroup.format_help(group, ctx, ctx.make_formatter())
    theirs = capsys.readouterr().out

    ours = run("--help", columns=columns).stdout

    assert words_of(ours) == words_of(theirs)
    assert max(map(len, ours.splitlines())) == columns


def test_no_arguments_are_wrong_usage_and_show_the_help() -> None:
    result = run()

    assert result.exit_code == 2
    assert "Submit a job" in result.output


def test_a_command_that_there_is_not_is_answered_with_one_like_it() -> None:
    result = run("sumbit")

    assert result.exit_code == 2
    assert "Did you mean 'submit'" in result.stderr


def test_the_version_is_that_of_the_package() -> None:
    assert run("--version").stdout == f"tickwheel {version('tickwheel')}\n"
