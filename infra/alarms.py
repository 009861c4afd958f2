"""What wakes somebody. Each alarm's description says what it means; the runbook says what to do."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.metrics import BURYING, emitted
from infra.package import Function
from infra.ready_queues import ReadyQueues
from infra.stage import PRIORITIES, Stage

OLDEST_BUCKET_AGE_S = 120
"""A bucket is drained before it starts; two minutes after, its jobs are two minutes late."""

PATIENCE_S = {"critical": 60, "high": 120, "normal": 300, "low": 900}
"""How long a message may wait after it was due before its priority no longer means anything."""

RESCUES_PER_100_ATTEMPTS = 5
"""Above, workers die or leases are too short; a few come with every deployment."""

MINUTE = cdk.Duration.minutes(1)


class Alarms(Construct):
    """One alarm per way to fail a tenant; silence is health, so missing data does not breach, but for the scanner's."""

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
        self._stage = stage
        for priority, queue in zip(PRIORITIES, ready_queues.dead_letter_queues, strict=True):
            self._dead_letters_waiting(priority, queue=queue)
        for priority, queue in zip(PRIORITIES, ready_queues.queues, strict=True):
            self._queue_age(priority, queue=queue)
        for function in functions:
            self._errors(function)
        self._emitted("Stragglers", metric="stragglers", service="sweeper", meaning="promotion passed over a job")
        self._emitted(
            "ChainsBroken",
            metric="chains_broken",
            service="sweeper",
            meaning="a schedule cannot be worked out any more",
        )
        self._emitted("Early", metric="early", service="worker", meaning="a job fired before its time")
        for service in BURYING:
            name = f"DeadLetteredBy{_camel_case(service)}"
            self._emitted(name, metric="dead_lettered", service=service, meaning="a job failed for good")
        self._operation_failures()
        self._oldest_bucket()
        if not stage.emulated:  # the emulator refuses alarms on expressions
            self._rescue_rate()

    def _dead_letters_waiting(self, priority: str, *, queue: sqs.Queue) -> None:
        self._alarm(
            f"DeadLetters{priority.capitalize()}",
            metric=queue.metric_approximate_number_of_messages_visible(period=MINUTE, statistic="Maximum"),
            threshold=0,
            description=f"Messages wait in the dead-letter queue of {priority} jobs: workers crash on them",
        )

    def _queue_age(self, priority: str, *, queue: sqs.Queue) -> None:
        self._alarm(
            f"QueueAge{priority.capitalize()}",
            metric=queue.metric_approximate_age_of_oldest_message(period=MINUTE, statistic="Maximum"),
            # SQS counts from the sending, and up to GUARD of that is the delay that was asked for.
            threshold=int(self._stage.wheel.guard.total_seconds()) + PATIENCE_S[priority],
            periods=3,
            description=f"The oldest {priority} message waits for a worker: too few run, or they take too long",
        )

    def _errors(self, function: Function) -> None:
        self._alarm(
            f"Errors{_camel_case(function.name)}",
            metric=function.function.metric_errors(period=MINUTE),
            threshold=0,
            periods=3,
            breaching=2,
            description=f"The {function.name} fails; one lost invocation is repeated, two in three minutes are a fault",
        )

    def _emitted(self, construct_id: str, *, metric: str, service: str, meaning: str) -> None:
        self._alarm(
            construct_id,
            metric=emitted(metric, service=service, stage=self._stage),
            threshold=0,
            description=f"{metric} of the {service} is above zero: {meaning}",
        )

    def _operation_failures(self) -> None:
        self._alarm(
            "OperationFailures",
            metric=emitted("operation_failures", service="operations", stage=self._stage),
            threshold=0,
            periods=3,
            breaching=2,
            description="Turns of an operation end in errors: the next goes on, and ten in a row give the operation up",
        )

    def _oldest_bucket(self) -> None:
        self._alarm(
            "OldestBucket",
            metric=emitted("oldest_bucket_age_s", service="scanner", stage=self._stage, statistic="Maximum"),
            threshold=OLDEST_BUCKET_AGE_S,
            periods=3,
            description="The oldest bucket that is not drained is too old: promotion is behind, or no scanner runs",
            # Every tick tells it: silence is a scanner that dies or is not invoked.
            missing=cloudwatch.TreatMissingData.BREACHING,
        )

    def _rescue_rate(self) -> None:
        window = cdk.Duration.minutes(5)
        rate = cloudwatch.MathExpression(
            expression="IF(attempts > 0, 100 * rescues / attempts, 0)",
            using_metrics={
                name: emitted(name, service="worker", stage=self._stage, period=window)
                for name in ("rescues", "attempts")
            },
            label="rescues per 100 attempts",
            period=window,
        )
        self._alarm(
            "RescueRate",
            metric=rate,
            threshold=RESCUES_PER_100_ATTEMPTS,
            periods=2,
            description="Too many attempts are rescues: workers die, or outlive their leases",
        )

    def _alarm(
        self,
        construct_id: str,
        *,
        metric: cloudwatch.IMetric,
        threshold: int,
        description: str,
        periods: int = 1,
        breaching: int | None = None,
        missing: cloudwatch.TreatMissingData = cloudwatch.TreatMissingData.NOT_BREACHING,
    ) -> None:
        cloudwatch.Alarm(
            self,
            construct_id,
            metric=metric,
            threshold=threshold,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            evaluation_periods=periods,
            datapoints_to_alarm=breaching,
            treat_missing_data=missing,
            alarm_description=description,
        )


def _camel_case(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))
