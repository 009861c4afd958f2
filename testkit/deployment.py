"""The deployed stacks, seen from below the API: tables, queues, logs."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import boto3

from functions.domain.far_ring.timer_key import VERSION_MARK, key_of
from functions.domain.jobs.job import Priority
from functions.domain.jobs.job_id import parse_job_id
from testkit.builders import LOCAL_WHEEL
from testkit.polling import eventually
from testkit.resources import Resources
from tickwheel.local import Stack
from tickwheel.local.checkout import Checkout

PRIORITIES = ("Critical", "High", "Normal", "Low")
FUNCTIONS = ("Api", "Scanner", "Worker", "Sweeper", "Operations", "DeadLetters")

_client: Callable[..., Any] = boto3.client


@dataclass(frozen=True)
class Identity:
    """What distinguishes one deployment from another: the hash of the worker's code, and where the API answers."""

    code: str
    api_endpoint: str


class Deployment:
    """Resources by the names that the application gives them; CloudFormation adds the rest."""

    def __init__(self, stack: Stack, *, stage: str = "local") -> None:
        self.stack = stack
        self.stacks = tuple(f"Tickwheel-{stage}-{part}" for part in ("Storage", "Scheduler"))
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()  # a client may be used from several threads, but not made

    def deploy(self, checkout: Checkout) -> None:
        """Deploy what a checkout holds over what is deployed; state and jobs stay."""
        self.stack = replace(self.stack, home=checkout).redeploy()
        self.__dict__.pop("_resources", None)

    def roll_back(self, checkout: Checkout) -> None:
        """Deploy the scheduler of a checkout alone: what docs/upgrading.md says to do."""
        self.stack = replace(self.stack, home=checkout).redeploy_scheduler()
        self.__dict__.pop("_resources", None)

    def destroy_scheduler(self) -> None:
        """What `make destroy` does."""
        self.stack.destroy_scheduler()
        self.__dict__.pop("_resources", None)

    @property
    def identity(self) -> Identity:
        """Of what is deployed now."""
        worker = self.client("lambda").get_function_configuration(FunctionName=self.function("Worker"))
        return Identity(worker["CodeSha256"], self.stack.api_endpoint)

    def client(self, service: str) -> Any:
        """Of the account's root, like whoever deploys."""
        with self._lock:
            if service not in self._clients:
                self._clients[service] = _client(service, **self.stack.aws.as_kwargs())
            return self._clients[service]

    def as_session(self, credentials: dict[str, Any], service: str) -> Any:
        """A client with credentials of a role; the caller closes it."""
        keys = {
            "aws_access_key_id": credentials["AccessKeyId"],
            "aws_secret_access_key": credentials["SecretAccessKey"],
            "aws_session_token": credentials["SessionToken"],
        }
        return _client(service, **{**self.stack.aws.as_kwargs(), **keys})

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def table(self, name: str) -> str:
        return self._physical("AWS::DynamoDB::Table", name)

    def queue(self, name: str) -> str:
        return self._physical("AWS::SQS::Queue", f"Ready{name}")

    def function(self, name: str) -> str:
        return self._physical("AWS::Lambda::Function", f"{name}Function")

    def role(self, name: str) -> str:
        return self._physical("AWS::IAM::Role", f"{name}FunctionRole")

    @property
    def payloads(self) -> str:
        return self._physical("AWS::S3::Bucket", "Payloads")

    @property
    def files(self) -> str:
        """The bucket of files of jobs."""
        return self._physical("AWS::S3::Bucket", "Files")

    @property
    def audit(self) -> str:
        """The bucket of the audit trail."""
        return self._physical("AWS::S3::Bucket", "AuditBucket")

    def timer_row(self, job_id: str) -> dict[str, Any] | None:
        """The row of a far job's first attempt."""
        at = parse_job_id(job_id)
        return self._timer_row(at.bucket, at.shard, key_of(at.priority, at.tenant, at.due_at, at.identity))

    def alarm_row(self, tenant: str, schedule_id: str, *, version: int, alarm_at: datetime) -> dict[str, Any] | None:
        """The row that reminds the scanner of a fire of a schedule of normal priority."""
        key = key_of(Priority.NORMAL, tenant, alarm_at, f"{schedule_id}{VERSION_MARK}{version}")
        return self._timer_row(LOCAL_WHEEL.bucket_of(alarm_at), LOCAL_WHEEL.shard_of(tenant, schedule_id), key)

    def dead_letters(self, tenant: str) -> list[dict[str, Any]]:
        """Rows of them; the marks of the hours that have any are left out."""
        pages = self.client("dynamodb").get_paginator("scan").paginate(TableName=self.table("DeadLetters"))
        rows = [row for page in pages for row in page["Items"]]
        return [row for row in rows if row["p"]["S"].startswith(f"{tenant}#") and not row["p"]["S"].endswith("#hours")]

    def messages(self, *, delayed: bool) -> dict[str, int]:
        """Visible or in flight, and those that wait for their time if asked for, by ready queue."""
        kinds = ["", "NotVisible", *(["Delayed"] if delayed else [])]
        names = [f"ApproximateNumberOfMessages{kind}" for kind in kinds]
        found: dict[str, int] = {}
        for priority in PRIORITIES:
            answer = self.client("sqs").get_queue_attributes(QueueUrl=self.queue(priority), AttributeNames=names)
            found[priority] = sum(int(answer["Attributes"][name]) for name in names)
        return found

    def payload_keys(self, tenant: str) -> list[str]:
        found = self.client("s3").list_objects_v2(Bucket=self.payloads, Prefix=f"jobs/{tenant}/")
        return [each["Key"] for each in found.get("Contents", ())]

    def log(self, name: str) -> list[str]:
        """Every line that a function wrote."""
        group = self._physical("AWS::Logs::LogGroup", f"{name}FunctionLogs")
        pages = self.client("logs").get_paginator("filter_log_events").paginate(logGroupName=group)
        return [event["message"] for page in pages for event in page["events"]]

    def events(self, name: str, event: str) -> list[dict[str, Any]]:
        """The log lines of a function with that fixed name."""
        return [line for line in _json_lines(self.log(name)) if line.get("message") == event]

    def metrics(self, name: str) -> Iterator[dict[str, Any]]:
        """The metrics that a function emitted, as EMF."""
        return (line for line in _json_lines(self.log(name)) if "_aws" in line)

    def wait_until_dropped(self, job_id: str) -> dict[str, Any]:
        """The worker met a message of the job and found nothing to do.

        One that met a running attempt comes back when the lease of that is over.
        """
        dropped = eventually(
            lambda: [event for event in self.events("Worker", "duplicate_dropped") if event["job_id"] == job_id],
            bool,
            what=f"the worker drops a message of {job_id}",
        )
        return dropped[0]

    def _timer_row(self, bucket: int, shard: int, key: str) -> dict[str, Any] | None:
        place = {"p": {"S": f"{bucket}#{shard:04d}"}, "s": {"S": key}}
        return self.client("dynamodb").get_item(TableName=self.table("Timers"), Key=place).get("Item")

    def _physical(self, kind: str, name: str) -> str:
        return self._resources.one(kind, name)

    @cached_property
    def _resources(self) -> Resources:
        return Resources(self.client("cloudformation"), self.stacks)


def _json_lines(lines: list[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        if line.lstrip().startswith("{"):
            yield json.loads(line)
