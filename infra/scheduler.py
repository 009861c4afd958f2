"""The scheduler of one stage: every function, what feeds it, and what watches it."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.alarms import Alarms
from infra.api import Api
from infra.audit_alarms import AuditAlarms
from infra.dashboard import Dashboard
from infra.dead_letters import DeadLetters
from infra.encryption import encrypt
from infra.event_rules import EventRules
from infra.handler_names import UserHandlers, read_handlers
from infra.key_grants import unlock
from infra.operations import Operations
from infra.package import Deployment, Package
from infra.queries import SavedQueries
from infra.ready_queues import ReadyQueues
from infra.scanner import Scanner
from infra.stage import Stage
from infra.storage import StorageStack
from infra.submission_files import SubmissionFiles
from infra.submission_queues import SubmissionQueues
from infra.sweeper import Sweeper
from infra.topics import Topics
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
        handlers: UserHandlers | None = None,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=f"Tickwheel-{stage.name}-Scheduler",
            description=f"Tickwheel {stage.name}: functions, queues, rules and the API",
        )
        package = Package(self, "Package", stage=stage, handlers=handlers)
        ready_queues = ReadyQueues(self, "Ready", stage=stage)
        deployment = Deployment(stage=stage, package=package, storage=storage, ready_queues=ready_queues)
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
        topics = Topics(self, "Topics", stage=stage)
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


class Tickwheel(Construct):
    """One environment: the storage stack and, on top of it, the scheduler stack.

    A plain construct and not a `cdk.Stage`: `cdk deploy --all` sees no stack below one of those.

    handlers: the folder of a Python package whose functions jobs may call as `handler:NAME`, relative to the working directory.
    Raises InvalidHandlers for one that cannot be deployed.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, stage: Stage, handlers: str | Path | None = None
    ) -> None:
        super().__init__(scope, construct_id)
        read = None if handlers is None else read_handlers(handlers)
        self.storage = StorageStack(self, "Storage", stage=stage)
        self.scheduler = SchedulerStack(self, "Scheduler", stage=stage, storage=self.storage, handlers=read)

    @property
    def handlers_role(self) -> iam.IRole:
        """The role that handlers run in, to grant them what they need: `table.grant_read_data(tickwheel.handlers_role)`."""
        return self.scheduler.worker.function.role
