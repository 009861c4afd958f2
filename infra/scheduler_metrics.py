"""The metrics of a scheduler, for alarms and dashboards of its users' own."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.metrics import EMITTED, UnknownMetric, emitted
from infra.stage import Stage


class SchedulerMetrics(Construct):
    """Each is a sum a minute unless it says otherwise; `statistic` and `period` change that. No metric has a tenant."""

    def __init__(self, scope: Construct, construct_id: str, *, stage: Stage) -> None:
        super().__init__(scope, construct_id)
        self.stage = stage

    def metric(
        self,
        name: str,
        *,
        service: str | None = None,
        statistic: str = "Sum",
        period: cdk.Duration | None = None,
        by: tuple[str, str] | None = None,
    ) -> cloudwatch.Metric:
        """Any that docs/metrics.md lists. service: who emits it; may be left out where only one does. by: a dimension and its value.

        Raises UnknownMetric for what nothing emits.
        """
        services = [each for each, names in EMITTED.items() if name in names]
        if service is None and len(services) != 1:
            told = (
                f"{name!r} is emitted by {', '.join(services)}: name one as `service`"
                if services
                else f"nothing emits a metric {name!r}"
            )
            raise UnknownMetric(told)
        return emitted(
            name, service=service or services[0], stage=self.stage, statistic=statistic, period=period, by=by
        )

    def metric_lag(
        self, *, statistic: str = "p99", period: cdk.Duration | None = None, priority: str | None = None
    ) -> cloudwatch.Metric:
        """Milliseconds from the due time of attempts to their calls; of one priority, or of all."""
        by = None if priority is None else ("priority", priority)
        return self.metric("lag_ms", statistic=statistic, period=period, by=by)

    def metric_late(self, *, statistic: str = "Average", period: cdk.Duration | None = None) -> cloudwatch.Metric:
        """The share of attempts that began later than the stage promises, 0 to 1."""
        return self.metric("late", statistic=statistic, period=period)

    def metric_submitted(self, *, period: cdk.Duration | None = None) -> cloudwatch.Metric:
        """Jobs that the API has accepted."""
        return self.metric("jobs_submitted", period=period)

    def metric_attempts(self, *, period: cdk.Duration | None = None) -> cloudwatch.Metric:
        """Attempts whose target was called."""
        return self.metric("attempts", period=period)

    def metric_succeeded(self, *, period: cdk.Duration | None = None) -> cloudwatch.Metric:
        """Attempts of the worker that succeeded."""
        return self.metric("succeeded", service="worker", period=period)

    def metric_failed(self, *, period: cdk.Duration | None = None) -> cloudwatch.Metric:
        """Jobs that failed for good in the worker, which is where nearly all do."""
        return self.metric("failed", service="worker", period=period)

    def metric_dead_lettered(self, *, period: cdk.Duration | None = None) -> cloudwatch.Metric:
        """Dead letters that the worker has written."""
        return self.metric("dead_lettered", service="worker", period=period)

    def metric_promotion_lag(
        self, *, statistic: str = "Maximum", period: cdk.Duration | None = None
    ) -> cloudwatch.Metric:
        """Seconds that the far ring is behind: since the start of the oldest bucket that is not drained."""
        return self.metric("promotion_lag_s", statistic=statistic, period=period)

    def metric_depth(self, *, statistic: str = "Maximum", period: cdk.Duration | None = None) -> cloudwatch.Metric:
        """Jobs in the fullest ready queue."""
        return self.metric("depth", statistic=statistic, period=period)
