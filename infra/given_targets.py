"""Targets that are constructs of a user's app: their ARNs, and what the worker needs to call them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn

from functions.domain.targets.kinds import SERVICES, Kind
from infra.stage_parts import InvalidStage

Target: TypeAlias = sqs.IQueue | lambda_.IFunction | sns.ITopic | events.IEventBus | sfn.IStateMachine
"""What a job may call and a CDK app may hold."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """How a construct of a kind is known: the attribute with its ARN; its L1 type, and what that calls its name."""

    kind: Kind
    arn: str
    resource: str
    name: str
    key: str = ""


_SHAPES = (
    _Shape(Kind.SQS, "queue_arn", "AWS::SQS::Queue", "queue_name", key="encryption_master_key"),
    _Shape(Kind.LAMBDA, "function_arn", "AWS::Lambda::Function", "function_name"),
    _Shape(Kind.SNS, "topic_arn", "AWS::SNS::Topic", "topic_name", key="master_key"),
    _Shape(Kind.EVENTS, "event_bus_arn", "AWS::Events::EventBus", "name"),
    _Shape(Kind.STATES, "state_machine_arn", "AWS::StepFunctions::StateMachine", "state_machine_name"),
)


@dataclass(frozen=True, slots=True)
class GivenTarget:
    """A construct as a target. arn: a token, but for what was imported by a whole ARN. key: that it is encrypted with."""

    kind: Kind
    arn: str
    key: kms.IKey | None = None


def given_target(target: Target) -> GivenTarget:
    """Raises InvalidStage for what is no target.

    The ARN of what has a name of its own is made of that, and makes no dependency between stacks: whoever submits jobs may stand in the same stack as
    what they call, although the scheduler's stack is deployed before.
    """
    for shape in _SHAPES:
        arn = getattr(target, shape.arn, None)
        if isinstance(arn, str):
            key = getattr(target, shape.key, None) if shape.key else None
            return GivenTarget(shape.kind, _by_name(target, shape) or arn, key)
    raise InvalidStage(
        f"targets has {target!r:.80}: use a queue, a function, a topic, a bus or a state machine, or a pattern as the stage's targets have"
    )


def _by_name(target: Any, shape: _Shape) -> str | None:
    resource = target.node.default_child
    if not isinstance(resource, cdk.CfnResource) or resource.cfn_resource_type != shape.resource:
        return None
    name = getattr(resource, shape.name, None)
    if not isinstance(name, str) or cdk.Token.is_unresolved(name):
        return None
    stack = cdk.Stack.of(target)
    return f"arn:{stack.partition}:{shape.kind}:{stack.region}:{stack.account}:{SERVICES[shape.kind].prefix}{name}"
