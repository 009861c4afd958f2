"""Files with one JSON object a line, each of whose lines ends in exactly one account of it."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import typer
from rich.markup import escape

from tickwheel.client import Client
from tickwheel.commands.api import Api
from tickwheel.commands.terminal import (
    INTERRUPTED,
    REFUSED,
    error_console,
    explain,
    progress_bar,
    show_failed_lines,
    usage,
)
from tickwheel.errors import FieldProblem, InvalidRequest, TickwheelError

T = TypeVar("T")


@dataclass(frozen=True)
class Line:
    """A line of the file, with its number from 1."""

    number: int
    text: str


@dataclass(frozen=True)
class Accepted(Generic[T]):
    """A line that was taken, and the answer to it."""

    line: Line
    answer: T


@dataclass(frozen=True)
class Failed:
    """A line that was not taken, or may not have been."""

    line: Line
    error: TickwheelError


@dataclass
class Account(Generic[T]):
    """What became of each line. unanswered: of those that were sent and may have been taken, and of those never sent."""

    accepted: list[Accepted[T]] = field(default_factory=list[Accepted[T]])
    refused: list[Failed] = field(default_factory=list)
    unanswered: list[Failed] = field(default_factory=list)
    is_interrupted: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether every line was taken."""
        return not self.refused and not self.unanswered

    def sort(self) -> None:
        """In the order of the file."""
        self.accepted.sort(key=lambda each: each.line.number)
        self.refused.sort(key=lambda each: each.line.number)


def read_lines(file: Path) -> list[Line]:
    """The lines of the file, or of standard input for `-`, that say something.

    A file that cannot be read, or in which no line says anything, is wrong usage.
    """
    try:
        raw = sys.stdin.buffer.read() if file == Path("-") else file.read_bytes()
        texts = raw.decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        usage(f"{file} cannot be read: {error}")
    lines = [Line(number, text) for number, text in enumerate(texts, start=1) if text.strip()]
    if not lines:
        usage(f"{file} has no lines")
    return lines


def parse_line(line: Line, read: Callable[[Any], T], error: type[InvalidRequest]) -> T:
    """What is read of the JSON of a line; raises the error, of what is no JSON too."""
    try:
        body = json.loads(line.text)
    except ValueError as wrong:
        raise error([FieldProblem("line", f"is not JSON: {wrong}")]) from None
    return read(body)


def interrupted(lines: Iterable[Line]) -> list[Failed]:
    """Lines whose answers nobody waited for."""
    error = TickwheelError("interrupted before the response arrived")
    return [Failed(line, error) for line in lines]


@dataclass(frozen=True, kw_only=True)
class Words:
    """What is being done to lines, what was done to those that were taken, and what to do with a file that is kept."""

    doing: str
    done: str
    verb: str


Send = Callable[[Client, Sequence[Line], Callable[[int], None]], Account[T]]
"""Sends lines, and calls what it is given last with the number of them settled since the last call."""


def send_file(
    file: Path, api: Api, send: Send[T], as_json: Callable[[Account[T]], dict[str, Any]], words: Words
) -> None:
    """Sends the lines of a file with a bar, keeps those that failed beside it, and shows the account; exit code 1 for any."""
    lines = read_lines(file)
    client = api.client
    with progress_bar(disable=api.as_json) as progress:
        task = progress.add_task(words.doing, total=len(lines))
        account = send(client, lines, lambda count: progress.advance(task, count))
    kept = _keep_failed(file, account)
    if api.as_json:
        api.print({**as_json(account), "files": {word: str(path) for word, path in kept.items()}})
    else:
        _show_account(account, kept, words)
    if account.is_interrupted:
        raise typer.Exit(INTERRUPTED)
    if not account.is_complete:
        raise typer.Exit(REFUSED)


def failed_json(failed: list[Failed]) -> list[dict[str, Any]]:
    """For a script to read."""
    return [{"line": each.line.number, **explain(each.error)} for each in failed]


def _keep_failed(file: Path, account: Account[Any]) -> Mapping[str, Path]:
    # As they were, so that they can be mended and sent again: in `jobs.refused.jsonl` beside `jobs.jsonl`.
    kept: dict[str, Path] = {}
    file = Path("stdin.jsonl") if file == Path("-") else file
    for word, failed in (("refused", account.refused), ("unanswered", account.unanswered)):
        if failed:
            kept[word] = file.with_name(f"{file.stem}.{word}{file.suffix}")
            kept[word].write_text("".join(f"{each.line.text}\n" for each in failed), encoding="utf-8")
    return kept


def _show_account(account: Account[Any], kept: Mapping[str, Path], words: Words) -> None:
    errors = error_console()
    for failed in (account.refused, account.unanswered):
        show_failed_lines([(each.line.number, each.error) for each in failed])
    if account.is_interrupted:
        errors.print("interrupted")
    summary = f"{words.done} {len(account.accepted)}, refused {len(account.refused)}"
    typer.echo(summary + (f", unanswered {len(account.unanswered)}" if account.unanswered else ""))
    if "refused" in kept:
        errors.print(
            f"refused lines are in {escape(str(kept['refused']))}: correct and {words.verb} that file", soft_wrap=True
        )
    if "unanswered" in kept:
        errors.print(
            f"lines without an answer are in {escape(str(kept['unanswered']))}: they may have been accepted, so {words.verb} that "
            "file again only if its jobs have an idempotency_key",
            soft_wrap=True,
        )
