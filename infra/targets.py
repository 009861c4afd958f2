"""What the worker may call in AWS: the ARNs of the stage's allowed targets, and nothing of a service without one."""

from __future__ import annotations

from functions.domain.targets.kinds import SERVICES, Kind
from infra.acknowledge import acknowledge
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


def granted_arns(kind: Kind, pattern: str) -> list[str]:
    """The ARNs that a pattern stands for: a function's or a state machine's versions and aliases are called by theirs."""
    has_qualifiers = SERVICES[kind].is_qualified and len(pattern.split(":")) < _WITH_QUALIFIER
    return [pattern, f"{pattern}:*"] if has_qualifiers else [pattern]
