"""Every example of the pages and of the README: parsed and compiled, and run where that needs no account.

Commands and programs run against a scheduler in memory, page by page and in their order. What a page says is not run is listed
here with the pages, so that a mark is not made without being seen.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from infra.stage import OWN_KEY, EventRule, Jwt, Stage
from tests.examples import ROOT, Example, examples, simple_commands
from tests.in_memory_server import served
from tickwheel import handlers
from tickwheel.cli import app
from tickwheel.client import Client, DeadLetterFilter, Http, NewSchedule, RetryPolicy
from tickwheel.testing import Answer, Scheduler

SHELL, PYTHON = examples("sh"), examples("python")
MAKEFILE = (ROOT / "Makefile").read_text()
OTHER_PROGRAMS = {
    ".",
    "aws",
    "crontab",
    "cdk",
    "curl",
    "cut",
    "do",
    "done",
    "export",
    "for",
    "generate-jobs",
    "jq",
    "npx",
    "pip",
    "python",
    "python3",
}
"""Programs of others, which have no command line here to compare with; modules of `python -m` are compared."""

NOT_RUN = Counter(
    {
        "README.md": 6,
        "docs/audit.md": 1,
        "docs/capacity.md": 1,
        "docs/command-line.md": 3,
        "docs/construct.md": 5,
        "docs/cost.md": 1,
        "docs/handlers.md": 4,
        "docs/health.md": 1,
        "docs/importing.md": 2,
        "docs/installing.md": 2,
        "docs/model.md": 1,
        "docs/restore.md": 6,
        "docs/schedules.md": 1,
        "docs/simulation.md": 1,
        "docs/smoke.md": 1,
        "docs/soak.md": 1,
        "docs/stages.md": 1,
        "docs/targets.md": 3,
        "docs/testing.md": 8,
        "docs/using.md": 2,
        "docs/verification.md": 1,
        "docs/ways-in.md": 4,
    }
)
"""Blocks that no test runs, by page: `<!-- not run: reason -->` says why."""

FAILS = "https://example.com/broken"


def test_the_blocks_that_are_not_run_are_known() -> None:
    assert Counter(each.page for each in SHELL + PYTHON if each.reason) == NOT_RUN


@pytest.mark.parametrize("example", SHELL, ids=str)
def test_a_shell_understands_it(example: Example) -> None:
    done = subprocess.run(["bash", "-n"], input=example.code, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("example", SHELL, ids=str)
def test_each_command_is_one_that_there_is(example: Example) -> None:
    for line in example.lines:
        for command in simple_commands(line):
            parse(command, among_others=example.reason is not None)


def test_a_command_with_an_option_that_there_is_not_is_found() -> None:
    with pytest.raises(Exception, match="No such option: --plna"):
        parse(["tickwheel", "tenant", "set", "acme", "--plna", "gold"], among_others=False)
    with pytest.raises(AssertionError, match="no target"):
        parse(["make", "simulates"], among_others=False)
    with pytest.raises(AssertionError, match="is not an option"):
        parse(["python", "-m", "smoke", "--quik"], among_others=False)


def parse(command: list[str], *, among_others: bool) -> None:
    """Raises for a command that would be refused as wrong usage. among_others: programs of others are allowed."""
    program, *words = command
    if program == "tickwheel":
        parse_tickwheel(words)
    elif program == "make":
        for word in words:
            assert "=" in word or re.search(rf"^{re.escape(word)}:.*##", MAKEFILE, re.MULTILINE), f"no target {word}"
    elif program == "python" and words[:1] == ["-m"]:
        parse_module(words[1], words[2:])
    else:
        assert among_others, f"{program} is not of Tickwheel: mark its block as not run"
        assert program in OTHER_PROGRAMS or "=" in program, f"{program} is unknown"


def parse_tickwheel(words: list[str]) -> None:
    words = [re.sub(r"\$\w+", "value", word) for word in words]
    command: Any = typer.main.get_command(app)
    if not words or words[0].startswith("-"):
        assert {parameter for each in command.params for parameter in each.opts} >= set(words)
        return
    while hasattr(command, "get_command"):
        name = words.pop(0)
        command = command.get_command(None, name)
        assert command is not None, f"tickwheel has no command {name}"
    command.make_context(" ".join(words), words)


def parse_module(name: str, words: list[str]) -> None:
    spec = importlib.util.find_spec(name)
    assert spec is not None, f"there is no module {name}"
    assert spec.origin is not None
    source = "".join(file.read_text() for file in Path(spec.origin).parent.glob("*.py"))
    for option in (word for word in words if word.startswith("-")):
        assert f'"{option}"' in source, f"{option} is not an option of {name}"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with Scheduler() as scheduler, served(scheduler) as server, chdir(tmp_path):
        monkeypatch.setenv("TICKWHEEL_ENDPOINT", server.url)
        monkeypatch.setenv("TICKWHEEL_CONFIG", str(tmp_path / "config"))
        before = dict(handlers._handlers)
        yield World(scheduler)
    # What a page has registered is gone afterwards.
    handlers._handlers.clear()
    handlers._handlers.update(before)


class World:
    """A stage in which there is what pages speak of: a job, a dead letter, a schedule, files."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        client = scheduler.client
        scheduler.answer(FAILS, Answer(500))
        client.submit(FAILS, tenant="acme", retry=RetryPolicy(attempts=1), delivery="exactly_once")
        scheduler.advance(minutes=1)
        schedule = NewSchedule(
            "daily-report", tenant="acme", cron="30 6 * * mon-fri", target="https://example.com/report"
        )
        client.schedules.put(schedule)
        client.schedules.put(replace(schedule, id="hourly", cron="0 * * * *"))
        (letter,) = client.dead_letters.list(DeadLetterFilter(tenant="acme"))
        self.letter = letter.id
        line = {"tenant": "acme", "target": "https://example.com/hook"}
        Path("jobs.jsonl").write_text(json.dumps(line) + "\n")
        Path("schedules.jsonl").write_text(
            json.dumps({"tenant": "acme", "id": "of-a-file", "cron": "0 * * * *", "job": {"target": "handler:echo"}})
            + "\n"
        )
        Path("jobs.csv").write_text("tenant,target\nacme,https://example.com/hook\n")
        Path("jobs.crontab").write_text("30 2 * * * /usr/bin/report\n")

    def id_for(self, group: str) -> str:
        """Of a dead letter, or of the operation that was asked for last."""
        if group == "dead-letters":
            return self.letter
        self.scheduler.advance(minutes=5)  # and it has ended
        return max(self.scheduler.client.operations.list(tenant="acme"), key=lambda each: each.created_at).id

    @property
    def version(self) -> int:
        """Of the schedule of the pages."""
        return self.scheduler.client.schedules.get("daily-report", tenant="acme").version

    @property
    def job(self) -> str:
        """A job that waits: a new one each time, for what a page does with one it may not do with it again."""
        return self.scheduler.client.submit(
            "https://example.com/hook", tenant="acme", delay=timedelta(days=20), http=Http(headers={"X-Team": "a"})
        ).id


@pytest.mark.parametrize("page", sorted({example.page for example in SHELL if not example.reason}))
def test_the_commands_of_a_page_run(page: str, world: World) -> None:
    for example in SHELL:
        if example.page != page or example.reason:
            continue
        for line in example.lines:
            for command in simple_commands(line):
                if command[0] == "tickwheel":
                    run(command[1:], world, typed=line)


def run(words: list[str], world: World, *, typed: str) -> None:
    said = [world.job if word == "JOB_ID" else word for word in words]
    said = [world.id_for(said[0]) if word == "ID" else word for word in said]
    if "--if-version" in said:  # the page has a number of its own
        said[said.index("--if-version") + 1] = str(world.version)
    done = CliRunner().invoke(app, said, input="y\n", env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert done.exit_code == 0, f"{typed}\n{done.output}\n{done.stderr}"


@pytest.mark.parametrize("example", PYTHON, ids=str)
def test_a_program_compiles(example: Example) -> None:
    compile(example.code, str(example), "exec")


TAKEN_FOR_GRANTED = {
    "prod": Stage.named("prod"),
    **{each.__name__: each for each in (EventRule, Jwt, replace)},
    "OWN_KEY": OWN_KEY,
}
"""What a line of `infra/stage.py` has around it."""


@pytest.mark.parametrize("page", sorted({example.page for example in PYTHON if not example.reason}))
def test_the_programs_of_a_page_run(page: str, world: World) -> None:
    with Client() as client:
        names: dict[str, Any] = {"client": client, **TAKEN_FOR_GRANTED}
        for example in PYTHON:
            if example.page == page and not example.reason:
                exec(compile(example.code, str(example), "exec"), names)
