"""Why a job has not run yet, or what became of it: one typed reason, in words for people."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from math import inf

from functions.domain.explanation.collected import explain_collected
from functions.domain.explanation.facts import Explanation, Facts, Reason
from functions.domain.far_ring.cursor import ClassCursor
from functions.domain.instants import DAY, SECOND, format_instant, from_seconds
from functions.domain.jobs.claims import LedgerRow, after_lease
from functions.domain.jobs.description import limits_body
from functions.domain.jobs.job import Delivery
from functions.domain.jobs.job_id import parse_job_id
from functions.domain.jobs.occurrence import fire_of
from functions.domain.lifecycle import State
from functions.domain.schedules.state import Status
from functions.domain.targets.flows import FlowId, parse_flow_id
from functions.domain.tenants.backlog import Backlog
from functions.domain.tenants.plan import TenantPlan


def explain(facts: Facts) -> Explanation:
    """Why a job has not run yet, or what became of it."""
    if facts.collection is not None and facts.is_in_collection:
        return explain_collected(facts.collection)
    state = facts.row.state if facts.row else State.ABSENT
    return _EXPLAIN[state](facts, facts.row or LedgerRow(state=state))


def _explain_running(facts: Facts, row: LedgerRow) -> Explanation:
    until = row.lease_until
    if row.cancel_requested:
        return _explain_cancel_request(facts, row)
    if row.held:
        return Explanation(
            reason=Reason.HELD,
            at=until,
            detail=(
                f"The target of attempt {row.attempt} answered 202: it last reported at {_instant_text(row.updated_at)}, "
                f"and has until {_instant_text(until)}."
            ),
            remedy="The target: it completes or fails the job with its fence, or its lease ends.",
        )
    if until is not None and facts.now >= after_lease(until, skew=facts.wheel.lease_skew):
        return Explanation(
            reason=Reason.LEASED,
            at=until,
            detail=f"The worker of attempt {row.attempt} has died: its lease was over at {_instant_text(until)}.",
            remedy="Another worker, which takes the attempt over as soon as its message comes back.",
        )
    return Explanation(
        reason=Reason.LEASED,
        at=until,
        detail=f"A worker has attempt {row.attempt}, until {_instant_text(until)} at the latest.",
        remedy="The answer of its target; or the end of the lease, if the worker dies.",
    )


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
            remedy="Its message comes back by itself, within minutes.",
        )
    if not facts.job_id.is_ledgered and (facts.is_due or facts.timer is None):
        return _explain_untracked(facts)
    opens_at = from_seconds(facts.job_id.bucket) - facts.wheel.lookahead
    if facts.timer is not None and facts.now < opens_at:
        return Explanation(
            reason=Reason.WAITING,
            at=facts.due_at,
            detail=f"It waits in the far ring: its bucket opens at {_instant_text(opens_at)}, and it is due at {_instant_text(facts.due_at)}.",
            remedy="Nothing but its time; or run it now, or reschedule it.",
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
                f"{_instant_text(from_seconds(own.at.bucket))} go out now."
            ),
            remedy="Its next turns; a greater weight of the tenant, or more room in the ready queue.",
        )
    if not facts.is_due:
        return None
    return Explanation(
        reason=Reason.WAITING,
        at=from_seconds(behind.at.bucket),
        detail=(
            f"It is due since {(facts.now - facts.due_at) // SECOND} s and waits in the far ring: the scanner of its shard has "
            f"come to {_instant_text(from_seconds(behind.at.bucket))}."
        ),
        remedy=(
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
            f"that were due at {_instant_text(since)}, or are put anew in their turn, go out now{_backlog_text(facts.backlog)}."
        ),
        remedy="Its next turns; fewer jobs of the tenant, or a higher execution_rate.",
    )


def _explain_message(facts: Facts) -> Explanation:
    if facts.behind is not None and (explanation := _explain_turn(facts, facts.behind)):
        return explanation
    if not facts.is_due:
        return Explanation(
            reason=Reason.IN_READY_QUEUE,
            at=facts.due_at,
            detail=f"It is on its way to a worker, as a message that is due at {_instant_text(facts.due_at)}.",
            remedy="Nothing but its time; it can still be cancelled, if it is not at_least_once.",
        )
    late = (facts.now - facts.due_at) // SECOND
    return Explanation(
        reason=Reason.IN_READY_QUEUE,
        at=facts.due_at,
        detail=f"It is due since {late} s, and no worker has claimed it yet.",
        remedy=(
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
            remedy="Create the schedule again; it decides its own fires.",
        )
    if schedule.waiting and parse_job_id(schedule.waiting).key == facts.job_id.key:
        return Explanation(
            reason=Reason.BUFFERED,
            at=schedule.waiting_since,
            detail=f"It waits for the run before it to come to its end: {schedule.holder}.",
            remedy="The end of that run; or cancel it.",
        )
    if schedule.status is Status.PAUSED and not is_asked_for:
        return Explanation(
            reason=Reason.PAUSED,
            at=schedule.changed_at,
            detail=f"Schedule {schedule_id} is paused{_note_text(schedule.note)}: this fire will be skipped.",
            remedy="Resume the schedule before the fire comes due.",
        )
    if facts.nominal_at in (None, facts.due_at) or facts.is_due:
        return None
    return Explanation(
        reason=Reason.SPREAD_OR_JITTERED,
        at=facts.due_at,
        detail=(
            f"The rule of schedule {schedule_id} says {_instant_text(facts.nominal_at)}; its spread, jitter, window or calendar "
            f"moves that to {_instant_text(facts.due_at)}."
        ),
        remedy="Another spread, jitter, window or calendar of the schedule: its preview shows which one shifts what.",
    )


def _explain_cancel_request(facts: Facts, row: LedgerRow) -> Explanation:
    """A cancel was asked for, and its end has not come."""
    return Explanation(
        reason=Reason.CANCEL_REQUESTED,
        at=row.lease_until if row.state is State.RUNNING else None,
        detail=f"A cancel was requested while it was {row.state}: it is not tried again.",
        remedy=(
            "The end of the attempt that runs."
            if facts.job_id.delivery is Delivery.EXACTLY_ONCE
            else "Cancel it again, which finishes what was begun."
        ),
    )


def _explain_retry(facts: Facts, row: LedgerRow) -> Explanation:
    """Its last attempt failed, and another follows."""
    if facts.is_kept_by_a_pause:
        return _explain_pause(facts)
    if facts.parked_until is not None:
        return _explain_parking(facts, facts.parked_until)
    return Explanation(
        reason=Reason.RETRYING,
        at=row.due_at,
        detail=f"Attempt {row.attempt + 1} is due at {_instant_text(row.due_at)}, after attempt {row.attempt} failed: {_error_text(row)}.",
        remedy="Nothing but its time; while that is far, run it now.",
    )


def _explain_pause(facts: Facts) -> Explanation:
    note = facts.plan.note if facts.plan is not None else ""
    return Explanation(
        reason=Reason.TENANT_PAUSED,
        at=None,
        detail=f"It waits in the far ring: tenant {facts.job_id.tenant} is paused{_note_text(note)}.",
        remedy="Resume the tenant; its jobs then go out in order, within minutes.",
    )


def _explain_parking(facts: Facts, until: datetime) -> Explanation:
    if facts.waits_for_flow:
        return _explain_flow(facts, parse_flow_id(facts.waits_for_flow))
    limit = facts.plan.max_concurrency if facts.plan is not None else inf
    if facts.breaker_until is not None and facts.breaker_until > facts.now:
        return Explanation(
            reason=Reason.PARKED,
            at=until,
            detail=f"Its destination is left alone after failures: the breaker is open, and the job waits until {_instant_text(until)} or later.",
            remedy="A probe that succeeds; or reset the breaker.",
        )
    back = f"It was put back before its claim, and comes back at {_instant_text(until)} or later"
    if limit < inf and facts.is_breaker_closed:
        return Explanation(
            reason=Reason.AT_CONCURRENCY_CAP,
            at=until,
            detail=f"{back}: tenant {facts.job_id.tenant} may have {limit:g} calls at the same time, and they were taken.",
            remedy="The end of one of its other calls; or a higher max_concurrency of the tenant.",
        )
    or_else = "" if limit == inf else f", or all {limit:g} calls taken that its tenant may have at the same time"
    return Explanation(
        reason=Reason.PARKED,
        at=until,
        detail=f"{back}: the breaker of its destination was open, or its tenant paused{or_else}.",
        remedy="Nothing but its time, if that has passed.",
    )


def _explain_flow(facts: Facts, flow: FlowId) -> Explanation:
    wait = facts.flow_wait
    whose = f"flow {flow.key} of " + ("the stage" if flow.tenant is None else f"tenant {flow.tenant}")
    if wait is None:
        return Explanation(
            reason=Reason.IN_READY_QUEUE,
            at=facts.due_at,
            detail=f"It has had its turn in {whose}, and is on its way to a worker.",
            remedy="Nothing but its time: within seconds, if workers are free.",
        )
    limits = limits_body(wait.limits)
    said = (
        ", ".join(name if value is True else f"{name} {value}" for name, value in limits.items())
        or "no limits any more"
    )
    behind = f"behind {wait.before} others of its tenant" if wait.before else "as the first of its tenant"
    others = " and in the turns of other tenants" if flow.tenant is None else ""
    others += ", one after the other by their due times" if wait.limits.is_ordered else ""
    when = f", and starts at {_instant_text(wait.starts_at)} or later" if wait.starts_at is not None else ""
    return Explanation(
        reason=Reason.WAITING_FOR_FLOW,
        at=wait.starts_at,
        detail=f"It waits for {whose} ({said}), {behind}{others}{when}.",
        remedy=f"Its turn; or a higher rate or concurrency: set the limits of flow {flow.key}.",
    )


def _explain_untracked(facts: Facts) -> Explanation:
    if not facts.is_due:
        return _explain_message(facts)
    return Explanation(
        reason=Reason.UNTRACKED,
        at=facts.due_at,
        detail=f"It was due at {_instant_text(facts.due_at)}; an at_least_once job keeps no row that would show what became of it.",
        remedy="Submit such jobs as exactly_once to have them tracked.",
    )


def _ended(reason: Reason, detail: str, remedy: str) -> Callable[[Facts, LedgerRow], Explanation]:
    """detail: with `{row.…}` and `{error}` where it says something of the row."""

    def explain_end(_: Facts, row: LedgerRow) -> Explanation:
        text = detail.format(row=row, error=_error_text(row))
        return Explanation(reason=reason, at=row.updated_at, detail=text, remedy=remedy)

    return explain_end


_OVER = "Nothing: submit a new job to run it again."

_EXPLAIN: dict[State, Callable[[Facts, LedgerRow], Explanation]] = {
    State.ABSENT: _explain_waiting,
    State.SCHEDULED: _explain_waiting,
    State.RUNNING: _explain_running,
    State.RETRYING: _explain_retry,
    State.SUCCEEDED: _ended(Reason.SUCCEEDED, "It succeeded with attempt {row.attempt}.", _OVER),
    State.FAILED: _ended(
        Reason.DEAD,
        "It failed for good with attempt {row.attempt}: {error}.",
        "Mend what failed, and replay its dead letter.",
    ),
    State.CANCELLED: _ended(Reason.CANCELLED, "It was cancelled.", _OVER),
    State.EXPIRED: _ended(Reason.EXPIRED, "It came too late to be run: its expires_after was over.", _OVER),
    State.ATTEMPTED: _ended(
        Reason.ATTEMPTED, "It was started once; how that ended is not kept of an at_most_once job.", _OVER
    ),
    State.SKIPPED: _ended(
        Reason.SKIPPED,
        "This fire did not become a run: {error}.",
        "Trigger the schedule, to run it once now.",
    ),
    State.MOVED: _ended(
        Reason.MOVED, "It was rescheduled or edited, and continues as job {row.moved_to}.", "Ask for that job."
    ),
}


def _instant_text(instant: datetime | None) -> str:
    """An instant, or that it is not known."""
    return format_instant(instant) if instant else "an unknown time"


def _error_text(row: LedgerRow) -> str:
    """What an attempt failed with, without its full stop."""
    return row.error.rstrip(".") or "no error was kept"


def _backlog_text(backlog: Backlog | None) -> str:
    """How long what waits takes; empty where nothing does."""
    if backlog is None or not backlog.count:
        return ""
    days = backlog.takes / DAY
    return f"; about {backlog.count} jobs wait, which take {days:.1f} days at that rate"


def _note_text(note: str) -> str:
    """A note in brackets; empty without one."""
    return f" ({note})" if note else ""
