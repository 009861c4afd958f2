"""A message that the ledger drops may be the last of its job: a later attempt may have lost its own."""

from __future__ import annotations

from datetime import datetime

from functions.domain.claims import LedgerRow, overdue_attempt
from functions.domain.job import Timer


def lost_attempt(timer: Timer, row: LedgerRow | None, *, now: datetime) -> Timer | None:
    """The attempt that a job waits for, made anew from another, if it should have come long ago; else None."""
    attempt = overdue_attempt(row, now=now)
    return None if attempt is None else timer.revived(attempt=attempt, due_at=now)
