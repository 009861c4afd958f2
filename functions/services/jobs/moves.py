"""Follow a job that was rescheduled or edited to the id that it has now: one hop a move."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from functions.domain.errors import AlreadySettled, Moved
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job_id import JobId, parse_job_id
from functions.domain.lifecycle import State
from functions.ports.ledger import Ledger

MOST_HOPS = 50
"""Moves that one request follows; for a job that was moved more often the id to ask for next is returned."""

Answer = TypeVar("Answer")


def last_of(ledger: Ledger, job_id: JobId) -> tuple[JobId, LedgerRow | None]:
    """The id that a job has now, and its row, as of all writes before."""
    return last_behind(ledger, job_id, ledger.get(job_id.key))


def last_behind(ledger: Ledger, job_id: JobId, row: LedgerRow | None) -> tuple[JobId, LedgerRow | None]:
    """As `last_of`, for whoever has read the row of the id that is asked for."""
    for _ in range(MOST_HOPS):
        if row is None or row.state is not State.MOVED:
            break
        job_id = parse_job_id(row.moved_to)
        row = ledger.get(job_id.key)
    return job_id, row


def check_not_over(job_id: JobId, row: LedgerRow) -> None:
    """Raises Moved where the job has another id by now, AlreadySettled where it has ended."""
    if row.state is State.MOVED:
        raise Moved(str(job_id), moved_to=row.moved_to)
    if row.is_settled:
        raise AlreadySettled(str(job_id), state=row.state)


def follow(act: Callable[[JobId], Answer], job_id: JobId) -> tuple[JobId, Answer]:
    """What a rule answers that raises Moved, and the id that it was done to."""
    for _ in range(MOST_HOPS):
        try:
            return job_id, act(job_id)
        except Moved as moved:
            job_id = parse_job_id(moved.moved_to)
    return job_id, act(job_id)
