"""What is told of an attempt that begins: how late it is, and whose it is where that breaks a promise."""

from __future__ import annotations

from datetime import datetime, timedelta

from functions.domain.instants import MILLISECOND
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.metrics import dimensions_of
from functions.domain.tenants.lateness import is_late
from functions.domain.tenants.plan import TenantPlan
from functions.domain.wheel import Ring
from functions.ports.recorder import Journal


def note_start(
    timer: Timer, plan: TenantPlan, *, ring: Ring, started_at: datetime, objective: timedelta, journal: Journal
) -> None:
    """Count the attempt with its lag, and name it in the log when it is early or later than the objective.

    ring: by which it came to its ready queue.
    """
    lag_ms = (started_at - timer.due_at) / MILLISECOND
    journal.count("attempts")
    journal.observe("lag_ms", max(0.0, lag_ms), **dimensions_of(timer, ring=ring))
    if lag_ms < 0:
        journal.count("early")
        journal.event("began_early", **_named(timer), early_ms=-lag_ms)
    late = is_late(timer, plan, started_at=started_at, objective=objective)
    if late is None:
        return
    # 0 or 1, so that its average over any time is the share of attempts that began late.
    journal.observe("late", float(late))
    if late:
        journal.event("began_late", **_named(timer), lag_ms=lag_ms)


def _named(timer: Timer) -> dict[str, object]:
    return {"job_id": str(job_id_of(timer.job)), "tenant": timer.job.tenant, "attempt": timer.attempt}
