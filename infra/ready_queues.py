"""The near ring: one ready queue per priority, and one dead-letter queue behind them all."""

from __future__ import annotations

import json

import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from functions.domain.jobs.claims import MESSAGE_LIFE
from infra.acknowledge import acknowledge
from infra.stage import PRIORITIES, Stage

RETENTION = cdk.Duration.days(MESSAGE_LIFE.days)
"""SQS's longest. A ledger row outlives any message that could meet it."""

MAX_RECEIVES = 10


class ReadyQueues(Construct):
    """`queues`, in the order of the classes, and `dead_letters`, where messages of all of them end.

    A message says its class itself, and SQS of which queue it was: a queue for each would tell nothing more, and cost its polls.
    """

    def __init__(self, scope: Construct, construct_id: str, *, stage: Stage) -> None:
        super().__init__(scope, construct_id)
        self.dead_letters = _queue(
            self,
            # Of the four that a release before had, the one that nearly all dead messages were in: it stays, with what is in it.
            "NormalDead",
            # AWS asks for six times the consumer's timeout: room for its retries while it is throttled.
            visibility=cdk.Duration.seconds(6 * int(stage.dead_letters.timeout.total_seconds())),
        )
        acknowledge(
            self.dead_letters,
            "Serverless-SQSRedrivePolicy",
            because="The end of the line: its consumer tries again until the retention ends, under an alarm.",
        )
        self.queues = [
            _queue(
                self,
                priority.capitalize(),
                visibility=cdk.Duration.seconds(int(stage.visibility.total_seconds())),
                dead_letters=self.dead_letters,
            )
            for priority in PRIORITIES
        ]

    @property
    def urls(self) -> str:
        """The queues' addresses as functions read them: a JSON list in the order of the classes."""
        return json.dumps([queue.queue_url for queue in self.queues])

    @property
    def arns(self) -> list[str]:
        """What to grant on."""
        return [queue.queue_arn for queue in self.queues]


def _queue(
    scope: Construct, construct_id: str, *, visibility: cdk.Duration, dead_letters: sqs.IQueue | None = None
) -> sqs.Queue:
    return sqs.Queue(
        scope,
        construct_id,
        retention_period=RETENTION,
        visibility_timeout=visibility,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        dead_letter_queue=sqs.DeadLetterQueue(queue=dead_letters, max_receive_count=MAX_RECEIVES)
        if dead_letters
        else None,
    )
