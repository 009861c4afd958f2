"""What calls a function every minute, once per input."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.acknowledge import acknowledge
from infra.package import Function

TARGETS_PER_RULE = 5
"""EventBridge's limit."""

MAX_AGE = cdk.Duration.seconds(60)
"""A tick that could not be delivered within a minute is the next tick."""


class MinuteTicks(Construct):
    """Rules that fire each minute, with one constant JSON input per target, and one permission for all of them."""

    def __init__(
        self, scope: Construct, construct_id: str, *, function: Function, inputs: Sequence[Mapping[str, int]]
    ) -> None:
        super().__init__(scope, construct_id)
        arn = function.function.function_arn
        # EventBridge takes 64 characters (https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutRule.html): CloudFormation
        # would cut a long name, and no pattern of the permission would be sure to match what is left.
        prefix = f"{cdk.Stack.of(self).stack_name}-{function.name}-"
        for first in range(0, len(inputs), TARGETS_PER_RULE):
            rule = events.CfnRule(
                self,
                f"From{first}",
                name=f"{prefix}{first}",
                description=f"Ticks of the {function.name}",
                schedule_expression="rate(1 minute)",
                state="ENABLED",
                targets=[
                    _target(arn, index=index, value=value)
                    for index, value in enumerate(inputs[first : first + TARGETS_PER_RULE], start=first)
                ],
            )
            acknowledge(
                rule,
                "Serverless-EventBusDLQ",
                because="A lost tick holds no data: cursors and leases are in tables, the next tick reads them.",
            )
        # One statement for every rule of this construct: one for each would pass Lambda's 20 KB policy limit at 64 shards.
        lambda_.CfnPermission(
            self,
            "Permission",
            action="lambda:InvokeFunction",
            function_name=arn,
            principal="events.amazonaws.com",
            source_arn=cdk.Stack.of(self).format_arn(service="events", resource="rule", resource_name=f"{prefix}*"),
        )


def _target(arn: str, *, index: int, value: Mapping[str, int]) -> events.CfnRule.TargetProperty:
    return events.CfnRule.TargetProperty(
        arn=arn,
        id=f"Target{index}",
        input=json.dumps(value),
        retry_policy=events.CfnRule.RetryPolicyProperty(
            maximum_retry_attempts=0, maximum_event_age_in_seconds=int(MAX_AGE.to_seconds())
        ),
    )
