"""The command `tickwheel demo`: the real stacks on a cloud of its own, with a real workload, judged.

Progress goes to standard error, tables and then one line of JSON to standard output. Exit codes: 0 all is well, 1 a job or
a fire of a schedule was lost, duplicated or early, or the demo could not be run, 130 Ctrl-C, 143 SIGTERM, 129 its terminal
was closed.
"""

import contextlib
import signal
import time
from collections.abc import Iterator
from datetime import timedelta
from types import FrameType

import typer
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console

from tickwheel.commands.registry import commands
from tickwheel.commands.terminal import complain
from tickwheel.demo.narrator import Narrator
from tickwheel.demo.report import as_json, tables
from tickwheel.demo.run import run
from tickwheel.errors import TickwheelError

_WIDTH_OF_FILES = 100
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Signalled(KeyboardInterrupt):
    """Told to end by a signal."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code = 128 + number


@commands.add()
def demo() -> None:
    """Deploy to a local cloud of its own, fire 1,335 jobs for 66 tenants, and judge each. Exit code 1: one was lost, early or repeated."""
    raise typer.Exit(_run())


def _run() -> int:
    began = time.monotonic()
    try:
        with Narrator(_console(stderr=True)) as narrator, _ending_on_signals(narrator):
            judgement = run(narrator)
    except _Signalled as signalled:
        complain("interrupted; everything that was started has been stopped")
        return signalled.exit_code
    except (TickwheelError, BotoCoreError, ClientError, OSError) as error:
        complain(str(error))
        return 1
    out = _console()
    out.print(tables(judgement.jobs, judgement.schedules))
    if judgement.faults:
        for fault in judgement.faults:
            out.print(f"✘ {fault}", style="red", markup=False, highlight=False, soft_wrap=True)
    else:
        out.print("✔ nothing lost, nothing duplicated, nothing early", style="green", highlight=False)
    out.print(
        as_json(judgement.jobs, judgement.schedules, wall=timedelta(seconds=time.monotonic() - began)),
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    return 1 if judgement.faults else 0


def _console(*, stderr: bool = False) -> Console:
    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=_WIDTH_OF_FILES)


@contextlib.contextmanager
def _ending_on_signals(narrator: Narrator) -> Iterator[None]:
    """Turns the first signal that asks for the end into an exception, and those after it into nothing.

    A second Ctrl-C would otherwise interrupt the cleaning up, which takes a few seconds.
    """

    def end(number: int, _frame: FrameType | None) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        narrator.tell("stopping")
        raise _Signalled(number)

    numbers = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]  # nohup, for one
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
