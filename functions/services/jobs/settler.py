"""How an attempt ends, whoever reports it: the worker that made it, or the target that answered 202.

What follows is placed before the end is settled: a crash between the two costs a duplicate message, never a job.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from functions.domain.far_ring.asked_record import room_for_attempts
from functions.domain.far_ring.write_units import row_units
from functions.domain.instants import format_instant
from functions.domain.jobs.claims import MAX_RESCUES, Drop, LedgerRow, after_lease, decide_claim, lease_of, lost_attempt
from functions.domain.jobs.collection import collection_of
from functions.domain.jobs.job import MAX_PARKED, Delivery, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.past_attempts import PastAttempt, with_attempt
from functions.domain.jobs.results import NO_RESULT, KeptResult
from functions.domain.lifecycle import Event, State
from functions.domain.schedules.collect_times import closes_at
from functions.domain.targets.error_classes import RUN_DEADLINE, WORKER_DIED
from functions.domain.tenants.usage import Usage
from functions.domain.wheel import Ring, Wheel
from functions.ports.clock import Clock
from functions.ports.ledger import Ledger, Refused
from functions.ports.payloads import PayloadStore
from functions.ports.recorder import Journal, UsageCounter
from functions.ports.targets import Failed
from functions.services.far_ring.placer import Placer
from functions.services.jobs.ends import Ends
from functions.services.jobs.flow_gate import Waits

TOOK_TOO_LONG = Failed("its run has taken as long as it may", RUN_DEADLINE, is_permanent=True)
"""Of a run whose deadline has passed."""

ENDS = {State.SUCCEEDED: Event.SUCCEED}
"""How a target that answered 202 may have ended its attempt before its worker noted that it is held."""


@dataclass(frozen=True, slots=True)
class Claim:
    """An attempt that may run, or is running. fence is 0 where there is no ledger row to settle.

    began_at: None while it has not begun, and where that is not known. tried: the failed attempts before it, as its row keeps
    them.
    """

    owner: str
    fence: int
    lease_until: datetime
    began_at: datetime | None = None
    tried: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settler:
    """Ends attempts. jitter: a random number from 0 up to 1.

    Every method that ends an attempt answers whether its end stands: a zombie's does not.
    """

    wheel: Wheel
    clock: Clock
    ledger: Ledger
    placer: Placer
    ends: Ends
    payloads: PayloadStore
    journal: Journal
    usage: UsageCounter
    jitter: Callable[[], float]

    def end(self, timer: Timer, claim: Claim, event: Event, *, result: KeptResult = NO_RESULT) -> bool:
        """The target has taken the job: SUCCEED; or the attempt ends without a run: EXPIRE or WITHDRAW."""
        return self._settle(timer, claim, event, result=result)

    def fail(self, timer: Timer, claim: Claim, failure: Failed) -> bool:
        """Try again as the policy says, or keep the job as a dead letter."""
        following = None
        if not failure.is_permanent and timer.job.delivery is not Delivery.AT_MOST_ONCE:
            following = timer.next_attempt(
                failed_at=self.clock.now(), jitter=self.jitter(), retry_after=failure.retry_after
            )
        if following is None:
            return self._give_up(timer, claim, failure)
        self.place(following)
        return self._settle(timer, claim, Event.RETRY, failure=failure, following=following)

    def hold(self, timer: Timer, claim: Claim) -> bool:
        """The target answered 202. A watchdog finds out when it falls silent."""
        now = self.clock.now()
        lease_until = lease_of(timer.job.timeout, now=now)
        looks_at = after_lease(lease_until, skew=self.wheel.lease_skew)
        self.place(timer.watchdog(due_at=min(looks_at, max(timer.ends_by or looks_at, now))))
        now = self.clock.now()
        answer = self.ledger.hold(timer, fence=claim.fence, owner=claim.owner, lease_until=lease_until, now=now)
        if not isinstance(answer, Refused):
            self.journal.event("held", job_id=str(job_id_of(timer.job)), attempt=timer.attempt)
            self.journal.count("held")
            return True
        self._note_refused(timer, claim, answer.row)
        return False

    def park(self, timer: Timer, *, until: datetime, reason: str, metric: str = "parked") -> None:
        """The same attempt waits on in the wheel; its message has nothing left to do. Raises NotPlaced.

        reason: for people. metric: what it is counted as.
        Noted before it is placed, so that a job that has ended or been cancelled does not go round under a breaker, and
        that a ledger that fails does not make a message of each receive. A death in between leaves the message.
        """
        if self._note_parked(timer, until=until):
            self.place(replace(timer, due_at=until))
            self.placer.note_put_off(timer, until=until)
            self._report_parked(timer, until=until, reason=reason, metric=metric)

    def wait_for(self, waits: Waits, timer: Timer, *, enter: Callable[[], None]) -> None:
        """The same attempt waits for a flow, whose room `enter` keeps it in. Raises what that raises."""
        until = self.clock.now() + MAX_PARKED
        if self._note_parked(timer, until=until, flow=str(waits.flow)):
            enter()
            reason = f"it waits for its turn in flow {waits.flow.key}"
            self._report_parked(timer, until=until, reason=reason, metric="parked_by_flow")

    def collect(self, timer: Timer, *, enter: Callable[[], None]) -> None:
        """The same attempt waits for the release of its collection, which `enter` puts it into. Raises what that raises."""
        assert timer.job.collect is not None
        until = max(self.clock.now(), closes_at(timer.job.collect, timer.wakes_at))
        if self._note_parked(timer, until=until, flow=str(collection_of(timer.job))):
            enter()
            reason = f"it waits for the release of collection {timer.job.collect.key}"
            self.journal.event("parked", job_id=str(job_id_of(timer.job)), until=format_instant(until), reason=reason)

    def _note_parked(self, timer: Timer, *, until: datetime, flow: str = "") -> bool:
        """Whether it is to wait; its message has nothing left to do, otherwise."""
        if not timer.job.is_ledgered:
            return True
        now = self.clock.now()
        answer = self.ledger.park(timer, until=until, now=now, flow=flow)
        if isinstance(answer, Refused):
            follows = decide_claim(
                answer.row, attempt=timer.attempt, due_at=timer.due_at, owner="", now=now, skew=self.wheel.skew
            )
            if isinstance(follows, Drop):
                self.drop(timer, answer.row, follows.reason)
                return False
        return True

    def _report_parked(self, timer: Timer, *, until: datetime, reason: str, metric: str) -> None:
        self.journal.count(metric)
        self.journal.event("parked", job_id=str(job_id_of(timer.job)), until=format_instant(until), reason=reason)

    def bury(self, timer: Timer, row: LedgerRow | None, *, owner: str) -> bool:
        """Its workers have died too often: it is a dead letter, if its row is still the one that was seen."""
        error = f"its worker died {MAX_RESCUES + 1} times"
        if row is not None and row.error:
            error += f"; last error: {row.error}"
        return self.ends.bury(timer, Failed(error, WORKER_DIED), row=row, owner=owner)

    def end_overdue(self, timer: Timer, row: LedgerRow | None, *, owner: str) -> bool:
        """Its run has taken as long as it may, whatever its target still does after its 202: it is a dead letter, if its row is as seen."""
        return self.ends.bury(timer, TOOK_TOO_LONG, row=row, owner=owner)

    def release(self, timer: Timer, claim: Claim) -> None:
        """Give the attempt back: without this it would wait for its lease, and count as a death."""
        if timer.job.delivery is not Delivery.EXACTLY_ONCE:
            return
        try:
            self.ledger.settle(timer, Event.RELEASE, fence=claim.fence, owner=claim.owner, now=self.clock.now())
        except Exception as error:  # noqa: BLE001  then it is rescued when its lease is over
            self.journal.event("not_released", job_id=str(job_id_of(timer.job)), error=type(error).__name__)

    def place(self, timer: Timer) -> None:
        """Into the wheel. Raises NotPlaced."""
        if self.placer.place_one(timer) is Ring.FAR:
            self.usage.add(timer.job.tenant, Usage(units=row_units(timer)))

    def drop(self, timer: Timer, row: LedgerRow | None, reason: str) -> None:
        """A message has nothing left to do, but to place a later attempt again that has lost its own. Raises NotPlaced.

        Before the message is acknowledged: it may be all that is left of its job. Placed twice, the ledger drops one.
        """
        lost = lost_attempt(timer, row, now=self.clock.now())
        if lost is not None:
            self.place(lost)
            self.journal.event("revived", job_id=str(job_id_of(timer.job)), attempt=lost.attempt)
        self.note_drop(timer, row, reason)

    def note_drop(self, timer: Timer, row: LedgerRow | None, reason: str) -> None:
        """A message has nothing left to do. Of a job that has ended it may be the last that knows its payload.

        Whoever settled it may have died before its line was sent: it is reported again.
        """
        self.ends.found(timer, row)
        self.journal.event("duplicate_dropped", job_id=str(job_id_of(timer.job)), attempt=timer.attempt, reason=reason)
        self.journal.count("duplicates_dropped")
        # A dead letter keeps its payload.
        if row is not None and row.is_settled and row.state is not State.FAILED:
            self.forget_payload(timer)

    def forget_payload(self, timer: Timer) -> None:
        """Nobody needs its object any more."""
        # That of an occurrence is its schedule's: the next fire needs it too.
        if timer.job.payload.pointer is not None and timer.job.occurrence is None:
            self.payloads.delete(timer.job.payload.pointer)

    def _settle(
        self,
        timer: Timer,
        claim: Claim,
        event: Event,
        *,
        result: KeptResult = NO_RESULT,
        failure: Failed | None = None,
        following: Timer | None = None,
    ) -> bool:
        if timer.job.delivery is Delivery.EXACTLY_ONCE:
            answer = self.ledger.settle(
                following or timer,
                event,
                fence=claim.fence,
                owner=claim.owner,
                now=self.clock.now(),
                result=result.text,
                whole=result.pointer,
                error=failure.error if failure else "",
                tried=self._tried(timer, claim, failure) if failure else "",
            )
            if isinstance(answer, Refused):
                if event is Event.RETRY and answer.row is not None and answer.row.cancel_requested:
                    return self._settle(timer, claim, Event.WITHDRAW, failure=failure)
                self._note_refused(timer, claim, answer.row)
                return False
        if event is Event.RETRY:
            if following is not None:
                wait = following.due_at - self.clock.now()
                self.journal.observe("retry_in_s", max(0.0, wait.total_seconds()))
            self.ends.retried(timer, failure)
        else:
            self._tidy_up(timer, event, claim, failure, result=result)
        return True

    def _tidy_up(
        self,
        timer: Timer,
        event: Event,
        claim: Claim,
        failure: Failed | None = None,
        *,
        result: KeptResult = NO_RESULT,
    ) -> None:
        """It has come to its end, without a dead letter."""
        match event:
            case Event.SUCCEED:
                self.ends.succeeded(timer, began_at=claim.began_at, result=result)
            case Event.EXPIRE:
                self.ends.expired(timer)
            case Event.WITHDRAW:
                self.ends.withdrawn(timer, failure, began_at=claim.began_at)
            case _:
                raise AssertionError(f"{event} ends nothing")
        # The last: where a job keeps no row, whoever comes after a death takes it for ended, and told of, when its payload is gone.
        self.forget_payload(timer)

    def _give_up(self, timer: Timer, claim: Claim, failure: Failed) -> bool:
        answer = self.ends.fail(
            timer,
            failure,
            fence=claim.fence,
            owner=claim.owner,
            began_at=claim.began_at,
            tried=self._tried(timer, claim, failure),
        )
        if isinstance(answer, Refused):
            self._note_refused(timer, claim, answer.row)
            return False
        if timer.job.delivery is Delivery.AT_MOST_ONCE:
            self.forget_payload(timer)  # no dead letter keeps it
        return True

    def _tried(self, timer: Timer, claim: Claim, failure: Failed) -> str:
        """The failed attempts of its job when this one has failed, too, as its row keeps them."""
        now = self.clock.now()
        past = PastAttempt(
            attempt=timer.attempt,
            ended_at=now,
            took=now - claim.began_at if claim.began_at is not None else None,
            error_class=failure.error_class,
            error=failure.error,
        )
        return with_attempt(claim.tried, past, room=room_for_attempts(timer.job))

    def _note_refused(self, timer: Timer, claim: Claim, row: LedgerRow | None) -> None:
        """Another worker has the attempt by now: what this one did is not settled. Or its target was faster."""
        is_my_row = row is not None and (row.fence, row.owner) == (claim.fence, claim.owner)
        if row is not None and is_my_row and row.state in ENDS:
            # It ended the attempt before its worker could note that it is held: nobody else could tidy up after it. One
            # that was ended by a request has another token.
            self._tidy_up(timer, ENDS[row.state], claim, result=KeptResult(row.result, row.whole))
            return
        self.journal.event("settle_refused", job_id=str(job_id_of(timer.job)), attempt=timer.attempt, fence=claim.fence)
        self.journal.count("claims_lost")
