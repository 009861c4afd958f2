"""One page in the order of an incident: are jobs late, where do they wait, what fails."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.metrics import BURYING, EMITTED, ENDED_BY_TARGETS, emitted
from infra.package import Function
from infra.ready_queues import ReadyQueues
from infra.stage import PRIORITIES, Stage

ROW_WIDTH = 24
MINUTE = cdk.Duration.minutes(1)


class Dashboard(Construct):
    """The dashboard of a stage."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        stage: Stage,
        ready_queues: ReadyQueues,
        functions: Sequence[Function],
    ) -> None:
        super().__init__(scope, construct_id)
        cloudwatch.Dashboard(
            self,
            "Dashboard",
            default_interval=cdk.Duration.hours(3),
            widgets=[
                [_heading("Are jobs late?")],
                _lateness(stage),
                [_heading("Where do they wait?")],
                _waiting(ready_queues),
                _breakers(stage),
                [_heading("What fails?")],
                _outcomes(stage),
                [_heading("What do schedules do?")],
                _schedules(stage),
                [_heading("Are the functions well?")],
                _functions(functions),
            ],
        )


def _lateness(stage: Stage) -> list[cloudwatch.IWidget]:
    return [
        _graph(
            "Lag (ms)",
            *(emitted("lag_ms", service="worker", stage=stage, statistic=share) for share in ("p50", "p95", "p99")),
            columns=3,
        ),
        _graph(
            "Oldest bucket that is not drained (s)",
            emitted("oldest_bucket_age_s", service="scanner", stage=stage, statistic="Maximum"),
            columns=3,
        ),
        _graph(
            "Must be zero",
            emitted("early", service="worker", stage=stage),
            emitted("stragglers", service="sweeper", stage=stage),
            *(emitted("dead_lettered", service=service, stage=stage) for service in BURYING),
            columns=3,
        ),
    ]


def _waiting(ready_queues: ReadyQueues) -> list[cloudwatch.IWidget]:
    named = list(zip(PRIORITIES, ready_queues.queues, strict=True))
    return [
        _graph(
            "Age of the oldest message (s), its delay included",
            *(
                queue.metric_approximate_age_of_oldest_message(label=priority, period=MINUTE, statistic="Maximum")
                for priority, queue in named
            ),
            columns=4,
        ),
        _graph(
            "Messages due and waiting",
            *(
                queue.metric_approximate_number_of_messages_visible(label=priority, period=MINUTE, statistic="Maximum")
                for priority, queue in named
            ),
            columns=4,
        ),
        _graph(
            "Messages not yet due",
            *(
                queue.metric_approximate_number_of_messages_delayed(label=priority, period=MINUTE, statistic="Maximum")
                for priority, queue in named
            ),
            columns=4,
        ),
        _graph(
            "Dead-letter queues",
            *(
                queue.metric_approximate_number_of_messages_visible(label=priority, period=MINUTE, statistic="Maximum")
                for priority, queue in zip(PRIORITIES, ready_queues.dead_letter_queues, strict=True)
            ),
            columns=4,
        ),
    ]


def _breakers(stage: Stage) -> list[cloudwatch.IWidget]:
    return [
        _graph(
            "Breakers of destinations: opened, closed by a probe (worker) or by hand (api)",
            emitted("breakers_opened", service="worker", stage=stage),
            emitted("breakers_closed", service="worker", stage=stage),
            emitted("breakers_closed", service="api", stage=stage),
            columns=3,
        ),
        _graph(
            "Jobs put back before their claim: open breaker, paused tenant, no free seat; of deleted tenants: forgotten",
            *(
                emitted(name, service="worker", stage=stage)
                for name in ("parked", "parked_by_pause", "parked_by_cap", "forgotten")
            ),
            columns=3,
        ),
        _graph(
            "Submissions that are refused: tenants above their rates, classes that are shed",
            emitted("submissions_throttled", service="api", stage=stage),
            emitted("submissions_shed", service="api", stage=stage),
            emitted("shedding", service="sweeper", stage=stage),
            columns=3,
        ),
        _graph(
            "Tenants with more due than their turn, or paused",
            emitted("cursors_behind", service="scanner", stage=stage),
            columns=3,
        ),
    ]


def _outcomes(stage: Stage) -> list[cloudwatch.IWidget]:
    return [
        _graph(
            "In and through",
            emitted("jobs_submitted", service="api", stage=stage),
            emitted("promoted", service="scanner", stage=stage),
            emitted("attempts", service="worker", stage=stage),
            emitted("audited", service="sweeper", stage=stage),
            columns=4,
        ),
        _graph(
            "Outcomes",
            *(
                emitted(name, service="worker", stage=stage)
                for name in ("succeeded", "retried", "failed", "expired", "cancelled", "dead_lettered")
            ),
            columns=4,
        ),
        _graph(
            "Outcomes that targets told the API",
            *(emitted(name, service="api", stage=stage) for name in ENDED_BY_TARGETS),
            columns=4,
        ),
        _graph(
            "Claims",
            *(
                emitted(name, service="worker", stage=stage)
                for name in ("held", "leases_expired", "rescues", "claims_lost", "duplicates_dropped", "returned")
            ),
            emitted("requeued", service="dead_letters", stage=stage),
            emitted("claims_lost", service="api", stage=stage),
            columns=4,
        ),
        _graph(
            "Dead letters, by hand",
            emitted("dead_letters_replayed", service="api", stage=stage),
            emitted("dead_letters_purged", service="api", stage=stage),
            columns=4,
        ),
        _graph(
            "Turns of operations that ended in an error",
            emitted("operation_failures", service="operations", stage=stage),
            columns=4,
        ),
    ]


def _schedules(stage: Stage) -> list[cloudwatch.IWidget]:
    def of_each(name: str) -> list[cloudwatch.Metric]:
        return [emitted(name, service=service, stage=stage) for service, names in EMITTED.items() if name in names]

    return [
        _graph(
            "Fires",
            *of_each("occurrences"),
            *of_each("alarms_rung"),
            *of_each("triggered"),
            *of_each("backfilled"),
            columns=3,
        ),
        _graph("Missed and skipped", *of_each("misfires"), *of_each("skipped"), columns=3),
        _graph(
            "Paused after failures, broken, healed",
            *of_each("schedules_paused"),
            *of_each("chains_broken"),
            *of_each("runs_abandoned"),
            *of_each("schedules_healed"),
            columns=3,
        ),
    ]


def _functions(functions: Sequence[Function]) -> list[cloudwatch.IWidget]:
    def of_each(metric: str, *, statistic: str) -> list[cloudwatch.Metric]:
        return [
            function.function.metric(metric, label=function.name, period=MINUTE, statistic=statistic)
            for function in functions
        ]

    return [
        _graph("Errors", *of_each("Errors", statistic="Sum"), columns=3),
        _graph("Throttles", *of_each("Throttles", statistic="Sum"), columns=3),
        _graph("Duration p99 (ms)", *of_each("Duration", statistic="p99"), columns=3),
    ]


def _heading(text: str) -> cloudwatch.IWidget:
    return cloudwatch.TextWidget(markdown=f"## {text}", width=ROW_WIDTH, height=1)


def _graph(title: str, *metrics: cloudwatch.IMetric, columns: int) -> cloudwatch.IWidget:
    return cloudwatch.GraphWidget(
        title=title,
        left=list(metrics),
        width=ROW_WIDTH // columns,
        left_y_axis=cloudwatch.YAxisProps(min=0, show_units=False),
    )
