"""Keeps the results of jobs, each before the end of its attempt is settled.

After a death in between the object is nobody's, and a rule of its bucket deletes it; the attempt is made or reported again.
"""

from __future__ import annotations

from dataclasses import dataclass

from functions.domain.faults import fault_of
from functions.domain.jobs.job import Delivery, Job
from functions.domain.jobs.job_id import JobId, job_id_of
from functions.domain.jobs.results import KeptResult, beginning_of, is_short, within_limit
from functions.ports.recorder import Journal
from functions.ports.results import ResultStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultKeeper:
    """Keeps what is too large for a row as an object."""

    results: ResultStore
    journal: Journal

    def keep(self, job_id: JobId, text: str) -> KeptResult:
        """What the row is to have of a result, a JSON text. Raises what the store raises: whoever reports it may do so again."""
        if is_short(text):
            return KeptResult(text)
        whole = within_limit(text)
        kept = beginning_of(whole)
        self.results.put(job_id, kept.pointer, whole)
        return kept

    def keep_or_cut(self, job: Job, text: str) -> KeptResult:
        """As `keep`, of an effect that has happened: where it cannot be kept, or no row has its pointer, only its beginning is."""
        if is_short(text):
            return KeptResult(text)
        if job.delivery is Delivery.EXACTLY_ONCE:
            try:
                return self.keep(job_id_of(job), text)
            except Exception as error:  # noqa: BLE001  without its end, the effect would be repeated for the sake of its result
                self.journal.event("result_not_kept", job_id=str(job_id_of(job)), error=fault_of(error))
        return KeptResult(beginning_of(within_limit(text)).text)
