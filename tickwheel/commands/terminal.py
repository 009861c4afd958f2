"""How the commands speak: answers on standard output, everything else on standard error, no tracebacks."""

import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from tickwheel.errors import ApiProblem, InvalidRequest, TickwheelError

REFUSED = 1
WRONG_USAGE = 2
INTERRUPTED = 130
_MOST_SHOWN = 20


def error_console() -> Console:
    """A console on standard error as it is now, which tests and pipes replace."""
    return Console(stderr=True)


def console_for_files(width: int) -> Console:
    """A console on standard output, of this width where that is no terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=width)


def complain(message: str) -> None:
    """Prints an error for people."""
    error_console().print(f"[red]error:[/red] {escape(message)}", soft_wrap=True)


@contextmanager
def failing_politely(*, as_json: bool) -> Iterator[None]:
    """Turns an error of the client into its text, or its JSON, and exit code 1."""
    try:
        yield
    except TickwheelError as error:
        if as_json:
            typer.echo(json.dumps({"error": explain(error)}))
        else:
            complain(str(error))
            for problem in error.errors if isinstance(error, ApiProblem) else ():
                for definition in problem.instead:
                    error_console().print(
                        f"instead: {escape(options_for(definition))}", soft_wrap=True, highlight=False
                    )
        raise typer.Exit(REFUSED) from None


def options_for(definition: Mapping[str, Any]) -> str:
    """A part of a schedule's definition as options of `tickwheel schedule create`, ready for a shell."""
    written = {**definition}
    if isinstance(every := written.get("every"), dict):
        written |= {"every": every["interval"], "phase": every["phase"]}
    return " ".join(f"--{name} {shlex.quote(str(value))}" for name, value in written.items())


def explain(error: TickwheelError) -> dict[str, Any]:
    """An error as JSON for a script."""
    if isinstance(error, ApiProblem):
        return error.as_json()
    if isinstance(error, InvalidRequest):
        return {"detail": str(error), "errors": [problem.as_json() for problem in error.problems]}
    return {"detail": str(error)}


def usage(message: str) -> NoReturn:
    """Ends the command: it cannot be done as it was asked for."""
    complain(message)
    raise typer.Exit(WRONG_USAGE)


@dataclass
class Complaints:
    """What was wrong with lines of a file: the first reasons, each once, with the lines that it is about."""

    _lines: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    _counts: Counter[str] = field(default_factory=Counter[str])
    _further: int = 0

    def add(self, number: int, error: Exception) -> None:
        """A line, by its number."""
        reason = str(error)
        if reason not in self._lines and len(self._lines) == _MOST_SHOWN:
            self._further += 1
            return
        self._counts[reason] += 1
        first_and_last = self._lines.setdefault(reason, [number, number])
        first_and_last[1] = number

    def show(self) -> None:
        """Prints them for people."""
        errors = error_console()
        for reason, (first, last) in self._lines.items():
            count = self._counts[reason]
            lines = f"line {first}" if count == 1 else f"{count} lines, {first} to {last}"
            errors.print(f"[red]{lines}[/red]: {escape(reason)}", soft_wrap=True)
        if self._further:
            errors.print(f"... and {self._further} more like these")


def show_failed_lines(failed: Iterable[tuple[int, Exception]]) -> None:
    """What was wrong with lines of a file, by their numbers."""
    complaints = Complaints()
    for number, error in failed:
        complaints.add(number, error)
    complaints.show()


def progress_bar(*, disable: bool) -> Progress:
    """A bar on standard error, with how many of how many and the time."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=error_console(), disable=disable)


def share_bar(*, disable: bool) -> Progress:
    """A bar on standard error, with the share that is done and the time."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    return Progress(*columns, console=error_console(), disable=disable)


@contextmanager
def bar_of(file: Path, doing: str, *, disable: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar of the share of a file that was read; of standard input (`-`), how many lines. It is told of lines and bytes so far."""
    if file == Path("-"):
        with progress_bar(disable=disable) as progress:
            task = progress.add_task(doing, total=None)
            yield lambda lines, _: progress.update(task, completed=lines)
    else:
        with share_bar(disable=disable) as progress:
            task = progress.add_task(doing, total=max(1, file.stat().st_size))
            yield lambda _, size: progress.update(task, completed=size)
