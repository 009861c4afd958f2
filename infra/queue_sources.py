"""What brings the messages of queues to a function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from functions.domain.far_ring.warming import most_messages
from infra.acknowledge import acknowledge
from infra.package import Function
from infra.stage import PRIORITIES, Stage
from infra.throughput import SOURCE_MOST, Pollers

BATCH_SIZE = 10


def warm_messages(stage: Stage) -> tuple[int, ...]:
    """How many messages without a job a shard may have on their way to each class before herds; none if it sends none."""
    if not stage.warm_herds:
        return ()
    shards = stage.wheel.scan_shards
    return tuple(most_messages(SOURCE_MOST if most is None else most, shards=shards) for most in stage.workers)


def consume(
    scope: Construct,
    function: Function,
    queues: Sequence[sqs.Queue],
    *,
    because: str,
    max_concurrency: Sequence[int | None],
    pollers: Sequence[Pollers | None] = (None,) * len(PRIORITIES),
    instead: Mapping[str, lambda_.IFunction] = MappingProxyType({}),
) -> None:
    """A source for the queue of each priority. because: why it needs no destination for failures.

    instead: by priority, what takes the place of the function.
    """
    for priority, queue, limit, provisioned in zip(PRIORITIES, queues, max_concurrency, pollers, strict=True):
        source_of(
            scope,
            f"From{priority.capitalize()}",
            target=instead.get(priority, function.function),
            queue=queue,
            because=because,
            max_concurrency=limit,
            pollers=provisioned,
        )


def source_of(
    scope: Construct,
    construct_id: str,
    *,
    target: lambda_.IFunction,
    queue: sqs.Queue,
    because: str,
    max_concurrency: int | None,
    pollers: Pollers | None = None,
) -> None:
    """What brings the messages of one queue. because: why it needs no destination for failures."""
    source = lambda_.EventSourceMapping(
        scope,
        construct_id,
        target=target,
        event_source_arn=queue.queue_arn,
        batch_size=BATCH_SIZE,
        report_batch_item_failures=True,
        max_concurrency=max_concurrency,
        provisioned_poller_config=lambda_.ProvisionedPollerConfig(
            minimum_pollers=pollers.minimum, maximum_pollers=pollers.maximum
        )
        if pollers
        else None,
    )
    acknowledge(source, "Serverless-LambdaEventSourceMappingDestination", because=because)
