"""Who may run an attempt. The ledger applies these rules in its conditions; here they decide what follows from a refused one.

A write whose answer was lost would lose against itself when it is repeated: so every write carries an owner token,
fresh for each receive of a message, and a row with the same token is the writer's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from functions.domain.instants import DAY, MILLISECOND, to_ms
from functions.domain.jobs.job import Delivery, Precision, Timer
from functions.domain.jobs.past_attempts import PastAttempt
from functions.domain.lifecycle import TERMINAL, Event, State, sources
from functions.domain.targets.error_classes import SILENT, WORKER_DIED

MAX_RESCUES = 3
"""How often an attempt is rescued. When its worker dies once more it is a dead letter: it is not run again."""

LEASE_MARGIN = timedelta(seconds=5)
"""What a lease, and a worker's time, has beyond the timeout of an attempt: to settle in."""

CLAIMED_AHEAD = 100 * MILLISECOND
"""How long before its instant an attempt of an `exact` job is claimed: longer than a store takes to answer, as a rule."""

MOVED_LIFE = timedelta(days=105)
"""How long the row with the new id of a moved job is kept after that job was due. Its end may come late: retries go on
for 55 days at most, and its own row lives 22 days after it."""

LONG_OVERDUE = timedelta(minutes=5)
"""After which an attempt that nobody has claimed may have lost its message."""

REQUEST_LIMIT = timedelta(seconds=30)
"""API Gateway ends a request after this: no submission or change is under way for longer."""

ABANDONED = "abandoned"
"""Why a run was cancelled that nobody carried on: the `error` of its row, and the reason of its line."""

TIMER_LIFE = timedelta(days=14)
"""How long the far row of a job lives after it was due: as long as a queue keeps a message. Its ttl is all that DynamoDB asks, so it is
how long a scanner may stand still."""

RENEW_AFTER = TIMER_LIFE / 2
"""A far row that has waited so long for its promotion, for whatever reason, is put anew: left alone, its table would let it go."""

MESSAGE_LIFE = timedelta(days=14)
"""How long a ready queue or a dead-letter queue keeps a message."""

LEDGER_LIFE = RENEW_AFTER + MESSAGE_LIFE + DAY
"""How long a row lives after its last transition, due time or lease: longer than any copy of its job. A second far row may
have waited for a cap or for room until it would have been put anew, which looks at the ledger, and its message as long again
as a queue keeps one."""

ABSENT_IS_OVER = MESSAGE_LIFE + DAY
"""A job without a row whose time was so long ago is over, to all who ask for it: rows that older releases wrote live no
longer, and whatever waits for so long has a row, because putting it anew notes that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """One logical execution as the ledger has it.

    fence: grows with every claim; the target may refuse a smaller one. owner: token of the last writer.
    lease_until: until when the attempt belongs to its worker. job_id: the id that the first submission answered with.
    fingerprint: of the job that was registered with an idempotency key. parked_until: until when an attempt was put back
    into the wheel before its claim. waits_for: the flow in whose room it is, instead. held: the record of the running attempt, where its target answered 202.
    moved_to: the id under which it continues. spent, counted_from: what its last replay has given its timer.
    asked: the record of what was asked for, as far as there is room; tried: its failed attempts, see `past_attempts`.
    whole: the pointer of the whole result, where `result` is only its beginning.
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
    whole: str = ""
    error: str = ""
    updated_at: datetime | None = None
    parked_until: datetime | None = None
    held: str = ""
    moved_to: str = ""
    spent: int = 0
    counted_from: datetime | None = None
    waits_for: str = ""
    asked: str = ""
    tried: str = ""

    @property
    def is_settled(self) -> bool:
        """Whether the execution has come to its end."""
        return self.state in TERMINAL


@dataclass(frozen=True, slots=True)
class Defer:
    """Another worker has a live lease: the message waits until then, and is never acknowledged."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Watch:
    """An earlier attempt has a live lease: this one looks again then. It is placed anew, to wear no message out.

    is_watchdog: that attempt is held: its target answered 202.
    """

    until: datetime
    is_watchdog: bool


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


ClaimDecision = Defer | Watch | Drop | Rescue | Bury | Again


def may_claim(row: LedgerRow | None, *, attempt: int, due_at: datetime, owner: str) -> bool:
    """Whether the plain claim of an attempt succeeds.

    There is no row; it is scheduled for this attempt or a lower one; retrying after a lower one, and not due later than
    this message: it has one of its own for then; or running as its own.
    """
    if row is None:
        return State.ABSENT in sources(Event.CLAIM)
    if row.state is State.RUNNING:
        return is_own(row, attempt=attempt, owner=owner)
    if row.state is State.RETRYING:
        return row.attempt < attempt and (row.due_at is None or to_ms(row.due_at) <= to_ms(due_at))
    return row.state in sources(Event.CLAIM) and row.attempt <= attempt


def decide_claim(
    row: LedgerRow | None,
    *,
    attempt: int,
    due_at: datetime,
    owner: str,
    now: datetime,
    skew: timedelta,
    is_granted: bool = True,
) -> ClaimDecision:
    """What a refused claim means for the message that carries it.

    is_granted: whether the retry policy grants the attempt. One that it does not only ends what has fallen silent.
    """
    if row is None or may_claim(row, attempt=attempt, due_at=due_at, owner=owner):
        is_its_own = row is not None and row.attempt == attempt
        return Again() if is_granted or is_its_own else Drop("the attempt that it watched has ended")
    if row.is_settled:
        return Drop(f"settled as {row.state}")
    if row.attempt > attempt or row.state is not State.RUNNING:
        return Drop("superseded by a later attempt")
    if row.held and row.attempt == attempt:
        # Its watchdog was placed before it was held. This message would only wear out, or be taken for a worker's death.
        return Drop("its target answered 202, and it is held")
    if is_leased(row, now=now, skew=skew):
        assert row.lease_until is not None
        until = after_lease(row.lease_until, skew=skew)
        return Defer(until) if row.attempt == attempt else Watch(until, is_watchdog=bool(row.held))
    # Only deaths of this very attempt count: an attempt before it may have ended in silence.
    if row.rescue_count >= MAX_RESCUES and row.attempt == attempt and not row.cancel_requested:
        return Bury()
    return Rescue()


def is_own(row: LedgerRow | None, *, attempt: int, owner: str) -> bool:
    """Whether a row is what an earlier try of the same claim or rescue has written."""
    return row is not None and row.state is State.RUNNING and (row.owner, row.attempt) == (owner, attempt)


def deaths_of(row: LedgerRow, *, attempt: int) -> int:
    """How many workers of this attempt have died, when it is taken from one more: those of another do not count."""
    return row.rescue_count + 1 if row.attempt == attempt else 0


def taken_over(row: LedgerRow, *, now: datetime) -> PastAttempt:
    """The attempt that a row says is running, as one that has failed: its lease was over."""
    return PastAttempt(
        attempt=row.attempt,
        ended_at=row.lease_until or now,
        error_class=SILENT if row.held else WORKER_DIED,
        error="no heartbeat came in time" if row.held else "its worker died",
    )


def overdue_attempt(row: LedgerRow | None, *, now: datetime) -> int | None:
    """The attempt that a job waits for, if it should have come so long ago that its message may have been lost.

    Of one that runs without a lease: itself, to be rescued; or its watchdog, where it is held.
    It may as well wait in a queue that is behind: whoever places it again leaves it to the ledger to drop one of the two.
    """
    if row is not None and row.state is State.RUNNING and row.lease_until is not None:
        return row.attempt + bool(row.held) if row.lease_until + LONG_OVERDUE < now else None
    if row is None or row.due_at is None or row.state not in (State.SCHEDULED, State.RETRYING):
        return None
    if max(row.due_at, row.parked_until or row.due_at) + LONG_OVERDUE >= now:
        return None
    return row.attempt + 1 if row.state is State.RETRYING else row.attempt


MAX_REQUEUES = 50
"""How often an attempt without a row gets a fresh message when none of its receives led to a start: half a day of throttled workers. What
fails before each start, such as a payload that cannot be read, must come to an end, too."""


def has_worn_out(starts: int) -> bool:
    """Whether the workers of an attempt without a row have died too often. starts: of messages that had been received before.

    The first start is not among them. A receive that no start follows is no death: workers were throttled.
    """
    return starts >= MAX_RESCUES


def lost_attempt(timer: Timer, row: LedgerRow | None, *, now: datetime) -> Timer | None:
    """The attempt that a job waits for, made anew from another, if it should have come long ago; else None.

    A message that the ledger drops may be the last of its job: a later attempt may have lost its own.

    From one of before its replay, it has the budget that the replay gave it.
    """
    attempt = overdue_attempt(row, now=now)
    if row is None or attempt is None:
        return None
    if row.counted_from is not None and timer.spent < row.spent:
        timer = timer.with_new_budget(spent=row.spent, counted_from=row.counted_from)
    lost = timer.revived(attempt=attempt, due_at=now)
    return lost.watching(due_at=now) if row.held else lost


def awaits_replay(row: LedgerRow | None, *, failed_attempt: int, job_id: str) -> bool:
    """Whether the job with this id, which failed at an attempt, is to continue by a replay that has not come yet.

    Any later message may come for the same attempt.
    """
    if row is None or row.state is not State.RETRYING:
        return False
    return row.attempt == failed_attempt + 1 and is_of(row, job_id)


def has_gone_on(row: LedgerRow, *, failed_attempt: int, job_id: str) -> bool:
    """Whether the job with this id, which failed at an attempt, has been claimed or has ended since.

    A replay skips a number: a row that knows less than that has not seen one, whatever its state.
    """
    is_past = row.attempt > failed_attempt and is_of(row, job_id)
    return is_past and not awaits_replay(row, failed_attempt=failed_attempt, job_id=job_id)


def is_of(row: LedgerRow, job_id: str) -> bool:
    """Whether a row is of the job with this id: its key may have been used again since its own row expired."""
    return not (row.job_id and job_id) or row.job_id == job_id


def is_unchanged(row: LedgerRow | None, seen: LedgerRow | None) -> bool:
    """Whether a row is still the one that was seen, as far as the conditions of the ledger show."""
    if row is None or seen is None:
        return row is seen
    return (row.state, row.fence) == (seen.state, seen.fence)


def lease_of(timeout: timedelta, *, now: datetime) -> datetime:
    """Until when an attempt with this timeout belongs to a worker that claims it now."""
    return now + timeout + LEASE_MARGIN


def may_be_claimed_ahead(timer: Timer) -> bool:
    """Whether an attempt may belong to its worker a moment before its instant.

    Its claim is in the ledger or is not, so a cancel that was confirmed has won, and what is claimed can be rescued. A start that is
    written once cannot: should its worker die in that moment, the job would be lost. Whether a fire becomes a run is decided when it
    is due, because the run before may end until then; and so is what a flow lets through. A later attempt may be there to look after
    the one before, whose lease ends at that instant.
    """
    job = timer.job
    is_claimed = job.delivery is Delivery.EXACTLY_ONCE and job.precision is Precision.EXACT
    return is_claimed and timer.attempt == 1 and job.occurrence is None and not job.flows


def after_lease(lease_until: datetime, *, skew: timedelta) -> datetime:
    """The first instant at which a lease is surely over.

    A moment more: at the very end it still holds, and hiding a message for no time wears it out.
    """
    return lease_until + skew + MILLISECOND


def is_leased(row: LedgerRow, *, now: datetime, skew: timedelta) -> bool:
    """Whether another worker may still be at it. The store has no clock, so the comparison carries SKEW."""
    return row.state is State.RUNNING and row.lease_until is not None and row.lease_until + skew >= now


def expires_at(*, now: datetime, due_at: datetime | None, lease_until: datetime | None) -> datetime:
    """When a ledger row may expire: after every message that could be checked against it."""
    return max(instant for instant in (now, due_at, lease_until) if instant) + LEDGER_LIFE
