"""What is known of a job, and what an explanation of it says."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from functions.domain.far_ring.cursor import ClassCursor
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.collection import CollectionState
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import JobId
from functions.domain.schedules.state import ScheduleState
from functions.domain.targets.flows import FlowWait
from functions.domain.tenants.backlog import Backlog
from functions.domain.tenants.plan import TenantPlan
from functions.domain.wheel import Wheel


class Reason(StrEnum):
    """Why a job is where it is."""

    WAITING = "waiting"
    """In the far ring, until its bucket opens."""
    IN_READY_QUEUE = "in_ready_queue"
    """In the near ring: a message that is not due yet, or that no worker has claimed yet."""
    SPREAD_OR_JITTERED = "spread_or_jittered"
    """A fire that comes at another instant than its rule says."""
    LEASED = "leased"
    HELD = "held"
    """Its target answered 202 and has not completed it yet."""
    RETRYING = "retrying"
    PARKED = "parked"
    """It was put back before its claim, as a rule because the breaker of its destination is open."""
    WAITING_FOR_FLOW = "waiting_for_flow"
    """It waits in the room of a flow that it names."""
    COLLECTED = "collected"
    """It waits to be given to its target together with others."""
    TENANT_PAUSED = "tenant_paused"
    """Nothing of its tenant is promoted or called."""
    AT_CONCURRENCY_CAP = "at_concurrency_cap"
    """It was put back before its claim, because as many jobs of its tenant ran as may."""
    OVER_CAP = "over_cap"
    """Its tenant has more due than may go out: it waits for its turn in the far ring."""
    BUFFERED = "buffered"
    """A fire that waits for the end of the run before it."""
    PAUSED = "paused"
    """A fire whose schedule is paused or deleted."""
    CANCEL_REQUESTED = "cancel_requested"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    """It failed for good, and its dead letter is kept."""
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    ATTEMPTED = "attempted"
    SKIPPED = "skipped"
    MOVED = "moved"
    UNTRACKED = "untracked"
    """An at_least_once job that has left the far ring."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why. at: the instant that the reason is about, if there is one. Both texts are one sentence."""

    reason: Reason
    at: datetime | None
    detail: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of a job.

    row: of its ledger. timer: the far row of its next attempt, which stays there after its promotion. nominal_at: of a
    fire, when its rule says that it fires. schedule: the state of a fire's schedule, None where there is none.
    breaker_until: until when the breaker of its destination keeps jobs away, None for a closed or unknown one.
    is_breaker_closed: it was looked up. plan: of its tenant, where that is known.
    behind: how far its class has been scanned, where that has not come to its far row although its bucket is open.
    backlog: of its tenant, where that has a cap and it is known. flow_wait: how it waits in the room of a flow, where it does.
    collection: of the collection that it waits in, where it does.
    """

    job_id: JobId
    now: datetime
    wheel: Wheel
    row: LedgerRow | None = None
    timer: Timer | None = None
    nominal_at: datetime | None = None
    schedule: ScheduleState | None = None
    breaker_until: datetime | None = None
    is_breaker_closed: bool = False
    plan: TenantPlan | None = None
    behind: ClassCursor | None = None
    backlog: Backlog | None = None
    flow_wait: FlowWait | None = None
    collection: CollectionState | None = None

    @property
    def due_at(self) -> datetime:
        """When its next attempt is due, or its last one was."""
        return (self.row.due_at if self.row else None) or self.job_id.due_at

    @property
    def is_due(self) -> bool:
        """Whether that has come."""
        return self.due_at <= self.now

    @property
    def parked_until(self) -> datetime | None:
        """Until when an attempt that is due is kept away from its destination; None when it is not."""
        noted = self.row.parked_until if self.row else None
        until = max((instant for instant in (noted, self.breaker_until) if instant), default=None)
        return until if self.is_due and until is not None and until > self.now else None

    @property
    def waits_for_flow(self) -> str:
        """The flow in whose room it was put, if its claim has not followed yet; empty for none."""
        return self.row.waits_for if self.row is not None and self.parked_until is not None else ""

    @property
    def is_in_collection(self) -> bool:
        """Whether nothing but its release keeps it: it is due, and neither a pause nor a cancel is in its way."""
        is_stopped = self.row is not None and self.row.cancel_requested
        return self.collection is not None and self.is_due and not (is_stopped or self.is_kept_by_a_pause)

    @property
    def is_kept_by_a_pause(self) -> bool:
        """Whether it would run, were its tenant not paused. Without a row it may have run before."""
        return self.is_due and self.job_id.is_ledgered and self.plan is not None and self.plan.is_paused
