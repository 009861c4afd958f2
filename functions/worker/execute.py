"""Run the jobs of a batch of messages: claim, call, settle, each step safe against a death before or after it.

What happens to a message is one of two things. It is acknowledged, when its job is settled, placed again, or has
nothing left to do, or when it is no message of Tickwheel's, and a dead letter by then. Or it is returned: reported as failed, so that the queue delivers it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from functions.domain.errors import NewerVersion, Undecodable
from functions.domain.far_ring.timer_record import decode_envelope
from functions.domain.far_ring.write_units import attempt_units
from functions.domain.faults import fault_of
from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.jobs.claims import Again, Bury, Defer, Drop, LedgerRow, Rescue, Watch, judge_claim, lease_of
from functions.domain.jobs.job import Delivery, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.lifecycle import Event
from functions.domain.targets.error_classes import NOT_CALLED, SILENT
from functions.domain.tenants.lateness import LAG_OBJECTIVE
from functions.domain.tenants.usage import Usage
from functions.domain.wheel import HOLD, Ring, Wheel
from functions.ports.clock import Clock
from functions.ports.ledger import Claimed, Ledger, Refused
from functions.ports.payloads import PayloadStore
from functions.ports.ready_queue import ReadyQueue, Receipt
from functions.ports.recorder import Journal, PulseCounter, UsageCounter
from functions.ports.targets import Failed, Outcome, Pending, Succeeded, Targets
from functions.ports.tenants import TenantPlans
from functions.services.jobs.foreign_messages import Keeper
from functions.services.jobs.occurrences import Occurrences
from functions.services.jobs.settler import Claim, Settler
from functions.services.targets.breakers import Breakers
from functions.services.targets.seating import Usher
from functions.services.telemetry.usage import UNCOUNTED
from functions.worker.invocation import GONE, UNREADABLE, invocation_of, payload_of
from functions.worker.preconditions import Entry, Gate
from functions.worker.start import note_start

_CLAIM_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One receive of one message of a ready queue.

    receive_count: 1 the first time. seen_at: when that was, if known. ring: by which it came there.
    """

    message_id: str
    body: str
    receipt: Receipt
    receive_count: int
    ring: Ring = Ring.NEAR
    seen_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Returned:
    """The message must come back, for this reason."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """Executes batches.

    side_by_side: runs functions at the same time and returns when all are done. token: a fresh owner token.
    jitter: a random number from 0 up to 1.
    """

    wheel: Wheel
    clock: Clock
    ledger: Ledger
    settler: Settler
    plans: TenantPlans
    breakers: Breakers
    usher: Usher
    occurrences: Occurrences
    ready: ReadyQueue
    payloads: PayloadStore
    targets: Targets
    journal: Journal
    side_by_side: Callable[[Sequence[Callable[[], None]]], None]
    token: Callable[[], str]
    jitter: Callable[[], float]
    usage: UsageCounter = UNCOUNTED
    pulse: PulseCounter = UNCOUNTED
    lag_objective: timedelta = LAG_OBJECTIVE

    def execute(self, messages: Sequence[Message], *, ends_at: datetime) -> list[str]:
        """Run a batch before `ends_at`; the ids of the messages that must come back.

        Messages that come for the first time run side by side. One that was received before may be what killed its
        worker: it runs alone, after the rest of its batch has settled.
        """
        returned: list[str] = []

        def run(message: Message) -> None:
            if self._returns(message, ends_at=ends_at):
                returned.append(message.message_id)

        fresh = [message for message in messages if message.receive_count <= 1]
        self.side_by_side([lambda message=message: run(message) for message in fresh])
        for message in sorted(messages, key=lambda message: message.receive_count):
            if message.receive_count > 1:
                run(message)
        return returned

    def _returns(self, message: Message, *, ends_at: datetime) -> bool:
        try:
            timers = self._decoded(message)
            # Jobs of one envelope that are done already are dropped by the ledger when it comes back.
            outcomes = [self._run(timer, message, ends_at=ends_at) for timer in timers]
        except Exception as error:  # noqa: BLE001  one job's fault must not send the others of its batch back
            self.journal.event("job_returned", message_id=message.message_id, error=fault_of(error))
            self.journal.count("returned")
            return True
        return any(outcomes)

    def _decoded(self, message: Message) -> Sequence[Timer]:
        """Its timers; none of a foreign message, which is a dead letter by then. Raises NewerVersion."""
        try:
            return decode_envelope(message.body)
        except NewerVersion:
            raise
        except Undecodable as error:
            # At once: no other receive would read it either.
            keeper = Keeper(dead_letters=self.settler.dead_letters, journal=self.journal)
            seen_at = message.seen_at or self.clock.now()
            keeper.keep(message.body, message_id=message.message_id, seen_at=seen_at, error=error)
            return ()

    def _run(self, timer: Timer, message: Message, *, ends_at: datetime) -> _Returned | None:
        gate = self._gate
        served = gate.serve(timer)
        if served is None:
            return None
        timer, now = served, self.clock.now()
        if timer.wakes_at - now > HOLD:
            # A sender's clock is ahead of this one, or SQS was early: the same attempt waits on.
            self.settler.place(timer)
            self.journal.event(
                "came_early", job_id=str(job_id_of(timer.job)), early_ms=(timer.wakes_at - now) // MILLISECOND
            )
            return None
        # Fetched before the claim: what fails here costs no lease.
        payload = payload_of(timer.job, self.payloads)
        now = self.clock.now()
        if lease_of(timer.job.timeout, now=max(now, timer.wakes_at)) > ends_at:
            return self._put_off(timer, message, now=now)
        while (left := timer.wakes_at - self.clock.now()) > timedelta(0):
            self.clock.sleep(left)
        entry = gate.enter(timer)
        if entry is None:
            return None
        try:
            outcome = None if gate.is_over(timer) else self._claim_and_call(timer, payload, message, entry, ends_at)
        except Exception:
            gate.leave(timer, entry, None)
            raise
        is_returned = isinstance(outcome, _Returned)
        gate.leave(timer, entry, None if is_returned else outcome)
        return outcome if is_returned else None

    @property
    def _gate(self) -> Gate:
        return Gate(
            wheel=self.wheel,
            clock=self.clock,
            plans=self.plans,
            breakers=self.breakers,
            usher=self.usher,
            occurrences=self.occurrences,
            settler=self.settler,
            journal=self.journal,
            jitter=self.jitter,
        )

    def _claim_and_call(
        self, timer: Timer, payload: str | None, message: Message, entry: Entry, ends_at: datetime
    ) -> Outcome | _Returned | None:
        """What its target answered; or what happens to the message, when it was not called."""
        claim = self._claim(timer, message)
        if not isinstance(claim, Claim):
            return claim
        if timer.job.delivery is Delivery.AT_MOST_ONCE:
            # Nobody else can have it: its time begins when its start is written, however long that took.
            lease_until = lease_of(timer.job.timeout, now=self.clock.now())
            claim = replace(claim, lease_until=min(lease_until, ends_at))
        is_settled = True
        try:
            outcome = entry.refusal
            if outcome is None:
                outcome, claim = self._attempt(timer, payload, claim, entry, ring=message.ring)
            if isinstance(outcome, Failed):
                is_settled = self.settler.fail(timer, claim, outcome)
        except Exception:
            self.settler.release(timer, claim)
            raise
        # An error from here on releases nothing: the effect has happened, and a released job could still be cancelled.
        if isinstance(outcome, Pending) and timer.job.delivery is Delivery.EXACTLY_ONCE:
            is_settled = self.settler.hold(timer, claim)
        elif isinstance(outcome, Succeeded | Pending):
            # Without a row that its target could settle later, it has taken the job.
            is_settled = self.settler.succeed(timer, claim, outcome.result if isinstance(outcome, Succeeded) else "")
        # Whoever has the attempt by now may have got it by this very message, and needs it should it die.
        return outcome if is_settled else _Returned("somebody else has settled it, or is at it")

    def _put_off(self, timer: Timer, message: Message, *, now: datetime) -> _Returned | None:
        """There is no time left for this attempt."""
        if timer.job.is_ledgered:
            # A fresh message: returning this one would count a receive, and ten make a dead letter of a healthy job.
            self.settler.place(timer)
            return None
        # Without a ledger only the receive count ends a job that kills its workers. Spread, so that what was returned
        # together does not come back together.
        self.ready.defer(message.receipt, until=now + SECOND + timer.job.timeout * self.jitter())
        return _Returned("no time left")

    def _claim(self, timer: Timer, message: Message) -> Claim | _Returned | None:
        """The right to run the attempt; or what happens to the message instead."""
        now = self.clock.now()
        claim = Claim(owner=self.token(), fence=0, lease_until=lease_of(timer.job.timeout, now=now))
        match timer.job.delivery:
            case Delivery.AT_LEAST_ONCE:
                return claim
            case Delivery.AT_MOST_ONCE:
                return claim if self._start_once(timer, claim, now=now) else None
            case Delivery.EXACTLY_ONCE:
                return self._claim_exactly_once(timer, claim, message, now=now)

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
    ) -> Claim | _Returned | None:
        answer = self._first_answer(timer, claim, now=now)
        for _ in range(_CLAIM_TRIES):
            if isinstance(answer, Claimed):
                return self._unless_cancelled(timer, replace(claim, fence=answer.fence), answer)
            row = answer.row
            match judge_claim(
                row,
                attempt=timer.attempt,
                due_at=timer.due_at,
                owner=claim.owner,
                now=now,
                skew=self.wheel.skew,
                is_granted=timer.is_granted,
            ):
                case Drop(reason):
                    self.settler.drop(timer, row, reason)
                    return None
                case Defer(until):
                    # Never acknowledged: should that worker die, this message is what rescues its job.
                    self.ready.defer(message.receipt, until=until)
                    self.journal.count("claims_lost")
                    return _Returned("leased")
                case Bury():
                    return (
                        None if self.settler.bury(timer, row, owner=claim.owner) else _Returned("its row has changed")
                    )
                case Watch(until, is_watchdog):
                    # A watchdog may look again any number of times, which would wear a returned message out.
                    self.settler.place(timer.put_off(until=until, is_watchdog=is_watchdog))
                    return None
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
            return self._unless_cancelled(timer, replace(claim, fence=answer.fence), answer)
        return _Returned("its row kept changing")

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

    def _attempt(
        self, timer: Timer, payload: str | None, claim: Claim, entry: Entry, *, ring: Ring
    ) -> tuple[Outcome | _Returned | None, Claim]:
        """Call the target; None when there was no reason to. And the claim, which has begun where the target was called."""
        job = timer.job
        started_at = self.clock.now()
        if not timer.is_granted:
            return Failed("its target went on by itself, and then fell silent", SILENT, is_permanent=True), claim
        if job.expires_at is not None and started_at >= job.expires_at:
            self.settler.end(timer, claim, Event.EXPIRE)
            return None, claim
        ends_at = self.clock.now() + job.timeout
        if ends_at > claim.lease_until or not entry.has_seat_until(ends_at):
            # Something took so long that the call could outlive its lease or its seat, and meet another worker's.
            if job.delivery is Delivery.AT_MOST_ONCE:
                # Its start is written: no other message of it may call it, so this is its end.
                return Failed("its start took so long that no time was left to call it", NOT_CALLED), claim
            self.settler.release(timer, claim)
            return _Returned("too little of its lease is left"), claim
        if payload is GONE:
            return self._miss_payload(timer), claim
        if payload is UNREADABLE:
            return Failed("its payload cannot be read", "payload_unreadable", is_permanent=True), claim
        plan = self.plans.of(job.tenant)
        note_start(timer, plan, ring=ring, started_at=started_at, objective=self.lag_objective, journal=self.journal)
        self.usage.add(job.tenant, Usage(executed=1, units=attempt_units(timer)))
        self.pulse.began(job, started_at - timer.due_at)
        outcome = self.targets.call(
            job.target, payload, invocation_of(timer, claim), options=job.options, timeout=job.timeout
        )
        return outcome, replace(claim, began_at=started_at)

    def _miss_payload(self, timer: Timer) -> Failed | None:
        if timer.job.delivery is Delivery.AT_LEAST_ONCE and timer.job.occurrence is None and not timer.spent:
            # A payload goes when its job has succeeded, and only the ledger could have told this message so. That of an
            # occurrence stays, and that of a replayed job may have gone with its dead letter.
            self.settler.note_drop(timer, None, "its payload is gone: it has succeeded before")
            return None
        return Failed("its payload is gone", "payload_gone", is_permanent=True)

    def _note_takeover(self, timer: Timer, row: LedgerRow) -> None:
        """Of an attempt whose worker has died; or of a later one, whose target went on by itself and fell silent."""
        self.journal.count("leases_expired")
        is_rescue = row.attempt == timer.attempt
        if is_rescue:
            self.journal.count("rescues")
        event = "rescued" if is_rescue else "lease_expired"
        self.journal.event(event, job_id=str(job_id_of(timer.job)), attempt=timer.attempt)
