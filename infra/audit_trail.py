"""The audit trail: a stream that writes lines to a bucket by the day, and the table that Athena reads them as.

It is part of what outlives a deployment. A stream that is deleted loses what it holds back, so whoever sends to it goes
first.
"""

from __future__ import annotations

from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_athena as athena
from aws_cdk import aws_glue as glue
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kinesisfirehose as firehose
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from functions.domain.audit import COLUMNS
from infra.acknowledge import acknowledge
from infra.audit_queries import TABLE, queries
from infra.private_bucket import private_bucket
from infra.stage import Stage

LIFE = cdk.Duration.days(400)
"""How long lines are kept: as long as the usage of tenants can be asked for."""

RESULTS_LIFE = cdk.Duration.days(30)
FIRST_DAY = "2026-01-01"

BUFFER_SECONDS = 300
BUFFER_MB = 128
"""Whichever comes first: few objects make queries fast, and five minutes is how old the trail may be."""

MOST_SCANNED_BYTES = 100 * 1024**3
"""By one query: half a dollar."""

LINES = "lines/"
FAILURES = "failed/"
RESULTS = "results/"
DAY = "day=!{timestamp:yyyy-MM-dd}/"


class AuditTrail(Construct):
    """bucket, stream_name, stream_arn: where lines go. workgroup, database: where they are asked for."""

    def __init__(self, scope: Construct, construct_id: str, *, stage: Stage) -> None:
        super().__init__(scope, construct_id)
        self.database = f"tickwheel_{stage.name}"
        self.workgroup = f"tickwheel-{stage.name}"
        self.bucket = _bucket(self, stage=stage)
        stream, self._writer = _stream(self, stage=stage, bucket=self.bucket)
        self.stream_name, self.stream_arn = stream.ref, stream.attr_arn
        table = _table(self, database=self.database, bucket=self.bucket)
        workgroup = _workgroup(self, name=self.workgroup, bucket=self.bucket)
        if stage.emulated:
            return  # the emulator's CloudFormation knows no saved queries
        for query in queries(stage.objective.lag):
            saved = athena.CfnNamedQuery(
                self,
                query.name,
                name=query.title,
                description=query.description,
                database=self.database,
                work_group=self.workgroup,
                query_string=query.sql,
            )
            saved.add_resource_dependency(table)
            saved.add_resource_dependency(workgroup)

    def unlock(self, key: kms.IKey | None) -> None:
        """Let what writes the bucket use the key that it is encrypted with, through S3 and for this bucket alone."""
        if key is None:
            return
        region = cdk.Stack.of(self).region
        self._writer.add_to_policy(
            iam.PolicyStatement(
                actions=["kms:Decrypt", "kms:GenerateDataKey"],
                resources=[key.key_arn],
                conditions={
                    "StringEquals": {
                        "kms:ViaService": f"s3.{region}.amazonaws.com",
                        "kms:EncryptionContext:aws:s3:arn": self.bucket.bucket_arn,
                    }
                },
            )
        )


def _bucket(scope: Construct, *, stage: Stage) -> s3.Bucket:
    bucket = private_bucket(
        scope,
        "Bucket",
        retained=stage.retained,
        rules=[
            s3.LifecycleRule(id="ExpireLines", prefix=LINES, expiration=LIFE),
            s3.LifecycleRule(id="ExpireFailures", prefix=FAILURES, expiration=LIFE),
            s3.LifecycleRule(id="ExpireResults", prefix=RESULTS, expiration=RESULTS_LIFE),
        ],
    )
    acknowledge(
        bucket,
        "AwsSolutions-S1",
        because="Only the stream writes it and only people's queries read it, of which Athena keeps a history.",
    )
    return bucket


def _stream(scope: Construct, *, stage: Stage, bucket: s3.Bucket) -> tuple[firehose.CfnDeliveryStream, iam.Role]:
    """The stream, and the role with which it writes."""
    log_group = logs.LogGroup(
        scope, "StreamLogs", retention=stage.log_retention, removal_policy=cdk.RemovalPolicy.DESTROY
    )
    log_stream = logs.LogStream(
        scope,
        "Deliveries",
        log_group=cast("logs.ILogGroup", log_group),
        removal_policy=cdk.RemovalPolicy.DESTROY,
    )
    role = _stream_role(scope, bucket=bucket, log_group=log_group, log_stream=log_stream)
    stream = firehose.CfnDeliveryStream(
        scope,
        "Stream",
        delivery_stream_type="DirectPut",
        # A key of AWS's own, without a price: what lies in the bucket is encrypted by S3.
        delivery_stream_encryption_configuration_input=firehose.CfnDeliveryStream.DeliveryStreamEncryptionConfigurationInputProperty(
            key_type="AWS_OWNED_CMK"
        ),
        extended_s3_destination_configuration=firehose.CfnDeliveryStream.ExtendedS3DestinationConfigurationProperty(
            bucket_arn=bucket.bucket_arn,
            role_arn=role.role_arn,
            # By the instant at which the oldest line of an object arrived, which costs nothing. By tenant, it would be
            # dynamic partitioning: dearer by the GB, and an object for each tenant and five minutes.
            prefix=f"{LINES}{DAY}",
            error_output_prefix=FAILURES + "!{firehose:error-output-type}/" + DAY,
            buffering_hints=firehose.CfnDeliveryStream.BufferingHintsProperty(
                interval_in_seconds=BUFFER_SECONDS, size_in_m_bs=BUFFER_MB
            ),
            compression_format="GZIP",
            cloud_watch_logging_options=firehose.CfnDeliveryStream.CloudWatchLoggingOptionsProperty(
                enabled=True, log_group_name=log_group.log_group_name, log_stream_name=log_stream.log_stream_name
            ),
        ),
    )
    # Firehose tries the role when it makes the stream.
    stream.node.add_dependency(role)
    return stream, role


def _stream_role(
    scope: Construct, *, bucket: s3.Bucket, log_group: logs.LogGroup, log_stream: logs.LogStream
) -> iam.Role:
    stack = cdk.Stack.of(scope)
    role = iam.Role(
        scope,
        "StreamRole",
        assumed_by=cast(
            "iam.IPrincipal",
            iam.ServicePrincipal(
                "firehose.amazonaws.com", conditions={"StringEquals": {"sts:ExternalId": stack.account}}
            ),
        ),
    )
    # What Firehose's guide asks for, apart by what each action is on.
    role.add_to_policy(
        iam.PolicyStatement(
            actions=["s3:GetBucketLocation", "s3:ListBucket", "s3:ListBucketMultipartUploads"],
            resources=[bucket.bucket_arn],
        )
    )
    # Where it writes: results of queries lie in the same bucket, and are none of its business.
    objects = [bucket.arn_for_objects(f"{folder}*") for folder in (LINES, FAILURES)]
    role.add_to_policy(
        iam.PolicyStatement(actions=["s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject"], resources=objects)
    )
    log_arn = stack.format_arn(
        service="logs",
        resource="log-group",
        resource_name=f"{log_group.log_group_name}:log-stream:{log_stream.log_stream_name}",
        arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
    )
    role.add_to_policy(iam.PolicyStatement(actions=["logs:PutLogEvents"], resources=[log_arn]))
    name = stack.get_logical_id(cast("cdk.CfnElement", bucket.node.default_child))
    for folder in (LINES, FAILURES):
        acknowledge(
            role,
            f"AwsSolutions-IAM5[Resource::<{name}.Arn>/{folder}*]",
            because="Keys below it are made by Firehose from the day and the name of the stream.",
        )
    return role


def _table(scope: Construct, *, database: str, bucket: s3.Bucket) -> glue.CfnTable:
    catalog = cdk.Stack.of(scope).account
    owner = glue.CfnDatabase(
        scope,
        "Database",
        catalog_id=catalog,
        database_input=glue.CfnDatabase.DatabaseInputProperty(
            name=database, description="The audit trail: how executions ended, and who did what"
        ),
    )
    location = f"s3://{bucket.bucket_name}/{LINES}"
    table = glue.CfnTable(
        scope,
        "Table",
        catalog_id=catalog,
        database_name=database,
        table_input=glue.CfnTable.TableInputProperty(
            name=TABLE,
            description="A line for each execution that ended and each action of a caller; docs/audit.md explains the columns",
            table_type="EXTERNAL_TABLE",
            parameters={
                "classification": "json",
                # Athena works the days out: nothing has to look for new ones.
                "projection.enabled": "true",
                "projection.day.type": "date",
                "projection.day.format": "yyyy-MM-dd",
                "projection.day.range": f"{FIRST_DAY},NOW",
                "projection.day.interval": "1",
                "projection.day.interval.unit": "DAYS",
                "storage.location.template": f"{location}day=${{day}}/",
            },
            partition_keys=[glue.CfnTable.ColumnProperty(name="day", type="string")],
            storage_descriptor=glue.CfnTable.StorageDescriptorProperty(
                location=location,
                columns=[glue.CfnTable.ColumnProperty(name=name, type=kind) for name, kind in COLUMNS.items()],
                input_format="org.apache.hadoop.mapred.TextInputFormat",
                output_format="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
                serde_info=glue.CfnTable.SerdeInfoProperty(serialization_library="org.openx.data.jsonserde.JsonSerDe"),
            ),
        ),
    )
    table.add_resource_dependency(owner)
    return table


def _workgroup(scope: Construct, *, name: str, bucket: s3.Bucket) -> athena.CfnWorkGroup:
    return athena.CfnWorkGroup(
        scope,
        "WorkGroup",
        name=name,
        description="Queries of the audit trail",
        recursive_delete_option=True,
        work_group_configuration=athena.CfnWorkGroup.WorkGroupConfigurationProperty(
            enforce_work_group_configuration=True,
            publish_cloud_watch_metrics_enabled=True,
            bytes_scanned_cutoff_per_query=MOST_SCANNED_BYTES,
            result_configuration=athena.CfnWorkGroup.ResultConfigurationProperty(
                output_location=f"s3://{bucket.bucket_name}/{RESULTS}",
                encryption_configuration=athena.CfnWorkGroup.EncryptionConfigurationProperty(
                    encryption_option="SSE_S3"
                ),
            ),
        ),
    )
