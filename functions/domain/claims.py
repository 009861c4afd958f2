"""Who may run an attempt. The ledger applies these rules in its conditions; here they judge what a refused one met.

A write whose answer was lost would lose against itself when it is repeated: so every write carries an owner token,
fresh for each receive of a message, and a row with the same token is the writer's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from functions.domain.instants import MILLISECOND
from functions.domain.lifecycle import TERMINAL, Event, State, sources

MAX_RESCUES = 3
"""How often an attempt is rescued. When its worker dies once more it is a dead letter: it is not run again."""

LEASE_MARGIN = timedelta(seconds=5)
"""What a lease, and a worker's time, has beyond the timeout of an attempt: to settle in."""

LEDGER_LIFE = timedelta(days=15)
"""How long a row lives after its last transition, due time or lease: a day longer than any message."""

REQUEST_LIMIT = timedelta(seconds=30)
"""API Gateway ends a request after this: no submission or change is under way for longer."""

TIMER_LIFE = timedelta(days=14)
"""How long a far row lives after it was due."""

MESSAGE_LIFE = timedelta(days=14)
"""How long a ready queue or a dead-letter queue keeps a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """One logical execution as the ledger has it.

    fence: grows with every claim; the target may refuse a smaller one. owner: token of the last writer.
    lease_until: until when the attempt belongs to its worker. job_id: the id that the first submission answered with.
    fingerprint: of the job that was registered with an idempotency key.
    """

    state: State
    attempt: int = 0
    fence: int = 0
    owner: str = ""
    due_at: datetime | None = None
    lease_until: datetime | None = None
    rescue_count: int = 0
    cancel_requested: bool = False
    job_id: str = ""
    fingerprint: str = ""
    result: str = ""
    error: str = ""
    updated_at: datetime | None = None

    @property
    def is_settled(self) -> bool:
        """Whether the execution has come to its end."""
        return self.state in TERMINAL


@dataclass(frozen=True, slots=True)
class Defer:
    """Another worker has a live lease: the message waits until then, and is never acknowledged."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Drop:
    """The message has nothing left to do, for this reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Rescue:
    """The lease is over: the attempt may be taken, if the row is still the one that was seen."""


@dataclass(frozen=True, slots=True)
class Bury:
    """The attempt's workers have died too often: it is dead-lettered, not run."""


@dataclass(frozen=True, slots=True)
class Again:
    """The row changed under the claim: try it once more."""


Verdict = Defer | Drop | Rescue | Bury | Again


def may_claim(row: LedgerRow | None, *, attempt: int, owner: str) -> bool:
    """Whether the plain claim of an attempt succeeds.

    There is no row; it is scheduled for this attempt or a lower one; retrying after a lower one; or running as its own.
    """
    if row is None:
        return State.ABSENT in sources(Event.CLAIM)
    if row.state is State.RUNNING:
        return row.owner == owner and row.attempt == attempt
    if row.state is State.RETRYING:
        return row.attempt < attempt
    return row.state in sources(Event.CLAIM) and row.attempt <= attempt


def judge_claim(row: LedgerRow | None, *, attempt: int, owner: str, now: datetime, skew: timedelta) -> Verdict:
    """What a refused claim means for the message that carries it."""
    if row is None or may_claim(row, attempt=attempt, owner=owner):
        return Again()
    if row.is_settled:
        return Drop(f"settled as {row.state}")
    if row.attempt > attempt or row.state is not State.RUNNING:
        return Drop("superseded by a later attempt")
    if is_leased(row, now=now, skew=skew):
        assert row.lease_until is not None
        # A moment more: at that very instant the lease still holds, and hiding a message for no time wears it out.
        return Defer(row.lease_until + skew + MILLISECOND)
    if row.rescue_count >= MAX_RESCUES and not row.cancel_requested:
        return Bury()
    return Rescue()


def lease_of(timeout: timedelta, *, now: datetime) -> datetime:
    """Until when an attempt with this timeout belongs to a worker that claims it now."""
    return now + timeout + LEASE_MARGIN


def is_leased(row: LedgerRow, *, now: datetime, skew: timedelta) -> bool:
    """Whether another worker may still be at it. The store has no clock, so the comparison carries SKEW."""
    return row.state is State.RUNNING and row.lease_until is not None and row.lease_until + skew >= now


def expires_at(*, now: datetime, due_at: datetime | None, lease_until: datetime | None) -> datetime:
    """When a ledger row may go: after every message that could meet it."""
    return max(instant for instant in (now, due_at, lease_until) if instant) + LEDGER_LIFE
