"""Which jobs of a page of rows an operation is for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from functions.domain.operations.operation import Operation
from functions.domain.operations.selection import has_more_rows, is_selected, waits
from functions.operations.apply_to_job import SelectedJob
from functions.ports.clock import Clock
from functions.ports.ledger import Ledger
from functions.ports.timers import StoredTimer


@dataclass(slots=True, kw_only=True)
class SelectedJobs:
    """Selects jobs in one turn of an operation. _seen: the keys of jobs with several rows, each of which is selected once."""

    ledger: Ledger
    clock: Clock
    _seen: set[str] = field(default_factory=set, init=False)

    def of(self, operation: Operation, rows: Sequence[StoredTimer]) -> list[SelectedJob]:
        """The jobs of these rows that the operation selects and that still wait, with their ledger rows."""
        now = self.clock.now()
        timers = [
            row.timer
            for row in rows
            if row.timer is not None and is_selected(operation, row.timer, written_at=row.written_at, now=now)
        ]
        ledgered = list(dict.fromkeys(timer.job.key for timer in timers if timer.job.is_ledgered))
        known = self.ledger.get_many(ledgered) if ledgered else {}
        found = [SelectedJob(timer, known.get(timer.job.key)) for timer in timers]
        return [each for each in found if waits(operation, each.timer, each.row) and self._is_new(each)]

    def _is_new(self, selected: SelectedJob) -> bool:
        """Whether this turn has not selected the job by another row."""
        if not has_more_rows(selected.row):
            return True
        key = selected.timer.job.key
        is_new = key not in self._seen
        self._seen.add(key)
        return is_new
