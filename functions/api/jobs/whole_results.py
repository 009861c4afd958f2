"""The result of a job that was found, whole where it is kept beside the row."""

from __future__ import annotations

from dataclasses import dataclass

from functions.api.jobs.find import JobInWheel
from functions.ports.results import ResultStore


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeResults:
    """Reads results."""

    results: ResultStore

    def of(self, found: JobInWheel) -> str:
        """A JSON text, empty for none. A request where it is not in the row; its beginning, when the object is gone."""
        row = found.row
        if not row.whole:
            return row.result
        whole = self.results.get(found.job_id, row.whole)
        return row.result if whole is None else whole
