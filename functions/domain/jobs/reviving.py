"""A message that the ledger drops may be the last of its job: a later attempt may have lost its own."""

from __future__ import annotations

from datetime import datetime

from functions.domain.jobs.claims import LedgerRow, overdue_attempt
from functions.domain.jobs.job import Timer


def lost_attempt(timer: Timer, row: LedgerRow | None, *, now: datetime) -> Timer | None:
    """The attempt that a job waits for, made anew from another, if it should have come long ago; else None.

    From one of before its replay, it has the budget that the replay gave it.
    """
    attempt = overdue_attempt(row, now=now)
    if row is None or attempt is None:
        return None
    if row.counted_from is not None and timer.spent < row.spent:
        timer = timer.with_new_budget(spent=row.spent, counted_from=row.counted_from)
    lost = timer.revived(attempt=attempt, due_at=now)
    return lost.watching(due_at=now) if row.held else lost
