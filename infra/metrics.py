"""The metrics the functions emit, as the dashboard and the alarms read them."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch

from infra.stage import Stage

MATERIALISED = ("occurrences", "misfires", "skipped", "chains_broken")
"""What every function counts that carries the chains of schedules on."""

ENDED_BY_TARGETS = ("succeeded", "retried", "failed", "cancelled", "dead_lettered")
"""What the API counts of attempts whose targets go on by themselves."""

EMITTED = {
    "api": (
        "jobs_submitted",
        "submissions_throttled",
        "submissions_over_quota",
        "submissions_shed",
        "triggered",
        "backfilled",
        "dead_letters_replayed",
        "dead_letters_purged",
        "breakers_closed",
        *ENDED_BY_TARGETS,
        "claims_lost",
        "schedules_paused",
        *MATERIALISED,
    ),
    "scanner": (
        "promoted",
        "oldest_bucket_age_s",
        "cursors_behind",
        "clock_skewed",
        "dead_lettered",
        "alarms_rung",
        *MATERIALISED,
    ),
    "worker": (
        "lag_ms",
        "late",
        "attempts",
        "succeeded",
        "failed",
        "retried",
        "expired",
        "early",
        "rescues",
        "held",
        "leases_expired",
        "claims_lost",
        "duplicates_dropped",
        "returned",
        "dead_lettered",
        "cancelled",
        "schedules_paused",
        "runs_abandoned",
        "breakers_opened",
        "breakers_closed",
        "parked",
        "parked_by_pause",
        "parked_by_cap",
        "forgotten",
        *MATERIALISED,
    ),
    "sweeper": ("stragglers", "audited", "schedules_healed", "shedding", *MATERIALISED),
    "operations": ("operation_failures",),
    "dead_letters": ("dead_lettered", "requeued", "forgotten", "schedules_paused", *MATERIALISED),
}
"""By service, the only dimension: one per tenant would cost 0.30 USD a month each."""

BURYING = tuple(service for service, names in EMITTED.items() if "dead_lettered" in names)
"""Every function that writes dead letters."""


class UnknownMetric(ValueError):
    """A graph or an alarm over a metric that nothing emits would stay silent for ever."""


def emitted(
    name: str, *, service: str, stage: Stage, statistic: str = "Sum", period: cdk.Duration | None = None
) -> cloudwatch.Metric:
    """Return a metric of one function, per minute by default; raises `UnknownMetric` for one that it does not emit."""
    if name not in EMITTED.get(service, ()):
        raise UnknownMetric(f"{service} emits no metric {name!r}: add it to EMITTED, and to the code that emits it")
    return cloudwatch.Metric(
        namespace=stage.metrics_namespace,
        metric_name=name,
        dimensions_map={"service": service},
        statistic=statistic,
        period=period or cdk.Duration.minutes(1),
    )
