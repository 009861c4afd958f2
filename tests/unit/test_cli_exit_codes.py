"""The exit codes of `tickwheel`, as docs/command-line.md has them, of real processes."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.api_server import Answer, ApiServer, Request
from tests.pages import read_page
from tests.short_run import first_of
from tests.unit.test_cli import a_file, a_line

JOB = {"id": "x", "tenant": "acme", "state": "running", "due_at": "2030-01-31T09:00:00Z"}
REFUSAL = Answer(422, {"status": 422, "code": "invalid", "title": "Invalid job"})
PROBLEM = {"status": 422, "code": "invalid", "title": "Invalid job"}


def started(*arguments: str, server: ApiServer, **streams: int) -> subprocess.Popen[str]:
    environment = {**os.environ, "TICKWHEEL_ENDPOINT": server.url, "NO_COLOR": "1"}
    command = [sys.executable, "-m", "tickwheel.cli", *arguments]
    return subprocess.Popen(
        command,
        env=environment,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=heed_interrupts,  # noqa: PLW1509  it calls nothing that takes a lock
    )


def heed_interrupts() -> None:
    """What is started in the background of a script ignores Ctrl-C, and so does whatever it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def ended(*arguments: str, server: ApiServer) -> tuple[int, str]:
    process = started(*arguments, server=server)
    _, errors = process.communicate(timeout=120)
    return process.returncode, errors


def test_the_page_says_what_each_code_means() -> None:
    rows = [row.split("|")[1:3] for row in read_page("command-line.md").splitlines() if row.startswith("| ")]

    assert [code.strip() for code, _ in rows if code.strip().isdigit()][:4] == ["0", "1", "2", "130"]


@pytest.mark.parametrize(
    ("answer", "arguments", "code", "said"),
    [
        (Answer(200, JOB), ["get", "x"], 0, ""),
        (REFUSAL, ["get", "x"], 1, "Invalid job [422 invalid]"),
        (Answer(404, {"message": "Not Found"}), ["schedule", "show", "x", "--tenant", "acme"], 1, "Not Found"),
        (Answer(200, JOB), ["get"], 2, "Missing argument"),
        (Answer(200, JOB), ["submit", "handler:echo", "--tenant", "acme", "--delay", "soon"], 2, "'soon'"),
        (Answer(200, JOB), ["schedule", "delete", "x", "--tenant", "acme"], 1, "Aborted"),
    ],
    ids=["done", "refused", "not found", "argument missing", "wrong option", "nobody to ask"],
)
def test_a_command_exits_as_it_ended(answer: Answer, arguments: list[str], code: int, said: str) -> None:
    with ApiServer(answer) as server:
        found, errors = ended(*arguments, server=server)

    assert found == code, errors
    assert said in errors
    assert "Traceback" not in errors


def test_what_was_done_in_part_is_a_failure(tmp_path: Path) -> None:
    accepted = {"status": 202, "job": {**JOB, "state": "scheduled", "ring": "far"}}
    with ApiServer(Answer(200, {"results": [accepted, {"status": 422, "problem": PROBLEM}]})) as server:
        code, errors = ended("submit", "--file", str(a_file(tmp_path, a_line(), a_line("bad"))), server=server)

    assert code == 1
    assert "line 2" in errors


@pytest.mark.parametrize(
    "arguments",
    first_of(
        [
            ["get", "x"],
            ["schedule", "list", "--tenant", "acme"],
            ["status"],
            ["dead-letters", "replay", "--tenant", "acme"],
            ["operations", "run-now", "--tenant", "acme", "--all", "--yes"],
        ]
    ),
    ids=" ".join,
)
def test_an_interrupt_ends_a_command_with_130_and_without_a_traceback(arguments: list[str]) -> None:
    let_go = threading.Event()

    def linger(_: Request) -> Answer:
        let_go.wait(60)
        return REFUSAL

    with ApiServer(otherwise=linger) as server:
        process = started(*arguments, server=server)
        until = time.monotonic() + 60
        while not server.requests and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        let_go.set()

    assert process.returncode == 130, errors
    assert "Traceback" not in errors
