"""Take in the jobs of files: a turn reads on where the last one ended, a part at a time, and sends the next turn.

Nothing is lost and nothing doubled by a turn that dies: what it did since its last record is done again, under the same keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from functions.api.http.problems import RETRY_AFTER, Refusals
from functions.api.http.requests import Rules, parse_body
from functions.api.http.shapes import Problem
from functions.api.jobs.batch_intake import AskedJob, BatchIntake
from functions.api.jobs.submit import Accepted
from functions.domain.errors import Busy, InvalidInput
from functions.domain.instants import SECOND
from functions.domain.jobs.submission_files import (
    GIVE_UP_AFTER,
    MOST_BYTES_OF_A_LINE,
    MOST_LINES,
    PART_BYTES,
    FileProgress,
    LineTooLong,
    SentFile,
    first_lines,
    wait_for,
)
from functions.ports.clock import Clock
from functions.ports.recorder import Journal
from functions.ports.submission_files import FileGone, SubmissionFiles

_SHARE = 0.5
"""Of the time of a turn: what is left is for the part that has begun by then."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that is not in yet: its number in the file, its text, and why it is refused or waits."""

    number: int
    text: bytes
    problem: Problem | None = None
    is_waiting: bool = False
    retry_after: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileIntake:
    """Takes jobs of files in. rules: of this moment."""

    batch: BatchIntake
    refusals: Refusals
    files: SubmissionFiles
    rules: Callable[[], Rules]
    clock: Clock
    journal: Journal

    def take(self, file: SentFile, *, time_left: timedelta) -> None:
        """A turn. Raises what a store raises: the same turn has to come again."""
        known = self.files.progress(file)
        if known is None or not known.is_of(file):
            known = FileProgress.at_first(file, now=self.clock.now())
        if known.is_over or known.has_passed(file.turn):
            return
        turn = _Turn(self, file, known, ends_at=self.clock.monotonic() + _SHARE * time_left.total_seconds())
        try:
            wait = turn.run()
        except FileGone:
            self._end(file, replace(turn.progress, state="gone"), is_kept=False)
            return
        except LineTooLong as error:
            said = f"line {turn.progress.lines + 1} {error}"
            self._end(file, replace(turn.progress, state="failed", error=said), is_kept=True)
            return
        if wait is None:
            self._end(file, replace(turn.progress, state="done"), is_kept=True)
            return
        # On record before it is sent: a turn that comes again behind it is known to be one too many.
        self.files.save(file, replace(turn.progress, turn=file.turn + 1))
        self.files.go_on(replace(file, turn=file.turn + 1), wait)

    def _end(self, file: SentFile, progress: FileProgress, *, is_kept: bool) -> None:
        if is_kept:
            self.files.save(file, progress)
        self.journal.event(
            "file_ended",
            tenant=file.tenant,
            file=file.name,
            state=progress.state,
            lines=progress.lines,
            accepted=progress.accepted,
            refused=progress.refused,
        )


@dataclass(slots=True)
class _Turn:
    """One turn. _read: what was read of the file from `_from` on."""

    intake: FileIntake
    file: SentFile
    progress: FileProgress
    ends_at: float
    _read: bytes = b""
    _from: int = 0

    def run(self) -> timedelta | None:
        """None at the end of the file; otherwise after what wait the next turn is to go on. Raises FileGone, LineTooLong."""
        while self.progress.offset < self.file.size:
            texts, length = self._next_lines()
            first = self.progress.lines + 1
            lines = [_Line(number, text) for number, text in enumerate(texts, start=first) if text.strip()]
            if self.progress.waiting:
                lines = [line for line in lines if line.number in set(self.progress.waiting)]
            wait = self._take(lines, length=length, count=len(texts))
            if wait is not None:
                return wait
            if self.intake.clock.monotonic() >= self.ends_at:
                return timedelta(0) if self.progress.offset < self.file.size else None
        return None

    def _next_lines(self) -> tuple[list[bytes], int]:
        """Those behind the offset: always the same, wherever the reading began."""
        part = self._read[self.progress.offset - self._from :]
        lines, length = first_lines(part, is_end=self._is_end()) if part else ([], 0)
        if len(lines) < MOST_LINES and not self._is_end():
            self._from = self.progress.offset
            self._read = part = self.intake.files.read(self.file, offset=self._from, length=PART_BYTES)
            lines, length = first_lines(part, is_end=self._is_end())
        return lines, length

    def _is_end(self) -> bool:
        return self._from + len(self._read) >= self.file.size

    def _take(self, lines: Sequence[_Line], *, length: int, count: int) -> timedelta | None:
        """Take a part in. None when each of its lines came in or is refused, and that is on record."""
        left: list[_Line] = list(lines)
        refused: list[_Line] = []
        while left:
            before = len(left)
            judged = self._judged(left)
            refused += [line for line in judged if not line.is_waiting]
            left = [line for line in judged if line.is_waiting]
            accepted = before - len(judged)
            now = self.intake.clock.now()
            if left and self.progress.stalled_for(now=now) >= GIVE_UP_AFTER:
                refused, left = [*refused, *left], []
            if not left:
                self.progress = replace(self.progress, accepted=self.progress.accepted + accepted)
                break
            # Those that are refused are judged again by the next turn, which takes nothing from a rate.
            waiting = sorted(line.number for line in (*left, *refused))
            self.progress = self.progress.left(accepted=accepted, waiting=waiting, now=now)
            self.intake.files.save(self.file, self.progress)
            wait = wait_for(max(line.retry_after for line in left), stalled_for=self.progress.stalled_for(now=now))
            if not self._has_waited(wait):
                return wait
        refused.sort(key=lambda line: line.number)
        if refused:
            said = [{"line": line.number, "problem": line.problem, "job": _shown(line.text)} for line in refused]
            self.intake.files.refuse(self.file, first_line=self.progress.lines + 1, refused=said)
        now = self.intake.clock.now()
        self.progress = self.progress.passing(length=length, lines=count, refused=len(refused), now=now)
        self.intake.files.save(self.file, self.progress)
        return None

    def _judged(self, lines: Sequence[_Line]) -> list[_Line]:
        """Those that did not come in, with why."""
        left: list[_Line] = []
        asked: list[tuple[_Line, AskedJob]] = []
        for line in lines:
            try:
                body = _parsed(line.text)
            except InvalidInput as error:
                left.append(replace(line, problem=self.intake.refusals.problem(error)))
                continue
            job = AskedJob(
                body=body, key=self.file.key_of_line(line.number), tenant=self.file.tenant, sent_at=self.file.put_at
            )
            asked.append((line, job))
        answers = self.intake.batch.take([job for _, job in asked], self.intake.rules()) if asked else []
        for (line, _), answer in zip(asked, answers, strict=True):
            if not isinstance(answer, Accepted):
                left.append(self._with_problem(line, answer))
        return left

    def _with_problem(self, line: _Line, error: Exception) -> _Line:
        problem = self.intake.refusals.problem(error)
        status = problem["status"]
        is_waiting = (
            isinstance(error, Busy)
            or status == HTTPStatus.TOO_MANY_REQUESTS
            or status >= HTTPStatus.INTERNAL_SERVER_ERROR
        )
        retry_after = problem.get(RETRY_AFTER, 0) * SECOND
        return replace(line, problem=problem, is_waiting=is_waiting, retry_after=retry_after)

    def _has_waited(self, wait: timedelta) -> bool:
        """False where that would be longer than this turn."""
        clock = self.intake.clock
        if clock.monotonic() + wait.total_seconds() >= self.ends_at:
            return False
        clock.sleep(wait)
        return True


def _parsed(text: bytes) -> Any:
    if len(text) > MOST_BYTES_OF_A_LINE:
        raise InvalidInput(f"the line has {len(text)} bytes: use at most {MOST_BYTES_OF_A_LINE}")
    try:
        return parse_body(text.decode())
    except UnicodeDecodeError as error:
        raise InvalidInput(f"the line is not UTF-8: {error.reason} at byte {error.start}") from None


def _shown(text: bytes) -> str:
    return text.decode(errors="replace")
