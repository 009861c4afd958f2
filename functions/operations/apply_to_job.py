"""Do to one job what an operation asks, by the rule that a single request follows.

So a job that is promoted meanwhile is handled like any other, and doing it twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from functions.domain.errors import (
    AlreadySettled,
    Busy,
    InvalidJob,
    JobNotFound,
    Moved,
    NotChangeable,
    NotPlaced,
    TickwheelError,
    TooLate,
)
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job import Job, Timer
from functions.domain.jobs.job_id import JobId, job_id_of
from functions.domain.jobs.submission import submission_of
from functions.domain.operations.operation import Example, Operation, OperationKind
from functions.services.jobs.canceller import Canceller
from functions.services.jobs.rescheduler import Edited, Rescheduler

NOT_PLACED = "not_placed"

_CODES: dict[type[TickwheelError], str] = {
    AlreadySettled: "already_settled",
    JobNotFound: "job_not_found",
    Moved: "moved",
    NotChangeable: "not_changeable",
    InvalidJob: "too_near",
    NotPlaced: NOT_PLACED,
    Busy: NOT_PLACED,
    TooLate: "too_late",
}


@dataclass(frozen=True, slots=True)
class SelectedJob:
    """A selected job, and the far row that it was found by. row: of the ledger."""

    timer: Timer
    row: LedgerRow | None

    @property
    def job_id(self) -> JobId:
        """The id of the job, whatever the attempt."""
        return job_id_of(self.timer.job)


@dataclass(frozen=True, slots=True, kw_only=True)
class Applier:
    """Does to a job what an operation asks. identity: a fresh random identity."""

    operation: Operation
    canceller: Canceller
    rescheduler: Rescheduler
    identity: Callable[[], str]

    def apply(self, selected: SelectedJob, due_at: datetime | None) -> Example | Exception | None:
        """None when it is done; why not, when a rule refuses it; what a store raised. due_at: when it is to run now."""
        try:
            self._apply(selected, due_at)
        except TickwheelError as refusal:
            code = next((_CODES[base] for base in type(refusal).__mro__ if base in _CODES), "internal")
            return Example(str(selected.job_id), code, str(refusal))
        except Exception as error:  # noqa: BLE001  raised again when the others beside it have ended
            return error
        return None

    def _apply(self, selected: SelectedJob, due_at: datetime | None) -> None:
        match self.operation.action:
            case OperationKind.CANCEL:
                self.canceller.cancel(selected.job_id, caller=self.operation.caller)
            case OperationKind.RUN_NOW:
                self._run_now(selected, due_at)
            case _:
                self._reschedule(selected.timer.job)

    def _run_now(self, selected: SelectedJob, due_at: datetime | None) -> None:
        # One that waits for its destination is refused: it would not be called now either.
        is_parked = selected.row is not None and selected.row.parked_until == selected.timer.due_at
        row_at = None if is_parked else selected.timer.due_at
        self.rescheduler.run_now(selected.job_id, at=due_at, row_at=row_at, caller=self.operation.caller)

    def _reschedule(self, job: Job) -> None:
        operation = self.operation
        assert operation.shift is not None  # checked where it was asked for
        shift = operation.shift

        def edit(current: Job, _: str | None) -> Edited:
            if operation.has_moved(current.identity):
                # A turn before this, or beside it, has done it already.
                return Edited(submission_of(current, due_at=current.scheduled_at), keeps_payload=True)
            if current.identity != job.identity:
                raise Moved(str(job_id_of(job)), moved_to=str(job_id_of(current)))
            return Edited(submission_of(current, due_at=shift.due_at(current)), keeps_payload=True)

        mover = replace(self.rescheduler, identity=lambda: f"{operation.operation_id}.{self.identity()}")
        mover.change(job_id_of(job), edit, caller=operation.caller)
