"""The conditional-write table of executions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job import Job, Timer
from functions.domain.jobs.job_id import JobId
from functions.domain.lifecycle import Event, State
from functions.ports.dead_letters import DeadLetter


@dataclass(frozen=True, slots=True)
class Claimed:
    """The attempt is this worker's, with this fence. tried: the failed attempts before it, as its row keeps them."""

    fence: int
    rescue_count: int = 0
    cancel_requested: bool = False
    tried: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Refused:
    """A conditional write lost; row is what it found, None where there is none (any more)."""

    row: LedgerRow | None


@dataclass(frozen=True, slots=True)
class Applied:
    """A conditional write holds, now or from an earlier try of the same owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled(Applied):
    """A tombstone is there. is_repeated: somebody else had written it before.

    asked_for: when it counted as due among those that wait, where somebody had asked for another time than its own.
    waited_for: what its row said that it waits for, a flow or a collection. retry_at: when its next attempt was due, after one that failed.
    """

    is_repeated: bool = False
    asked_for: datetime | None = None
    waited_for: str = ""
    retry_at: datetime | None = field(default=None, compare=False)

    @classmethod
    def over(cls, before: LedgerRow | None, *, owner: str) -> Cancelled:
        """What a tombstone of this owner means that was written over a row."""
        if before is None:
            return cls()
        is_repeated = before.state is State.CANCELLED and before.owner != owner
        asked_for = before.counted_from if before.spent else None
        retry_at = before.due_at if before.state is State.RETRYING else None
        return cls(is_repeated=is_repeated, asked_for=asked_for, waited_for=before.waits_for, retry_at=retry_at)


class Ledger(Protocol):
    """The conditional-write table that makes an effect happen once."""

    def register(self, job: Job, *, job_id: str, fingerprint: str, owner: str, now: datetime) -> Applied | Refused:
        """Write the first row of a keyed submission, if there is none."""
        ...

    def register_callback(self, job: Job, *, job_id: str, owner: str, now: datetime) -> Applied | Refused:
        """Write the first row of a callback, if there is none."""
        ...

    def claim(self, timer: Timer, *, owner: str, lease_until: datetime, now: datetime) -> Claimed | Refused:
        """Take an attempt that nobody has: no row, scheduled, or retrying after a lower attempt."""
        ...

    def rescue(
        self, timer: Timer, *, row: LedgerRow, owner: str, lease_until: datetime, now: datetime
    ) -> Claimed | Refused:
        """Take an attempt from a worker whose lease is over, if the row is still the one that was seen."""
        ...

    def note_start(self, timer: Timer, *, now: datetime, is_taken_back: bool = False) -> None:
        """Count a start of an attempt that has no row: what is left of it, when its worker dies.

        is_taken_back: its worker has not died of it, and one start less counts.
        """
        ...

    def starts_of(self, timer: Timer) -> int:
        """How many starts of an attempt that has no row were noted."""
        ...

    def note_requeue(self, timer: Timer, *, now: datetime) -> int:
        """Count that an attempt that has no row gets a fresh message; how many it has had, this one included."""
        ...

    def attempt(self, timer: Timer, event: Event, *, owner: str, now: datetime) -> Applied | Refused:
        """End an at_most_once job by its start (ATTEMPT) or without one (LAPSE), if it has never been started."""
        ...

    def settle(
        self,
        timer: Timer,
        event: Event,
        *,
        fence: int,
        owner: str,
        now: datetime,
        result: str = "",
        whole: str = "",
        error: str = "",
        tried: str = "",
    ) -> Applied | Refused:
        """End an attempt under its fence; a held one with any token. timer: of the retry that follows, where one does.

        RETRY loses against a requested cancel. whole: the pointer of the whole result, where `result` is only its beginning. tried: the failed attempts by then; empty for those that the row has.
        """
        ...

    def end_collected(
        self,
        timer: Timer,
        event: Event,
        *,
        owner: str,
        now: datetime,
        following: Timer | None = None,
        result: str = "",
        error: str = "",
        tried: str = "",
    ) -> Applied | Refused:
        """End an attempt that was made together with others (DELIVER, RETURN), if nobody has claimed it or ended it.

        following: of the retry, where one follows. tried: as of `settle`.
        """
        ...

    def hold(self, timer: Timer, *, fence: int, owner: str, lease_until: datetime, now: datetime) -> Applied | Refused:
        """Renew the lease of an attempt whose target answered 202, and keep the record of its timer."""
        ...

    def extend(
        self, job_id: JobId, *, fence: int, lease_until: datetime, now: datetime, needs_id: bool = True
    ) -> LedgerRow | Refused:
        """Prolong the lease of a running attempt with this fence; its row, with the longer of both leases.

        needs_id: only if the row has this very id, and not another one of the same key.
        """
        ...

    def complete(self, job_id: JobId, *, fence: int, result: str, now: datetime, whole: str = "") -> Applied | Refused:
        """End a running attempt with this fence as succeeded, while the row has no record of its timer. whole: as of `settle`."""
        ...

    def hasten(self, timer: Timer, *, row: LedgerRow, owner: str, now: datetime) -> Applied | Refused:
        """Let a retry come due with this timer, if the row is still the one that was seen."""
        ...

    def move(
        self, job_id: JobId, timer: Timer, *, owner: str, now: datetime, first: JobId | None = None
    ) -> Applied | Refused:
        """Let a job that nobody has claimed continue as the job of this timer, and put its far row: both or neither.

        first: the job that was submitted, where that is another. Its row says by the same write under which id it continues.
        """
        ...

    def park(self, timer: Timer, *, until: datetime, now: datetime, flow: str = "") -> Applied | Refused:
        """Note until when an attempt that nobody has claimed waits on in the wheel. Nothing but that changes.

        flow: in whose room it waits, instead.
        """
        ...

    def renew_first(self, timer: Timer, *, now: datetime) -> None:
        """Let the row of the job that was submitted live on, which says that it continues as this timer's job.

        Nothing happens when it says something else, or lives longer.
        """
        ...

    def replay(
        self, timer: Timer, *, far: Timer, job_id: str, fence: int, owner: str, now: datetime, needs_row: bool = False
    ) -> Applied | Refused:
        """Let the job with this id, which has failed before the attempt of this timer, continue with it, and put a far row of it.

        Or whose replay has not come yet, when this timer is not due later than that: the one that was placed for it
        would be dropped. The row keeps the budget of this timer from then on, for an attempt that loses its message.
        Both or neither. far: the same attempt, due then or later: by this it continues when nobody places it.
        fence: the last one that its target may have received, where its row has expired.
        needs_row: it may have continued before, and ended, and its row have expired since: nothing without a row.
        """
        ...

    def fail(
        self, letter: DeadLetter, job: Job, *, fence: int, owner: str, now: datetime, tried: str = ""
    ) -> Applied | Refused:
        """End the last attempt under its fence and keep its dead letter: both or neither. tried: as of `settle`."""
        ...

    def cancel(self, job_id: JobId, *, owner: str, now: datetime, row: LedgerRow | None = None) -> Cancelled | Refused:
        """Write the tombstone, if the job is not running and not settled.

        row: only if it is still the one that was seen; None for whatever it is.
        """
        ...

    def give_up(self, job_id: JobId, *, row: LedgerRow, reason: str, owner: str, now: datetime) -> Cancelled | Refused:
        """Write the tombstone of what nobody continues, running or not, if no transition has touched it since it was seen."""
        ...

    def request_cancel(self, job_id: JobId, *, row: LedgerRow, now: datetime) -> Applied | Refused:
        """Ask that nothing follows what the row says, if it is still the one that was seen."""
        ...

    def skip(self, timer: Timer, *, reason: str, owner: str, now: datetime) -> Applied | Refused:
        """End an occurrence without a run, if it has never been claimed."""
        ...

    def bury(
        self, letter: DeadLetter, job: Job, *, row: LedgerRow | None, owner: str, now: datetime, tried: str = ""
    ) -> Applied | Refused:
        """Settle as failed what no worker has, if the row is still the one that was seen, and keep its dead letter. tried: as of `settle`.

        The row has the attempt of the dead letter from then on, also where that was never claimed.
        """
        ...

    def get(self, key: str) -> LedgerRow | None:
        """The row of a job, as of all writes before."""
        ...

    def get_many(self, keys: Sequence[str]) -> dict[str, LedgerRow]:
        """The rows that exist among these keys, each as of some moment before."""
        ...
