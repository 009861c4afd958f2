"""Who of a schedule's runs has its slot: what the overlap policy makes of a fire that meets another's run."""

from __future__ import annotations

from datetime import datetime, timedelta

from functions.domain.claims import LedgerRow
from functions.domain.instants import SECOND
from functions.domain.lifecycle import State

ABANDONED = timedelta(days=1)
"""So long after its lease, or its time, a run that has not settled is taken for lost with its message. A queue that is
behind, or an outage, only makes it late: no slot is taken from such a run."""

_SHORTEST_WAIT = 2 * SECOND
_LONGEST_WAIT = timedelta(seconds=60)
_SHARE = 4


def is_abandoned(row: LedgerRow | None, *, since: datetime | None, now: datetime, skew: timedelta) -> bool:
    """Whether nobody carries a run on any more. row: of its ledger; since: when it took the slot."""
    if row is None:
        return since is None or since + ABANDONED + skew < now
    if row.state is State.RUNNING and row.lease_until is not None:
        return row.lease_until + ABANDONED + skew < now
    latest = max(instant for instant in (row.due_at, row.updated_at, since) if instant is not None)
    return latest + ABANDONED + skew < now


def wait_of(*, waited: timedelta) -> timedelta:
    """How long a buffered fire waits before it asks again: a quarter longer each time, from 2 seconds to a minute."""
    return min(max(waited / _SHARE, _SHORTEST_WAIT), _LONGEST_WAIT)
