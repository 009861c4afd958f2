"""The function that carries out resources of Tickwheel in users' stacks: schedules, and who may act for a tenant."""

from __future__ import annotations

from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

import functions
from infra.acknowledge import acknowledge
from infra.api import Api
from infra.encryption import encrypt
from infra.package import Deployment

TIMEOUT = cdk.Duration.seconds(120)
ANSWERED_WITHIN = cdk.Duration.seconds(600)
"""When CloudFormation gives up on a resource: behind a run of the function, the minute until Lambda makes another, and the two minutes until the third."""

_MEMORY_MB = 256


class Resources(Construct):
    """Acts as the operators' role, because it acts for any tenant: who may invoke it is an operator.

    Not in a VPC, where the stage's other functions may be: it needs the API and CloudFormation's answers alone.
    """

    def __init__(self, scope: Construct, construct_id: str, *, deployment: Deployment, api: Api) -> None:
        super().__init__(scope, construct_id)
        stage = deployment.stage
        log_group = logs.LogGroup(self, "Logs", retention=stage.log_retention, removal_policy=cdk.RemovalPolicy.DESTROY)
        role = iam.Role(self, "Role", assumed_by=cast("iam.IPrincipal", iam.ServicePrincipal("lambda.amazonaws.com")))
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[log_group.log_group_arn]
            )
        )
        role.add_to_policy(iam.PolicyStatement(actions=["sts:AssumeRole"], resources=[api.operator.role_arn]))
        function = lambda_.Function(
            self,
            "Function",
            description=f"Resources of Tickwheel {stage.name} in stacks: schedules, principals of tenants",
            code=deployment.package.code,
            layers=[deployment.package.layer],
            handler=f"{functions.__name__}.resources.handler.handler",
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=lambda_.Architecture.ARM_64,
            memory_size=_MEMORY_MB,
            timeout=TIMEOUT,
            role=cast("iam.IRole", role),
            log_group=log_group,
            environment={
                "API_ENDPOINT": api.default_endpoint,
                "OPERATOR_ROLE": api.operator.role_arn,
                "POWERTOOLS_SERVICE_NAME": "resources",
                "LOG_LEVEL": stage.log_level,
            },
        )
        encrypt(self, key=deployment.storage.key)
        self.arn = function.function_arn
        self._answer_findings(function)

    def _answer_findings(self, function: lambda_.Function) -> None:
        for rule in ("AwsSolutions-L1", "Serverless-LambdaLatestVersion"):
            acknowledge(function, rule, because="The pins of the layer are resolved and tested for this runtime.")
        for rule in ("Serverless-LambdaDLQ", "Serverless-LambdaAsyncFailureDestination"):
            acknowledge(
                function,
                rule,
                because="CloudFormation waits for each answer, and fails the stack of who asked without it.",
            )
        acknowledge(
            function,
            "Serverless-LambdaTracing",
            because="It runs when stacks are deployed, and its log line says what it did.",
        )
