"""What runs the jobs: one function, fed by four queues at their own pace."""

from __future__ import annotations

import json
from typing import cast

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from functions.domain.instants import MILLISECOND
from infra.package import Deployment, Function
from infra.queue_sources import consume
from infra.stage import PRIORITIES, Stage
from infra.targets import grant_given, grant_targets

CRITICAL = PRIORITIES[0]


class Worker(Construct):
    """The function that claims, calls and settles, with a source per ready queue."""

    def __init__(self, scope: Construct, construct_id: str, *, deployment: Deployment) -> None:
        super().__init__(scope, construct_id)
        self.function = _function(self, deployment=deployment)
        consume(
            self,
            self.function,
            deployment.ready_queues.queues,
            # Low jobs take their share and no more: critical ones find a free function.
            max_concurrency=deployment.stage.max_concurrency,
            pollers=deployment.stage.pollers,
            instead={CRITICAL: ready} if (ready := _ready(self, self.function, deployment.stage)) else {},
            because="SQS sources have no failure destination: the redrive policy of the ready queue is theirs.",
        )


def _ready(scope: Construct, function: Function, stage: Stage) -> lambda_.IFunction | None:
    """Workers that have started before there is a job; a version, because Lambda keeps none of the latest code started."""
    if not stage.ready_critical:
        return None
    alias = lambda_.Alias(
        scope,
        "Critical",
        alias_name=CRITICAL,
        version=function.latest_version(),
        provisioned_concurrent_executions=stage.ready_critical,
    )
    return cast("lambda_.IFunction", alias)


def _function(scope: Construct, *, deployment: Deployment) -> Function:
    stage = deployment.stage
    function = Function(
        scope,
        "Function",
        name="worker",
        description="Claims, runs and settles jobs",
        deployment=deployment,
        size=stage.worker,
        sends_to_itself=True,
        environment={
            "PAYLOAD_BUCKET": deployment.storage.payloads.bucket_name,
            "WEBHOOK_SECRET": deployment.storage.webhook_secret_arn,
            "ALLOWED_NETWORKS": json.dumps(stage.allowed_networks),
            "ALLOWED_TARGETS": deployment.allowed_targets,
            "LAG_OBJECTIVE_MS": str(stage.objective.lag // MILLISECOND),
            **deployment.surroundings.handlers_environment,
        },
    )
    function.grant_tables("timers", "PutItem")
    function.grant_placing()
    function.grant_tables("ledger", "GetItem", "UpdateItem")
    function.grant_tables("schedules", "GetItem", "PutItem")
    function.grant_tables("schedule_state", "GetItem", "UpdateItem")
    function.grant_tables("shards", "GetItem", "UpdateItem")
    function.grant_tables("dead_letters", "PutItem")
    function.grant_tables("tenants", "GetItem", "PutItem", "DeleteItem")
    function.grant_objects("s3:GetObject", below=["jobs", "schedules"])
    function.grant_objects("s3:DeleteObject", below=["jobs"])
    function.grant_objects("s3:PutObject", below=["results"])
    function.grant_missing_objects()
    function.grant(
        "sqs:SendMessage",
        "sqs:ReceiveMessage",
        "sqs:DeleteMessage",
        "sqs:GetQueueAttributes",
        "sqs:ChangeMessageVisibility",
        on=deployment.ready_queues.arns,
    )
    function.grant_webhook_keys()
    grant_targets(function, stage=stage)
    grant_given(function, deployment.surroundings.targets)
    return function
