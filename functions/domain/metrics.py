"""Which of what functions observe is a metric, and its dimensions. A value counts once for its function, and once for each dimension of its metric.

Each value of each dimension is a metric of its own to CloudWatch: dimensions stand beside each other, not in
combinations, and never hold a tenant.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from functions.domain.jobs.job import Priority, Timer
from functions.domain.wheel import Ring

INCIDENTS = "incidents"
"""What all functions count of `MUST_BE_ZERO`, together and without dimensions: one alarm sees all of it."""

MUST_BE_ZERO = ("dead_lettered", "stragglers", "chains_broken", "early", "clock_skewed", "audit_lines_lost")
"""Counters of what was lost or has died, and of what must never happen."""


SILENT_AT_ZERO = ("oldest_bucket_age_s", "promotion_lag_s")
"""Of which a zero is sent only where a value came before it. Of distributions and shares every zero counts; of counters none does."""


class Watching(StrEnum):
    """How closely a stage is watched: what pages is in both; `full` has tickets, one page a fault, a dashboard, and all metrics."""

    ESSENTIAL = "essential"
    FULL = "full"


ESSENTIAL_METRICS = frozenset({"held_age_s", "late", "promotion_lag_s", "requests_failed"})
"""What is a metric beside INCIDENTS where a stage is watched for the essential, by its function alone: what its alarms look at. The
rest is in the line of the invocation, because CloudWatch bills each metric by the hours in which it has values."""


class AttemptKind(StrEnum):
    """What kind of attempt one is: the first of a job, the first of a schedule's fire, or any that follows one."""

    JOB = "job"
    FIRE = "fire"
    RETRY = "retry"


DIMENSIONS: Mapping[str, tuple[str, ...]] = {
    "lag_ms": ("ring", "priority", "kind"),
}
"""The dimensions of each metric that has any beside its function's name."""

VALUES: Mapping[str, tuple[str, ...]] = {
    "ring": tuple(Ring),
    "priority": tuple(priority.name.lower() for priority in Priority),
    "kind": tuple(AttemptKind),
}
"""All that a dimension can say."""


def dimensions_of(timer: Timer, *, ring: Ring) -> dict[str, str]:
    """The dimensions of an attempt's lag. ring: by which it came to its ready queue."""
    first = AttemptKind.JOB if timer.job.occurrence is None else AttemptKind.FIRE
    return {
        "ring": ring.value,
        "priority": timer.job.priority.name.lower(),
        "kind": (AttemptKind.RETRY if timer.attempt > 1 else first).value,
    }
