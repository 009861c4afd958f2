"""What became of the lines of a file of jobs: counts, the lines that failed in files of their own, and the first reasons."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import typer

from tickwheel.client.jobs import Submitted
from tickwheel.commands.api import fields_of
from tickwheel.commands.job_lines import STANDARD_INPUT
from tickwheel.commands.lines import Line
from tickwheel.commands.terminal import Complaints, explain
from tickwheel.errors import TickwheelError


@dataclass
class Kept:
    """Lines that failed, in a file that is made when there is one."""

    path: Path
    mode: str
    stack: ExitStack
    count: int = 0
    _file: IO[str] | None = None

    def add(self, text: str) -> None:
        """Another line."""
        if self._file is None:
            self._file = self.stack.enter_context(self.path.open(self.mode, encoding="utf-8", errors="surrogateescape"))
        self._file.write(f"{text}\n")
        self._file.flush()
        self.count += 1


@dataclass
class Spool:
    """Objects of a JSON list that is printed at the end; on disk until then."""

    file: IO[str] | None

    def add(self, item: dict[str, Any]) -> None:
        """Another object."""
        if self.file is not None:
            self.file.write(json.dumps(item) + "\n")

    def items(self) -> Iterator[str]:
        """All of them, as they are printed."""
        if self.file is not None:
            self.file.seek(0)
            yield from (line.rstrip("\n") for line in self.file)


def beside(file: Path, word: str) -> Path:
    """Where lines of a file are kept, as JSON Lines: `jobs.refused.jsonl` for `jobs.csv`."""
    whole = Path("stdin.jsonl") if file == STANDARD_INPUT else file
    suffix = ".jsonl" if whole.suffix == ".csv" else whole.suffix
    return whole.with_name(f"{whole.stem}.{word}{suffix}")


@dataclass
class LineAccount:
    """Accepted, refused, and without an answer: those may have been accepted. replayed: accepted ones that were so before."""

    refused: Kept
    unanswered: Kept
    doubtful: int = 0
    accepted: int = 0
    replayed: int = 0
    complaints: Complaints = field(default_factory=Complaints)
    _jobs: Spool = field(default_factory=lambda: Spool(None))
    _problems: Spool = field(default_factory=lambda: Spool(None))
    _unknown: Spool = field(default_factory=lambda: Spool(None))

    @classmethod
    @contextmanager
    def of(cls, file: Path, *, is_spooled: bool, goes_on: bool) -> Iterator["LineAccount"]:
        """The account of a file. is_spooled: it is printed as JSON; goes_on: an earlier submission has files of its own."""
        with ExitStack() as stack:
            refused, unanswered = (
                Kept(beside(file, word), "a" if goes_on else "w", stack) for word in ("refused", "unanswered")
            )
            jobs, problems, unknown = (
                Spool(stack.enter_context(TemporaryFile("w+", encoding="utf-8")) if is_spooled else None)
                for _ in range(3)
            )
            yield cls(refused, unanswered, _jobs=jobs, _problems=problems, _unknown=unknown)

    @property
    def is_complete(self) -> bool:
        """Whether every line that was sent was accepted."""
        return not self.refused.count and not self.doubtful

    def accept(self, line: Line, answer: Submitted) -> None:
        """A line that is a job now."""
        self.accepted += 1
        self.replayed += answer.replayed
        self._jobs.add({"line": line.number, **fields_of(answer)})

    def refuse(self, line: Line, error: TickwheelError) -> None:
        """A line that is no job; kept as it was, to be corrected."""
        self.refused.add(line.text)
        self.complaints.add(line.number, error)
        self._problems.add({"line": line.number, **explain(error)})

    def doubt(self, line: Line, error: TickwheelError, *, key: str | None, is_kept: bool = True) -> None:
        """A line that may be a job; kept, unless it is sent again by itself, with the key that it was sent with."""
        self.doubtful += 1
        if is_kept:
            self.unanswered.add(
                line.text if key is None else json.dumps({**json.loads(line.text), "idempotency_key": key})
            )
        self.complaints.add(line.number, error)
        self._unknown.add({"line": line.number, **explain(error)})

    def print_json(self, **further: Any) -> None:
        """One object, printed piece by piece."""
        files = {
            word: str(kept.path)
            for word, kept in (("refused", self.refused), ("unanswered", self.unanswered))
            if kept.count
        }
        counts = {
            "accepted": self.accepted,
            "replayed": self.replayed,
            "refused": self.refused.count,
            "unanswered": self.doubtful,
            **further,
        }
        typer.echo(json.dumps(counts)[:-1], nl=False)
        for name, spool in (("jobs", self._jobs), ("problems", self._problems), ("unknown", self._unknown)):
            typer.echo(f', "{name}": [', nl=False)
            for number, item in enumerate(spool.items()):
                typer.echo(f", {item}" if number else item, nl=False)
            typer.echo("]", nl=False)
        typer.echo(f', "files": {json.dumps(files)}}}')
