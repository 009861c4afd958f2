"""What has the files of jobs read that are put into their bucket."""

from __future__ import annotations

import json
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from functions.domain.jobs.submission_files import RESULTS, SUBMISSIONS
from functions.domain.jobs.submission_queues import files_name
from infra.acknowledge import acknowledge
from infra.files_bucket import files_export
from infra.package import Function
from infra.ready_queues import RETENTION
from infra.stage import Stage
from infra.throughput import MAX_CONCURRENCY

_TIMEOUTS_HIDDEN = 6
"""AWS asks for six of the consumer's: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html"""


class SubmissionFiles(Construct):
    """Nothing, where the stage takes no files. bucket: of the storage. bucket_arn: as exported, by a name of its own."""

    def __init__(
        self, scope: Construct, construct_id: str, *, stage: Stage, bucket: s3.Bucket | None, bucket_arn: str
    ) -> None:
        super().__init__(scope, construct_id)
        self._stage, self._bucket, self._bucket_arn = stage, bucket, bucket_arn
        self.queue = None if bucket is None else self._queue_of(bucket)

    @property
    def bucket_setting(self) -> str:
        """Where they are, as functions read it: a JSON list."""
        return json.dumps([self._bucket.bucket_name] if self._bucket else [])

    @property
    def urls(self) -> list[str]:
        """Where the turns are."""
        return [self.queue.queue_url] if self.queue else []

    def feed(self, function: Function) -> None:
        """Let a function read files, in turns that it sends itself."""
        if self.queue is None:
            return
        queue = [self.queue.queue_arn]
        function.grant("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", on=queue)
        function.grant("sqs:SendMessage", "sqs:ChangeMessageVisibility", on=queue)
        function.grant("s3:GetObject", on=[f"{self._bucket_arn}/{folder}*" for folder in (SUBMISSIONS, RESULTS)])
        function.grant("s3:PutObject", on=[f"{self._bucket_arn}/{RESULTS}*"])
        function.grant("s3:ListBucket", on=[self._bucket_arn])
        for folder in (SUBMISSIONS, RESULTS):
            acknowledge(
                function.role,
                f"AwsSolutions-IAM5[Resource::{files_export(self._stage)}/{folder}*]",
                because="Keys below it are chosen by tenants.",
            )
        source = lambda_.EventSourceMapping(
            self,
            "Source",
            target=function.function,
            event_source_arn=self.queue.queue_arn,
            # A turn has an invocation of its own.
            batch_size=1,
            report_batch_item_failures=True,
            max_concurrency=MAX_CONCURRENCY.start,
        )
        acknowledge(
            source,
            "Serverless-LambdaEventSourceMappingDestination",
            because="SQS sources have no failure destination, and what became of a file is in its progress.",
        )

    def _queue_of(self, bucket: s3.Bucket) -> sqs.Queue:
        queue = sqs.Queue(
            self,
            "Queue",
            queue_name=files_name(self._stage.name),
            retention_period=RETENTION,
            visibility_timeout=cdk.Duration.seconds(_TIMEOUTS_HIDDEN * int(self._stage.api.timeout.total_seconds())),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
        )
        for finding in ("Serverless-SQSRedrivePolicy", "AwsSolutions-SQS3"):
            acknowledge(
                queue,
                finding,
                because="A turn that fails comes again until it succeeds: in a dead-letter queue nobody would carry it on.",
            )
        rule = events.CfnRule(
            self,
            "Rule",
            description="Has files of jobs read that are put",
            event_pattern={
                "source": ["aws.s3"],
                "detail-type": ["Object Created"],
                "detail": {"bucket": {"name": [bucket.bucket_name]}, "object": {"key": [{"prefix": SUBMISSIONS}]}},
            },
            targets=[events.CfnRule.TargetProperty(id="Queue", arn=queue.queue_arn)],
        )
        acknowledge(
            rule,
            "Serverless-EventBusDLQ",
            because="A file that nobody was told of can be put again: no job is doubled.",
        )
        queue.add_to_resource_policy(
            iam.PolicyStatement(
                sid="ItsBucket",
                principals=[cast("iam.IPrincipal", iam.ServicePrincipal("events.amazonaws.com"))],
                actions=["sqs:SendMessage"],
                resources=[queue.queue_arn],
                conditions={
                    "ArnEquals": {"aws:SourceArn": rule.attr_arn},
                    "StringEquals": {"aws:SourceAccount": cdk.Stack.of(queue).account},
                },
            )
        )
        return queue
