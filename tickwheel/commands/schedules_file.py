"""A file of schedules, put as it is read: what is stored, what is in doubt and what was never sent are told apart."""

import sqlite3
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from tickwheel.client.fields import encode
from tickwheel.client.schedules import NewSchedule, Put, Schedule, Stored
from tickwheel.commands.api import Api
from tickwheel.commands.file_end import FileEnd, Told
from tickwheel.commands.job_lines import STANDARD_INPUT, Format, Mark, Reading, lines_of, opened
from tickwheel.commands.journal import Journal, Position
from tickwheel.commands.lines import Line, parse_line
from tickwheel.commands.schedule_account import ScheduleAccount
from tickwheel.commands.schedule_columns import TEXTS, with_columns
from tickwheel.commands.terminal import bar_of, usage
from tickwheel.errors import FieldProblem, InvalidSchedule, TickwheelError

_AT_ONCE = 1_000
"""Schedules of one call of the client, whose results it holds."""

_NOTED_EACH = 25


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a file is put. tenant: of lines that name none."""

    form: Format
    tenant: str | None = None
    resume: bool = False


@dataclass(frozen=True)
class _Waiting:
    """A line that was read. schedule: None of one that is refused, with the error. mark: where the file stands behind it."""

    line: Line
    mark: Mark
    schedule: NewSchedule | None = None
    error: InvalidSchedule | None = None


@dataclass
class ScheduleFile:
    """A file, or standard input, on its way. waiting: lines that were read and are not settled, in order."""

    file: Path
    options: Options
    account: ScheduleAccount
    names: "Names"
    start: Position | None
    reading: Reading = field(default_factory=Reading)
    waiting: deque[_Waiting] = field(default_factory=deque[_Waiting])
    settled: Mark | None = None
    seen: int = 0
    unnoted: int = 0

    @property
    def journal(self) -> Journal | None:
        """None of standard input, which nobody can read again."""
        return None if self.file == STANDARD_INPUT else Journal(self.file)

    def schedules(self, lines: Iterator[Line]) -> Iterator[NewSchedule]:
        """The lines that are schedules; the others are refused in their turn."""
        if self.start is not None:
            self.reading.look_for(self.start.lines)
            self.settled = Mark(self.start.lines, self.start.digest)
        for line in lines:
            self.seen += 1
            is_settled = self.start is not None and line.number <= self.start.lines
            if self.start is not None and not is_settled:
                self._check_that_nothing_changed(self.start)
            try:
                schedule = self._read(line)
                first = self.names.first_of(schedule, line.number)
                if first != line.number:
                    # Put side by side, either of them could be the one that stands.
                    raise _refusal("id", f"is also that of line {first}", schedule.id)
            except InvalidSchedule as error:
                if not is_settled:
                    self.waiting.append(_Waiting(line, self.reading.mark(), error=error))
                    self._refuse()
                continue
            if is_settled:
                continue
            self.waiting.append(_Waiting(line, self.reading.mark(), schedule))
            yield schedule

    def settle(self, result: Put) -> None:
        """Enters what came of the first schedule that waits, and how far the file is settled by that."""
        self._refuse()
        waiting = self.waiting.popleft()
        if isinstance(result, Stored):
            self.account.accept(waiting.line, result)
        else:
            self.account.fail(waiting.line, result.error)
        self.settled = waiting.mark
        self._refuse()
        self.unnoted += 1
        if self.unnoted >= _NOTED_EACH:
            self.note()

    def note(self) -> None:
        """Writes down how far the file is settled."""
        mark = self.settled or Reading().mark()
        if self.journal is not None:
            self.journal.write(Position(lines=mark.lines, digest=mark.digest, keys=None))
        self.unnoted = 0

    def interrupt(self) -> None:
        """What the client has read may have been sent: putting it again is safe, and a run that goes on does so."""
        error = TickwheelError("interrupted before the response arrived")
        for waiting in self.waiting:
            if waiting.schedule is not None:
                self.account.doubt(waiting.line, error, is_kept=self.journal is None)
        self.note()

    def never_sent(self) -> int | None:
        """How many lines were neither sent nor refused; None of standard input, whose end nobody waits for."""
        if self.journal is None:
            return None
        with opened(self.file) as source:
            count = sum(1 for _ in lines_of(source, self.options.form, Reading(), texts=TEXTS))
        return count - self.seen + sum(1 for waiting in self.waiting if waiting.error is not None)

    def _read(self, line: Line) -> NewSchedule:
        def schedule_of(body: Any) -> NewSchedule:
            if isinstance(body, dict) and self.options.form == "csv":
                body = with_columns(body)
            if isinstance(body, dict) and self.options.tenant is not None and body.get("tenant") is None:
                body = {**body, "tenant": self.options.tenant}
            return NewSchedule.from_json(body)

        schedule = parse_line(line, schedule_of, InvalidSchedule)
        if not line.text.isascii() or "\\u" in line.text:
            try:
                encode(schedule.as_json())
            except UnicodeEncodeError:
                raise _refusal("line", "is not UTF-8") from None
        return schedule

    def _refuse(self) -> None:
        """Those that are next."""
        while self.waiting and (error := self.waiting[0].error) is not None:
            refused = self.waiting.popleft()
            self.account.refuse(refused.line, error)
            self.settled = refused.mark

    def _check_that_nothing_changed(self, start: Position) -> None:
        found = self.reading.found()
        if found is None or found.digest != start.digest:
            usage(
                f"{self.file} has changed since: import it without --resume; what is stored already is not written again"
            )


class Names:
    """The line on which each name of a schedule stands first. In a temporary file, so that memory does not grow with the lines."""

    def __init__(self) -> None:
        self._seen = sqlite3.connect("")
        self._seen.execute("PRAGMA journal_mode = OFF")
        self._seen.execute("CREATE TABLE seen (name TEXT PRIMARY KEY, line INTEGER) WITHOUT ROWID")

    def first_of(self, schedule: NewSchedule, number: int) -> int:
        """The line of the first schedule of this name: this one, where it is the first."""
        name = f"{schedule.tenant}#{schedule.id}".encode(errors="surrogatepass").hex()
        row = self._seen.execute("SELECT line FROM seen WHERE name = ?", (name,)).fetchone()
        if row is not None:
            return row[0]
        self._seen.execute("INSERT INTO seen VALUES (?, ?)", (name, number))
        return number

    def close(self) -> None:
        """Removes the temporary file."""
        self._seen.close()


def import_file(file: Path, api: Api, options: Options) -> None:
    """Puts the lines of a file, and shows what became of them; exit code 1 where not all are stored."""
    if file == STANDARD_INPUT and options.resume:
        usage("--resume needs a file: standard input cannot be read again")
    start = Journal(file).read() if options.resume else None
    with ExitStack() as stack:
        source = stack.enter_context(opened(file))
        account = stack.enter_context(ScheduleAccount.of(file, is_spooled=api.as_json, goes_on=options.resume))
        names = stack.enter_context(closing(Names()))
        schedule_file = ScheduleFile(file, options, account, names, start)
        schedules = schedule_file.schedules(lines_of(source, options.form, schedule_file.reading, texts=TEXTS))
        client, is_interrupted = api.client, False
        with bar_of(file, "importing", disable=api.as_json) as advance:

            def settle(result: Put) -> None:
                schedule_file.settle(result)
                advance(schedule_file.seen, schedule_file.reading.byte_count)

            try:
                while client.schedules.put_many(islice(schedules, _AT_ONCE), on_progress=settle):
                    pass
            except KeyboardInterrupt:
                is_interrupted = True
                schedule_file.interrupt()
        if not schedule_file.seen and not is_interrupted:
            usage(f"{file} has no lines: there is nothing to import")
        FileEnd(
            file=file,
            account=account,
            journal=schedule_file.journal,
            is_interrupted=is_interrupted,
            never_sent=schedule_file.never_sent() if is_interrupted else 0,
        ).show(api, _told(account))


def _told(account: ScheduleAccount) -> Told:
    changes = ", ".join(f"{word} {account.changes[change]}" for change, word in _WORDS.items())
    return Told(
        done=f"stored {account.stored}",
        details=f" ({changes})",
        verb="import",
        doubt="they may be stored; import that file again",
        command="tickwheel import",
    )


_WORDS = {"created": "created", "updated": "changed", "unchanged": "unchanged"}


def _refusal(name: str, message: str, value: Any = None) -> InvalidSchedule:
    return InvalidSchedule([FieldProblem(name, message, value)])


def has_pointer(schedule: Schedule) -> bool:
    """Whether its answer has a pointer in place of its payload."""
    return "payload_pointer" in schedule.definition.get("job", {})


def exported(schedule: Schedule) -> dict[str, Any]:
    """A line that is read as the same schedule. One that is paused says so, and is then refused: it would go on."""
    status = {} if schedule.status == "active" else {"status": schedule.status}
    return {"tenant": schedule.tenant, "id": schedule.id, **status, **schedule.definition}


@contextmanager
def open_output(output: Path | None) -> Iterator[TextIO]:
    """A file that is whole at the end or as it was, or standard output."""
    if output is None:
        yield sys.stdout
        return
    part = output.with_name(f"{output.name}.part")
    try:
        with part.open("w", encoding="utf-8") as file:
            yield file
        part.replace(output)
    except OSError as error:
        usage(f"{output} cannot be written: {error}")
    finally:
        part.unlink(missing_ok=True)
