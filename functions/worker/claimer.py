"""The right to run an attempt, by what its delivery promises; or what becomes of the message that has no right to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from functions.domain.instants import SECOND
from functions.domain.jobs.claims import Again, Bury, Defer, Drop, LedgerRow, Rescue, Watch, decide_claim, lease_of
from functions.domain.jobs.job import Delivery, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.lifecycle import Event, State
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.ledger import Claimed, Ledger, Refused
from functions.ports.ready_queue import ReadyQueue
from functions.ports.recorder import Journal
from functions.services.jobs.settler import Claim, Settler
from functions.worker.message import Message, Returned

_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimer:
    """Claims attempts. token: a fresh owner token. jitter: a random number from 0 up to 1."""

    wheel: Wheel
    clock: Clock
    ledger: Ledger
    settler: Settler
    ready: ReadyQueue
    journal: Journal
    token: Callable[[], str]
    jitter: Callable[[], float]

    def claim(self, timer: Timer, message: Message) -> Claim | Returned | None:
        """The right to run the attempt; or what happens to the message instead."""
        now = self.clock.now()
        # What is claimed ahead of its instant is called at its instant, and has all of its time from then on.
        lease_until = lease_of(timer.job.timeout, now=max(now, timer.wakes_at))
        claim = Claim(owner=self.token(), fence=0, lease_until=lease_until)
        match timer.job.delivery:
            case Delivery.AT_LEAST_ONCE:
                if timer.job.reads_cancel and self._is_cancelled(timer):
                    return None
                if message.receive_count > 1:
                    # Its queue counts receives, and many of those may never have come to a worker.
                    self.ledger.note_start(timer, now=now)
                return claim
            case Delivery.AT_MOST_ONCE:
                return claim if self._start_once(timer, claim, now=now) else None
            case Delivery.EXACTLY_ONCE:
                return self._claim_exactly_once(timer, claim, message, now=now)

    def release(self, timer: Timer, message: Message, claim: Claim) -> None:
        """Give the attempt back: its worker has not died of it."""
        self.settler.release(timer, claim)
        if timer.job.delivery is Delivery.AT_LEAST_ONCE and message.receive_count > 1:
            self.ledger.note_start(timer, now=self.clock.now(), is_taken_back=True)

    def put_off(self, timer: Timer, message: Message, *, now: datetime) -> Returned | None:
        """There is no time left for this attempt."""
        if timer.job.is_ledgered:
            # A fresh message: returning this one would count a receive, and ten make a dead letter of a healthy job.
            self.settler.place(timer)
            return None
        # Without a row a fresh message would begin its count of receives anew. Spread, so that what was returned
        # together does not come back together.
        self.ready.defer(message.receipt, until=now + SECOND + timer.job.timeout * self.jitter())
        return Returned("no time left")

    def _is_cancelled(self, timer: Timer) -> bool:
        row = self.ledger.get(timer.job.key)
        if row is None or row.state is not State.CANCELLED:
            return False
        self.settler.note_drop(timer, row, "cancelled")
        return True

    def _start_once(self, timer: Timer, claim: Claim, *, now: datetime) -> bool:
        is_expired = timer.job.expires_at is not None and now >= timer.job.expires_at
        event = Event.LAPSE if is_expired else Event.ATTEMPT
        answer = self.ledger.attempt(timer, event, owner=claim.owner, now=now)
        if isinstance(answer, Refused):
            self.settler.note_drop(timer, answer.row, "started before")
            return False
        if is_expired:
            self.settler.forget_payload(timer)
            self.settler.ends.expired(timer)
        return not is_expired

    def _claim_exactly_once(
        self, timer: Timer, claim: Claim, message: Message, *, now: datetime
    ) -> Claim | Returned | None:
        answer = self._first_answer(timer, claim, now=now)
        for _ in range(_TRIES):
            if isinstance(answer, Claimed):
                return self._unless_cancelled(timer, replace(claim, fence=answer.fence, tried=answer.tried), answer)
            row = answer.row
            match decide_claim(
                row,
                attempt=timer.attempt,
                due_at=timer.due_at,
                owner=claim.owner,
                now=now,
                skew=self.wheel.lease_skew,
                is_granted=timer.is_granted,
            ):
                case Drop(reason):
                    self.settler.drop(timer, row, reason)
                    return None
                case Defer(until):
                    # Never acknowledged: should that worker die, this message is what rescues its job.
                    self.ready.defer(message.receipt, until=until)
                    self.journal.count("claims_lost")
                    return Returned("leased")
                case Bury():
                    return None if self.settler.bury(timer, row, owner=claim.owner) else Returned("its row has changed")
                case Watch(until, is_watchdog):
                    return self._watch(timer, row, until=until, is_watchdog=is_watchdog, owner=claim.owner, now=now)
                case Rescue():
                    assert row is not None  # only a row can be rescued
                    answer = self.ledger.rescue(
                        timer, row=row, owner=claim.owner, lease_until=claim.lease_until, now=now
                    )
                    if isinstance(answer, Claimed):
                        self._note_takeover(timer, row)
                case Again():
                    answer = self.ledger.claim(timer, owner=claim.owner, lease_until=claim.lease_until, now=now)
        if isinstance(answer, Claimed):
            return self._unless_cancelled(timer, replace(claim, fence=answer.fence, tried=answer.tried), answer)
        return Returned("its row kept changing")

    def _watch(
        self, timer: Timer, row: LedgerRow | None, *, until: datetime, is_watchdog: bool, owner: str, now: datetime
    ) -> Returned | None:
        if is_watchdog and timer.is_over_at(now) and row is not None and not row.cancel_requested:
            return None if self.settler.end_overdue(timer, row, owner=owner) else Returned("its row has changed")
        if is_watchdog and timer.ends_by is not None and timer.ends_by > now:
            until = min(until, timer.ends_by)
        # A watchdog may look again any number of times, which would wear a returned message out.
        self.settler.place(timer.put_off(until=until, is_watchdog=is_watchdog))
        return None

    def _first_answer(self, timer: Timer, claim: Claim, *, now: datetime) -> Claimed | Refused:
        if not timer.is_granted:
            return Refused(self.ledger.get(timer.job.key))
        return self.ledger.claim(timer, owner=claim.owner, lease_until=claim.lease_until, now=now)

    def _unless_cancelled(self, timer: Timer, claim: Claim, answer: Claimed) -> Claim | None:
        """A cancel that was requested of an earlier claim lets no other follow."""
        if not answer.cancel_requested:
            return claim
        self.settler.end(timer, claim, Event.WITHDRAW)
        return None

    def _note_takeover(self, timer: Timer, row: LedgerRow) -> None:
        """The attempt of a worker that has died is rescued; or the lease of a held one was over without a heartbeat."""
        self.journal.count("leases_expired")
        is_rescue = row.attempt == timer.attempt
        if is_rescue:
            self.journal.count("rescues")
        event = "rescued" if is_rescue else "lease_expired"
        self.journal.event(event, job_id=str(job_id_of(timer.job)), attempt=timer.attempt)
