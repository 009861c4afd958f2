"""The files of jobs that are put, and what came of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol

from functions.domain.jobs.submission_files import FileProgress, SentFile


class SubmissionFiles(Protocol):
    """Reads files a part at a time; keeps their progress, and the lines that are refused."""

    def read(self, file: SentFile, *, offset: int, length: int) -> bytes:
        """Bytes from the offset on, fewer at the end of the file. Raises FileGone."""
        ...

    def progress(self, file: SentFile) -> FileProgress | None:
        """What is known of a file of this name; None for nothing."""
        ...

    def save(self, file: SentFile, progress: FileProgress) -> None:
        """Keep how far it has come, in place of what was known."""
        ...

    def refuse(self, file: SentFile, *, first_line: int, refused: Sequence[Mapping[str, Any]]) -> None:
        """Keep the refused lines of the part that begins with this line, in place of what was kept for it."""
        ...

    def go_on(self, file: SentFile, wait: timedelta) -> None:
        """Have it read on in a turn of its own, after that wait; then it is sure to be."""
        ...


class FileGone(Exception):
    """The file is deleted, or another one was put in its place."""
