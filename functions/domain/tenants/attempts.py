"""What the status of a tenant means for an attempt: whether it may be claimed, and how late it began."""

from __future__ import annotations

from datetime import datetime, timedelta

from functions.domain.jobs.job import Priority, Timer
from functions.domain.jobs.occurrence import Occurrence
from functions.domain.tenants.plan import TenantPlan, TenantStatus
from functions.domain.wheel import FAR_MARGIN, Wheel

LAG_OBJECTIVE = timedelta(seconds=2)
"""How long after its time an attempt may begin, unless a stage says otherwise."""


def paused_until(timer: Timer, *, now: datetime, wheel: Wheel, jitter: float) -> datetime:
    """When an attempt is looked at again whose tenant is paused. jitter: a random number from 0 up to 1.

    In the far ring, where the scanner passes over it for as long as the pause lasts.
    """
    return max(timer.wakes_at, now + wheel.guard + FAR_MARGIN + wheel.bucket * jitter)


def resumed(timer: Timer, plan: TenantPlan, *, now: datetime) -> Timer:
    """An attempt that came due before its tenant was resumed: its policy counts no age in between."""
    resumed_at = plan.resumed_at
    if resumed_at is None or not timer.due_at < resumed_at <= now:
        return timer
    return timer.excused(since=timer.due_at, until=resumed_at)


def comes_too_late(occurrence: Occurrence, plan: TenantPlan) -> bool:
    """Whether a fire lies after its tenant was closed: what was taken in before that comes to its end."""
    is_draining = plan.status is TenantStatus.DRAINING
    return is_draining and plan.changed_at is not None and occurrence.fire_at >= plan.changed_at


def lateness(timer: Timer, plan: TenantPlan, *, started_at: datetime) -> timedelta | None:
    """How long after the wheel was to let go of it an attempt began, early ones as 0; None where nothing was promised.

    Nothing is promised to `low`, which waits first by design, nor to what came due before its tenant's status changed
    last: it may have been paused. What a cap holds back is measured from its booking, and what was due when it was asked
    for from then on: no mistake of a caller makes an attempt late.
    """
    changes = [instant for instant in (plan.changed_at, plan.stage_resumed_at) if instant is not None]
    if timer.job.priority is Priority.LOW or any(timer.due_at < instant for instant in changes):
        return None
    return max(started_at - timer.wakes_at, timedelta(0))
