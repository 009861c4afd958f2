"""What a stage has ready before the load comes: pollers of its ready queues, and partitions of its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from infra.stage_parts import InvalidStage

MAX_CONCURRENCY = range(2, 1_001)
"""What SQS event source mappings take as MaximumConcurrency."""

SOURCE_MOST = 1_250
"""Invocations of an event source without a maximum: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html"""

INVOCATIONS_OF_A_POLLER = 10
"""At the same time; it also asks SQS ten times a second, so it brings 100 messages a second in batches of ten.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html"""

MESSAGES_OF_A_POLLER = 100
"""A second, likewise."""

FEWEST_POLLERS = range(2, 201)
MOST_POLLERS = range(2, 2_001)
"""What CloudFormation takes as MinimumPollers and MaximumPollers; Lambda itself takes up to 10,000.
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-lambda-eventsourcemapping-provisionedpollerconfig.html
"""

NEW_TABLE_READS = 12_000
NEW_TABLE_WRITES = 4_000
"""Units a second that any table on demand takes from its first day. DynamoDB refuses to be told less: warm throughput only grows.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput-scenarios.html"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pollers:
    """Event pollers of one ready queue, in provisioned mode: at least, and at most.

    They take the place of a maximum concurrency, which AWS excludes beside them: a class runs ten invocations for each.
    """

    minimum: int
    maximum: int

    def __post_init__(self) -> None:
        """Refuse what AWS refuses."""
        for name, value, allowed in (
            ("minimum", self.minimum, FEWEST_POLLERS),
            ("maximum", self.maximum, MOST_POLLERS),
        ):
            if value not in allowed:
                raise InvalidStage(f"pollers: {name} is {value}: use {allowed.start} to {allowed.stop - 1}")
        if self.minimum > self.maximum:
            raise InvalidStage(f"pollers: minimum is {self.minimum} and maximum {self.maximum}: use no more than that")

    @property
    def concurrency(self) -> int:
        """Invocations at the same time, at most."""
        return self.maximum * INVOCATIONS_OF_A_POLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmThroughput:
    """Units a second that a table takes at once. A partition takes 1,000 writes or 3,000 reads of them.

    Raising it is charged, and it cannot be lowered again: a smaller value fails when it is deployed.
    """

    reads: int
    writes: int

    def __post_init__(self) -> None:
        """Refuse what a new table already has more of."""
        for name, value, least in (
            ("reads", self.reads, NEW_TABLE_READS),
            ("writes", self.writes, NEW_TABLE_WRITES),
        ):
            if value < least:
                raise InvalidStage(
                    f"warm_throughput: {name} is {value}: use at least {least:,}, which every table on demand begins with"
                )


FOR_A_HERD: Mapping[str, WarmThroughput] = MappingProxyType(
    {
        # The alarms of the next hour are written into one bucket: 512 keys, eight of which may meet on one of 256 partitions.
        "timers": WarmThroughput(reads=40_000, writes=512_000),
        "schedules": WarmThroughput(reads=90_000, writes=20_000),
        "schedule_state": WarmThroughput(reads=90_000, writes=160_000),
    }
)
"""What five million schedules that fire at one instant need of tables, as the simulation has it (docs/simulation.md). No stage has
it: docs/stages.md says how to add it, where schedules cannot have a `spread`."""


def check_workers(
    stage: str, priorities: Sequence[str], max_concurrency: Sequence[int | None], pollers: Sequence[Pollers | None]
) -> None:
    """Refuse what the ready queues' event sources cannot have: an entry too few, a limit of SQS, or two that exclude each other."""
    for setting, entries in (("max_concurrency", max_concurrency), ("pollers", pollers)):
        if len(entries) != len(priorities):
            raise InvalidStage(
                f"{stage}: {setting} has {len(entries)} entries: give one for each of {', '.join(priorities)}"
            )
    for priority, limit, provisioned in zip(priorities, max_concurrency, pollers, strict=True):
        if limit is None:
            continue
        if limit not in MAX_CONCURRENCY:
            raise InvalidStage(
                f"{stage}: max_concurrency of {priority} is {limit}: use {MAX_CONCURRENCY.start} to {MAX_CONCURRENCY.stop - 1}, "
                "pollers for more, or None for no limit"
            )
        if provisioned:
            raise InvalidStage(
                f"{stage}: {priority} has pollers, and a max_concurrency of {limit}, which AWS excludes beside them: "
                f"set it to None; {provisioned.maximum} pollers run up to {provisioned.concurrency} workers"
            )


def check_ready(stage: str, ready: int, *, workers: int | None) -> None:
    """Refuse workers that are kept started for critical jobs where those could not use them."""
    if ready < 0 or (workers is not None and ready > workers):
        most = "no limit" if workers is None else f"{workers}, which is all that critical jobs may have at once"
        raise InvalidStage(f"{stage}: ready_critical is {ready}: use 0 to {most}")
