"""What a tenant's status means for an attempt that is about to be claimed."""

from __future__ import annotations

from datetime import datetime

from functions.domain.jobs.job import Timer
from functions.domain.jobs.occurrence import Occurrence
from functions.domain.tenants.plan import TenantPlan, TenantStatus
from functions.domain.wheel import FAR_MARGIN, Wheel


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
