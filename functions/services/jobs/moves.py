"""Follow a job that was rescheduled or edited to the id under which it goes on: one hop a move."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from functions.domain.errors import Moved
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job_id import JobId, parse_job_id
from functions.domain.lifecycle import State
from functions.ports.ledger import Ledger

MOST_HOPS = 50
"""Moves that one request follows; of a job that was moved more often the id to ask for next is returned."""

Answer = TypeVar("Answer")


def last_of(ledger: Ledger, job_id: JobId) -> tuple[JobId, LedgerRow | None]:
    """The id under which a job goes on, and its row, as of all writes before."""
    return last_behind(ledger, job_id, ledger.get(job_id.key))


def last_behind(ledger: Ledger, job_id: JobId, row: LedgerRow | None) -> tuple[JobId, LedgerRow | None]:
    """As `last_of`, for whoever has read the row of the id that is asked for."""
    for _ in range(MOST_HOPS):
        if row is None or row.state is not State.MOVED:
            break
        job_id = parse_job_id(row.moved_to)
        row = ledger.get(job_id.key)
    return job_id, row


def follow(act: Callable[[JobId], Answer], job_id: JobId) -> tuple[JobId, Answer]:
    """What a rule answers that raises Moved, and the id that it was done to."""
    for _ in range(MOST_HOPS):
        try:
            return job_id, act(job_id)
        except Moved as moved:
            job_id = parse_job_id(moved.moved_to)
    return job_id, act(job_id)
