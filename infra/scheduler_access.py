"""What users' stacks ask of a scheduler: who may call its API for which tenant, and what it measures."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from typing import Any, cast

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

from functions.domain.jobs.job import TENANT
from infra.acknowledge import acknowledge
from infra.resources import ANSWERED_WITHIN
from infra.scheduler_metrics import SchedulerMetrics
from infra.stage import Stage
from infra.stage_parts import InvalidStage
from infra.targets import flat

PRINCIPAL = "Custom::TickwheelPrincipal"

SUBMITS = ("POST/v1/jobs", "POST/v1/jobs:batch")
READS = ("GET/v1/*",)
MANAGES = ("*/v1/*",)
"""Routes of the API, as `execute-api` has them behind the name of a stage."""


class SchedulerAccess(SchedulerMetrics):
    """A grant has two halves: IAM lets a role call routes, and the scheduler lets it act for one tenant.

    The second is a resource of the grantee's stack, which makes the role a principal of the tenant and takes it away again.
    """

    target_arns: Collection[str] | None = None
    """Of the constructs that jobs may call; None where that is not known in this app."""

    @property
    @abstractmethod
    def endpoint(self) -> str:
        """Where signed requests go."""

    @property
    @abstractmethod
    def api_id(self) -> str:
        """Of the HTTP API, as ARNs have it."""

    @property
    @abstractmethod
    def resources_arn(self) -> str:
        """Of the function that carries out resources: the ServiceToken of theirs."""

    @abstractmethod
    def stands_before(self, stack: cdk.Stack) -> None:
        """Have the scheduler deployed before a stack."""

    def grant_submit(self, grantee: iam.IGrantable, *, tenant: str) -> iam.Grant:
        """Let a role or a user submit jobs of a tenant."""
        return self._grant(grantee, tenant, SUBMITS)

    def grant_read(self, grantee: iam.IGrantable, *, tenant: str) -> iam.Grant:
        """Let a role or a user read all that there is of a tenant: jobs, schedules, dead letters, usage."""
        return self._grant(grantee, tenant, READS)

    def grant_manage(self, grantee: iam.IGrantable, *, tenant: str) -> iam.Grant:
        """Let a role or a user do all that a tenant may: also change schedules, cancel, replay."""
        return self._grant(grantee, tenant, MANAGES)

    def _grant(self, grantee: iam.IGrantable, tenant: str, routes: Sequence[str]) -> iam.Grant:
        if cdk.Token.is_unresolved(tenant) or not TENANT.fullmatch(tenant):
            raise InvalidStage(f"tenant is {tenant!r:.80}: use a text that matches {TENANT.pattern}")
        principal: Any = grantee.grant_principal
        arn = getattr(principal, "role_arn", None) or getattr(principal, "user_arn", None)
        if not isinstance(arn, str):
            raise InvalidStage(
                f"{grantee!r:.80} is neither a role nor a user, and has none: the scheduler knows callers by their roles"
            )
        self._make_principal(cast("IConstruct", principal), arn, tenant)
        stack = cdk.Stack.of(principal)
        arns = [
            f"arn:{stack.partition}:execute-api:{stack.region}:{stack.account}:{self.api_id}/*/{route}"
            for route in routes
        ]
        for arn in arns:
            acknowledge(
                cast("IConstruct", principal),
                f"AwsSolutions-IAM5[Resource::{flat(stack.resolve(arn))}]",
                because="Routes of this one API, whichever stage and whatever ids they name: the API says for which tenant.",
            )
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["execute-api:Invoke"],
            resource_arns=arns,
        )

    def _make_principal(self, principal: IConstruct, arn: str, tenant: str) -> None:
        name = f"Tickwheel-{self.stage.name}-{tenant}"
        if principal.node.try_find_child(name) is not None:
            return
        self.stands_before(cdk.Stack.of(principal))
        cdk.CustomResource(
            cast("Construct", principal),
            name,
            resource_type=PRINCIPAL,
            service_token=self.resources_arn,
            service_timeout=ANSWERED_WITHIN,
            properties={"Tenant": tenant, "Principal": arn},
        )


class DeployedTickwheel(SchedulerAccess):
    """A scheduler that another app deploys, or another language's. The values are outputs of its stacks.

    endpoint: `ApiEndpoint`. api_id: `ApiId`. resources_arn: `ResourcesFunctionArn`. The last two are there with `Tickwheel(..., resources=True)`.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, stage: Stage, endpoint: str, api_id: str, resources_arn: str
    ) -> None:
        super().__init__(scope, construct_id, stage=stage)
        self._endpoint, self._api_id, self._resources_arn = endpoint, api_id, resources_arn

    @property
    def endpoint(self) -> str:
        """Where signed requests go."""
        return self._endpoint

    @property
    def api_id(self) -> str:
        """Of the HTTP API."""
        return self._api_id

    @property
    def resources_arn(self) -> str:
        """Of the function that carries out resources."""
        return self._resources_arn

    def stands_before(self, stack: cdk.Stack) -> None:
        """It is there already."""
