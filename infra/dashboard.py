"""One page in the order of an incident: are jobs late, where do they wait, whose are they, what has changed.

The earliest signals are on top: the oldest bucket grows old before its jobs are late, and the slowest of them are late
before the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from functions.domain.metrics import DIMENSIONS, VALUES
from infra.metrics import BURYING, EMITTED, ENDED_BY_TARGETS, emitted
from infra.package import Function
from infra.ready_queues import ReadyQueues
from infra.stage import PRIORITIES, Stage

ROW_WIDTH = 24
PERCENTILES = ("p50", "p95", "p99", "p99.9")
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
        by_name = {function.name: function for function in functions}
        cloudwatch.Dashboard(
            self,
            "Dashboard",
            default_interval=cdk.Duration.hours(3),
            widgets=[
                [_heading("Are jobs late?")],
                _first_signs(stage),
                _lateness(functions, stage=stage),
                *(_lag_by(dimension, stage=stage) for dimension in DIMENSIONS["lag_ms"]),
                [_heading("Where: submission")],
                _submission(stage),
                [_heading("Where: promotion")],
                _promotion(stage),
                _fires(stage),
                [_heading("Where: queues")],
                _queues(ready_queues),
                [_heading("Where: execution")],
                _execution(stage),
                _functions(functions, stage=stage),
                [_heading("Whose are they?")],
                _tenants(by_name["worker"]),
                [_heading("What has changed?")],
                _changes(stage),
                [_changed_by_hand(by_name["api"])],
            ],
        )


def _first_signs(stage: Stage) -> list[cloudwatch.IWidget]:
    return [
        _graph(
            "Oldest bucket that is not drained (s)",
            emitted("oldest_bucket_age_s", service="scanner", stage=stage, statistic="Maximum"),
            emitted("promotion_lag_s", service="sweeper", stage=stage, statistic="Maximum"),
            columns=2,
        ),
        _graph("Lag p99 (ms)", emitted("lag_ms", service="worker", stage=stage, statistic="p99"), columns=2),
    ]


def _lateness(functions: Sequence[Function], *, stage: Stage) -> list[cloudwatch.IWidget]:
    return [
        _graph(
            "Lag, the other percentiles (ms)",
            *(emitted("lag_ms", service="worker", stage=stage, statistic=share) for share in ("p50", "p95", "p99.9")),
            columns=3,
        ),
        _graph(
            f"Share of attempts that began more than {stage.objective.lag.total_seconds():g} s late",
            emitted("late", service="worker", stage=stage, statistic="Average", period=cdk.Duration.minutes(5)),
            columns=3,
        ),
        _graph(
            "Must be zero",
            emitted("early", service="worker", stage=stage),
            emitted("stragglers", service="sweeper", stage=stage),
            emitted("clock_skewed", service="scanner", stage=stage),
            *_of_each("chains_broken", stage=stage),
            *(emitted("dead_lettered", service=service, stage=stage) for service in BURYING),
            *_of_each("audit_lines_lost", stage=stage),
            *(
                function.dropped_invocations().with_(label=f"{function.name}: invocations dropped")
                for function in functions
                if function.sends_to_itself
            ),
            columns=3,
        ),
    ]


def _lag_by(dimension: str, *, stage: Stage) -> list[cloudwatch.IWidget]:
    return [
        _graph(
            f"Lag {share} by {dimension} (ms)",
            *_of_values("lag_ms", dimension, service="worker", stage=stage, statistic=share),
            columns=len(PERCENTILES),
        )
        for share in PERCENTILES
    ]


def _submission(stage: Stage) -> list[cloudwatch.IWidget]:
    return [
        _graph(
            "Taken in",
            *_of("api", "jobs_submitted", "triggered", "backfilled", stage=stage),
            columns=3,
        ),
        _graph(
            "Refused: rates and quotas of tenants, and classes that are shed",
            *_of(
                "api",
                "submissions_throttled",
                "reads_throttled",
                "submissions_over_quota",
                "submissions_shed",
                stage=stage,
            ),
            emitted("shedding", service="sweeper", stage=stage),
            columns=3,
        ),
        _graph("Failed by a store or a fault", *_of("api", "requests_failed", stage=stage), columns=3),
    ]


def _promotion(stage: Stage) -> list[cloudwatch.IWidget]:
    return [
        _graph(
            "Promoted, announced before a herd, and read again by the audit",
            emitted("promoted", service="scanner", stage=stage),
            emitted("warm_messages", service="scanner", stage=stage),
            emitted("audited", service="sweeper", stage=stage),
            columns=4,
        ),
        _graph(
            "Tenants with more due than their turn or cap, or paused; age of the oldest bucket of all, also of theirs (s, right)",
            emitted("cursors_behind", service="scanner", stage=stage),
            right=[emitted("held_age_s", service="scanner", stage=stage, statistic="Maximum")],
            columns=4,
        ),
        _graph(
            "Smallest budget of a class: jobs that a tick of a shard may promote",
            emitted("budget", service="sweeper", stage=stage, statistic="Minimum"),
            columns=4,
        ),
        _graph(
            "Deepest ready queue: jobs that it holds",
            emitted("depth", service="sweeper", stage=stage, statistic="Maximum"),
            columns=4,
        ),
    ]


def _fires(stage: Stage) -> list[cloudwatch.IWidget]:
    return [
        _graph(
            "Fires of schedules",
            *_of_each("occurrences", stage=stage),
            *_of_each("alarms_due", stage=stage),
            columns=4,
        ),
        _graph(
            "Fires that were missed or skipped",
            *_of_each("misfires", stage=stage),
            *_of_each("skipped", stage=stage),
            columns=4,
        ),
        _graph("Time since the fire before, p50 (s)", *_of_each("gap_s", stage=stage, statistic="p50"), columns=4),
        _graph(
            "Fires that wait for a window, p99 (s)",
            *_of_each("outside_window_wait_s", stage=stage, statistic="p99"),
            columns=4,
        ),
    ]


def _queues(ready_queues: ReadyQueues) -> list[cloudwatch.IWidget]:
    def of_each(queues: Sequence[sqs.Queue], metric: str) -> list[cloudwatch.Metric]:
        return [
            queue.metric(metric, label=priority, period=MINUTE, statistic="Maximum")
            for priority, queue in zip(PRIORITIES, queues, strict=True)
        ]

    ready = ready_queues.queues
    return [
        _graph(
            "Age of the oldest message (s), its delay included",
            *of_each(ready, "ApproximateAgeOfOldestMessage"),
            columns=4,
        ),
        _graph("Messages due and waiting", *of_each(ready, "ApproximateNumberOfMessagesVisible"), columns=4),
        _graph("Messages not yet due", *of_each(ready, "ApproximateNumberOfMessagesDelayed"), columns=4),
        _graph(
            "Dead-letter queues",
            *of_each(ready_queues.dead_letter_queues, "ApproximateNumberOfMessagesVisible"),
            columns=4,
        ),
    ]


def _execution(stage: Stage) -> list[cloudwatch.IWidget]:
    return [
        _graph(
            "Attempts and what they ended in",
            *_of("worker", "attempts", "succeeded", "retried", "failed", "expired", stage=stage),
            *(emitted("failed", service=service, stage=stage) for service in ("scanner", "sweeper", "dead_letters")),
            *_of_each("cancelled", stage=stage),
            columns=4,
        ),
        _graph(
            "Outcomes that targets reported",
            *_of("api", *(name for name in ENDED_BY_TARGETS if name != "retry_in_s"), stage=stage),
            columns=4,
        ),
        _graph(
            "Claims",
            *_of(
                "worker",
                *("held", "leases_expired", "rescues", "claims_lost", "duplicates_dropped", "returned"),
                stage=stage,
            ),
            emitted("requeued", service="dead_letters", stage=stage),
            emitted("claims_lost", service="api", stage=stage),
            columns=4,
        ),
        _graph(
            "Put back before their claim: open breaker, paused tenant, no free permit; of deleted tenants: forgotten",
            *_of("worker", "parked", "parked_by_pause", "parked_by_cap", "forgotten", stage=stage),
            emitted("forgotten", service="dead_letters", stage=stage),
            columns=4,
        ),
    ]


def _functions(functions: Sequence[Function], *, stage: Stage) -> list[cloudwatch.IWidget]:
    def of_each(metric: str, *, statistic: str) -> list[cloudwatch.Metric]:
        return [
            function.function.metric(metric, label=function.name, period=MINUTE, statistic=statistic)
            for function in functions
        ]

    return [
        _graph(
            "Time until the next attempt, p99 (s)", *_of_each("retry_in_s", stage=stage, statistic="p99"), columns=4
        ),
        _graph("Errors of functions", *of_each("Errors", statistic="Sum"), columns=4),
        _graph("Throttles of functions", *of_each("Throttles", statistic="Sum"), columns=4),
        _graph("Duration p99 of functions (ms)", *of_each("Duration", statistic="p99"), columns=4),
    ]


def _tenants(worker: Function) -> list[cloudwatch.IWidget]:
    # From the log: a metric with the tenant for a dimension would cost by the tenant.
    return [
        _query(
            "Tenants by attempts that began late",
            'filter message = "began_late"',
            "stats count(*) as attempts, pct(lag_ms, 99) as lag_p99 by tenant",
            "sort attempts desc",
            "limit 20",
            function=worker,
            columns=2,
        ),
        _query(
            "Tenants by attempts that did not succeed",
            'filter message = "job_settled" and outcome != "succeeded"',
            "stats count(*) as attempts by tenant, outcome, error",
            "sort attempts desc",
            "limit 20",
            function=worker,
            columns=2,
        ),
    ]


def _changes(stage: Stage) -> list[cloudwatch.IWidget]:
    return [
        _graph(
            "Breakers of destinations: opened, closed by a probe (worker) or by hand (api)",
            *_of("worker", "breakers_opened", "breakers_closed", stage=stage),
            emitted("breakers_closed", service="api", stage=stage),
            columns=4,
        ),
        _graph(
            "Schedules: paused after failures, healed; runs abandoned",
            *_of_each("chains_set_aside", stage=stage),
            *_of_each("schedules_paused", stage=stage),
            *_of_each("runs_abandoned", stage=stage),
            *_of_each("schedules_healed", stage=stage),
            columns=4,
        ),
        _graph(
            "Dead letters, by hand",
            *_of("api", "dead_letters_replayed", "dead_letters_purged", stage=stage),
            columns=4,
        ),
        _graph(
            "Turns of operations that ended in an error",
            emitted("operation_failures", service="operations", stage=stage),
            columns=4,
        ),
    ]


def _changed_by_hand(api: Function) -> cloudwatch.IWidget:
    changes = ("tenant_changed", "breaker_reset", "operation_accepted", "dead_letters_replayed", "dead_letters_purged")
    return _query(
        "By hand: tenants, breakers, operations, dead letters",
        f"filter message in {list(changes)}".replace("'", '"'),
        "fields @timestamp, message, caller, tenant, what",
        "sort @timestamp desc",
        "limit 50",
        function=api,
        columns=1,
    )


def _of(service: str, *names: str, stage: Stage) -> list[cloudwatch.Metric]:
    return [emitted(name, service=service, stage=stage) for name in names]


def _of_each(name: str, *, stage: Stage, statistic: str = "Sum") -> list[cloudwatch.Metric]:
    return [
        emitted(name, service=service, stage=stage, statistic=statistic, label=service if statistic != "Sum" else None)
        for service, names in EMITTED.items()
        if name in names
    ]


def _of_values(name: str, dimension: str, *, service: str, stage: Stage, statistic: str) -> list[cloudwatch.Metric]:
    return [
        emitted(name, service=service, stage=stage, statistic=statistic, by=(dimension, value), label=value)
        for value in VALUES[dimension]
    ]


def _heading(text: str) -> cloudwatch.IWidget:
    return cloudwatch.TextWidget(markdown=f"## {text}", width=ROW_WIDTH, height=1)


def _graph(
    title: str, *metrics: cloudwatch.IMetric, columns: int, right: Sequence[cloudwatch.IMetric] = ()
) -> cloudwatch.IWidget:
    """right: metrics of another unit, with an axis of their own."""
    axis = cloudwatch.YAxisProps(min=0, show_units=False)
    return cloudwatch.GraphWidget(
        title=title,
        left=list(metrics),
        right=list(right),
        width=ROW_WIDTH // columns,
        left_y_axis=axis,
        right_y_axis=axis if right else None,
    )


def _query(title: str, *lines: str, function: Function, columns: int) -> cloudwatch.IWidget:
    return cloudwatch.LogQueryWidget(
        title=title,
        log_group_names=[function.log_group.log_group_name],
        query_lines=list(lines),
        width=ROW_WIDTH // columns,
        height=6,
    )
