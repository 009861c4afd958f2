"""What comes before the claim of an attempt, while its ledger row is untouched: whether its target may be called now.

Its tenant's status is asked first, then the breaker of its destination, then a permit where the tenant's concurrency is
capped, and last what its flows ask. Whoever must wait is parked, or enters the room of a flow: the same attempt comes back
later, and has spent nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from math import isfinite

from functions.domain.jobs.claims import lease_of, may_be_claimed_ahead
from functions.domain.jobs.collection import release_in
from functions.domain.jobs.job import Timer
from functions.domain.targets.concurrency import Permit
from functions.domain.tenants.attempts import comes_too_late, paused_until, resumed
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.targets import Failed, Outcome
from functions.ports.tenants import TenantPlans
from functions.services.jobs.flow_gate import Entered, FlowGate, Later
from functions.services.jobs.occurrences import FireDecision, Occurrences
from functions.services.jobs.settler import Settler
from functions.services.targets.breakers import Breakers, Go, Park
from functions.services.targets.concurrency_limiter import ConcurrencyLimiter

_NO_FLOWS = Entered()


@dataclass(frozen=True, slots=True)
class Permission:
    """An attempt may be claimed. refusal: but its target must not be called; go, permit, entered: what its call has taken."""

    refusal: Failed | None = None
    go: Go | None = None
    permit: Permit | None = None
    entered: Entered = _NO_FLOWS

    def has_permit_until(self, instant: datetime) -> bool:
        """Whether a call that ends then is over before anybody else may have one of its permits."""
        permits = [permit for permit in (self.permit, *self.entered.permits) if permit is not None]
        return all(instant <= permit.lease_until for permit in permits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preconditions:
    """Lets attempts in. jitter: a random number from 0 up to 1."""

    wheel: Wheel
    clock: Clock
    plans: TenantPlans
    breakers: Breakers
    limiter: ConcurrencyLimiter
    flow_gate: FlowGate
    occurrences: Occurrences
    settler: Settler
    jitter: Callable[[], float]

    def serve(self, timer: Timer) -> Timer | None:
        """The attempt, if its tenant is served; None when its message has nothing left to do.

        That of a paused tenant waits in the far ring, however long the pause lasts: no policy ends it. That of a
        tenant who is deleted is forgotten.
        """
        plan, now = self.plans.of(timer.job.tenant), self.clock.now()
        if plan.is_deleted:
            self.settler.forget_payload(timer)
            self.settler.ends.forgotten(timer)
            return None
        if plan.is_paused:
            until = paused_until(timer, now=now, wheel=self.wheel, jitter=self.jitter())
            waiting = timer.without_turns().excused(since=now, until=until)
            self.settler.park(waiting, until=until, reason="its tenant is paused", metric="parked_by_pause")
            return None
        return resumed(timer, plan, now=now)

    def may_be_ahead(self, timer: Timer) -> bool:
        """Whether `enter`, and its claim, may come a moment before its instant: no permit is held for nothing meanwhile."""
        is_alone = release_in(timer.job) is None and not isfinite(self.plans.of(timer.job.tenant).max_concurrency)
        return is_alone and may_be_claimed_ahead(timer)

    def enter(self, timer: Timer) -> Permission | None:
        """What its claim may begin with; None when it is parked. Each permission is followed by one `leave`.

        Raises what the store of the permits raises: then nothing is taken, and the message is to come back.
        """
        now = self.clock.now()
        is_expired = timer.job.expires_at is not None and now >= timer.job.expires_at
        if is_expired or not timer.is_granted or timer.is_over_at(now):
            return Permission()  # its target will not be called, whatever the breaker says
        lease_until = lease_of(timer.job.timeout, now=now)
        match self.breakers.decide(timer, lease_until=lease_until):
            case Park(until, reason) if timer.may_wait_until(until):
                self.settler.park(timer.without_turns(), until=until, reason=reason)
                return None
            case Park(_, reason):
                return Permission(Failed(f"it may wait no longer: {reason}", "breaker_open", is_permanent=True))
            case Go() as go:
                permission = self._with_permit(timer, go, lease_until=lease_until)
                if permission is None or not timer.job.flows:
                    return permission
                return self._through_flows(timer, permission, lease_until=lease_until)

    def leave(self, timer: Timer, permission: Permission, outcome: Outcome | None) -> None:
        """The attempt is over. outcome: what its target answered, None when it was not called. Never raises."""
        if permission.go is not None and outcome is None:
            self.breakers.release(timer, permission.go)
        elif permission.go is not None and outcome is not None:
            self.breakers.note(timer, permission.go, outcome)
        if permission.permit is not None:
            self.limiter.give_back(permission.permit)
        self.flow_gate.leave(permission.entered)

    def is_over(self, timer: Timer) -> bool:
        """Whether an occurrence is skipped, or waits for another run. For a retry that was decided before."""
        occurrence = timer.job.occurrence
        if occurrence is None or timer.attempt > 1:
            return False
        is_closed = comes_too_late(occurrence, self.plans.of(timer.job.tenant))
        return self.occurrences.decide(timer, occurrence, is_closed=is_closed) is FireDecision.IS_OVER

    def _with_permit(self, timer: Timer, go: Go, *, lease_until: datetime) -> Permission | None:
        tenant = timer.job.tenant
        try:
            limit = self.plans.of(tenant).max_concurrency
            if not isfinite(limit):
                return Permission(go=go)
            permit = self.limiter.take(tenant, limit=int(limit), lease_until=lease_until)
        except Exception:
            self.breakers.release(timer, go)
            raise
        if permit is not None:
            return Permission(go=go, permit=permit)
        self.breakers.release(timer, go)
        until = self.clock.now() + self.limiter.wait(tenant, limit=int(limit))
        reason = f"as many jobs of its tenant run as may: {limit:g}"
        self.settler.park(timer.without_turns(), until=until, reason=reason, metric="parked_by_cap")
        return None

    def _through_flows(self, timer: Timer, permission: Permission, *, lease_until: datetime) -> Permission | None:
        try:
            entry = self.flow_gate.enter(timer, lease_until=lease_until)
        except Exception:
            self.leave(timer, permission, None)
            raise
        if isinstance(entry, Entered):
            return replace(permission, entered=entry)
        self.leave(timer, permission, None)
        now = self.clock.now()
        if isinstance(entry, Later):
            reason = "its flows have no token left for this moment"
            self.settler.park(timer, until=max(entry.until, now), reason=reason, metric="parked_by_flow")
        elif timer.may_wait_until(now):
            self.settler.wait_for(entry, timer, enter=lambda: self.flow_gate.wait(timer, entry))
        else:
            refusal = f"it may wait no longer for flow {entry.flow.key}"
            return Permission(Failed(refusal, "flow_wait_too_long", is_permanent=True))
        return None
