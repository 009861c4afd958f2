"""Which of a schedule's runs has its slot: how the overlap policy decides about a fire while another run has not ended."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum, auto
from typing import assert_never

from functions.domain.instants import SECOND
from functions.domain.jobs.claims import MESSAGE_LIFE, LedgerRow
from functions.domain.jobs.overlap import Overlap
from functions.domain.schedules.state import SkipReason

SILENCE = MESSAGE_LIFE
"""This long after the last change of a run no message of it can be left. Until then it is late: for an outage, a
queue that is behind, or a pause. A ledger row lives for days longer, so that a run that had begun still has its row."""

SAID_AGAIN = timedelta(hours=8)
"""So often whoever waits for the slot, or has it and has not begun, says so again."""

_SHORTEST_WAIT = 2 * SECOND
_LONGEST_WAIT = timedelta(seconds=60)
_SHARE = 4


class Turn(Enum):
    """What a fire that is not skipped does."""

    RUN = auto()
    REPLACE = auto()
    """It stops the run that has the slot, and takes its place."""
    WAIT = auto()


def turn_of(
    overlap: Overlap, due_at: datetime, *, running: datetime | None, waiting: datetime | None
) -> Turn | SkipReason:
    """What becomes of a fire that is due, or why it is skipped.

    running, waiting: when the run that has the slot was due, and another fire that waits for it; None where there is none.
    """
    if overlap.waits and waiting is not None:
        # Also while the slot is free: the one that waits is about to take it.
        return SkipReason.BUFFER_FULL
    if running is None:
        return Turn.RUN
    match overlap:
        case Overlap.ALLOW:
            return Turn.RUN
        case Overlap.FORBID:
            return SkipReason.OVERLAP
        case Overlap.BUFFER_ONE:
            return Turn.WAIT
        case Overlap.REPLACE:
            return SkipReason.REPLACED if running > due_at else Turn.REPLACE
        case _:
            assert_never(overlap)


def given_up_at(row: LedgerRow | None, *, since: datetime | None) -> datetime | None:
    """When a run that has not settled is no longer waited for; None where nothing is known of it.

    row: of its ledger; since: when it took the slot, or was due.
    """
    if row is None:
        return since + SILENCE if since is not None else None
    if row.cancel_requested:
        # The next message of it withdraws it.
        return row.lease_until or row.updated_at
    known = (row.due_at, row.updated_at, row.parked_until, row.lease_until, since)
    return max(instant for instant in known if instant is not None) + SILENCE


def is_abandoned(row: LedgerRow | None, *, since: datetime | None, now: datetime, skew: timedelta) -> bool:
    """Whether nobody carries a run on any more. One without a row has ended long ago, or has never begun."""
    until = given_up_at(row, since=since)
    return until is None or until + skew < now


def wait_of(*, waited: timedelta) -> timedelta:
    """How long a buffered fire waits before it asks again: a quarter longer each time, from 2 seconds to a minute."""
    return min(max(waited / _SHARE, _SHORTEST_WAIT), _LONGEST_WAIT)
