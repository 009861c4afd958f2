"""What was asked for of a job that was found: from its ledger row, else from its far row, which stays for 14 days.

A job that went straight to a ready queue is in neither until a worker has claimed it.
"""

from __future__ import annotations

from dataclasses import dataclass

from functions.api.jobs.find import JobInWheel
from functions.domain.errors import NotKept, Undecodable
from functions.domain.far_ring.asked_record import KeptJob, decode_asked
from functions.domain.far_ring.timer_record import unpack
from functions.domain.jobs.job import Job
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.occurrence import fill_references
from functions.ports.payloads import PayloadStore
from functions.ports.timers import TimerStore


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedFor:
    """Reads what was asked for."""

    timers: TimerStore
    payloads: PayloadStore

    def job_of(self, found: JobInWheel) -> Job | None:
        """As far as it is kept, in one key access at most; None where nothing is."""
        kept = _in_row(found)
        return kept.job if kept is not None else self._far_job(found)

    def payload_of(self, found: JobInWheel) -> str | None:
        """Its payload as its target receives it, as JSON; None where it has none. Raises NotKept."""
        kept = _in_row(found)
        job = kept.job if kept is not None and kept.has_payload else self._far_job(found)
        if job is None:
            raise NotKept(str(found.job_id), what="payload")
        pointer = job.payload.pointer
        try:
            text = unpack(job.payload) if pointer is None else self.payloads.get(pointer)
        except Undecodable:
            raise NotKept(str(found.job_id), what="payload") from None
        if text is None and pointer is not None:
            raise NotKept(str(found.job_id), what="payload")
        return fill_references(text, job.occurrence) if text is not None and job.occurrence is not None else text

    def _far_job(self, found: JobInWheel) -> Job | None:
        timer = self.timers.get(found.job_id)
        return timer.job if timer is not None and job_id_of(timer.job) == found.job_id else None


def _in_row(found: JobInWheel) -> KeptJob | None:
    return decode_asked(found.row.asked, found.job_id) if found.row.asked else None
