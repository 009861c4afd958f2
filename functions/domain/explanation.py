"""Why a job has not run yet, or what became of it: one typed reason, in words for people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from math import inf

from functions.domain.far_ring.cursor import ClassCursor
from functions.domain.instants import format_instant, from_seconds
from functions.domain.jobs.claims import LedgerRow, after_lease
from functions.domain.jobs.job import Delivery, Timer
from functions.domain.jobs.job_id import JobId, parse_job_id
from functions.domain.jobs.occurrence import fire_of
from functions.domain.lifecycle import State
from functions.domain.schedules.state import ScheduleState, Status
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
    """Its target goes on by itself."""
    RETRYING = "retrying"
    PARKED = "parked"
    """It was put back before its claim, as a rule because the breaker of its destination is open."""
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
    would_change_it: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of a job.

    row: of its ledger. timer: the far row of its next attempt, which stays there after its promotion. nominal_at: of a
    fire, when its rule says that it fires. schedule: the state of a fire's schedule, None where there is none.
    breaker_until: until when the breaker of its destination keeps jobs away, None for a closed or unknown one.
    is_breaker_closed: it was looked up. plan: of its tenant, where that is known.
    behind: how far its class has been scanned, where that has not come to its far row although its bucket is open.
    backlog: of its tenant, where that has a cap and it is known.
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
    def is_kept_by_a_pause(self) -> bool:
        """Whether it would run, were its tenant not paused. Without a row it may have run before."""
        return self.is_due and self.job_id.is_ledgered and self.plan is not None and self.plan.is_paused


def explain(facts: Facts) -> Explanation:
    """Why a job has not run yet, or what became of it."""
    state = facts.row.state if facts.row else State.ABSENT
    return _EXPLAIN[state](facts, facts.row or LedgerRow(state=state))


def _explain_waiting(facts: Facts, row: LedgerRow) -> Explanation:
    """No worker has it."""
    if row.cancel_requested:
        return _explain_cancel_request(facts, row)
    fire = fire_of(facts.job_id.identity)
    if fire is not None and (explanation := _explain_fire(facts, schedule_id=fire[0], is_asked_for=bool(fire[2]))):
        return explanation
    if facts.is_kept_by_a_pause:
        return _explain_pause(facts)
    if facts.parked_until is not None:
        return _explain_parking(facts, facts.parked_until)
    if row.attempt:
        return Explanation(
            reason=Reason.IN_READY_QUEUE,
            at=row.updated_at,
            detail=f"Its attempt {row.attempt} was given back, because a store or a queue failed around it.",
            would_change_it="Its message comes back by itself, within minutes.",
        )
    if not facts.job_id.is_ledgered and (facts.is_due or facts.timer is None):
        return _explain_untracked(facts)
    opens_at = from_seconds(facts.job_id.bucket) - facts.wheel.lookahead
    if facts.timer is not None and facts.now < opens_at:
        return Explanation(
            reason=Reason.WAITING,
            at=facts.due_at,
            detail=f"It waits in the far ring: its bucket opens at {_told(opens_at)}, and it is due at {_told(facts.due_at)}.",
            would_change_it="Nothing but its time; or run it now, or reschedule it.",
        )
    return _explain_message(facts)


def _explain_turn(facts: Facts, behind: ClassCursor) -> Explanation | None:
    """Its row has not been promoted, although its bucket is open."""
    tenant, priority = facts.job_id.tenant, facts.job_id.priority.name.lower()
    own = behind.own.get(tenant)
    if facts.plan is not None and facts.plan.is_paused:
        return _explain_pause(facts)
    if own is not None and facts.plan is not None and facts.plan.has_rate:
        return _explain_rate(facts, facts.plan, since=from_seconds(own.at.bucket))
    if own is not None:
        return Explanation(
            reason=Reason.OVER_CAP,
            at=from_seconds(own.at.bucket),
            detail=(
                f"Tenant {tenant} has more {priority} jobs due than its turns let out: those that were due at "
                f"{_told(from_seconds(own.at.bucket))} go out now."
            ),
            would_change_it="Its next turns; a greater weight of the tenant, or more room in the ready queue.",
        )
    if not facts.is_due:
        return None
    return Explanation(
        reason=Reason.WAITING,
        at=from_seconds(behind.at.bucket),
        detail=(
            f"It is due since {_seconds(facts.now - facts.due_at)} s and waits in the far ring: the scanner of its shard has "
            f"come to {_told(from_seconds(behind.at.bucket))}."
        ),
        would_change_it=(
            f"The scanner's next ticks: look at its errors, and at the depth of the {priority} queue, which bounds what goes out."
        ),
    )


def _explain_rate(facts: Facts, plan: TenantPlan, *, since: datetime) -> Explanation:
    """Its tenant has more due than its cap lets out."""
    return Explanation(
        reason=Reason.OVER_CAP,
        at=since,
        detail=(
            f"Tenant {facts.job_id.tenant} has more due than the {plan.execution_rate:g} jobs a second of its execution_rate: those "
            f"that were due at {_told(since)}, or are put anew in their turn, go out now{_until(facts.backlog)}."
        ),
        would_change_it="Its next turns; fewer jobs of the tenant, or a higher execution_rate.",
    )


def _explain_message(facts: Facts) -> Explanation:
    if facts.behind is not None and (explanation := _explain_turn(facts, facts.behind)):
        return explanation
    if not facts.is_due:
        return Explanation(
            reason=Reason.IN_READY_QUEUE,
            at=facts.due_at,
            detail=f"It is on its way to a worker, as a message that is due at {_told(facts.due_at)}.",
            would_change_it="Nothing but its time; it can still be cancelled, if it is not at_least_once.",
        )
    late = _seconds(facts.now - facts.due_at)
    return Explanation(
        reason=Reason.IN_READY_QUEUE,
        at=facts.due_at,
        detail=f"It is due since {late} s, and no worker has claimed it yet.",
        would_change_it=(
            f"A free worker: look at the age of the {facts.job_id.priority.name.lower()} queue's oldest message, and at the "
            "workers' errors, throttles and concurrency."
        ),
    )


def _explain_fire(facts: Facts, *, schedule_id: str, is_asked_for: bool) -> Explanation | None:
    """What only happens to fires. is_asked_for: it was triggered or backfilled, and runs also while it is paused."""
    schedule = facts.schedule
    if schedule is None or schedule.status is Status.DELETED:
        return Explanation(
            reason=Reason.PAUSED,
            at=schedule.changed_at if schedule else None,
            detail=f"Schedule {schedule_id} is deleted: this fire will be skipped.",
            would_change_it="Create the schedule again; it decides its own fires.",
        )
    if schedule.waiting and parse_job_id(schedule.waiting).key == facts.job_id.key:
        return Explanation(
            reason=Reason.BUFFERED,
            at=schedule.waiting_since,
            detail=f"It waits for the run before it to come to its end: {schedule.holder}.",
            would_change_it="The end of that run; or cancel it.",
        )
    if schedule.status is Status.PAUSED and not is_asked_for:
        return Explanation(
            reason=Reason.PAUSED,
            at=schedule.changed_at,
            detail=f"Schedule {schedule_id} is paused{_because(schedule.note)}: this fire will be skipped.",
            would_change_it="Resume the schedule before the fire comes due.",
        )
    if facts.nominal_at in (None, facts.due_at) or facts.is_due:
        return None
    return Explanation(
        reason=Reason.SPREAD_OR_JITTERED,
        at=facts.due_at,
        detail=(
            f"The rule of schedule {schedule_id} says {_told(facts.nominal_at)}; its spread, jitter, window or calendar "
            f"moves that to {_told(facts.due_at)}."
        ),
        would_change_it="Another spread, jitter, window or calendar of the schedule: its preview tells which one moves what.",
    )


def _explain_running(facts: Facts, row: LedgerRow) -> Explanation:
    until = row.lease_until
    if row.cancel_requested:
        return _explain_cancel_request(facts, row)
    if row.held:
        return Explanation(
            reason=Reason.HELD,
            at=until,
            detail=(
                f"The target of attempt {row.attempt} goes on by itself: it was last heard of at {_told(row.updated_at)}, "
                f"and has until {_told(until)}."
            ),
            would_change_it="The target: it completes or fails the job with its fence, or falls silent.",
        )
    if until is not None and facts.now >= after_lease(until, skew=facts.wheel.skew):
        return Explanation(
            reason=Reason.LEASED,
            at=until,
            detail=f"The worker of attempt {row.attempt} has died: its lease was over at {_told(until)}.",
            would_change_it="Another worker, which takes the attempt over as soon as its message comes back.",
        )
    return Explanation(
        reason=Reason.LEASED,
        at=until,
        detail=f"A worker has attempt {row.attempt}, until {_told(until)} at the latest.",
        would_change_it="The answer of its target; or the end of the lease, if the worker dies.",
    )


def _explain_cancel_request(facts: Facts, row: LedgerRow) -> Explanation:
    return Explanation(
        reason=Reason.CANCEL_REQUESTED,
        at=row.lease_until if row.state is State.RUNNING else None,
        detail=f"A cancel was requested while it was {row.state}: it is not tried again.",
        would_change_it=(
            "The end of the attempt that runs."
            if facts.job_id.delivery is Delivery.EXACTLY_ONCE
            else "Cancel it again, which finishes what was begun."
        ),
    )


def _explain_retry(facts: Facts, row: LedgerRow) -> Explanation:
    if facts.is_kept_by_a_pause:
        return _explain_pause(facts)
    if facts.parked_until is not None:
        return _explain_parking(facts, facts.parked_until)
    return Explanation(
        reason=Reason.RETRYING,
        at=row.due_at,
        detail=f"Attempt {row.attempt + 1} is due at {_told(row.due_at)}, after attempt {row.attempt} failed: {_error(row)}.",
        would_change_it="Nothing but its time; while that is far, run it now.",
    )


def _explain_pause(facts: Facts) -> Explanation:
    note = facts.plan.note if facts.plan is not None else ""
    return Explanation(
        reason=Reason.TENANT_PAUSED,
        at=None,
        detail=f"It waits in the far ring: tenant {facts.job_id.tenant} is paused{_because(note)}.",
        would_change_it="Resume the tenant; its jobs then go out in order, within minutes.",
    )


def _explain_parking(facts: Facts, until: datetime) -> Explanation:
    limit = facts.plan.max_concurrency if facts.plan is not None else inf
    if facts.breaker_until is not None and facts.breaker_until > facts.now:
        return Explanation(
            reason=Reason.PARKED,
            at=until,
            detail=f"Its destination is left alone after failures: the breaker is open, and the job waits until {_told(until)} or later.",
            would_change_it="A probe that succeeds; or reset the breaker.",
        )
    back = f"It was put back before its claim, and comes back at {_told(until)} or later"
    if limit < inf and facts.is_breaker_closed:
        return Explanation(
            reason=Reason.AT_CONCURRENCY_CAP,
            at=until,
            detail=f"{back}: tenant {facts.job_id.tenant} may have {limit:g} calls at the same time, and they were taken.",
            would_change_it="The end of one of its other calls; or a higher max_concurrency of the tenant.",
        )
    or_else = "" if limit == inf else f", or all {limit:g} calls taken that its tenant may have at the same time"
    return Explanation(
        reason=Reason.PARKED,
        at=until,
        detail=f"{back}: the breaker of its destination was open, or its tenant paused{or_else}.",
        would_change_it="Nothing but its time, if that has passed.",
    )


def _explain_untracked(facts: Facts) -> Explanation:
    if not facts.is_due:
        return _explain_message(facts)
    return Explanation(
        reason=Reason.UNTRACKED,
        at=facts.due_at,
        detail=f"It was due at {_told(facts.due_at)}; an at_least_once job keeps no row that would tell what became of it.",
        would_change_it="Submit such jobs as exactly_once to have them tracked.",
    )


def _explain_death(_: Facts, row: LedgerRow) -> Explanation:
    return Explanation(
        reason=Reason.DEAD,
        at=row.updated_at,
        detail=f"It failed for good with attempt {row.attempt}: {_error(row)}.",
        would_change_it="Mend what failed, and replay its dead letter.",
    )


def _explain_skip(_: Facts, row: LedgerRow) -> Explanation:
    return Explanation(
        reason=Reason.SKIPPED,
        at=row.updated_at,
        detail=f"This fire did not become a run: {_error(row)}.",
        would_change_it="Trigger the schedule, to run it once now.",
    )


def _explain_move(_: Facts, row: LedgerRow) -> Explanation:
    return Explanation(
        reason=Reason.MOVED,
        at=row.updated_at,
        detail=f"It was rescheduled or edited, and goes on as job {row.moved_to}.",
        would_change_it="Ask for that job.",
    )


def _ended(reason: Reason, detail: str, would_change_it: str) -> Callable[[Facts, LedgerRow], Explanation]:
    def explain_end(_: Facts, row: LedgerRow) -> Explanation:
        told = detail.format(attempt=row.attempt)
        return Explanation(reason=reason, at=row.updated_at, detail=told, would_change_it=would_change_it)

    return explain_end


_OVER = "Nothing: submit a new job to run it again."

_EXPLAIN: dict[State, Callable[[Facts, LedgerRow], Explanation]] = {
    State.ABSENT: _explain_waiting,
    State.SCHEDULED: _explain_waiting,
    State.RUNNING: _explain_running,
    State.RETRYING: _explain_retry,
    State.SUCCEEDED: _ended(Reason.SUCCEEDED, "It succeeded with attempt {attempt}.", _OVER),
    State.FAILED: _explain_death,
    State.CANCELLED: _ended(Reason.CANCELLED, "It was cancelled.", _OVER),
    State.EXPIRED: _ended(Reason.EXPIRED, "It came too late to be run: its expires_after was over.", _OVER),
    State.ATTEMPTED: _ended(
        Reason.ATTEMPTED, "It was started once; how that ended is not kept of an at_most_once job.", _OVER
    ),
    State.SKIPPED: _explain_skip,
    State.MOVED: _explain_move,
}


def _told(instant: datetime | None) -> str:
    return format_instant(instant) if instant else "an unknown time"


def _seconds(duration: timedelta) -> int:
    return int(duration.total_seconds())


def _error(row: LedgerRow) -> str:
    return row.error.rstrip(".") or "no error was kept"


def _until(backlog: Backlog | None) -> str:
    if backlog is None or not backlog.count:
        return ""
    days = backlog.takes / timedelta(days=1)
    return f"; about {backlog.count} jobs wait, which take {days:.1f} days at that rate"


def _because(note: str) -> str:
    return f" ({note})" if note else ""
