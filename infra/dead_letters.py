"""Where messages end that no worker could finish: recorded, so that they can be seen and replayed."""

from __future__ import annotations

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.acknowledge import acknowledge
from infra.package import Function, Package
from infra.ready_queues import ReadyQueues
from infra.stage import PRIORITIES, Stage
from infra.storage import StorageStack

BATCH_SIZE = 10


class DeadLetters(Construct):
    """The function that consumes the dead-letter queues."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        stage: Stage,
        package: Package,
        storage: StorageStack,
        ready_queues: ReadyQueues,
    ) -> None:
        super().__init__(scope, construct_id)
        timers, ledger, dead_letters, schedules, schedule_state, tenants = (
            storage.tables[name]
            for name in ("timers", "ledger", "dead_letters", "schedules", "schedule_state", "tenants")
        )
        self.function = Function(
            self,
            "Function",
            name="dead_letters",
            description="Records messages that no worker could finish",
            stage=stage,
            package=package,
            size=stage.dead_letters,
            environment={
                "TIMERS_TABLE": timers.table_name,
                "LEDGER_TABLE": ledger.table_name,
                "DEAD_LETTERS_TABLE": dead_letters.table_name,
                "SCHEDULES_TABLE": schedules.table_name,
                "SCHEDULE_STATE_TABLE": schedule_state.table_name,
                "TENANTS_TABLE": tenants.table_name,
                "SHARDS_TABLE": storage.tables["shards"].table_name,
                "READY_QUEUE_URLS": ready_queues.urls,
                "AUDIT_STREAM": storage.audit.stream_name,
            },
        )
        self.function.grant("dynamodb:UpdateItem", "dynamodb:GetItem", on=[ledger.table_arn])
        # What a failure means for its schedule: a pause, or the next fire.
        self.function.grant("dynamodb:PutItem", on=[timers.table_arn])
        self.function.grant_placing(storage=storage)
        self.function.grant_audit(storage=storage)
        self.function.grant("dynamodb:GetItem", "dynamodb:PutItem", on=[schedules.table_arn])
        self.function.grant("dynamodb:GetItem", "dynamodb:UpdateItem", on=[schedule_state.table_arn])
        self.function.grant("dynamodb:PutItem", on=[dead_letters.table_arn])
        self.function.grant("sqs:SendMessage", on=ready_queues.arns)
        self.function.grant(
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
            "sqs:GetQueueAttributes",
            on=[queue.queue_arn for queue in ready_queues.dead_letter_queues],
        )
        for priority, queue in zip(PRIORITIES, ready_queues.dead_letter_queues, strict=True):
            source = lambda_.EventSourceMapping(
                self,
                f"From{priority.capitalize()}",
                target=self.function.function,
                event_source_arn=queue.queue_arn,
                batch_size=BATCH_SIZE,
                report_batch_item_failures=True,
            )
            acknowledge(
                source,
                "Serverless-LambdaEventSourceMappingDestination",
                because="SQS sources have no failure destination, and a message that fails here stays where it is for 14 days.",
            )
