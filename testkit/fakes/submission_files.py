"""Files of jobs in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from functions.domain.jobs.submission_files import FileProgress, SentFile
from functions.ports.submission_files import FileGone
from testkit.fakes.clock import FakeClock


@dataclass
class InMemorySubmissionFiles:
    """Contents by key, and the turns that wait. fails: called before each write."""

    clock: FakeClock
    contents: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    kept: dict[str, dict[str, Any]] = field(default_factory=dict)
    refused: dict[tuple[str, int], list[Mapping[str, Any]]] = field(default_factory=dict)
    turns: list[tuple[datetime, SentFile]] = field(default_factory=list)
    fails: Callable[[], None] = lambda: None
    reads: int = 0

    def put(self, name: str, content: bytes, *, tenant: str = "acme") -> SentFile:
        """What a tenant does, with the turn that S3 sends for it."""
        etag = f"e{hash(content) & 0xFFFFFFFF:08x}"
        file = SentFile(
            tenant=tenant,
            name=name,
            etag=etag,
            version=f"v{len(self.turns)}-{self.clock.instant.timestamp()}",
            size=len(content),
            put_at=self.clock.instant,
        )
        self.contents[file.key] = (etag, content)
        self.turns.append((self.clock.instant, file))
        return file

    def read(self, file: SentFile, *, offset: int, length: int) -> bytes:
        self.reads += 1
        etag, content = self.contents.get(file.key, ("", b""))
        if etag != file.etag:
            raise FileGone
        return content[offset : offset + length]

    def progress(self, file: SentFile) -> FileProgress | None:
        found = self.kept.get(file.results)
        return FileProgress.read(found) if found is not None else None

    def save(self, file: SentFile, progress: FileProgress) -> None:
        self.fails()
        self.kept[file.results] = progress.written()

    def refuse(self, file: SentFile, *, first_line: int, refused: Sequence[Mapping[str, Any]]) -> None:
        self.fails()
        self.refused[file.results, first_line] = list(refused)

    def go_on(self, file: SentFile, wait: timedelta) -> None:
        self.fails()
        self.turns.append((self.clock.instant + wait, file))
