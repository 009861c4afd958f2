"""What AWS counts itself, against its limits: gateway, queues, functions, tables, and the stream of the audit trail."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sqs as sqs

from infra.api import Api
from infra.audit_alarms import LATE_SECONDS
from infra.package import Function
from infra.queue_sources import BATCH_SIZE
from infra.ready_queues import ReadyQueues
from infra.single_alarms import PATIENCE_S
from infra.stage import PRIORITIES, Stage
from infra.storage import StorageStack
from infra.widgets import MINUTE, graph, line, of_functions, query

NEW_TABLE_WRITES, NEW_TABLE_READS = 4_000, 12_000
"""Units a second that a table takes from its creation, until it has served more.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput.html
"""

MUCH_CONCURRENCY = 80
"""Percent of an account's quota above which it is time to ask for more."""

TIMED_OPERATIONS = (
    ("timers", "Query"),
    ("timers", "PutItem"),
    ("timers", "BatchWriteItem"),
    ("ledger", "PutItem"),
    ("ledger", "UpdateItem"),
    ("schedule_state", "UpdateItem"),
    ("tenants", "UpdateItem"),
    ("shards", "UpdateItem"),
)
"""Those that jobs wait for."""


def gateway(api: Api) -> list[cloudwatch.IWidget]:
    """Requests at the front door. The gateway counts what it throttles among the 4xx: only its log tells them apart."""

    def of_each(metric: str, *, statistic: str) -> list[cloudwatch.Metric]:
        return [
            gateway.metric(metric, label=f"{name}: {metric} {statistic}", period=MINUTE, statistic=statistic)
            for name, gateway in api.gateways.items()
        ]

    return [
        graph("Requests", *of_each("Count", statistic="Sum"), columns=4),
        graph(
            "Requests that were refused (4xx) or failed (5xx)",
            *(metric for code in ("4xx", "5xx") for metric in of_each(code, statistic="Sum")),
            columns=4,
        ),
        graph(
            "Latency of requests (ms)",
            *(metric for share in ("p50", "p99") for metric in of_each("Latency", statistic=share)),
            columns=4,
        ),
        query(
            "Requests that were not answered 2xx, by status; 429 without a tenant's limit: the gateway throttles",
            "filter status not like /^2/",
            "stats count(*) as requests by status, route",
            "sort requests desc",
            "limit 20",
            log_group_names=list(api.access_logs.values()),
            columns=4,
        ),
    ]


def queues(ready_queues: ReadyQueues, *, stage: Stage) -> list[cloudwatch.IWidget]:
    """What waits for workers."""
    guard = int(stage.wheel.guard.total_seconds())
    ready = ready_queues.queues
    return [
        graph(
            "Age of the oldest message (s), its delay included",
            *_of_queues(ready, "ApproximateAgeOfOldestMessage"),
            columns=4,
            lines=[line(guard + PATIENCE_S[priority], f"{priority}: alarm") for priority in PRIORITIES],
        ),
        graph("Messages due and waiting", *_of_queues(ready, "ApproximateNumberOfMessagesVisible"), columns=4),
        graph("Messages not yet due", *_of_queues(ready, "ApproximateNumberOfMessagesDelayed"), columns=4),
        graph(
            "Dead-letter queue",
            ready_queues.dead_letters.metric_approximate_number_of_messages_visible(
                label="messages", period=MINUTE, statistic="Maximum"
            ),
            columns=4,
        ),
    ]


def in_flight(ready_queues: ReadyQueues, *, stage: Stage, columns: int) -> cloudwatch.IWidget:
    """Messages that workers have: each is a job that is leased to one, or is about to be."""
    return graph(
        "In flight: jobs that workers have",
        *_of_queues(ready_queues.queues, "ApproximateNumberOfMessagesNotVisible"),
        columns=columns,
        lines=[
            line(most * BATCH_SIZE, f"all workers of {' and '.join(names)}")
            for most, names in _by_concurrency(stage).items()
        ],
    )


def functions(each: Sequence[Function]) -> list[cloudwatch.IWidget]:
    """How invocations go."""
    return [
        graph("Errors of functions", *of_functions(each, "Errors", statistic="Sum"), columns=4),
        graph("Throttles of functions", *of_functions(each, "Throttles", statistic="Sum"), columns=4),
        graph("Duration p99 of functions (ms)", *of_functions(each, "Duration", statistic="p99"), columns=4),
        graph("Invocations of functions", *of_functions(each, "Invocations", statistic="Sum"), columns=4),
    ]


def concurrency(each: Sequence[Function], *, stage: Stage, columns: int) -> list[cloudwatch.IWidget]:
    """Functions at once, against what the stage and the account allow."""
    limits = [most for most in stage.max_concurrency if most is not None]
    account = cloudwatch.Metric(
        namespace="AWS/Lambda", metric_name="ConcurrentExecutions", statistic="Maximum", period=MINUTE
    )
    return [
        graph(
            "Functions at once",
            *of_functions(each, "ConcurrentExecutions", statistic="Maximum"),
            columns=columns,
            lines=[line(sum(limits), "worker: of all classes")] if len(limits) == len(PRIORITIES) else [],
        ),
        graph(
            "Functions at once of the whole account (% of its quota)",
            # https://docs.aws.amazon.com/lambda/latest/dg/monitoring-concurrency.html
            cloudwatch.MathExpression(
                expression="100 * account / SERVICE_QUOTA(account)",
                using_metrics={"account": account},
                label="of the quota",
                period=MINUTE,
            ),
            columns=columns,
            lines=[line(MUCH_CONCURRENCY, "ask for more"), line(100, "throttled")],
        ),
    ]


def tables(storage: StorageStack) -> list[cloudwatch.IWidget]:
    """The stores, as DynamoDB counts: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/metrics-dimensions.html."""
    return [
        graph(
            "Throttled reads and writes of tables",
            *(
                table.metric(f"{kind}ThrottleEvents", label=f"{name}: {kind}", period=MINUTE, statistic="Sum")
                for name, table in storage.tables.items()
                for kind in ("Read", "Write")
            ),
            columns=4,
        ),
        graph(
            "Units written a second",
            *_units(storage, "Write"),
            columns=4,
            lines=[line(NEW_TABLE_WRITES, "a new table")],
        ),
        graph(
            "Units read a second",
            *_units(storage, "Read"),
            columns=4,
            lines=[line(NEW_TABLE_READS, "a new table")],
        ),
        graph(
            "Latency of tables, average (ms)",
            *(
                cloudwatch.Metric(
                    namespace="AWS/DynamoDB",
                    metric_name="SuccessfulRequestLatency",
                    dimensions_map={"TableName": storage.tables[name].table_name, "Operation": operation},
                    statistic="Average",
                    period=MINUTE,
                    label=f"{name}: {operation}",
                )
                for name, operation in TIMED_OPERATIONS
            ),
            columns=4,
        ),
    ]


def audit_stream(stream_name: str) -> list[cloudwatch.IWidget]:
    """Firehose, on the way of the audit trail: https://docs.aws.amazon.com/firehose/latest/dev/monitoring-with-cloudwatch-metrics.html."""

    def of(metric: str, *, statistic: str) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace="AWS/Firehose",
            metric_name=metric,
            dimensions_map={"DeliveryStreamName": stream_name},
            statistic=statistic,
            period=cdk.Duration.minutes(5),
        )

    return [
        graph(
            "Audit trail: age of the oldest line that is not delivered (s)",
            of("DeliveryToS3.DataFreshness", statistic="Maximum"),
            columns=3,
            lines=[line(LATE_SECONDS, "alarm")],
        ),
        graph(
            "Audit trail: lines taken in, and throttled",
            of("IncomingRecords", statistic="Sum"),
            of("ThrottledRecords", statistic="Sum"),
            columns=3,
        ),
        graph(
            "Audit trail: share of deliveries that succeed",
            of("DeliveryToS3.Success", statistic="Average"),
            columns=3,
        ),
    ]


def _of_queues(each: Sequence[sqs.Queue], metric: str) -> list[cloudwatch.Metric]:
    return [
        queue.metric(metric, label=priority, period=MINUTE, statistic="Maximum")
        for priority, queue in zip(PRIORITIES, each, strict=True)
    ]


def _by_concurrency(stage: Stage) -> dict[int, list[str]]:
    """The classes by how many workers they may have; those without a limit are left out."""
    found: dict[int, list[str]] = {}
    for priority, most in zip(PRIORITIES, stage.max_concurrency, strict=True):
        if most is not None:
            found.setdefault(most, []).append(priority)
    return found


def _units(storage: StorageStack, kind: str) -> list[cloudwatch.IMetric]:
    """A second's share of what each minute has consumed."""
    return [
        cloudwatch.MathExpression(
            expression=f"{name} / PERIOD({name})",
            using_metrics={
                name: table.metric(f"Consumed{kind}CapacityUnits", period=MINUTE, statistic="Sum", label=name)
            },
            label=name,
            period=MINUTE,
        )
        for name, table in storage.tables.items()
    ]
