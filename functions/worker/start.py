"""What is noted of an attempt that begins: that it does, how late it is, and whose it is where that breaks a promise."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from functions.domain.far_ring.write_units import attempt_units
from functions.domain.instants import MILLISECOND
from functions.domain.jobs.job import Priority, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.metrics import dimensions_of
from functions.domain.tenants.attempts import LAG_OBJECTIVE, lateness
from functions.domain.tenants.usage import Usage
from functions.domain.wheel import Ring
from functions.ports.recorder import Journal, PulseCounter, UsageCounter
from functions.ports.tenants import TenantPlans


@dataclass(frozen=True, slots=True, kw_only=True)
class Starts:
    """Notes how attempts begin. lag_objective: how late one may be."""

    plans: TenantPlans
    journal: Journal
    usage: UsageCounter
    pulse: PulseCounter
    lag_objective: timedelta = LAG_OBJECTIVE

    def note(self, timer: Timer, *, started_at: datetime, ring: Ring) -> None:
        """Count the attempt with its lag, and name it in the log when it is early or later than the objective.

        ring: by which it came to its ready queue.
        """
        plan, lag = self.plans.of(timer.job.tenant), started_at - timer.due_at
        lag_ms = lag / MILLISECOND
        self.journal.count("attempts")
        self.journal.observe("lag_ms", max(0.0, lag_ms), **dimensions_of(timer, ring=ring))
        if lag_ms < 0:
            self.journal.count("early")
            self.journal.event("began_early", **_named(timer), early_ms=-lag_ms)
        if (late_by := lateness(timer, plan, started_at=started_at)) is not None:
            is_late = late_by > self.lag_objective
            # 0 or 1, so that its average over any time is the share of attempts that began late.
            self.journal.observe("late", float(is_late))
            if timer.job.priority is Priority.CRITICAL:
                self.journal.observe("critical_late_ms", late_by / MILLISECOND)
            if is_late:
                self.journal.event("began_late", **_named(timer), lag_ms=lag_ms)
        self.usage.add(timer.job.tenant, Usage(executed=1, units=attempt_units(timer)))
        self.pulse.began(timer.job, lag)


def _named(timer: Timer) -> dict[str, object]:
    return {"job_id": str(job_id_of(timer.job)), "tenant": timer.job.tenant, "attempt": timer.attempt}
