"""The bucket that files of jobs are put into."""

from __future__ import annotations

from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_s3 as s3
from constructs import Construct

from functions.domain.jobs.submission_files import LIFE
from infra.acknowledge import acknowledge
from infra.private_bucket import private_bucket
from infra.stage import Stage


def files_export(stage: Stage) -> str:
    """Name the export of the bucket's ARN."""
    return f"Tickwheel-{stage.name}-Files"


def files_bucket(scope: Construct, *, stage: Stage) -> s3.Bucket | None:
    """Nothing, where the stage takes no files. S3 tells EventBridge of what is put: that needs no other function."""
    if not stage.submission_files:
        return None
    bucket = private_bucket(
        scope,
        "Files",
        retained=stage.retained,
        rules=[s3.LifecycleRule(id="Expire", expiration=cdk.Duration.days(LIFE.days))],
    )
    made = cast("s3.CfnBucket", bucket.node.default_child)
    made.notification_configuration = s3.CfnBucket.NotificationConfigurationProperty(
        event_bridge_configuration=s3.CfnBucket.EventBridgeConfigurationProperty(event_bridge_enabled=True)
    )
    acknowledge(bucket, "AwsSolutions-S1", because="Each file leaves its progress and each of its jobs an audit line.")
    return bucket
