"""Run the jobs of a batch of messages: claim, call, settle, each step safe against a death before or after it.

What happens to a message is one of two things. It is acknowledged, when its job is settled, placed again, or has
nothing left to do. Or it is returned: reported as failed, so that the queue delivers it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from functions.domain.claims import (
    LEASE_MARGIN,
    MAX_RESCUES,
    Again,
    Bury,
    Defer,
    Drop,
    LedgerRow,
    Rescue,
    judge_claim,
    lease_of,
)
from functions.domain.envelope import decode_envelope, unpack
from functions.domain.errors import NotPlaced, Undecodable
from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.job import Delivery, Timer
from functions.domain.job_id import job_id_of
from functions.domain.lifecycle import Event, State, target
from functions.domain.occurrence import fill_references
from functions.domain.wheel import HOLD, Wheel
from functions.occurrences import Admission, Occurrences
from functions.placing import Placer
from functions.ports import (
    Claimed,
    Clock,
    DeadLetter,
    DeadLetters,
    Failed,
    Invocation,
    Journal,
    Ledger,
    Outcome,
    PayloadStore,
    ReadyQueue,
    Receipt,
    Refused,
    Succeeded,
    Targets,
)

_CLAIM_TRIES = 3

_GONE = "\x00"
"""In place of a payload that is no more. It is no JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One receive of one message of a ready queue. receive_count: 1 the first time."""

    message_id: str
    body: str
    receipt: Receipt
    receive_count: int


@dataclass(frozen=True, slots=True)
class _Returned:
    """The message must come back, for this reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class _Claim:
    """An attempt that may run. fence is 0 where there is no ledger row to settle."""

    owner: str
    fence: int
    lease_until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """Executes batches.

    side_by_side: runs functions at the same time and returns when all are done. token: a fresh owner token.
    jitter: a random number from 0 up to 1.
    """

    wheel: Wheel
    clock: Clock
    ledger: Ledger
    placer: Placer
    occurrences: Occurrences
    ready: ReadyQueue
    dead_letters: DeadLetters
    payloads: PayloadStore
    targets: Targets
    journal: Journal
    side_by_side: Callable[[Sequence[Callable[[], None]]], None]
    token: Callable[[], str]
    jitter: Callable[[], float]

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
            # Jobs of one envelope that are done already are dropped by the ledger when it comes back.
            outcomes = [self._run(timer, message, ends_at=ends_at) for timer in decode_envelope(message.body)]
        except Undecodable as error:
            # Its dead-letter queue's consumer keeps what it says.
            self.journal.event("message_undecodable", message_id=message.message_id, error=str(error))
            return True
        except Exception as error:  # noqa: BLE001  one job's fault must not send the others of its batch back
            self.journal.event("job_returned", message_id=message.message_id, error=f"{type(error).__name__}: {error}")
            self.journal.count("returned")
            return True
        return any(outcomes)

    def _run(self, timer: Timer, message: Message, *, ends_at: datetime) -> _Returned | None:
        now = self.clock.now()
        if timer.due_at - now > HOLD:
            # A sender's clock is ahead of this one, or SQS was early: the same attempt waits on.
            self._place(timer)
            self.journal.event(
                "came_early", job_id=str(job_id_of(timer.job)), early_ms=(timer.due_at - now) // MILLISECOND
            )
            return None
        # Fetched before the claim: what fails here costs no lease.
        payload = self._payload(timer)
        now = self.clock.now()
        if lease_of(timer.job.timeout, now=max(now, timer.due_at)) > ends_at:
            return self._put_off(timer, message, now=now)
        while (left := timer.due_at - self.clock.now()) > timedelta(0):
            self.clock.sleep(left)
        if self._is_over_before_its_claim(timer):
            return None
        claim = self._claim(timer, message)
        if not isinstance(claim, _Claim):
            return claim
        try:
            outcome = self._attempt(timer, payload, claim)
            if isinstance(outcome, Failed):
                self._fail(timer, claim, outcome)
        except Exception:
            self._release(timer, claim)
            raise
        if isinstance(outcome, Succeeded):
            # An error here releases nothing: the effect has happened, and a released job could still be cancelled.
            self._settle(timer, claim, Event.SUCCEED, outcome)
        return outcome if isinstance(outcome, _Returned) else None

    def _is_over_before_its_claim(self, timer: Timer) -> bool:
        """Whether an occurrence is skipped, or waits for another run. A retry has been admitted before."""
        occurrence = timer.job.occurrence
        if occurrence is None or timer.attempt > 1:
            return False
        return self.occurrences.admit(timer, occurrence) is Admission.IS_OVER

    def _put_off(self, timer: Timer, message: Message, *, now: datetime) -> _Returned | None:
        """There is no time left for this attempt."""
        if timer.job.is_ledgered:
            # A fresh message: returning this one would count a receive, and ten make a dead letter of a healthy job.
            self._place(timer)
            return None
        # Without a ledger only the receive count ends a job that kills its workers. Spread, so that what was returned
        # together does not come back together.
        self.ready.defer(message.receipt, until=now + SECOND + timer.job.timeout * self.jitter())
        return _Returned("no time left")

    def _payload(self, timer: Timer) -> str | None:
        """The payload as JSON text; `_GONE` when the payload store has it no more."""
        job = timer.job
        text = unpack(job.payload) if job.payload.pointer is None else self.payloads.get(job.payload.pointer)
        if text is None:
            return None if job.payload.pointer is None else _GONE
        return fill_references(text, job.occurrence) if job.occurrence else text

    def _claim(self, timer: Timer, message: Message) -> _Claim | _Returned | None:
        """The right to run the attempt; or what happens to the message instead."""
        now = self.clock.now()
        claim = _Claim(owner=self.token(), fence=0, lease_until=lease_of(timer.job.timeout, now=now))
        match timer.job.delivery:
            case Delivery.AT_LEAST_ONCE:
                return claim
            case Delivery.AT_MOST_ONCE:
                return claim if self._start_once(timer, claim, now=now) else None
            case Delivery.EXACTLY_ONCE:
                return self._claim_exactly_once(timer, claim, message, now=now)

    def _start_once(self, timer: Timer, claim: _Claim, *, now: datetime) -> bool:
        is_expired = timer.job.expires_at is not None and now >= timer.job.expires_at
        event = Event.LAPSE if is_expired else Event.ATTEMPT
        answer = self.ledger.attempt(timer, event, owner=claim.owner, now=now)
        if isinstance(answer, Refused):
            self._drop(timer, answer.row, "started before")
            return False
        if is_expired:
            self._forget_payload(timer)
            self._note_end(timer, str(target(event)))
        return not is_expired

    def _claim_exactly_once(
        self, timer: Timer, claim: _Claim, message: Message, *, now: datetime
    ) -> _Claim | _Returned | None:
        answer = self.ledger.claim(timer, owner=claim.owner, lease_until=claim.lease_until, now=now)
        for _ in range(_CLAIM_TRIES):
            if isinstance(answer, Claimed):
                return self._unless_cancelled(timer, replace(claim, fence=answer.fence), answer)
            row = answer.row
            match judge_claim(row, attempt=timer.attempt, owner=claim.owner, now=now, skew=self.wheel.skew):
                case Drop(reason):
                    self._drop(timer, row, reason)
                    return None
                case Defer(until):
                    # Never acknowledged: should that worker die, this message is what rescues its job.
                    self.ready.defer(message.receipt, until=until)
                    self.journal.count("claims_lost")
                    return _Returned("leased")
                case Bury():
                    return self._bury(timer, claim, row)
                case Rescue():
                    assert row is not None  # only a row can be rescued
                    # A name of its own: the refused claim may be made once more, late, and must not pass for this.
                    claim = replace(claim, owner=self.token())
                    answer = self.ledger.rescue(
                        timer, row=row, owner=claim.owner, lease_until=claim.lease_until, now=now
                    )
                    if isinstance(answer, Claimed):
                        self.journal.count("rescues")
                        self.journal.event(
                            "rescued", job_id=str(job_id_of(timer.job)), rescue_count=answer.rescue_count
                        )
                case Again():
                    answer = self.ledger.claim(timer, owner=claim.owner, lease_until=claim.lease_until, now=now)
        if isinstance(answer, Claimed):
            return self._unless_cancelled(timer, replace(claim, fence=answer.fence), answer)
        return _Returned("its row kept changing")

    def _unless_cancelled(self, timer: Timer, claim: _Claim, answer: Claimed) -> _Claim | None:
        """A cancel that was requested of an earlier claim lets no other follow."""
        if not answer.cancel_requested:
            return claim
        self._settle(timer, claim, Event.WITHDRAW)
        return None

    def _attempt(self, timer: Timer, payload: str | None, claim: _Claim) -> Outcome | _Returned | None:
        """Call the target; None when there was no reason to."""
        job = timer.job
        started_at = self.clock.now()
        if job.expires_at is not None and started_at >= job.expires_at:
            self._settle(timer, claim, Event.EXPIRE)
            return None
        if self.clock.now() + job.timeout > claim.lease_until:
            # Something took so long that the call could outlive the lease, and meet another worker's.
            self._release(timer, claim)
            return _Returned("too little of its lease is left")
        if payload is _GONE:
            return self._miss_payload(timer)
        self._note_start(timer, started_at)
        return self.targets.call(
            job.target, payload, _invocation(timer, claim), options=job.options, timeout=job.timeout
        )

    def _miss_payload(self, timer: Timer) -> Failed | None:
        if timer.job.delivery is Delivery.AT_LEAST_ONCE and timer.job.occurrence is None:
            # A payload goes when its job has succeeded, and only the ledger could have told this message so. That of an
            # occurrence stays.
            self._drop(timer, None, "its payload is gone: it has succeeded before")
            return None
        return Failed("its payload is gone", is_permanent=True)

    def _fail(self, timer: Timer, claim: _Claim, failure: Failed) -> None:
        job = timer.job
        if job.delivery is Delivery.AT_MOST_ONCE:
            self._forget_payload(timer)
            self._note_end(timer, "failed", error=failure.error)
            return
        following = None
        if not failure.is_permanent:
            following = timer.next_attempt(
                failed_at=self.clock.now(), jitter=self.jitter(), retry_after=failure.retry_after
            )
        if following is None:
            self._give_up(timer, claim, failure.error)
            return
        # Placed before it is settled: a crash between the two costs a duplicate message, never the job.
        self._place(following)
        self._settle(timer, claim, Event.RETRY, error=failure.error, following=following)

    def _give_up(self, timer: Timer, claim: _Claim, error: str) -> None:
        if timer.job.occurrence is not None:
            self.occurrences.before_failure(timer, timer.job.occurrence)
        letter = self._letter(timer, error)
        if timer.job.delivery is Delivery.AT_LEAST_ONCE:
            self.dead_letters.put(letter)
        else:
            answer = self.ledger.fail(letter, timer.job, fence=claim.fence, owner=claim.owner, now=self.clock.now())
            if isinstance(answer, Refused):
                if (fence := _moved_fence(answer.row, claim)) is not None:
                    self._give_up(timer, replace(claim, fence=fence), error)
                else:
                    self._note_refused(timer, claim)
                return
        self.journal.count("dead_lettered")
        self._note_end(timer, str(target(Event.FAIL)), error=error)
        self._tell_its_schedule(timer, Event.FAIL)

    def _bury(self, timer: Timer, claim: _Claim, row: LedgerRow | None) -> _Returned | None:
        error = f"its worker died {MAX_RESCUES + 1} times"
        if row is not None and row.error:
            error += f"; last error: {row.error}"
        if timer.job.occurrence is not None:
            self.occurrences.before_failure(timer, timer.job.occurrence)
        letter = self._letter(timer, error)
        answer = self.ledger.bury(letter, timer.job, row=row, owner=claim.owner, now=self.clock.now())
        if isinstance(answer, Refused):
            return _Returned("its row has changed")
        self.journal.count("dead_lettered")
        self._note_end(timer, str(target(Event.BURY)), error=error)
        self._tell_its_schedule(timer, Event.BURY)
        return None

    def _release(self, timer: Timer, claim: _Claim) -> None:
        """Give the attempt back: without this it would wait for its lease, and count as a death."""
        if timer.job.delivery is not Delivery.EXACTLY_ONCE:
            return
        try:
            self.ledger.settle(
                timer.job,
                Event.RELEASE,
                fence=claim.fence,
                owner=claim.owner,
                due_at=timer.due_at,
                now=self.clock.now(),
            )
        except Exception as error:  # noqa: BLE001  then it is rescued when its lease is over
            self.journal.event("not_released", job_id=str(job_id_of(timer.job)), error=type(error).__name__)

    def _settle(
        self,
        timer: Timer,
        claim: _Claim,
        event: Event,
        outcome: Succeeded | None = None,
        *,
        error: str = "",
        following: Timer | None = None,
    ) -> None:
        job = timer.job
        if job.delivery is Delivery.EXACTLY_ONCE:
            answer = self.ledger.settle(
                job,
                event,
                fence=claim.fence,
                owner=claim.owner,
                due_at=following.due_at if following else timer.due_at,
                now=self.clock.now(),
                result=outcome.result if outcome else "",
                error=error,
            )
            if isinstance(answer, Refused):
                if event is Event.RETRY and answer.row is not None and answer.row.cancel_requested:
                    self._settle(timer, claim, Event.WITHDRAW, error=error)
                    return
                if (fence := _moved_fence(answer.row, claim)) is not None:
                    self._settle(timer, replace(claim, fence=fence), event, outcome, error=error, following=following)
                    return
                self.journal.event(
                    "settle_refused", job_id=str(job_id_of(job)), attempt=timer.attempt, fence=claim.fence
                )
                self.journal.count("claims_lost")
                return
        if event in (Event.SUCCEED, Event.EXPIRE, Event.WITHDRAW):
            self._forget_payload(timer)
        self._note_end(timer, "retried" if event is Event.RETRY else str(target(event)), error=error)
        if event is not Event.RETRY:
            self._tell_its_schedule(timer, event)

    def _tell_its_schedule(self, timer: Timer, event: Event) -> None:
        if timer.job.occurrence is not None:
            self.occurrences.after_settling(timer, timer.job.occurrence, event)

    def _place(self, timer: Timer) -> None:
        placement = self.placer.place([timer])[0]
        if placement.ring is None:
            raise NotPlaced([placement.fault])

    def _letter(self, timer: Timer, error: str) -> DeadLetter:
        job = timer.job
        return DeadLetter(
            tenant=job.tenant,
            identity=job.identity,
            dead_at=self.clock.now(),
            error=error,
            attempt=timer.attempt,
            job_id=str(job_id_of(job)),
            timer=timer,
        )

    def _drop(self, timer: Timer, row: LedgerRow | None, reason: str) -> None:
        self.journal.event("duplicate_dropped", job_id=str(job_id_of(timer.job)), attempt=timer.attempt, reason=reason)
        self.journal.count("duplicates_dropped")
        # A dead letter keeps its payload. A cancelled job's message is the last that knows of it.
        if row is not None and row.state is State.CANCELLED:
            self._forget_payload(timer)

    def _forget_payload(self, timer: Timer) -> None:
        # That of an occurrence is its schedule's: the next fire needs it too.
        if timer.job.payload.pointer is not None and timer.job.occurrence is None:
            self.payloads.delete(timer.job.payload.pointer)

    def _note_refused(self, timer: Timer, claim: _Claim) -> None:
        """Another worker has the attempt by now: what this one did is not settled."""
        self.journal.event("settle_refused", job_id=str(job_id_of(timer.job)), attempt=timer.attempt, fence=claim.fence)
        self.journal.count("claims_lost")

    def _note_start(self, timer: Timer, started_at: datetime) -> None:
        lag_ms = (started_at - timer.due_at) / MILLISECOND
        if lag_ms < 0:
            self.journal.count("early")
        self.journal.count("attempts")
        self.journal.observe("lag_ms", max(0.0, lag_ms))

    def _note_end(self, timer: Timer, outcome: str, *, error: str = "") -> None:
        job = timer.job
        self.journal.event(
            "job_settled",
            job_id=str(job_id_of(job)),
            tenant=job.tenant,
            outcome=outcome,
            attempt=timer.attempt,
            # Only its kind: what a target or a handler says may hold what its payload does.
            **({"error": error.partition(":")[0]} if error else {}),
        )
        self.journal.count(outcome)


def _moved_fence(row: LedgerRow | None, claim: _Claim) -> int | None:
    """The fence of this very claim, when it was made once more after its answer; None when the attempt is another's."""
    if row is None or row.state is not State.RUNNING or row.owner != claim.owner:
        return None
    return row.fence if row.fence > claim.fence else None


def _invocation(timer: Timer, claim: _Claim) -> Invocation:
    job = timer.job
    return Invocation(
        job_id=str(job_id_of(job)),
        tenant=job.tenant,
        idempotency_key=job.key,
        attempt=timer.attempt,
        fence=claim.fence,
        scheduled_at=job.scheduled_at,
        deadline=claim.lease_until - LEASE_MARGIN,
    )
