"""Compares what the functions of a test run ask of AWS with `calls.json`, and fails the run when they differ.

`--write-calls` keeps what was heard instead: all of it after a run of every test that makes calls, and otherwise what is
new.
"""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from scripts.least_privilege.calls import FILE, REFRESH, complaints, heard, kept, written
from scripts.least_privilege.recording import Recorder

FOLDER = "TICKWHEEL_HEARD_CALLS"
"""Where the processes of this run write: the workers of pytest-xdist know by their environment."""

MAKING_CALLS = ("tests/integration", "tests/e2e")

_ROOT = Path(__file__).resolve().parents[2]
_found = pytest.StashKey[list[str]]()

if FOLDER not in os.environ:
    os.environ[FOLDER] = tempfile.mkdtemp(prefix="heard-calls-")
    _IS_OURS = True
else:
    _IS_OURS = False

recorder = Recorder(Path(os.environ[FOLDER]))
# As early as this: a session of botocore hears by what was there when it was made.
recorder.install()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-calls", action="store_true", help="keep what functions ask of AWS in calls.json")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if not _IS_OURS:
        return
    folder = Path(os.environ[FOLDER])
    calls, is_whole = heard(folder), _is_whole(session)
    shutil.rmtree(folder)
    if session.config.getoption("write_calls"):
        FILE.write_text(written(calls if is_whole else calls | kept()))
    found = complaints(kept=kept(), heard=calls, is_whole=is_whole)
    session.config.stash[_found] = found
    if found and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    found = config.stash.get(_found, [])
    if found:
        terminalreporter.section("what functions ask of AWS", sep="!", red=True, bold=True)
        for line in found:
            terminalreporter.line(line, red=True)
        terminalreporter.line(f"on purpose? refresh {FILE.relative_to(_ROOT)} with `{REFRESH}`, and read its diff")


def _is_whole(session: pytest.Session) -> bool:
    """Whether all tests of functions against AWS have run, and passed."""
    # Without its cache pytest does not know of --lf.
    narrowing = ("keyword", "markexpr", "lf", "deselect")
    if session.testsfailed or any(session.config.getoption(name, None) for name in narrowing):
        return False
    if any("::" in argument for argument in session.config.args):
        return False
    asked = [(session.config.invocation_params.dir / argument).resolve() for argument in session.config.args]
    return all(any((_ROOT / folder).is_relative_to(path) for path in asked) for folder in MAKING_CALLS)
