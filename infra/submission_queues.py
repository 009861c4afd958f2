"""Queues that jobs are sent to: one for each tenant that the stage names, and one beside it for what was refused."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from functions.domain.jobs import submission_queues as rules
from functions.domain.tenants.access import ANYBODY
from infra.acknowledge import acknowledge
from infra.package import Function
from infra.queue_sources import BATCH_SIZE
from infra.ready_queues import RETENTION
from infra.stage import Stage
from infra.submission_rules import principal_arns
from infra.throughput import MAX_CONCURRENCY

_TIMEOUTS_HIDDEN = 6
"""AWS asks for six of the consumer's: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html"""


class SubmissionQueues(Construct):
    """`queues` and `refused`, by tenant. Nothing, where the stage names none.

    Which queue a message is in says whose its jobs are: of who has sent it, SQS tells a unique id, which no pattern of principals
    could be compared with. So it is the policy of the queue that says who may send.
    """

    def __init__(self, scope: Construct, construct_id: str, *, stage: Stage) -> None:
        super().__init__(scope, construct_id)
        self._stage = stage
        self.queues: Mapping[str, sqs.Queue] = {}
        self.refused: Mapping[str, sqs.Queue] = {}
        for tenant in stage.submission_queues:
            self.refused = {**self.refused, tenant: self._refused(tenant)}
            self.queues = {**self.queues, tenant: self._queue(tenant)}

    @property
    def urls(self) -> list[str]:
        """Where is sent to."""
        return [queue.queue_url for queue in self.queues.values()]

    @property
    def refused_urls(self) -> str:
        """Where the refused are, as functions read it: a JSON list."""
        return json.dumps([queue.queue_url for queue in self.refused.values()])

    def feed(self, function: Function) -> None:
        """Let a function take in what is sent; it alone sends on what is left, beside those who may send."""
        if not self.queues:
            return
        arns = [queue.queue_arn for queue in self.queues.values()]
        function.grant("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", on=arns)
        function.grant("sqs:ChangeMessageVisibility", on=arns)
        function.grant("sqs:SendMessage", on=[*arns, *(queue.queue_arn for queue in self.refused.values())])
        for tenant, queue in self.queues.items():
            _let_send(queue, self._stage.submission_queues[tenant], function=function)
            source = lambda_.EventSourceMapping(
                self,
                f"From-{tenant}",
                target=function.function,
                event_source_arn=queue.queue_arn,
                batch_size=BATCH_SIZE,
                report_batch_item_failures=True,
                # Each tenant by itself: nobody's flood takes the place of requests, or of another tenant's messages.
                max_concurrency=MAX_CONCURRENCY.start,
            )
            acknowledge(
                source,
                "Serverless-LambdaEventSourceMappingDestination",
                because="SQS sources have no failure destination, and what is refused is sent to the queue of the refused.",
            )

    def _queue(self, tenant: str) -> sqs.Queue:
        return sqs.Queue(
            self,
            f"Queue-{tenant}",
            queue_name=rules.queue_name(self._stage.name, tenant),
            retention_period=cdk.Duration.days(rules.LIFE.days),
            visibility_timeout=cdk.Duration.seconds(_TIMEOUTS_HIDDEN * int(self._stage.api.timeout.total_seconds())),
            max_message_size_bytes=rules.MOST_BYTES,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            dead_letter_queue=sqs.DeadLetterQueue(queue=self.refused[tenant], max_receive_count=rules.MOST_RECEIVES),
        )

    def _refused(self, tenant: str) -> sqs.Queue:
        queue = sqs.Queue(
            self,
            f"Refused-{tenant}",
            queue_name=rules.refused_name(self._stage.name, tenant),
            retention_period=RETENTION,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
        )
        acknowledge(
            queue,
            "Serverless-SQSRedrivePolicy",
            because="The end of the line: its tenant reads it, and sends again what may come in by now.",
        )
        return queue


def _let_send(queue: sqs.Queue, senders: Sequence[str], *, function: Function) -> None:
    """IAM of the account says who may send; nobody may whom the stage does not name. Services are let in one by one."""
    if ANYBODY in senders:
        return
    queue.add_to_resource_policy(
        iam.PolicyStatement(
            sid="OnlyItsSenders",
            effect=iam.Effect.DENY,
            principals=[cast("iam.IPrincipal", iam.AnyPrincipal())],
            actions=["sqs:SendMessage"],
            resources=[queue.queue_arn],
            conditions={
                "ArnNotLike": {"aws:PrincipalArn": [*principal_arns(senders), function.role.role_arn]},
                "Bool": {"aws:PrincipalIsAWSService": "false"},
            },
        )
    )
