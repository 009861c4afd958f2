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
from functions.domain.jobs.submission import Submission, submission_of
from functions.domain.operations.operation import Example, Operation, OperationKind
from functions.services.jobs.canceller import Canceller
from functions.services.jobs.rescheduler import Rescheduler

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
    """Does to jobs what operations ask. identity: a fresh random identity."""

    canceller: Canceller
    rescheduler: Rescheduler
    identity: Callable[[], str]

    def apply(self, operation: Operation, selected: SelectedJob, due_at: datetime | None) -> Example | Exception | None:
        """None when it is done; why not, when a rule refuses it; what a store raised. due_at: when it is to run now."""
        try:
            match operation.action:
                case OperationKind.CANCEL:
                    self.canceller.cancel(selected.job_id, caller=operation.caller)
                case OperationKind.RUN_NOW:
                    self._run_now(operation, selected, due_at)
                case _:
                    self._reschedule(operation, selected.timer.job)
        except TickwheelError as refusal:
            code = next((_CODES[base] for base in type(refusal).__mro__ if base in _CODES), "internal")
            return Example(str(selected.job_id), code, str(refusal))
        except Exception as error:  # noqa: BLE001  raised again when the others beside it have ended
            return error
        return None

    def _run_now(self, operation: Operation, selected: SelectedJob, due_at: datetime | None) -> None:
        # One that waits for its destination is refused: it would not be called now either.
        is_parked = selected.row is not None and selected.row.parked_until == selected.timer.due_at
        row_at = None if is_parked else selected.timer.due_at
        self.rescheduler.run_now(selected.job_id, at=due_at, row_at=row_at, caller=operation.caller)

    def _reschedule(self, operation: Operation, job: Job) -> None:
        shift = operation.shift
        assert shift is not None  # checked where it was asked for

        def edit(current: Job, text: str | None) -> Submission:
            # Moved already, by a turn before this, or beside it: then its time is the one that was asked for.
            has_moved = operation.has_moved(current.identity)
            if not has_moved and current.identity != job.identity:
                raise Moved(str(job_id_of(job)), moved_to=str(job_id_of(current)))
            due_at = current.scheduled_at if has_moved else shift.due_at(current)
            return replace(submission_of(current, due_at=due_at), payload=text)

        mover = replace(self.rescheduler, identity=lambda: f"{operation.operation_id}.{self.identity()}")
        mover.change(job_id_of(job), edit, caller=operation.caller)
