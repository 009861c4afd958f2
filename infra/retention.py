"""What becomes of data when its stack is deleted."""

from __future__ import annotations

import aws_cdk as cdk


def retention(*, retained: bool) -> cdk.RemovalPolicy:
    """Keep data that is `retained`, unless the creation of its stack fails: then nothing would ever use it again.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-deletionpolicy.html
    """
    return cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if retained else cdk.RemovalPolicy.DESTROY
