"""`tickwheel --help`, `--version` and completion: what they say, and how little they import for it."""

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperCommand, TyperGroup

from scripts.command_index import text_of_index, text_of_pages
from tests.command_line import run
from tickwheel.cli import app
from tickwheel.commands.discovery import PAGES
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

PAGES_THEN: dict[str, Any] = json.loads(PAGES.read_text(encoding="utf-8"))

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
        (["submit", "--help"], {}, "--run-deadline"),
        (["schedule", "create", "--help"], {}, "--poisson"),
        (["schedule", "--help"], {}, "backfill"),
        (
            [],
            {"_TICKWHEEL_COMPLETE": "complete_bash", "COMP_WORDS": "tickwheel sub", "COMP_CWORD": "1"},
            "submit",
        ),
    ],
    ids=["help", "nothing", "version", "help of a command", "help in a group", "help of a group", "completion"],
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


HELP_OF_EACH = """
import json, sys
from tickwheel.cli import app
from tickwheel.commands.discovery import PAGES
for path in json.loads(PAGES.read_text()):
    try:
        app([*path.split(), "--help"], prog_name="tickwheel")
    except SystemExit as ended:
        assert ended.code == 0, path
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def test_the_help_of_no_command_imports_its_module_or_anything_slow() -> None:
    ended = subprocess.run([sys.executable, "-c", HELP_OF_EACH], capture_output=True, text=True, check=True)
    modules = set(json.loads(ended.stderr.splitlines()[-1]))

    assert ended.stdout.count("Usage: tickwheel ") == len(PAGES_THEN) > 60
    assert {name.partition(".")[0] for name in modules} & SLOW == set()
    assert not {f"tickwheel.commands.{name}" for listed in INDEX.values() for name in listed.modules} & modules


def test_what_is_written_of_each_command_is_what_it_says() -> None:
    assert json.loads(text_of_pages()) == PAGES_THEN, "run `make format`"


@pytest.mark.parametrize("path", PAGES_THEN)
def test_the_help_of_a_command_says_what_typer_would_say(
    path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    command: Any = typer.main.get_command(app)
    ctx = command.make_context("tickwheel", [], resilient_parsing=True)
    for word in path.split():
        command = command.get_command(ctx, word)
        ctx = command.make_context(word, [], parent=ctx, resilient_parsing=True)
    theirs: Any = TyperGroup if isinstance(command, TyperGroup) else TyperCommand
    theirs.format_help(command, ctx, ctx.make_formatter())
    theirs_said = plain_words_of(capsys.readouterr().out)

    assert plain_words_of(run(*path.split(), "--help", columns=1000).stdout) == theirs_said


def plain_words_of(page: str) -> list[str]:
    """Without the star of what is required, which is told in words too, and what stands between the names of an option."""
    return sorted(word for word in words_of(page.replace(",", " ")) if word != "*")


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_a_page_is_as_wide_as_its_terminal(columns: int) -> None:
    for path in ("submit", "schedule create", "dead-letters"):
        lines = run(*path.split(), "--help", columns=columns).stdout.splitlines()

        assert max(map(len, lines)) <= columns, path


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
