# ruff: noqa: T201  what handlers print is told
"""What a worker tells of runs to a developer's terminal, and how `tickwheel dev` reads and shows it."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from functions.adapters.targets.handlers import HandlerCaller
from functions.domain.targets.options import USUAL
from functions.worker import told_runs
from functions.worker.told_runs import ToldTargets, tell_not_loaded, tell_output, telling
from tests.unit.calling import INVOCATION, SHORT
from tickwheel.commands.dev import show
from tickwheel.local.folder_watch import FolderWatch
from tickwheel.local.live_handlers import RUN, Told, read_line


@pytest.fixture
def log() -> io.StringIO:
    """The log of a worker."""
    return io.StringIO()


@contextmanager
def telling_into(log: io.StringIO) -> Iterator[None]:
    """A worker that tells. Only while a test runs: pytest has streams of its own."""
    root, streams = logging.getLogger(), (sys.stdout, sys.stderr, sys.__stderr__)
    level, handlers = root.level, list(root.handlers)
    sys.stdout = sys.stderr = sys.__stderr__ = log  # pyright: ignore[reportConstantRedefinition]
    tell_output()
    try:
        yield
    finally:
        sys.stdout, sys.stderr, sys.__stderr__ = streams  # pyright: ignore[reportConstantRedefinition]
        root.setLevel(level)
        root.handlers[:] = handlers


def call(handler: Any, payload: str = "1", timeout: timedelta = timedelta(seconds=60)) -> None:
    targets = ToldTargets(HandlerCaller({"mail": telling(handler)}))
    targets.call("handler:mail", payload, INVOCATION, options=USUAL, timeout=timeout)


def run(log: io.StringIO, handler: Any, payload: str = "1", timeout: timedelta = timedelta(seconds=60)) -> None:
    with telling_into(log):
        call(handler, payload, timeout)


def lines(log: io.StringIO) -> list[Told]:
    return [told for line in log.getvalue().splitlines() if (told := read_line(line)) is not None]


def shown(log: io.StringIO) -> list[str]:
    """As a terminal has it, without the time of the day."""
    console = Console(file=io.StringIO(), width=300)
    for each in lines(log):
        show(each, console)
    assert isinstance(console.file, io.StringIO)
    return [line[9:] for line in console.file.getvalue().splitlines()]


def test_a_run_is_told_from_its_beginning_to_its_end_with_what_it_prints_and_logs(log: io.StringIO):
    def mail(payload: Any, _: Any) -> Any:
        print("to", payload)
        logging.getLogger("jobs.mail").info("sent %s", "it")
        return payload

    with telling_into(log):
        print("of no run")
        call(mail, '"ada"')

    assert [each.what for each in lines(log)] == ["began", "said", "said", "ended"]
    began, first, second, ended = shown(log)
    assert began == f"{INVOCATION.job_id} handler:mail attempt 2"
    assert (first, second) == ("  │ to ada", "  │ INFO jobs.mail: sent it")
    assert ended.startswith(f"{INVOCATION.job_id} handler:mail attempt 2 succeeded in 0.")
    assert log.getvalue().startswith("of no run\n")


def test_a_run_that_raises_is_told_with_its_traceback_from_the_users_code_on(log: io.StringIO):
    def mail(_: Any, __: Any) -> Any:
        raise LookupError("no such address")

    run(log, mail)

    text = "\n".join(shown(log))
    assert "Traceback (most recent call last):" in text
    assert "in mail" in text
    assert "worker/told_runs.py" not in text
    assert re.search(r"failed in 0\.\d\d s  handler_error: LookupError: no such address$", text)


def test_a_coroutine_and_its_threads_are_told_of_the_run_that_they_belong_to(log: io.StringIO):
    async def mail(payload: Any, _: Any) -> None:
        print("one")
        await asyncio.to_thread(print, "two")
        raise LookupError(payload)

    run(log, mail, '"three"')

    said = [each.text for each in lines(log) if each.what == "said"]
    assert said[:2] == ["one", "two"]
    assert said[-1] == "LookupError: three"
    assert {each.job_id for each in lines(log)} == {INVOCATION.job_id}


def test_two_runs_at_once_are_told_apart(log: io.StringIO):
    barrier = threading.Barrier(2)

    def mail(_: Any, invocation: Any) -> None:
        barrier.wait(30)
        print(threading.get_ident())

    threads = [threading.Thread(target=call, args=(mail,)) for _ in range(2)]
    with telling_into(log):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

    assert len({each.text for each in lines(log) if each.what == "said"}) == 2


def test_a_run_that_overruns_is_told_as_a_timeout(log: io.StringIO):
    release = threading.Event()

    run(log, lambda *_: release.wait(60), timeout=SHORT)
    release.set()

    assert re.search(r"failed in 0\.\d\d s  ", shown(log)[-1])
    assert shown(log)[-1].endswith("  timeout: Timeout: no answer within 0.2 s")


def test_a_long_line_is_cut(log: io.StringIO):
    run(log, lambda *_: print("x" * 100_000))

    (said,) = [each.text for each in lines(log) if each.what == "said"]
    assert len(said) == told_runs.MOST_OF_A_LINE


def test_a_module_that_could_not_be_imported_is_told_with_paths_as_its_developer_knows_them(log: io.StringIO):
    try:
        exec(compile("import nowhere", "/x/data/handlers/v17/jobs/a.py", "exec"))
    except ModuleNotFoundError as error:
        with telling_into(log):
            tell_not_loaded("jobs.a", error)

    text = "\n".join(shown(log))
    assert 'File "jobs/a.py", line 1' in text
    assert text.endswith("ModuleNotFoundError: No module named 'nowhere'")


@pytest.mark.parametrize(
    "line",
    ["", "plain", '{"message": "job_settled"}', f'{{"{RUN}": 1}}', f'{{"{RUN}": {{}}}}', f'{{"{RUN}": '],
)
def test_a_line_that_tells_of_no_run_is_none(line: str):
    assert read_line(line) is None


def test_what_a_handler_prints_cannot_colour_or_break_the_terminal(log: io.StringIO):
    run(log, lambda *_: print("[red]x[/red] [/] [bold"))

    assert "  │ [red]x[/red] [/] [bold" in shown(log)


def test_the_words_of_both_sides_are_the_same():
    assert told_runs.KEY == RUN
    assert json.dumps(RUN)


def test_a_folder_that_is_watched_tells_what_is_new_gone_or_different(tmp_path: Path):
    (tmp_path / "a.py").write_text("1")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "b.py").write_text("1")
    watch = FolderWatch(tmp_path)
    assert watch.changed() == []

    (tmp_path / "a.py").write_text("22")
    (tmp_path / "more" / "b.py").unlink()
    (tmp_path / "c.py").touch()
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.pyc").touch()
    (tmp_path / ".a.py.swp").touch()

    assert watch.changed() == ["a.py", "c.py", "more/b.py"]
    assert watch.changed() == []
