"""What the worker may call in AWS: the ARNs of the stage's allowed targets, and nothing of a service without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam

from functions.domain.targets.kinds import SERVICES, Kind
from infra.acknowledge import acknowledge
from infra.given_targets import GivenTarget
from infra.package import Function
from infra.stage import Stage

_WITH_QUALIFIER = 8
"""Parts of the ARN of a version or an alias."""


def grant_targets(function: Function, *, stage: Stage) -> None:
    """Allow the function to call what the patterns of the stage name, each service by its own actions."""
    for kind, service in SERVICES.items():
        resources = [arn for pattern in stage.allowed_targets.arns(kind) for arn in granted_arns(kind, pattern)]
        if not resources:
            continue
        function.grant(service.calls, *service.looks_up, on=resources)
        for resource in resources:
            if "*" in resource:
                acknowledge(
                    function.role,
                    f"AwsSolutions-IAM5[Resource::{resource}]",
                    because="The targets that this stage allows, as infra/stage.py lists them; jobs name them at run time.",
                )


def grant_given(function: Function, targets: Sequence[GivenTarget]) -> None:
    """Allow the function to call them, and to use the keys that they are encrypted with."""
    for target in targets:
        service = SERVICES[target.kind]
        arns = [target.arn, f"{target.arn}:*"] if service.is_qualified else [target.arn]
        # Not by `grant`: what that notes is of this app's own, and opened by its key.
        function.role.add_to_principal_policy(
            iam.PolicyStatement(actions=[service.calls, *service.looks_up], resources=arns)
        )
        if service.is_qualified:
            shown = flat(cdk.Stack.of(function).resolve(arns[1]))
            acknowledge(
                function.role,
                f"AwsSolutions-IAM5[Resource::{shown}]",
                because="Versions and aliases of a target that was given: jobs name them at run time.",
            )
        if target.key is not None:
            target.key.grant(function.role, "kms:Decrypt", "kms:GenerateDataKey")


def granted_arns(kind: Kind, pattern: str) -> list[str]:
    """The ARNs that a pattern stands for: a function's or a state machine's versions and aliases are called by theirs."""
    has_qualifiers = SERVICES[kind].is_qualified and len(pattern.split(":")) < _WITH_QUALIFIER
    return [pattern, f"{pattern}:*"] if has_qualifiers else [pattern]


def flat(value: Any) -> str:
    """A resolved text as cdk-nag shows it: a reference in angle brackets."""
    match value:
        case {"Fn::Join": [separator, list() as parts]}:
            return str(separator).join(map(flat, parts))
        case {"Ref": name}:
            return f"<{name}>"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"<{name}.{attribute}>"
        case Mapping():
            return "".join(map(flat, value.values()))
        case _:
            return str(value)
