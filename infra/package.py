"""What is deployed: one zip with all functions, one layer with what they import, and a function that uses both."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

import functions
from functions.adapters.dynamodb.tables import ALL_TABLES
from functions.api import openapi
from functions.domain.targets.handler_names import HandlerNames
from infra.acknowledge import acknowledge
from infra.bundling import FUNCTIONS, PYTHON_VERSION, REQUIREMENTS, CodeBundler, LayerBundler, lambda_python
from infra.environment_room import check_room
from infra.event_templates import check_handlers
from infra.handler_names import OWN_FOLDER, UserHandlers, has_more_than_built_in
from infra.handlers import HandlersBundler, NamesBundler, names_of
from infra.ready_queues import ReadyQueues
from infra.stage import Stage
from infra.stage_parts import FunctionSize
from infra.storage import StorageStack, payloads_export
from infra.surroundings import Surroundings
from infra.vpc import Interfaces

NO_BYTECODE = f"""\
There is no Python {PYTHON_VERSION} on this machine, so the package has no bytecode: each cold start compiles all that it imports, half a \
second of it or more. `make deploy` gets one where it can; otherwise install it, and deploy again."""


class Package(Construct):
    """The code of every function and the layers below it. handlers: a user's, for jobs to call."""

    def __init__(
        self, scope: Construct, construct_id: str, *, stage: Stage, handlers: UserHandlers | None = None
    ) -> None:
        super().__init__(scope, construct_id)
        openapi.write(FUNCTIONS)
        host = stage.emulated
        if not host and lambda_python() is None:
            cdk.Annotations.of(self).add_warning_v2("tickwheel:no-bytecode", NO_BYTECODE)
        self.code = _bundled(FUNCTIONS, bundler=CodeBundler(host=host))
        self.layer = lambda_.LayerVersion(
            self,
            "Layer",
            code=_bundled(REQUIREMENTS.parent, bundler=LayerBundler(host=host)),
            compatible_runtimes=[lambda_.Runtime.PYTHON_3_13],
            compatible_architectures=[lambda_.Architecture.ARM_64],
            description="What the functions import, pinned",
        )
        self._of_handlers = handler_layers(self, handlers, host=host)
        check_handlers(stage.name, stage.event_rules, names=HandlerNames(names_of(handlers)))

    def layers_of(self, function: str) -> list[lambda_.ILayerVersion]:
        """The layers of a function, by its name."""
        return [cast("lambda_.ILayerVersion", self.layer), *self._of_handlers.get(function, ())]


def handler_layers(
    scope: Construct, handlers: UserHandlers | None, *, host: bool
) -> dict[str, list[lambda_.ILayerVersion]]:
    """What functions get of handlers, by the names of functions: nothing where there are none but those of every stage."""
    names = names_of(handlers)
    if not has_more_than_built_in(names):
        return {}

    def layer(construct_id: str, folder: Path, bundler: NamesBundler | HandlersBundler, description: str) -> Any:
        return lambda_.LayerVersion(
            scope,
            construct_id,
            code=_bundled(folder, bundler=bundler),
            compatible_runtimes=[lambda_.Runtime.PYTHON_3_13],
            compatible_architectures=[lambda_.Architecture.ARM_64],
            description=description,
        )

    made = {"api": [layer("HandlerNames", OWN_FOLDER, NamesBundler(names), "The names of handlers")]}
    if handlers is not None:
        bundler = HandlersBundler(handlers, host=host)
        made["worker"] = [layer("Handlers", handlers.folder, bundler, "The handlers that jobs call")]
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What the functions of a stage share. interfaces: those of the network that they run in; None where they run in none."""

    stage: Stage
    package: Package
    storage: StorageStack
    ready_queues: ReadyQueues
    surroundings: Surroundings = field(default_factory=Surroundings)
    interfaces: Interfaces | None = None

    @property
    def allowed_targets(self) -> str:
        """What jobs may call, as functions read it."""
        return json.dumps([*self.stage.targets, *self.surroundings.target_arns])


class Function(Construct):
    """One function: its handler is `handler` of `functions/<name>/handler.py`, its role allows what `grant` says and no more.

    sends_to_itself: it may send, on purpose, what invokes it again.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        description: str,
        deployment: Deployment,
        size: FunctionSize,
        environment: Mapping[str, str] = MappingProxyType({}),
        max_event_age: cdk.Duration | None = None,
        sends_to_itself: bool = False,
    ) -> None:
        super().__init__(scope, construct_id)
        stage, package, storage = deployment.stage, deployment.package, deployment.storage
        self.name = name
        self.sends_to_itself = sends_to_itself
        self._stage, self._storage = stage, storage
        self.granted: list[tuple[str, str]] = []
        self.log_group = logs.LogGroup(
            self, "Logs", retention=stage.log_retention, removal_policy=cdk.RemovalPolicy.DESTROY
        )
        self.role = _role(self)
        self.grant("logs:CreateLogStream", "logs:PutLogEvents", on=[self.log_group.log_group_arn])
        variables = _shared_environment(name, deployment) | dict(environment)
        if deployment.surroundings.fills_environments:
            check_room(self, variables)
        function = lambda_.Function(
            self,
            "Function",
            description=description,
            code=package.code,
            layers=package.layers_of(name),
            handler=f"{functions.__name__}.{name}.handler.handler",
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=lambda_.Architecture.ARM_64,
            memory_size=size.memory_mb,
            timeout=_duration(size),
            role=self.role,
            log_group=self.log_group,
            # Of a tick nobody waits for the answer: it is in a trace only where who calls it began one.
            tracing=lambda_.Tracing.PASS_THROUGH if max_event_age or not stage.traces else lambda_.Tracing.ACTIVE,
            environment=variables,
            # The next tick repeats a lost one; a retried or late tick only competes with it.
            retry_attempts=0 if max_event_age else None,
            max_event_age=max_event_age,
            # By default Lambda stops a chain of 16 invocations. No client of ours says that there is one
            # (functions/adapters/clients.py); this is for what sends with another.
            recursive_loop=lambda_.RecursiveLoop.ALLOW if sends_to_itself else None,
            current_version_options=lambda_.VersionOptions(removal_policy=cdk.RemovalPolicy.DESTROY),
            **(deployment.interfaces.of(self.role) if deployment.interfaces else {}),
        )
        self._function = function
        self.function = cast("lambda_.IFunction", function)
        self._answer_findings(ticked=max_event_age is not None)

    def latest_version(self) -> lambda_.IVersion:
        """A version of what is deployed, which the next deployment replaces."""
        return cast("lambda_.IVersion", self._function.current_version)

    def dropped_invocations(self) -> cloudwatch.Metric:
        """What Lambda has not run because it took it for a loop, a minute."""
        return self.function.metric("RecursiveInvocationsDropped", period=cdk.Duration.minutes(1), statistic="Sum")

    def grant(self, *actions: str, on: Sequence[str]) -> None:
        """Allow exactly these actions on exactly these ARNs; `granted` keeps each pair of them."""
        self.granted += [(action, arn) for action in actions for arn in on]
        self.role.add_to_principal_policy(iam.PolicyStatement(actions=list(actions), resources=list(on)))

    def grant_tables(self, tables: str, *actions: str) -> None:
        """Allow these actions of DynamoDB on tables, named with spaces between them."""
        arns = [self._storage.tables[table].table_arn for table in tables.split()]
        self.grant(*(f"dynamodb:{action}" for action in actions), on=arns)

    def grant_objects(self, action: str, *, below: Sequence[str]) -> None:
        """Allow an action on every object of these folders of the payload bucket; their keys are chosen at run time."""
        self.grant(action, on=[f"{self._storage.payload_bucket_arn}/{folder}/*" for folder in below])
        for folder in below:
            acknowledge(
                self.role,
                f"AwsSolutions-IAM5[Resource::{payloads_export(self._stage)}/{folder}/*]",
                because="Keys below it are made at run time from tenants and jobs.",
            )

    def grant_webhook_keys(self) -> None:
        """Let it read the master keys of webhooks, and make them where the stage leaves that to the first who needs them."""
        arn = self._storage.webhook_secret_arn
        if not self._stage.secret_on_first_use:
            self.grant("secretsmanager:GetSecretValue", on=[arn])
            return
        self.grant("secretsmanager:GetSecretValue", "secretsmanager:CreateSecret", on=[f"{arn}*"])
        shown = f"arn:<AWS::Partition>:secretsmanager:<AWS::Region>:<AWS::AccountId>:secret:{arn.rpartition(':')[2]}*"
        acknowledge(
            self.role,
            f"AwsSolutions-IAM5[Resource::{shown}]",
            because="Secrets Manager adds six characters to the name, which nobody knows before the secret is made.",
        )

    def grant_missing_objects(self) -> None:
        """Let it see that an object is gone: otherwise S3 answers 403, as for a forbidden one."""
        self.grant("s3:ListBucket", on=[self._storage.payload_bucket_arn])

    def grant_placing(self) -> None:
        """Allow what comes before a job is put into the wheel, beside the wheel itself; and lines of the audit trail.

        Its day is marked, its tenant's plan read and its rate reserved, in the tenants table; and whether its class is
        full stands in the shards table.
        """
        self.grant_tables("tenants", "BatchGetItem", "BatchWriteItem", "GetItem", "Query", "UpdateItem")
        self.grant_tables("shards", "GetItem")
        self.grant("firehose:PutRecordBatch", on=[self._storage.audit.stream_arn])

    def _answer_findings(self, *, ticked: bool) -> None:
        acknowledge(
            self.role,
            "AwsSolutions-IAM5[Resource::*]",
            because="X-Ray's PutTraceSegments and PutTelemetryRecords know no resources.",
        )
        for rule in ("AwsSolutions-L1", "Serverless-LambdaLatestVersion"):
            acknowledge(
                self.function,
                rule,
                because=f"The pins of the layer are resolved and tested for {PYTHON_VERSION}: the runtime moves with them.",
            )
        if ticked or not self._stage.traces:
            acknowledge(
                self.function,
                "Serverless-LambdaTracing",
                because="A trace of each first invocation of a second costs more than ticks and quiet stages do.",
            )
        if ticked:
            for rule in ("Serverless-LambdaDLQ", "Serverless-LambdaAsyncFailureDestination"):
                acknowledge(
                    self.function, rule, because="A failed tick holds no data: the next one starts at its cursor."
                )
        else:
            acknowledge(
                self.function,
                "Serverless-LambdaDLQ",
                because="Nobody invokes it asynchronously: its callers see the error, or its queue keeps the message.",
            )


def _bundled(folder: Path, *, bundler: LayerBundler | CodeBundler | NamesBundler | HandlersBundler) -> lambda_.Code:
    return lambda_.Code.from_asset(
        str(folder),
        asset_hash=bundler.fingerprint(),
        asset_hash_type=cdk.AssetHashType.CUSTOM,
        # The image is never pulled: a local bundler either succeeds or raises.
        bundling=cdk.BundlingOptions(
            image=cdk.DockerImage.from_registry("never-used"), local=cast("cdk.ILocalBundling", bundler)
        ),
    )


def _role(scope: Construct) -> iam.IRole:
    # The casts here and above: jsii's interfaces and classes disagree on parameter names, which a type checker refuses.
    lambda_service = cast("iam.IPrincipal", iam.ServicePrincipal("lambda.amazonaws.com"))
    return cast("iam.IRole", iam.Role(scope, "Role", assumed_by=lambda_service))


def _duration(size: FunctionSize) -> cdk.Duration:
    return cdk.Duration.seconds(int(size.timeout.total_seconds()))


PATIENCE_OF_A_LAPTOP = 4
"""8 s for a store in place of 2. A request to the API still ends within its function's timeout, whatever of it has to wait."""

_SAYING_NOTHING = {
    "POWERTOOLS_LOGGER_LOG_EVENT": "false",
}
"""Powertools would write payloads into logs: events. Its tracer, which would write answers and the texts of exceptions into traces,
is no part of the layer."""


def _shared_environment(name: str, deployment: Deployment) -> dict[str, str]:
    stage, storage = deployment.stage, deployment.storage
    wheel = stage.wheel
    return {
        **{f"{table.name.upper()}_TABLE": storage.tables[table.name].table_name for table in ALL_TABLES},
        "READY_QUEUE_URLS": deployment.ready_queues.urls,
        "AUDIT_STREAM": storage.audit.stream_name,
        "STAGE": stage.name,
        "BUCKET_SECONDS": str(int(wheel.bucket.total_seconds())),
        "LOOKAHEAD_SECONDS": str(int(wheel.lookahead.total_seconds())),
        "SKEW_SECONDS": str(int(wheel.skew.total_seconds())),
        "GUARD_SECONDS": str(int(wheel.guard.total_seconds())),
        "WRITE_SHARDS": str(wheel.write_shards),
        "SCAN_SHARDS": str(wheel.scan_shards),
        "PLANS": json.dumps({name: dict(limits) for name, limits in stage.plans.items()}),
        "POWERTOOLS_SERVICE_NAME": name,
        "POWERTOOLS_METRICS_NAMESPACE": stage.metrics_namespace,
        "LOG_LEVEL": stage.log_level,
        "WATCHING": stage.watching.value,
        **({"PATIENCE": str(PATIENCE_OF_A_LAPTOP)} if stage.emulated else {}),
        **_SAYING_NOTHING,
    }
