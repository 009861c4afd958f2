"""What became of the lines of a file: counts, the lines that failed in files of their own, and the first reasons."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, ClassVar, Self

import typer

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
class Account:
    """Base of the accounts: lines that were taken, refused, and doubtful ones without an answer, which may have been taken."""

    ITEMS: ClassVar[str]
    """The name of the list of what was taken."""

    refused: Kept
    unanswered: Kept
    doubtful: int = 0
    complaints: Complaints = field(default_factory=Complaints)
    items: Spool = field(default_factory=lambda: Spool(None))
    _problems: Spool = field(default_factory=lambda: Spool(None))
    _unknown: Spool = field(default_factory=lambda: Spool(None))

    @classmethod
    @contextmanager
    def of(cls, file: Path, *, is_spooled: bool, goes_on: bool) -> Iterator[Self]:
        """The account of a file. is_spooled: it is printed as JSON; goes_on: an earlier run has files of its own."""
        with ExitStack() as stack:
            refused, unanswered = (
                Kept(beside(file, word), "a" if goes_on else "w", stack) for word in ("refused", "unanswered")
            )
            items, problems, unknown = (
                Spool(stack.enter_context(TemporaryFile("w+", encoding="utf-8")) if is_spooled else None)
                for _ in range(3)
            )
            yield cls(refused, unanswered, items=items, _problems=problems, _unknown=unknown)

    @property
    def is_complete(self) -> bool:
        """Whether every line that was sent was taken."""
        return not self.refused.count and not self.doubtful

    def taken(self) -> Mapping[str, int]:
        """The counts of what was taken."""
        raise NotImplementedError

    def refuse(self, line: Line, error: TickwheelError) -> None:
        """A line that is not what it should be; kept as it was, to be corrected."""
        self.refused.add(line.text)
        self.complaints.add(line.number, error)
        self._problems.add({"line": line.number, **explain(error)})

    def doubt(self, line: Line, error: TickwheelError, *, is_kept: bool = True, text: str | None = None) -> None:
        """A line that may have been taken; kept, unless it is sent again by itself. text: to keep in its place."""
        self.doubtful += 1
        if is_kept:
            self.unanswered.add(line.text if text is None else text)
        self.complaints.add(line.number, error)
        self._unknown.add({"line": line.number, **explain(error)})

    def print_json(self, *, never_sent: int | None) -> None:
        """One object, printed piece by piece."""
        kept = (("refused", self.refused), ("unanswered", self.unanswered))
        files = {word: str(each.path) for word, each in kept if each.count}
        counts = {
            **self.taken(),
            "refused": self.refused.count,
            "unanswered": self.doubtful,
            "never_sent": never_sent,
        }
        typer.echo(json.dumps(counts)[:-1], nl=False)
        for name, spool in ((self.ITEMS, self.items), ("problems", self._problems), ("unknown", self._unknown)):
            typer.echo(f', "{name}": [', nl=False)
            for number, item in enumerate(spool.items()):
                typer.echo(f", {item}" if number else item, nl=False)
            typer.echo("]", nl=False)
        typer.echo(f', "files": {json.dumps(files)}}}')
