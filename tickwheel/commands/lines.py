"""A file of jobs, one JSON object a line, submitted so that every line ends in exactly one account of it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tickwheel.client import Client
from tickwheel.client.jobs import NewJob, Refused, Submission, Submitted, Unanswered
from tickwheel.commands.terminal import usage
from tickwheel.errors import FieldProblem, InvalidJob, TickwheelError


@dataclass(frozen=True)
class Line:
    """A line of the file, with its number from 1."""

    number: int
    text: str


@dataclass(frozen=True)
class Accepted:
    """A line whose job was taken."""

    line: Line
    job: Submitted


@dataclass(frozen=True)
class Failed:
    """A line whose job was not taken, or may not have been."""

    line: Line
    error: TickwheelError


@dataclass
class Account:
    """What became of each line; lines that were never sent count as unanswered."""

    accepted: list[Accepted] = field(default_factory=list)
    refused: list[Failed] = field(default_factory=list)
    unanswered: list[Failed] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether every line was taken."""
        return not self.refused and not self.unanswered


def read_lines(file: Path) -> list[Line]:
    """The lines of the file that say something; a file that cannot be read is wrong usage."""
    try:
        texts = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        usage(f"{file} cannot be read: {error}")
    return [Line(number, text) for number, text in enumerate(texts, start=1) if text.strip()]


def submit_lines(
    client: Client, lines: list[Line], *, advance: Callable[[int], None], traceparent: str | None = None
) -> tuple[Account, bool]:
    """Submits every line that is a job; returns the account, and whether it was cut short by Ctrl-C.

    `advance` is called with the number of lines settled since the last call. traceparent: of the trace they belong to.
    """
    account = Account()
    jobs: list[tuple[Line, NewJob]] = []
    for line in lines:
        try:
            jobs.append((line, _parse(line.text)))
        except InvalidJob as invalid:
            account.refused.append(Failed(line, invalid))
    advance(len(account.refused))
    settled = 0

    def settle(results: Sequence[Submission]) -> None:
        nonlocal settled
        for result in results:
            _enter(account, jobs[settled][0], result)
            settled += 1
        advance(len(results))

    try:
        client.submit_many((job for _, job in jobs), traceparent=traceparent, on_progress=settle)
    except KeyboardInterrupt:
        interrupted = TickwheelError("interrupted before its answer came")
        account.unanswered += [Failed(line, interrupted) for line, _ in jobs[settled:]]
        return account, True
    account.refused.sort(key=lambda failed: failed.line.number)
    return account, False


def write_lines(file: Path, failed: list[Failed]) -> None:
    """Writes the lines as they were, so that the file can be mended and submitted again."""
    file.write_text("".join(f"{each.line.text}\n" for each in failed), encoding="utf-8")


def beside(file: Path, word: str) -> Path:
    """`jobs.jsonl` becomes `jobs.refused.jsonl`."""
    return file.with_name(f"{file.stem}.{word}{file.suffix}")


def _enter(account: Account, line: Line, result: Submission) -> None:
    match result:
        case Submitted():
            account.accepted.append(Accepted(line, result))
        case Refused():
            account.refused.append(Failed(line, result.problem))
        case Unanswered():
            account.unanswered.append(Failed(line, result.error))


def _parse(text: str) -> NewJob:
    try:
        body = json.loads(text)
    except ValueError as error:
        raise InvalidJob([FieldProblem("line", f"is not JSON: {error}")]) from None
    return NewJob.from_json(body)
