"""A file of jobs, submitted as it is read: what was sent, what is in doubt and what was never sent are told apart."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tickwheel.client.batches import MOST_JOBS_A_REQUEST, batches_of
from tickwheel.client.fields import encode
from tickwheel.client.jobs import NewJob, Refused, Submission, Submitted, Unanswered
from tickwheel.commands.api import Api
from tickwheel.commands.file_end import FileEnd, Told
from tickwheel.commands.job_lines import STANDARD_INPUT, Format, Mark, Reading, lines_of, opened
from tickwheel.commands.journal import Journal, Position
from tickwheel.commands.line_account import LineAccount, keyed
from tickwheel.commands.line_keys import LineKeys
from tickwheel.commands.lines import Line, parse_line
from tickwheel.commands.terminal import bar_of, usage
from tickwheel.errors import FieldProblem, InvalidJob, TickwheelError


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a file is submitted. keys: the prefix of the keys of lines that have none; None: they get none."""

    form: Format
    traceparent: str | None = None
    keys: str | None = "line"
    resume: bool = False


@dataclass
class JobFile:
    """A file, or standard input, on its way. waiting: jobs that were read and not settled, in order."""

    file: Path
    options: Options
    account: LineAccount
    start: Position | None
    reading: Reading = field(default_factory=Reading)
    waiting: deque[tuple[Line, NewJob]] = field(default_factory=deque[tuple[Line, NewJob]])
    seen: int = 0
    sent: int = 0
    is_noted: bool = False

    @property
    def journal(self) -> Journal | None:
        """None of standard input, which nobody can read again."""
        return None if self.file == STANDARD_INPUT else Journal(self.file)

    def jobs(self, lines: Iterator[Line], keys: LineKeys | None) -> Iterator[NewJob]:
        """The lines that are jobs, with keys; the others are refused."""
        if self.start is not None:
            self.reading.look_for(self.start.lines)
        for line in lines:
            self.seen += 1
            key = keys.key_of(line.text) if keys is not None else None
            if self.start is not None:
                if line.number <= self.start.lines:
                    continue
                self._check_that_nothing_changed(self.start)
            try:
                job = parse_line(line, partial(_job_of, key=key), InvalidJob)
                _check_that_it_can_be_encoded(line, job)
            except InvalidJob as invalid:
                self.account.refuse(line, invalid)
                continue
            self.waiting.append((line, job))
            yield job

    def settle(self, results: Sequence[Submission]) -> None:
        """Enters what came of the first jobs that wait, and how far the file is settled by that."""
        for result in results:
            line, job = self.waiting.popleft()
            self.sent -= 1
            match result:
                case Submitted():
                    self.account.accept(line, result)
                case Refused():
                    self.account.refuse(line, result.problem)
                case Unanswered():
                    self.account.doubt(line, result.error, text=keyed(line, job.idempotency_key))

    def note(self, mark: Mark) -> None:
        """Writes down how far the file is settled."""
        if self.journal is not None:
            self.journal.write(Position(lines=mark.lines, digest=mark.digest, keys=self.options.keys))
            self.is_noted = True

    def interrupt(self) -> None:
        """What is on its way is in doubt; what was only read was never sent.

        Where each line in doubt has a key, a submission that goes on sends it again; else the line is kept apart.
        """
        error = TickwheelError("interrupted before the response arrived")
        doubtful = [self.waiting.popleft() for _ in range(self.sent)]
        is_safe = self.journal is not None and all(job.idempotency_key is not None for _, job in doubtful)
        for line, job in doubtful:
            self.account.doubt(line, error, text=keyed(line, job.idempotency_key), is_kept=not is_safe)
        if doubtful and not is_safe:
            self.note(self.reading.begun if self.waiting else self.reading.mark())
        elif not self.is_noted:
            self.note(Reading().mark() if self.start is None else Mark(self.start.lines, self.start.digest))

    def never_sent(self) -> int | None:
        """How many lines were neither sent nor refused; None of standard input, whose end nobody waits for."""
        if self.journal is None:
            return None
        with opened(self.file) as source:
            count = sum(1 for _ in lines_of(source, self.options.form, Reading()))
        return count - self.seen + len(self.waiting)

    def _check_that_nothing_changed(self, start: Position) -> None:
        found = self.reading.found()
        if found is None or found.digest != start.digest:
            usage(f"{self.file} has changed since: submit it without --resume; what was accepted is known by its key")


def submit_file(file: Path, api: Api, options: Options) -> None:
    """Submits the lines of a file, and shows what became of them; exit code 1 where not all were accepted."""
    if file == STANDARD_INPUT and options.resume:
        usage("--resume needs a file: standard input cannot be read again")
    start = Journal(file).read() if options.resume else None
    if start is not None:
        options = replace(options, keys=start.keys)
    with ExitStack() as stack:
        source = stack.enter_context(opened(file))
        account = stack.enter_context(LineAccount.of(file, is_spooled=api.as_json, goes_on=options.resume))
        job_file = JobFile(file, options, account, start)
        keys = None if options.keys is None else stack.enter_context(closing(LineKeys(options.keys)))
        jobs = job_file.jobs(lines_of(source, options.form, job_file.reading), keys)
        client, is_interrupted = api.client, False
        with bar_of(file, "submitting", disable=api.as_json) as advance:
            try:
                _send(job_file, jobs, client.submit_many, lambda: advance(job_file.seen, job_file.reading.byte_count))
            except KeyboardInterrupt:
                is_interrupted = True
                job_file.interrupt()
        if not job_file.seen and not is_interrupted:
            usage(f"{file} has no lines: there is nothing to submit")
        FileEnd(
            file=file,
            account=account,
            journal=job_file.journal,
            is_interrupted=is_interrupted,
            never_sent=job_file.never_sent() if is_interrupted else 0,
        ).show(api, _told(job_file))


def _send(
    job_file: JobFile, jobs: Iterator[NewJob], submit_many: Callable[..., object], advance: Callable[[], None]
) -> None:
    """Batch by batch: each is one request, and what is settled is written down behind it."""

    def settle(results: Sequence[Submission]) -> None:
        job_file.settle(results)
        advance()

    for batch in batches_of(jobs, MOST_JOBS_A_REQUEST):
        job_file.sent = len(batch)
        submit_many([each.job for each in batch], traceparent=job_file.options.traceparent, on_progress=settle)
        # The line that did not fit into the request was read already.
        job_file.note(job_file.reading.begun if job_file.waiting else job_file.reading.mark())


def _told(job_file: JobFile) -> Told:
    account = job_file.account
    replayed = f" ({account.replayed} of them before)" if account.replayed else ""
    again = (
        "submit that file again only if its jobs have an idempotency_key"
        if job_file.options.keys is None
        else "submit that file again: they have the keys that they were sent with"
    )
    return Told(
        done=f"accepted {account.accepted}{replayed}",
        verb="submit",
        doubt=f"they may have been accepted; {again}",
        command="tickwheel submit --file",
    )


def _job_of(body: object, *, key: str | None) -> NewJob:
    if isinstance(body, dict) and key is not None and body.get("idempotency_key") is None:
        body = {**body, "idempotency_key": key}
    return NewJob.from_json(body)


def _check_that_it_can_be_encoded(line: Line, job: NewJob) -> None:
    if line.text.isascii() and "\\u" not in line.text:
        return
    try:
        encode(job.as_json())
    except UnicodeEncodeError:
        raise InvalidJob([FieldProblem("line", "is not UTF-8")]) from None
