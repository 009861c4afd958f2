"""Whether an attempt began late, which is what the promise of a stage is about."""

from __future__ import annotations

from datetime import datetime, timedelta

from functions.domain.jobs.job import Priority, Timer
from functions.domain.tenants.plan import TenantPlan

LAG_OBJECTIVE = timedelta(seconds=2)
"""How long after its time an attempt may begin, unless a stage says otherwise."""


def is_late(timer: Timer, plan: TenantPlan, *, started_at: datetime, objective: timedelta) -> bool | None:
    """Whether it began more than the objective after the wheel was to let go of it; None where nothing was promised.

    Nothing is promised to `low`, which waits first by design, nor to what came due before its tenant's status changed
    last: it may have been paused. What a cap holds back is measured from its booking.
    """
    changes = [instant for instant in (plan.changed_at, plan.stage_resumed_at) if instant is not None]
    if timer.job.priority is Priority.LOW or any(timer.due_at < instant for instant in changes):
        return None
    return started_at - timer.wakes_at > objective
