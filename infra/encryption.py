"""A customer's key for all that a stage keeps: which one it is, and what is encrypted with it."""

from __future__ import annotations

from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_athena as athena
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kinesisfirehose as firehose
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.retention import retention
from infra.stage import OWN_KEY, Stage

DATA_KEY_REUSE = cdk.Duration.hours(1)
"""How long SQS goes on with a data key: for so long a key that was taken away still opens its messages."""

DELETION_WINDOW = cdk.Duration.days(30)
"""KMS's longest: until then a deletion can be taken back."""


def customer_key(scope: Construct, *, stage: Stage) -> kms.IKey | None:
    """The key that the stage names, or one of its own; None where the keys of AWS will do.

    The policy of a key that already exists stays as it is: docs/security.md says what must be in it.
    """
    if stage.customer_key is None:
        return None
    if stage.customer_key != OWN_KEY:
        return kms.Key.from_key_arn(scope, "Key", stage.customer_key)
    key = kms.Key(
        scope,
        "Key",
        description=f"Tickwheel {stage.name}: all that it keeps",
        enable_key_rotation=True,
        pending_window=DELETION_WINDOW,
        removal_policy=retention(retained=stage.retained),
    )
    for statement in key_policy(scope, stage=stage):
        key.add_to_resource_policy(statement)
    return cast("kms.IKey", key)


def key_policy(scope: Construct, *, stage: Stage) -> list[iam.PolicyStatement]:
    """What services do with the key on nobody's behalf: keep logs, send events to queues. Roles are allowed their part by IAM."""
    stack = cdk.Stack.of(scope)
    log_groups = stack.format_arn(
        service="logs",
        resource="log-group",
        resource_name=f"*Tickwheel-{stage.name}-*",
        arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
    )
    statements = [
        iam.PolicyStatement(
            sid="Logs",
            principals=[_service(f"logs.{stack.region}.amazonaws.com")],
            actions=["kms:Encrypt*", "kms:Decrypt*", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:Describe*"],
            resources=["*"],
            conditions={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": log_groups}},
        ),
    ]
    if stage.event_rules or stage.submission_files:
        queues = stack.format_arn(service="sqs", resource=f"Tickwheel-{stage.name}-*")
        statements.append(
            iam.PolicyStatement(
                sid="EventRules",
                principals=[_service("events.amazonaws.com")],
                actions=["kms:Decrypt", "kms:GenerateDataKey"],
                resources=["*"],
                conditions={"ArnLike": {"kms:EncryptionContext:aws:sqs:arn": queues}},
            )
        )
    return statements


def encrypt(scope: Construct, *, key: kms.IKey | None) -> None:
    """Encrypt with the key whatever a stack keeps data in, or a part of it: all of it, so that a new queue or table is not forgotten.

    Topics carry alarms and no data, and keep a key of their own: a key that is out of reach must not silence what pages.
    """
    if key is None:
        return
    arn = key.key_arn
    for construct in scope.node.find_all():
        if isinstance(construct, dynamodb.CfnTable):
            construct.sse_specification = dynamodb.CfnTable.SSESpecificationProperty(
                sse_enabled=True, sse_type="KMS", kms_master_key_id=arn
            )
        elif isinstance(construct, s3.CfnBucket):
            construct.bucket_encryption = _bucket_encryption(arn)
        elif isinstance(construct, sqs.CfnQueue):
            construct.sqs_managed_sse_enabled = None
            construct.kms_master_key_id = arn
            construct.kms_data_key_reuse_period_seconds = DATA_KEY_REUSE.to_seconds()
        elif isinstance(construct, logs.CfnLogGroup | secretsmanager.CfnSecret):
            construct.kms_key_id = arn
        elif isinstance(construct, firehose.CfnDeliveryStream):
            # Firehose makes itself a grant with the rights of whoever deploys.
            construct.delivery_stream_encryption_configuration_input = (
                firehose.CfnDeliveryStream.DeliveryStreamEncryptionConfigurationInputProperty(
                    key_type="CUSTOMER_MANAGED_CMK", key_arn=arn
                )
            )
        elif isinstance(construct, athena.CfnWorkGroup):
            results = "WorkGroupConfiguration.ResultConfiguration.EncryptionConfiguration"
            construct.add_property_override(results, {"EncryptionOption": "SSE_KMS", "KmsKey": arn})


def _bucket_encryption(arn: str) -> s3.CfnBucket.BucketEncryptionProperty:
    return s3.CfnBucket.BucketEncryptionProperty(
        server_side_encryption_configuration=[
            s3.CfnBucket.ServerSideEncryptionRuleProperty(
                # One request to KMS for many objects, instead of one for each.
                bucket_key_enabled=True,
                server_side_encryption_by_default=s3.CfnBucket.ServerSideEncryptionByDefaultProperty(
                    sse_algorithm="aws:kms", kms_master_key_id=arn
                ),
            )
        ]
    )


def _service(name: str) -> iam.IPrincipal:
    return cast("iam.IPrincipal", iam.ServicePrincipal(name))
