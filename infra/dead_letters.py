"""Where messages end that no worker could finish: recorded, so that they can be seen and replayed."""

from __future__ import annotations

from constructs import Construct

from infra.package import Deployment, Function
from infra.queue_sources import source_of
from infra.throughput import MAX_CONCURRENCY


class DeadLetters(Construct):
    """The function that consumes the dead-letter queue."""

    def __init__(self, scope: Construct, construct_id: str, *, deployment: Deployment) -> None:
        super().__init__(scope, construct_id)
        self.function = Function(
            self,
            "Function",
            name="dead_letters",
            description="Records messages that no worker could finish",
            deployment=deployment,
            size=deployment.stage.dead_letters,
            sends_to_itself=True,
        )
        self.function.grant_tables("ledger", "UpdateItem", "GetItem")
        # What a failure means for its schedule: a pause, or the next fire.
        self.function.grant_tables("timers", "PutItem")
        self.function.grant_placing()
        self.function.grant_tables("schedules", "GetItem", "PutItem")
        self.function.grant_tables("schedule_state", "GetItem", "UpdateItem")
        self.function.grant_tables("dead_letters", "PutItem")
        self.function.grant("sqs:SendMessage", on=deployment.ready_queues.arns)
        queue = deployment.ready_queues.dead_letters
        self.function.grant("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", on=[queue.queue_arn])
        source_of(
            self,
            # As in the release before, whose source of this queue had this name.
            "FromNormal",
            target=self.function.function,
            queue=queue,
            # Nobody waits for a dead letter: the concurrency of a small account is for jobs. Two is SQS's least.
            max_concurrency=MAX_CONCURRENCY.start if any(deployment.stage.workers) else None,
            because="SQS sources have no failure destination, and a message that fails here stays where it is for 14 days.",
        )
