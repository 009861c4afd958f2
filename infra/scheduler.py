"""The scheduler of one stage: every function, what feeds it, and what watches it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from constructs import Construct

from infra.alarms import Alarms
from infra.api import Api
from infra.audit_alarms import AuditAlarms
from infra.dashboard import Dashboard
from infra.dead_letters import DeadLetters
from infra.encryption import encrypt
from infra.essential_alarms import EssentialAlarms
from infra.event_rules import EventRules
from infra.given_targets import Target
from infra.handler_names import UserHandlers, read_handlers
from infra.handlers_environment import check_handlers_environment
from infra.key_grants import unlock
from infra.operations import Operations
from infra.package import Deployment, Package
from infra.queries import SavedQueries
from infra.ready_queues import ReadyQueues
from infra.resources import Resources
from infra.scanner import Scanner
from infra.scheduler_access import SchedulerAccess
from infra.stage import Stage
from infra.stage_parts import InvalidStage, Watching
from infra.storage import StorageStack
from infra.submission_files import SubmissionFiles
from infra.submission_queues import SubmissionQueues
from infra.surroundings import Domain, Network, Surroundings, Tables, check_alarms, split_targets
from infra.sweeper import Sweeper
from infra.topics import Topics
from infra.vpc import Interfaces
from infra.worker import Worker


class SchedulerStack(cdk.Stack):
    """All that can be thrown away and deployed again; its outputs are where the API is, and who operates it."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        stage: Stage,
        storage: StorageStack,
        surroundings: Surroundings,
        env: cdk.Environment | None,
        handlers: UserHandlers | None = None,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            env=env,
            stack_name=f"Tickwheel-{stage.name}-Scheduler",
            description=f"Tickwheel {stage.name}: functions, queues, rules and the API",
        )
        package = Package(self, "Package", stage=stage, handlers=handlers)
        ready_queues = ReadyQueues(self, "Ready", stage=stage)
        network = surroundings.network
        deployment = Deployment(
            stage=stage,
            package=package,
            storage=storage,
            ready_queues=ready_queues,
            surroundings=surroundings,
            interfaces=Interfaces(self, "Network", network=network) if network is not None else None,
        )
        operations = Operations(self, "Operations", deployment=deployment)
        submissions = SubmissionQueues(self, "Submissions", stage=stage)
        EventRules(self, "EventRules", stage=stage, submissions=submissions)
        files = SubmissionFiles(self, "Files", stage=stage, bucket=storage.files, bucket_arn=storage.files_arn)
        api = Api(
            self, "Api", deployment=deployment, operations=operations.function, submissions=submissions, files=files
        )
        scanner = Scanner(self, "Scanner", deployment=deployment)
        self.worker = worker = Worker(self, "Worker", deployment=deployment)
        sweeper = Sweeper(self, "Sweeper", deployment=deployment)
        dead_letters = DeadLetters(self, "DeadLetters", deployment=deployment)
        functions = [part.function for part in (api, scanner, worker, sweeper, operations, dead_letters)]
        unlock(functions, key=storage.key, former=stage.former_keys)
        topics = Topics(self, "Topics", stage=stage, given=surroundings.alarms_to)
        if stage.watching is Watching.ESSENTIAL:
            EssentialAlarms(self, "Alarms", stage=stage, ready_queues=ready_queues, functions=functions, topics=topics)
        else:
            alarms = Alarms(self, "Alarms", stage=stage, ready_queues=ready_queues, functions=functions, topics=topics)
            AuditAlarms(self, "AuditAlarms", stage=stage, stream_name=storage.audit.stream_name, topics=topics)
            Dashboard(
                self,
                "Dashboard",
                stage=stage,
                api=api,
                ready_queues=ready_queues,
                functions=functions,
                storage=storage,
                alarms=alarms,
                topics=topics,
            )
        if not stage.emulated:  # the emulator keeps no queries
            SavedQueries(self, "Queries", stage=stage, functions=functions)
        cdk.CfnOutput(self, "ApiEndpoint", value=api.endpoint, description="Where signed requests go")
        cdk.CfnOutput(self, "OperatorRoleArn", value=api.operator.role_arn, description="May act for every tenant")
        cdk.CfnOutput(self, "AlarmTopicArn", value=topics.pages.topic_arn, description="What pages is sent here")
        cdk.CfnOutput(self, "TicketTopicArn", value=topics.tickets.topic_arn, description="What can wait is sent here")
        encrypt(self, key=storage.key)
        if api.token_endpoint is not None:
            cdk.CfnOutput(self, "JwtApiUrl", value=api.token_endpoint, description="Where requests with tokens go")
        self.api, self.worker, self._deployment = api, worker, deployment

    @cached_property
    def resources(self) -> Resources:
        """What carries out resources of other stacks: there as soon as one asks for it."""
        resources = Resources(self, "Resources", deployment=self._deployment, api=self.api)
        cdk.CfnOutput(
            self,
            "ResourcesFunctionArn",
            value=resources.arn,
            description="Of resources of Tickwheel in other stacks: their ServiceToken",
            export_name=f"{_exports(self._deployment.stage)}-Resources",
        )
        return resources

    @cached_property
    def api_id(self) -> str:
        """Of the API, for other stacks: by a name of its own, so that policies with wildcards behind it can be acknowledged."""
        name = f"{_exports(self._deployment.stage)}-ApiId"
        described = "Of the API, as ARNs of execute-api have it"
        cdk.CfnOutput(self, "ApiId", value=self.api.api_id, description=described, export_name=name)
        return cdk.Fn.import_value(name)


class Tickwheel(SchedulerAccess):
    """One environment: the storage stack and, on top of it, the scheduler stack.

    A plain construct and not a `cdk.Stage`: `cdk deploy --all` sees no stack below one of those. Within a stack of a user's, both are
    stacks beside that one, of its account and region.

    handlers: the folder of a Python package whose functions jobs may call as `handler:NAME`, relative to the working directory.
    handlers_environment: variables that they read, beside those of the worker.
    targets: constructs that jobs may call, and patterns, beside those of the stage. vpc: where the functions run, but for the one that carries out resources;
    vpc_subnets, security_groups: as Lambda has them. domain: a name of one's own for the API. alarms_to: a topic for all
    alarms, in place of two of the scheduler's own. tables: what differs of the stage's tables. resources: whether the function behind `Schedule` and grants is
    there although nothing of this app asks for it. env: account and region, where they are not those of the scope. Raises InvalidStage,
    and InvalidHandlers for a folder that cannot be deployed.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        stage: Stage,
        handlers: str | Path | None = None,
        handlers_environment: Mapping[str, str] = MappingProxyType({}),
        targets: Sequence[Target | str] = (),
        vpc: ec2.IVpc | None = None,
        vpc_subnets: ec2.SubnetSelection | None = None,
        security_groups: Sequence[ec2.ISecurityGroup] = (),
        domain: Domain | None = None,
        alarms_to: sns.ITopic | None = None,
        tables: Tables | None = None,
        resources: bool = False,
        env: cdk.Environment | None = None,
    ) -> None:
        read = None if handlers is None else read_handlers(handlers)
        patterns, given = split_targets(targets)
        stage = replace((tables or Tables()).of(stage), targets=(*stage.targets, *patterns))
        super().__init__(scope, construct_id, stage=stage)
        check_alarms(stage, alarms_to)
        network = None
        if vpc is not None:
            network = Network(vpc=vpc, subnets=vpc_subnets, security_groups=security_groups)
        elif vpc_subnets is not None or security_groups:
            raise InvalidStage(f"{stage.name}: vpc_subnets or security_groups are given without a vpc: give that too")
        self.target_arns = [target.arn for target in given]
        surroundings = Surroundings(
            targets=given,
            network=network,
            domain=domain,
            alarms_to=alarms_to,
            handlers_environment=check_handlers_environment(handlers_environment, has_handlers=read is not None),
        )
        env = env or _environment_of(scope)
        self.storage = StorageStack(self, "Storage", stage=stage, env=env)
        self.scheduler = SchedulerStack(
            self, "Scheduler", stage=stage, storage=self.storage, surroundings=surroundings, env=env, handlers=read
        )
        if resources:
            _made_when_asked_for = self.api_id, self.resources_arn

    @property
    def endpoint(self) -> str:
        """Where signed requests go."""
        return self.scheduler.api.endpoint

    @property
    def api_id(self) -> str:
        """Of the HTTP API."""
        return self.scheduler.api_id

    @property
    def resources_arn(self) -> str:
        """Of the function that carries out resources."""
        return self.scheduler.resources.arn

    @property
    def handlers_role(self) -> iam.IRole:
        """The role that handlers run in, to grant them what they need: `table.grant_read_data(tickwheel.handlers_role)`."""
        return self.scheduler.worker.function.role

    def stands_before(self, stack: cdk.Stack) -> None:
        """Have the scheduler deployed before a stack."""
        stack.add_stack_dependency(self.scheduler)


def _exports(stage: Stage) -> str:
    """How the names begin by which apps in other languages import what they need."""
    return f"Tickwheel-{stage.name}"


def _environment_of(scope: Construct) -> cdk.Environment | None:
    """Of the stack that a scope is in; a stack within another has none of its own accord."""
    stack = next((each for each in reversed(scope.node.scopes) if cdk.Stack.is_stack(each)), None)
    if stack is None:
        return None
    found = cdk.Stack.of(stack)
    account, region = (None if cdk.Token.is_unresolved(value) else value for value in (found.account, found.region))
    return cdk.Environment(account=account, region=region) if account or region else None
