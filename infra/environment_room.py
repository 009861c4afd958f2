"""Whether the environment of a function has room for what a user's app adds to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk
from constructs import Construct

from infra.stage_parts import InvalidStage

MOST = 4_096
"""Bytes: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"""

_LONGEST = {"AWS::Region": len("ap-southeast-1"), "AWS::AccountId": 12, "AWS::Partition": len("aws-us-gov")}
_LONGEST_REFERENCE = 130
"""A name, an ARN or an address of what a stack makes."""


def check_room(scope: Construct, environment: Mapping[str, str]) -> None:
    """Raises InvalidStage where it may have more than Lambda takes, once every reference is a text."""
    stack = cdk.Stack.of(scope)
    size = sum(len(name) + longest(stack.resolve(value)) for name, value in environment.items())
    if size > MOST:
        raise InvalidStage(
            f"{scope.node.path}: its environment may have {size} bytes with these targets and handlers_environment, but Lambda takes {MOST}: in "
            "place of many targets use a pattern such as arn:aws:sqs:*:123456789012:shop-*, or take out submission_queues or plans"
        )


def longest(value: Any) -> int:
    """Characters of a resolved value, at most."""
    match value:
        case str():
            return len(value.encode())
        case {"Fn::Join": [separator, list() as parts]}:
            return sum(longest(part) + len(separator) for part in parts)
        case {"Ref": str() as name} if name in _LONGEST:
            return _LONGEST[name]
        case _:
            return _LONGEST_REFERENCE
