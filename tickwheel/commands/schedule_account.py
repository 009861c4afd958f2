"""What became of the lines of a file of schedules: counts, the lines that failed in files of their own, and the first reasons."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile

import typer

from tickwheel.client.batches import MAY_HAVE_BEEN_APPLIED
from tickwheel.client.schedules import Stored
from tickwheel.commands.line_account import Kept, Spool, beside
from tickwheel.commands.lines import Line
from tickwheel.commands.terminal import Complaints, explain
from tickwheel.errors import ApiProblem, TickwheelError, Unreachable


@dataclass
class ScheduleAccount:
    """Stored, refused, and without an answer: those may be stored. changes: what was done to those that are, as far as that is known."""

    refused: Kept
    unanswered: Kept
    doubtful: int = 0
    stored: int = 0
    changes: Counter[str] = field(default_factory=Counter[str])
    complaints: Complaints = field(default_factory=Complaints)
    _schedules: Spool = field(default_factory=lambda: Spool(None))
    _problems: Spool = field(default_factory=lambda: Spool(None))
    _unknown: Spool = field(default_factory=lambda: Spool(None))

    @classmethod
    @contextmanager
    def of(cls, file: Path, *, is_spooled: bool, goes_on: bool) -> Iterator["ScheduleAccount"]:
        """The account of a file. is_spooled: it is printed as JSON; goes_on: an earlier import has files of its own."""
        with ExitStack() as stack:
            refused, unanswered = (
                Kept(beside(file, word), "a" if goes_on else "w", stack) for word in ("refused", "unanswered")
            )
            schedules, problems, unknown = (
                Spool(stack.enter_context(TemporaryFile("w+", encoding="utf-8")) if is_spooled else None)
                for _ in range(3)
            )
            yield cls(refused, unanswered, _schedules=schedules, _problems=problems, _unknown=unknown)

    @property
    def is_complete(self) -> bool:
        """Whether every line that was sent is stored."""
        return not self.refused.count and not self.doubtful

    def accept(self, line: Line, result: Stored) -> None:
        """A line that is stored as it says."""
        self.stored += 1
        if result.change is not None:
            self.changes[result.change] += 1
        schedule = result.schedule
        named = {"tenant": schedule.tenant, "id": schedule.id, "version": schedule.version}
        self._schedules.add({"line": line.number, **named, **({"change": result.change} if result.change else {})})

    def fail(self, line: Line, error: ApiProblem | Unreachable) -> None:
        """A line that is refused, or has no answer."""
        if isinstance(error, Unreachable) or error.status in MAY_HAVE_BEEN_APPLIED:
            self.doubt(line, error)
        else:
            self.refuse(line, error)

    def refuse(self, line: Line, error: TickwheelError) -> None:
        """A line that is no schedule; kept as it was, to be corrected."""
        self.refused.add(line.text)
        self.complaints.add(line.number, error)
        self._problems.add({"line": line.number, **explain(error)})

    def doubt(self, line: Line, error: TickwheelError, *, is_kept: bool = True) -> None:
        """A line that may be stored; kept, unless it is put again by itself."""
        self.doubtful += 1
        if is_kept:
            self.unanswered.add(line.text)
        self.complaints.add(line.number, error)
        self._unknown.add({"line": line.number, **explain(error)})

    def print_json(self, *, never_sent: int | None) -> None:
        """One object, printed piece by piece."""
        kept = (("refused", self.refused), ("unanswered", self.unanswered))
        files = {word: str(each.path) for word, each in kept if each.count}
        counts = {
            "stored": self.stored,
            **{change: self.changes[change] for change in ("created", "updated", "unchanged")},
            "refused": self.refused.count,
            "unanswered": self.doubtful,
            "never_sent": never_sent,
        }
        typer.echo(json.dumps(counts)[:-1], nl=False)
        for name, spool in (("schedules", self._schedules), ("problems", self._problems), ("unknown", self._unknown)):
            typer.echo(f', "{name}": [', nl=False)
            for number, item in enumerate(spool.items()):
                typer.echo(f", {item}" if number else item, nl=False)
            typer.echo("]", nl=False)
        typer.echo(f', "files": {json.dumps(files)}}}')
