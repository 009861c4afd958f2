"""A bucket that nobody outside the account can reach, and nobody without TLS."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.retention import retention


def private_bucket(
    scope: Construct, construct_id: str, *, retained: bool, rules: Sequence[s3.LifecycleRule]
) -> s3.Bucket:
    """Without versions: what is written once and deleted is gone. rules: of its lifecycle, beside that for uploads."""
    return s3.Bucket(
        scope,
        construct_id,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        encryption=s3.BucketEncryption.S3_MANAGED,
        enforce_ssl=True,
        versioned=False,
        lifecycle_rules=[
            s3.LifecycleRule(id="AbortUploads", abort_incomplete_multipart_upload_after=cdk.Duration.days(1)),
            *rules,
        ],
        removal_policy=retention(retained=retained),
    )
