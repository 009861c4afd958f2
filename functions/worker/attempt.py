"""One attempt of a job, from its message to its end: each step is safe against a death before or after it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from functions.domain.far_ring.flow_turn import is_turn
from functions.domain.instants import MILLISECOND
from functions.domain.jobs.claims import CLAIMED_AHEAD, lease_of
from functions.domain.jobs.collection import is_collected, release_in
from functions.domain.jobs.job import Delivery, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.lifecycle import Event
from functions.domain.wheel import MAX_WAIT, Wheel
from functions.ports.clock import Clock
from functions.ports.recorder import Journal
from functions.ports.targets import Failed, Outcome, Pending, Succeeded
from functions.services.far_ring.flow_turns import FlowTurns
from functions.services.jobs.result_keeper import ResultKeeper
from functions.services.jobs.settler import Claim, Settler
from functions.worker.claimer import Claimer
from functions.worker.invocation import Invoker
from functions.worker.message import Message, Returned
from functions.worker.preconditions import Permission, Preconditions
from functions.worker.releases import Releases


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """Runs attempts: may it be called, whose is it, call, settle."""

    wheel: Wheel
    clock: Clock
    preconditions: Preconditions
    claimer: Claimer
    invoker: Invoker
    settler: Settler
    flow_turns: FlowTurns
    releases: Releases
    result_keeper: ResultKeeper
    journal: Journal

    def run(self, timer: Timer, message: Message, *, ends_at: datetime) -> Returned | None:
        """Before `ends_at`; None when its message has nothing left to do."""
        if is_turn(timer):
            self.flow_turns.take(timer, receive_count=message.receive_count)
            return None
        if not self.wheel.may_lease(offset=self.clock.offset()):
            # By the other clocks its lease might be over during its call.
            self.journal.event("worker_clock_skewed", offset_ms=self.clock.offset() // MILLISECOND)
            return Returned("its clock is skewed")
        served = self.preconditions.serve(timer)
        if served is None:
            self.releases.unserved(timer)
            return None
        timer, now = served, self.clock.now()
        if timer.wakes_at - now > MAX_WAIT:
            # A sender's clock is ahead of this one, or SQS was early: the same attempt waits on.
            self.settler.place(timer)
            self.journal.event(
                "came_early", job_id=str(job_id_of(timer.job)), early_ms=(timer.wakes_at - now) // MILLISECOND
            )
            return None
        if is_collected(timer):
            return None if self.preconditions.is_over(timer) else self.releases.enter(timer)
        # Fetched before the claim: what fails here costs no lease.
        payload = self.invoker.payload_of(timer.job)
        now = self.clock.now()
        if lease_of(timer.job.timeout, now=max(now, timer.wakes_at)) > ends_at:
            return self.claimer.put_off(timer, message, now=now)
        self._wait_for(timer.wakes_at - CLAIMED_AHEAD if self.preconditions.may_be_ahead(timer) else timer.wakes_at)
        permission = self.preconditions.enter(timer)
        if permission is None:
            return None
        outcome: Outcome | Returned | None = None
        try:
            if not self.preconditions.is_over(timer):
                outcome = self._claim_and_call(timer, payload, message, permission, ends_at)
        except Exception:
            self.preconditions.leave(timer, permission, None)
            raise
        is_returned = isinstance(outcome, Returned)
        self.preconditions.leave(timer, permission, None if is_returned else outcome)
        return outcome if is_returned else None

    def _claim_and_call(
        self, timer: Timer, payload: str | Failed | None, message: Message, permission: Permission, ends_at: datetime
    ) -> Outcome | Returned | None:
        """What its target answered; or what happens to the message, when it was not called."""
        claim = self.claimer.claim(timer, message)
        if claim is None:
            self.releases.after(timer)
        if not isinstance(claim, Claim):
            return claim
        # No longer than it was claimed ahead: by a clock that was set back meanwhile, it would wait while its lease runs out.
        self._wait_for(timer.wakes_at, most=CLAIMED_AHEAD)
        if release_in(timer.job) is not None:
            return self.releases.give(timer, claim, permission, message)
        if timer.job.delivery is Delivery.AT_MOST_ONCE:
            # Nobody else can have it: its time begins when its start is written, however long that took.
            lease_until = lease_of(timer.job.timeout, now=self.clock.now())
            claim = replace(claim, lease_until=min(lease_until, ends_at))
        is_settled = True
        try:
            outcome = permission.refusal
            if outcome is None:
                outcome, claim = self.invoker.invoke(timer, payload, claim, permission, ring=message.ring)
            if isinstance(outcome, Failed):
                is_settled = self.settler.fail(timer, claim, outcome)
        except Exception:
            self.claimer.release(timer, message, claim)
            raise
        # An error from here on releases nothing: the effect has happened, and a released job could still be cancelled.
        if isinstance(outcome, Pending) and timer.job.delivery is Delivery.EXACTLY_ONCE:
            is_settled = self.settler.hold(timer, claim)
        elif isinstance(outcome, Succeeded | Pending):
            # Without a row that its target could settle later, it has taken the job.
            text = outcome.result if isinstance(outcome, Succeeded) else ""
            result = self.result_keeper.keep_or_cut(timer.job, text)
            is_settled = self.settler.end(timer, claim, Event.SUCCEED, result=result)
        # Whoever has the attempt by now may have got it by this very message, and needs it should it die.
        return outcome if is_settled else Returned("somebody else has settled it, or is at it")

    def _wait_for(self, instant: datetime, *, most: timedelta = timedelta.max) -> None:
        while timedelta(0) < (left := instant - self.clock.now()) <= most:
            self.clock.sleep(left)
