"""Alarms that a stage has however closely it is watched: those on promotion, on queues and on requests."""

from __future__ import annotations

from datetime import timedelta

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from functions.domain.jobs.claims import RENEW_AFTER
from infra.function_alarms import MINUTE
from infra.metrics import emitted
from infra.ready_queues import ReadyQueues
from infra.runbook import alarm
from infra.stage import Stage

PATIENCE_S = {"critical": 60, "high": 120, "normal": 300, "low": 900}
"""How long a message may wait after it was due before its priority no longer means anything."""

PROMOTION_LAG_S = 60
"""Since the bucket began, on any shard: then its jobs are late."""

HELD_TOO_LONG = RENEW_AFTER + timedelta(days=1)
"""A day after it should have been put anew, a row that waits has six more before its table lets it go."""


def promotion_lag(scope: Construct, *, stage: Stage) -> cloudwatch.Alarm:
    """A shard of the far ring is behind."""
    return alarm(
        scope,
        "PromotionLag",
        metric=emitted("promotion_lag_s", service="sweeper", stage=stage, statistic="Maximum"),
        threshold=PROMOTION_LAG_S,
        periods=3,
        meaning="A shard is behind, or its scanner is silent",
        section="a-shard-is-behind",
    )


def queue_age(scope: Construct, priority: str, *, queue: sqs.Queue, stage: Stage) -> cloudwatch.Alarm:
    """Messages of a class wait for workers."""
    return alarm(
        scope,
        f"QueueAge{priority.capitalize()}",
        metric=queue.metric_approximate_age_of_oldest_message(period=MINUTE, statistic="Maximum"),
        # SQS counts from the sending, and up to GUARD of that is the delay that was asked for.
        threshold=int(stage.wheel.guard.total_seconds()) + PATIENCE_S[priority],
        periods=3,
        meaning=f"The oldest {priority} message waits for a worker: too few run, or they take too long",
        section="messages-wait-for-workers",
    )


def held_too_long(scope: Construct, *, stage: Stage) -> cloudwatch.Alarm:
    """Rows of jobs that wait would be lost."""
    return alarm(
        scope,
        "HeldTooLong",
        metric=emitted("held_age_s", service="scanner", stage=stage, statistic="Maximum"),
        threshold=HELD_TOO_LONG.total_seconds(),
        periods=3,
        meaning="Jobs that wait for a tenant, its cap or their turn are not put anew in time: in days their rows expire",
        section="held-jobs-are-not-put-anew",
    )


def unconsumed_dead_letters(scope: Construct, ready_queues: ReadyQueues) -> cloudwatch.Alarm:
    """Nobody takes what has died off its queue."""
    return alarm(
        scope,
        "DeadLetters",
        metric=ready_queues.dead_letters.metric_approximate_number_of_messages_visible(
            period=MINUTE, statistic="Maximum"
        ),
        threshold=0,
        meaning="Messages wait in the dead-letter queue: workers crash on them",
        section="messages-wait-in-a-dead-letter-queue",
    )


def failed_requests(scope: Construct, *, stage: Stage) -> cloudwatch.Alarm:
    """The API answers that it failed."""
    return alarm(
        scope,
        "RequestsFail",
        metric=emitted("requests_failed", service="api", stage=stage),
        threshold=0,
        meaning="The API answers 500 or 503, because a store fails it or it has a fault",
        section="requests-fail",
        periods=3,
        breaching=2,
    )
