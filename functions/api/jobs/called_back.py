"""What has become of the callbacks of a job."""

from __future__ import annotations

from dataclasses import dataclass

from functions.api.jobs.find import JobInWheel
from functions.domain.jobs.callback_jobs import callback_identity
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
    """Reads the jobs of callbacks: none of a job without any, and none before its end."""

    ledger: Ledger

    def of(self, found: JobInWheel, job: Job | None) -> list[PutCallback]:
        """Those that were put for its last end. job: what was asked for, as far as it is kept."""
        if job is None or not job.callbacks:
            return []
        # What keeps no row may have ended in any way.
        called = job.callbacks.of(found.state) if found.state is not None else job.callbacks.named()
        put: list[PutCallback] = []
        for name, target in called:
            identity = callback_identity(job, name, state=found.state, spent=found.row.spent)
            row = self.ledger.get(f"{job.tenant}#{identity}")
            if row is not None:
                put.append(PutCallback(name, target, row))
        return put
