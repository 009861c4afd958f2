"""The front door: an HTTP API that knows every caller by a signature."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_apigatewayv2_authorizers as authorizers
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from functions.api.http.route import Route
from functions.api.route_table import ROUTES
from infra.acknowledge import acknowledge
from infra.api_domain import ApiDomain
from infra.package import Deployment, Function
from infra.stage import Stage
from infra.submission_files import SubmissionFiles
from infra.submission_queues import SubmissionQueues


def gateway_route(route: Route) -> tuple[str, str]:
    """A route's method and path, as the gateway can tell it: there a variable is a whole segment, with the verb in it."""
    return route.method, route.whole_path


GATEWAY_ROUTES = tuple(dict.fromkeys(map(gateway_route, ROUTES)))
"""Those of the API, each once."""

ELSEWHERE = "/{proxy+}"
"""Any other path reaches the function too, to be answered as a problem instead of in the gateway's own words."""

REQUESTS_PER_SECOND = 10_000
BURST = 5_000
"""The account's own defaults, written down so that a stage cannot exceed them by accident."""

ACCESS_LOG_FORMAT = {
    "request_id": "$context.requestId",
    "requested_at": "$context.requestTimeEpoch",
    "caller": "$context.identity.userArn",
    "source_ip": "$context.identity.sourceIp",
    "route": "$context.routeKey",
    "status": "$context.status",
    "latency_ms": "$context.responseLatency",
    "response_bytes": "$context.responseLength",
    "error": "$context.error.message",
    "integration_error": "$context.integrationErrorMessage",
}


class Api(Construct):
    """The function behind the routes, and the address they share.

    operator: the role that may act for every tenant. token_endpoint: where tokens are taken; None where none are.
    gateways, access_logs: each address, and the name of its log, by how its callers identify themselves.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        deployment: Deployment,
        operations: Function,
        submissions: SubmissionQueues,
        files: SubmissionFiles,
    ) -> None:
        super().__init__(scope, construct_id)
        stage = deployment.stage
        self.operator = _operator(self, stage=stage)
        self.function = _function(
            self,
            deployment=deployment,
            operations=operations,
            submissions=submissions,
            files=files,
            operators=[*stage.operators, self.operator.role_arn],
        )
        api = _front(self, stage=stage, function=self.function, authorizer=authorizers.HttpIamAuthorizer())
        _allow(self.operator, api=api)
        self.gateways, self.access_logs = {"signed": api}, {"signed": _access_log_name(self)}
        self.api_id, self.default_endpoint = api.api_id, api.api_endpoint
        domain = deployment.surroundings.domain
        self.endpoint = f"https://{domain.name}" if domain else api.api_endpoint
        if domain is not None:
            ApiDomain(self, "Domain", domain=domain, api=api)
        self.token_endpoint: str | None = None
        if stage.jwt is not None:
            tokens = authorizers.HttpJwtAuthorizer("Tokens", stage.jwt.issuer, jwt_audience=list(stage.jwt.audience))
            # A route has one authorizer: the same routes, at an address of their own.
            place = Construct(self, "Tokens")
            taking_tokens = _front(
                place, stage=stage, function=self.function, authorizer=tokens, caller="$context.authorizer.claims.sub"
            )
            self.gateways["tokens"], self.access_logs["tokens"] = taking_tokens, _access_log_name(place)
            self.token_endpoint = taking_tokens.api_endpoint


def _front(
    scope: Construct,
    *,
    stage: Stage,
    function: Function,
    authorizer: apigateway.IHttpRouteAuthorizer,
    caller: str = "$context.identity.userArn",
) -> apigateway.HttpApi:
    """An address with every route. caller: what its access log identifies the caller by."""
    api = apigateway.HttpApi(
        scope,
        "Http",
        description=f"Tickwheel {stage.name}",
        create_default_stage=False,
        default_authorizer=authorizer,
    )
    integration = integrations.HttpLambdaIntegration("Function", function.function, scope_permission_to_route=False)
    for method, path in GATEWAY_ROUTES:
        api.add_routes(path=path, methods=[apigateway.HttpMethod(method)], integration=integration)
    api.add_routes(path=ELSEWHERE, methods=[apigateway.HttpMethod.ANY], integration=integration)
    _publish(scope, api=api, stage=stage, caller=caller)
    return api


def _publish(scope: Construct, *, api: apigateway.HttpApi, stage: Stage, caller: str) -> None:
    access_log = logs.LogGroup(
        scope,
        "AccessLog",
        # Below this prefix one resource policy of CloudWatch Logs holds for all groups. Elsewhere each API of the account
        # adds its own to it, until it has 5,120 characters and no stage can be created any more
        # (https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/AWS-logs-and-resource-policy.html).
        log_group_name=_access_log_name(scope),
        retention=stage.log_retention,
        removal_policy=cdk.RemovalPolicy.DESTROY,
    )
    apigateway.CfnStage(
        scope,
        "Stage",
        api_id=api.api_id,
        stage_name="$default",
        auto_deploy=True,
        access_log_settings=apigateway.CfnStage.AccessLogSettingsProperty(
            destination_arn=access_log.log_group_arn, format=json.dumps(ACCESS_LOG_FORMAT | {"caller": caller})
        ),
        default_route_settings=apigateway.CfnStage.RouteSettingsProperty(
            throttling_rate_limit=REQUESTS_PER_SECOND, throttling_burst_limit=BURST
        ),
    )


def _access_log_name(scope: Construct) -> str:
    """One for each address of a stage: by the construct that it is in."""
    return f"/aws/vendedlogs/{cdk.Stack.of(scope).stack_name}/{scope.node.id.lower()}"


def _operator(scope: Construct, *, stage: Stage) -> iam.Role:
    """Whom the account lets assume it may act for every tenant, and for the stage."""
    return iam.Role(
        scope,
        "Operator",
        description=f"Operators of Tickwheel {stage.name}: they may act for every tenant",
        assumed_by=cast("iam.IPrincipal", iam.AccountRootPrincipal()),
    )


def _allow(operator: iam.Role, *, api: apigateway.HttpApi) -> None:
    operator.add_to_policy(iam.PolicyStatement(actions=["execute-api:Invoke"], resources=[api.arn_for_execute_api()]))
    name = cdk.Stack.of(api).get_logical_id(cast("cdk.CfnElement", api.node.default_child))
    arn = f"arn:<AWS::Partition>:execute-api:<AWS::Region>:<AWS::AccountId>:<{name}>/*/*/*"
    acknowledge(
        operator,
        f"AwsSolutions-IAM5[Resource::{arn}]",
        because="Every route of this one API: that is what an operator is.",
    )


def _function(
    scope: Construct,
    *,
    deployment: Deployment,
    operations: Function,
    submissions: SubmissionQueues,
    files: SubmissionFiles,
    operators: Sequence[str],
) -> Function:
    stage = deployment.stage
    function = Function(
        scope,
        "Function",
        name="api",
        description="Submits, shows and cancels jobs and schedules",
        deployment=deployment,
        size=stage.api,
        environment={
            "PAYLOAD_BUCKET": deployment.storage.payloads.bucket_name,
            "OPERATIONS_FUNCTION": operations.function.function_name,
            "OPERATORS": json.dumps(operators),
            "JWT_TENANT_CLAIM": stage.jwt.tenant_claim if stage.jwt else "",
            "WEBHOOK_SECRET": deployment.storage.webhook_secret_arn,
            "ALLOWED_TARGETS": deployment.allowed_targets,
            "ALLOW_PLAIN_HTTP": json.dumps(stage.allow_plain_http),
            "MAX_TIMEOUT_SECONDS": str(int(stage.longest_attempt.total_seconds())),
            "SUBMISSION_QUEUE_URLS": json.dumps([*submissions.urls, *files.urls]),
            "REFUSED_QUEUE_URLS": submissions.refused_urls,
            "FILES_BUCKET": files.bucket_setting,
        },
        # What is left of a message goes back into its queue, and so does a file of which lines are left.
        sends_to_itself=bool(submissions.queues) or files.queue is not None,
    )
    function.grant_tables("timers", "PutItem", "BatchWriteItem", "GetItem", "DeleteItem")
    function.grant_tables("ledger", "PutItem", "UpdateItem", "GetItem", "BatchGetItem", "ConditionCheckItem")
    function.grant_tables("shards", "GetItem", "BatchGetItem", "UpdateItem")
    function.grant_tables("schedules", "GetItem", "PutItem", "DeleteItem", "Query")
    function.grant_tables("schedule_state", "GetItem", "BatchGetItem", "UpdateItem")
    function.grant_tables("dead_letters", "GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem")
    function.grant_placing()
    function.grant_tables("tenants", "GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem")
    # A new operation begins at once instead of with the next tick.
    function.grant("lambda:InvokeFunction", on=[operations.function.function_arn])
    function.grant_objects("s3:PutObject", below=["jobs", "schedules", "results"])
    function.grant_objects("s3:GetObject", below=["jobs", "schedules", "exports", "results"])
    function.grant_objects("s3:DeleteObject", below=["jobs"])
    function.grant_missing_objects()
    function.grant("sqs:SendMessage", on=deployment.ready_queues.arns)
    function.grant_webhook_keys()
    submissions.feed(function)
    files.feed(function)
    return function
