"""The audit trail in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from functions.domain.audit import Action, AuditLine, Ending, Record
from functions.ports.recorder import Untaken
from testkit.fakes.clock import FakeClock


@dataclass
class RecordingAudit:
    """What was noted since the process began; kept: how much of it has been flushed."""

    entries: list[AuditLine] = field(default_factory=list)
    kept: int = 0

    def note(self, line: AuditLine) -> None:
        self.entries.append(line)

    def flush(self) -> None:
        self.kept = len(self.entries)

    @property
    def endings(self) -> list[Ending]:
        return [line for line in self.entries if isinstance(line, Ending)]

    @property
    def actions(self) -> list[Action]:
        return [line for line in self.entries if isinstance(line, Action)]


@dataclass
class InMemoryAuditStream:
    """Takes records, but for those that it refuses, and takes its time."""

    clock: FakeClock
    refuses: bool = False
    fails: Exception | None = None
    takes: timedelta = timedelta(0)
    calls: int = 0
    taken: list[Record] = field(default_factory=list)

    def put(self, records: Sequence[Record]) -> Untaken:
        self.calls += 1
        self.clock.tick(self.takes)
        if self.fails is not None:
            raise self.fails
        if self.refuses:
            return Untaken(records, "ServiceUnavailableException: Slow down.")
        self.taken += records
        return Untaken(())

    @property
    def lines(self) -> list[str]:
        return [line for record in self.taken for line in record]
