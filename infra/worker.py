"""What runs the jobs: one function, fed by four queues at their own pace."""

from __future__ import annotations

import json

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from functions.domain.instants import MILLISECOND
from infra.acknowledge import acknowledge
from infra.package import Function, Package
from infra.ready_queues import ReadyQueues
from infra.stage import PRIORITIES, Stage
from infra.storage import StorageStack
from infra.targets import grant_targets

BATCH_SIZE = 10


class Worker(Construct):
    """The function that claims, calls and settles, with a source per ready queue."""

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
        self.function = _function(self, stage=stage, package=package, storage=storage, ready_queues=ready_queues)
        for priority, queue, limit in zip(PRIORITIES, ready_queues.queues, stage.max_concurrency, strict=True):
            source = lambda_.EventSourceMapping(
                self,
                f"From{priority.capitalize()}",
                target=self.function.function,
                event_source_arn=queue.queue_arn,
                batch_size=BATCH_SIZE,
                report_batch_item_failures=True,
                # Low jobs take their share and no more: critical ones find a free function.
                max_concurrency=limit,
            )
            acknowledge(
                source,
                "Serverless-LambdaEventSourceMappingDestination",
                because="SQS sources have no failure destination: the redrive policy of the ready queue is theirs.",
            )


def _function(
    scope: Construct, *, stage: Stage, package: Package, storage: StorageStack, ready_queues: ReadyQueues
) -> Function:
    timers, ledger, shards, dead_letters, schedules, schedule_state, tenants = (
        storage.tables[name]
        for name in ("timers", "ledger", "shards", "dead_letters", "schedules", "schedule_state", "tenants")
    )
    function = Function(
        scope,
        "Function",
        name="worker",
        description="Claims, runs and settles jobs",
        stage=stage,
        package=package,
        size=stage.worker,
        environment={
            "TIMERS_TABLE": timers.table_name,
            "LEDGER_TABLE": ledger.table_name,
            "SHARDS_TABLE": shards.table_name,
            "DEAD_LETTERS_TABLE": dead_letters.table_name,
            "SCHEDULES_TABLE": schedules.table_name,
            "SCHEDULE_STATE_TABLE": schedule_state.table_name,
            "TENANTS_TABLE": tenants.table_name,
            "PAYLOAD_BUCKET": storage.payloads.bucket_name,
            "READY_QUEUE_URLS": ready_queues.urls,
            "AUDIT_STREAM": storage.audit.stream_name,
            "WEBHOOK_SECRET": storage.webhook_secret_arn,
            "ALLOWED_NETWORKS": json.dumps(stage.allowed_networks),
            "ALLOWED_TARGETS": json.dumps(stage.targets),
            "LAG_OBJECTIVE_MS": str(stage.objective.lag // MILLISECOND),
        },
    )
    function.grant("dynamodb:PutItem", on=[timers.table_arn])
    function.grant_placing(storage=storage)
    function.grant_audit(storage=storage)
    function.grant("dynamodb:GetItem", "dynamodb:UpdateItem", on=[ledger.table_arn])
    function.grant("dynamodb:GetItem", "dynamodb:PutItem", on=[schedules.table_arn])
    function.grant("dynamodb:GetItem", "dynamodb:UpdateItem", on=[schedule_state.table_arn])
    function.grant("dynamodb:GetItem", "dynamodb:UpdateItem", on=[shards.table_arn])
    function.grant("dynamodb:PutItem", on=[dead_letters.table_arn])
    function.grant("dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:DeleteItem", on=[tenants.table_arn])
    function.grant_objects("s3:GetObject", below=["jobs", "schedules"], storage=storage)
    function.grant_objects("s3:DeleteObject", below=["jobs"], storage=storage)
    # Without it S3 answers 403 for an object that is gone, and a finished job could not be distinguished from a forbidden one.
    function.grant("s3:ListBucket", on=[storage.payload_bucket_arn])
    function.grant(
        "sqs:SendMessage",
        "sqs:ReceiveMessage",
        "sqs:DeleteMessage",
        "sqs:GetQueueAttributes",
        "sqs:ChangeMessageVisibility",
        on=ready_queues.arns,
    )
    function.grant("secretsmanager:GetSecretValue", on=[storage.webhook_secret_arn])
    grant_targets(function, stage=stage)
    return function
