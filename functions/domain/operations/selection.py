"""Which rows of the far ring stand for a job that an operation means.

A job has a row for each attempt that waited long, and they stay when it has run. Its ledger row says which of them counts.
"""

from __future__ import annotations

from datetime import datetime

from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.collection import release_in
from functions.domain.jobs.job import Timer
from functions.domain.lifecycle import State
from functions.domain.operations.operation import Operation, OperationKind


def is_selected(operation: Operation, timer: Timer, *, written_at: datetime | None, now: datetime) -> bool:
    """Whether a row that was written then stands for a selected job, as far as the row says."""
    return (
        # The release of a collection is no job of its tenant's.
        release_in(timer.job) is None
        and operation.wanted.matches(timer)
        # A job that was submitted since; or the next attempt of one that has been tried since.
        and not operation.is_older(written_at)
        and not operation.has_moved(timer.job.identity)
        # How an at_least_once job that has left the far ring ended is recorded nowhere.
        and (timer.job.is_ledgered or timer.due_at > now)
    )


def waits(operation: Operation, timer: Timer, row: LedgerRow | None) -> bool:
    """Whether the job of a row waits, and this is the row that stands for it. row: of the ledger; None where there is none."""
    if row is None:
        return True
    if row.is_settled:
        return False
    if operation.action is OperationKind.CANCEL:
        # By any row of it: a retry that waits in the ready queue has none of its own. One that runs is asked once.
        return not (row.state is State.RUNNING and row.cancel_requested)
    if row.state is State.RUNNING:
        return False
    # The row of what it waits for now may be one that was written since: it is exported by an older one.
    return _is_last(timer, row) or (operation.action is OperationKind.EXPORT and operation.is_older(row.updated_at))


def has_more_rows(row: LedgerRow | None) -> bool:
    """Whether a job may be found again, by another row: it has been tried, or put off, before."""
    return row is not None and (row.attempt > 0 or row.parked_until is not None)


def next_attempt(timer: Timer, row: LedgerRow | None) -> tuple[int, datetime]:
    """The number of the attempt that a job waits for, and when it is due."""
    if row is None:
        return timer.attempt, timer.due_at
    is_retry = row.state is State.RETRYING and row.due_at is not None
    attempt, due_at = (row.attempt + 1, row.due_at) if is_retry else (timer.attempt, timer.due_at)
    assert due_at is not None  # a retry has an instant
    return attempt, max(due_at, row.parked_until or due_at)


def _is_last(timer: Timer, row: LedgerRow) -> bool:
    """Whether a row is the one of the attempt that comes next."""
    if row.parked_until is not None and timer.due_at < row.parked_until:
        return False
    # A job that was given back by its worker waits with the attempt that it had.
    return timer.attempt == row.attempt + 1 if row.state is State.RETRYING else timer.attempt >= row.attempt
