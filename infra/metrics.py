"""The metrics the functions emit, as the dashboard and the alarms read them."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch

from functions.domain.metrics import DIMENSIONS, ESSENTIAL_METRICS, INCIDENTS, VALUES, Watching
from infra.stage import Stage

MATERIALISED = (
    "occurrences",
    "misfires",
    "skipped",
    "chains_broken",
    "chains_set_aside",
    "schedules_paused",
    "gap_s",
    "outside_window_wait_s",
    "cancelled",
    "runs_abandoned",
)
"""What every function counts that carries the chains of schedules on."""

ENDED_BY_TARGETS = ("succeeded", "retried", "retry_in_s", "failed", "dead_lettered")
"""What the API counts of held attempts."""

EMITTED = {
    "api": (
        "jobs_submitted",
        "requests_failed",
        "submissions_throttled",
        "submissions_over_quota",
        "submissions_shed",
        "reads_throttled",
        "triggered",
        "backfilled",
        "dead_letters_replayed",
        "dead_letters_purged",
        "breakers_closed",
        *ENDED_BY_TARGETS,
        "audit_lines_lost",
        "claims_lost",
        *MATERIALISED,
    ),
    "scanner": (
        "promoted",
        "oldest_bucket_age_s",
        "held_age_s",
        "cursors_behind",
        "clock_skewed",
        "failed",
        "dead_lettered",
        "schedules_paused",
        "audit_lines_lost",
        "alarms_due",
        "warm_messages",
        *MATERIALISED,
    ),
    "worker": (
        "lag_ms",
        "late",
        "critical_late_ms",
        "attempts",
        "target_ms",
        "succeeded",
        "failed",
        "retried",
        "retry_in_s",
        "expired",
        "early",
        "rescues",
        "held",
        "leases_expired",
        "claims_lost",
        "duplicates_dropped",
        "returned",
        "dead_lettered",
        "breakers_opened",
        "breakers_closed",
        "parked",
        "parked_by_pause",
        "parked_by_cap",
        "parked_by_flow",
        "forgotten",
        "audit_lines_lost",
        *MATERIALISED,
    ),
    "sweeper": (
        "stragglers",
        "audited",
        "schedules_healed",
        "shedding",
        "budget",
        "depth",
        "promotion_lag_s",
        "failed",
        "dead_lettered",
        "schedules_paused",
        "audit_lines_lost",
        *MATERIALISED,
    ),
    "operations": ("operation_failures", "audit_lines_lost", *MATERIALISED),
    "dead_letters": (
        "failed",
        "dead_lettered",
        "requeued",
        "forgotten",
        "audit_lines_lost",
        *MATERIALISED,
    ),
}
"""By service, which every metric has for a dimension, where a stage is watched fully. `DIMENSIONS` of the domain says which have
others beside it."""

BURYING = tuple(service for service, names in EMITTED.items() if "dead_lettered" in names)
"""Every function that writes dead letters."""

AUDITED = tuple(service for service, names in EMITTED.items() if "audit_lines_lost" in names)
"""Every function that writes lines of the audit trail."""


class UnknownMetric(ValueError):
    """A graph or an alarm over a metric that nothing emits would stay silent for ever."""


def emitted(
    name: str,
    *,
    service: str,
    stage: Stage,
    statistic: str = "Sum",
    period: cdk.Duration | None = None,
    by: tuple[str, str] | None = None,
    label: str | None = None,
) -> cloudwatch.Metric:
    """Return a metric of one function, per minute by default; raises `UnknownMetric` for one that it does not emit.

    by: a dimension beside the service, and what it says.
    """
    if name not in EMITTED.get(service, ()):
        raise UnknownMetric(f"{service} emits no metric {name!r}: add it to EMITTED, and to the code that emits it")
    if name not in emitted_at(stage.watching)[service] or (by and stage.watching is Watching.ESSENTIAL):
        raise UnknownMetric(
            f"{name!r} {f'by {by[0]} ' if by else ''}is no metric of {stage.name}, which is watched for the essential: watch it "
            "fully (watching=Watching.FULL), or ask the `observed` lines of its log (docs/metrics.md)"
        )
    if by is not None and (by[0] not in DIMENSIONS.get(name, ()) or by[1] not in VALUES[by[0]]):
        raise UnknownMetric(f"{name!r} is not counted by {by[0]} {by[1]!r}: see DIMENSIONS")
    return cloudwatch.Metric(
        namespace=stage.metrics_namespace,
        metric_name=name,
        dimensions_map={"service": service} | dict([by] if by else []),
        statistic=statistic,
        label=label,
        period=period or cdk.Duration.minutes(1),
    )


def emitted_at(watching: Watching) -> Mapping[str, tuple[str, ...]]:
    """What the functions of a stage emit that is watched so closely, INCIDENTS apart."""
    if watching is Watching.FULL:
        return EMITTED
    return {service: tuple(name for name in names if name in ESSENTIAL_METRICS) for service, names in EMITTED.items()}


def incidents(stage: Stage, *, period: cdk.Duration | None = None) -> cloudwatch.Metric:
    """What all functions count of what must be zero, together: the one metric without dimensions."""
    return cloudwatch.Metric(
        namespace=stage.metrics_namespace,
        metric_name=INCIDENTS,
        statistic="Sum",
        period=period or cdk.Duration.minutes(1),
    )
