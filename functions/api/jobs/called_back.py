"""What has become of the callbacks of a job."""

from __future__ import annotations

from dataclasses import dataclass

from functions.api.jobs.find import JobInWheel
from functions.domain.jobs.callback_jobs import callback_identity, is_abandoned
from functions.domain.jobs.callbacks import CallbackName
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job import Job
from functions.ports.ledger import Ledger


@dataclass(frozen=True, slots=True)
class PutCallback:
    """A callback whose job was put, with the row of that."""

    name: CallbackName
    target: str
    row: LedgerRow


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledBack:
    """Reads the jobs of callbacks: none of a job without any, and none before its end; as of some moment before."""

    ledger: Ledger

    def of(self, found: JobInWheel, job: Job | None) -> list[PutCallback]:
        """Those that were put for its last end. job: what was asked for, as far as it is kept."""
        if job is None or not job.callbacks:
            return []
        # What keeps no row may have ended in any way.
        given_up = found.state is not None and is_abandoned(found.state, found.row.error)
        called = job.callbacks.named()
        if found.state is not None:
            called = job.callbacks.of(found.state, is_abandoned=given_up)
        keys = {
            f"{job.tenant}#{callback_identity(job, name, state=found.state, spent=found.row.spent)}": (name, target)
            for name, target in called
        }
        # Together, at half a read unit each: with the row of their job no more than the read that the request is counted as, and one.
        rows = self.ledger.get_many(list(keys))
        return [PutCallback(name, target, rows[key]) for key, (name, target) in keys.items() if key in rows]
