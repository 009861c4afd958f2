"""The end of a file whose lines were sent: what became of them, where to go on, and the exit code."""

import shlex
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.markup import escape

from tickwheel.commands.account import Account
from tickwheel.commands.api import Api
from tickwheel.commands.journal import Journal
from tickwheel.commands.terminal import INTERRUPTED, REFUSED, error_console


@dataclass(frozen=True, kw_only=True)
class Told:
    """What only files of this kind say. done: of the lines that were taken; details: behind the counts.

    verb: what to do with lines that are corrected. doubt: what lines without an answer may be, and what to do with them.
    command: takes such a file.
    """

    done: str
    details: str = ""
    verb: str
    doubt: str
    command: str


@dataclass(frozen=True, kw_only=True)
class FileEnd:
    """The end of one file. journal: None of standard input. never_sent: lines, 0 where all were; None where nobody knows."""

    file: Path
    account: Account
    journal: Journal | None
    is_interrupted: bool
    never_sent: int | None

    def show(self, api: Api, told: Told) -> None:
        """Shows the account, keeps the journal only where there is something to go on with, and ends the command if not all was taken."""
        if self.journal is not None and not self.is_interrupted:
            self.journal.remove()
        if api.as_json:
            self.account.print_json(never_sent=self.never_sent)
        else:
            self._show(told)
        if self.is_interrupted:
            raise typer.Exit(INTERRUPTED)
        if not self.account.is_complete:
            raise typer.Exit(REFUSED)

    def _show(self, told: Told) -> None:
        account, errors = self.account, error_console()
        account.complaints.show()
        summary = f"{told.done}, refused {account.refused.count}"
        summary += f", unanswered {account.doubtful}" if account.doubtful else ""
        if self.is_interrupted:
            rest = (
                "the rest of standard input was not read"
                if self.never_sent is None
                else f"never sent {self.never_sent}"
            )
            summary = f"interrupted: {summary}, {rest}"
        typer.echo(summary + told.details)
        said: list[str] = []
        if account.refused.count:
            said.append(f"refused lines are in {account.refused.path}: correct and {told.verb} that file")
        if account.unanswered.count:
            said.append(f"lines without an answer are in {account.unanswered.path}: {told.doubt}")
        if self.is_interrupted and self.journal is not None:
            said.append(f"go on with `{told.command} {shlex.quote(str(self.file))} --resume`")
        for each in said:
            errors.print(escape(each), soft_wrap=True, highlight=False)
