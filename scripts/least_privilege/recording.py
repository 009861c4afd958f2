"""What a function asks of AWS, recorded where botocore takes a call: one line per function, IAM action and resource.

It imports nothing of ours: the copy of the checkout that the end-to-end tests deploy carries this file along.

A resource is identified by the variable of the function's environment that names it, so it is the same in every stage: a
table is `LEDGER_TABLE`, an object `PAYLOAD_BUCKET/jobs/*`. What no variable names starts with a `?`, and so does an
operation that is not in `OPERATIONS`: neither is ever in `calls.json`, so a test run that makes one fails.
"""

import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import botocore.handlers

from functions.domain.targets.kinds import SERVICES

Params = Mapping[str, Any]
Needs = Iterable[tuple[str, str]]
"""IAM actions, each with what it is on: a name, an address or an ARN; of objects `{bucket}/{key}`."""

NAMES_A_RESOURCE = re.compile(r"_(TABLE|BUCKET|URLS?|SECRET|FUNCTION|STREAM|TOPIC|KEY|ARN)$")
TARGETS = "ALLOWED_TARGETS"
"""Stands for whatever a job's target names: the stage's patterns say what that may be."""

_PARTS = {
    "Put": "dynamodb:PutItem",
    "Update": "dynamodb:UpdateItem",
    "Delete": "dynamodb:DeleteItem",
    "ConditionCheck": "dynamodb:ConditionCheckItem",
    "Get": "dynamodb:GetItem",
}


class UnknownOperation(Exception):
    """Nobody has written down yet which IAM actions an operation needs."""


def _on(parameter: str, *actions: str) -> Callable[[Params], Needs]:
    return lambda params: [(action, str(params[parameter])) for action in actions]


def _on_table(action: str) -> Callable[[Params], Needs]:
    return lambda params: [(action, "/index/".join(filter(None, [params["TableName"], params.get("IndexName")])))]


def _on_tables(action: str) -> Callable[[Params], Needs]:
    return lambda params: [(action, table) for table in params["RequestItems"]]


def _transaction(params: Params) -> Needs:
    # A transaction has no action of its own: it needs those of its parts.
    return [(_PARTS[part], value["TableName"]) for item in params["TransactItems"] for part, value in item.items()]


def _on_object(*actions: str) -> Callable[[Params], Needs]:
    return lambda params: [(action, f"{params['Bucket']}/{params['Key']}") for action in actions]


def _on_objects(params: Params) -> Needs:
    return [("s3:DeleteObject", f"{params['Bucket']}/{each['Key']}") for each in params["Delete"]["Objects"]]


def _on_buses(params: Params) -> Needs:
    return [("events:PutEvents", entry["EventBusName"]) for entry in params["Entries"]]


OPERATIONS: Mapping[str, Callable[[Params], Needs]] = {
    "dynamodb.BatchGetItem": _on_tables("dynamodb:BatchGetItem"),
    "dynamodb.BatchWriteItem": _on_tables("dynamodb:BatchWriteItem"),
    "dynamodb.DeleteItem": _on_table("dynamodb:DeleteItem"),
    "dynamodb.GetItem": _on_table("dynamodb:GetItem"),
    "dynamodb.PutItem": _on_table("dynamodb:PutItem"),
    "dynamodb.Query": _on_table("dynamodb:Query"),
    "dynamodb.Scan": _on_table("dynamodb:Scan"),
    "dynamodb.TransactGetItems": _transaction,
    "dynamodb.TransactWriteItems": _transaction,
    "dynamodb.UpdateItem": _on_table("dynamodb:UpdateItem"),
    "events.PutEvents": _on_buses,
    "firehose.PutRecord": _on("DeliveryStreamName", "firehose:PutRecord"),
    "firehose.PutRecordBatch": _on("DeliveryStreamName", "firehose:PutRecordBatch"),
    "lambda.Invoke": _on("FunctionName", "lambda:InvokeFunction"),
    "s3.DeleteObject": _on_object("s3:DeleteObject"),
    "s3.DeleteObjects": _on_objects,
    "s3.GetObject": _on_object("s3:GetObject"),
    "s3.HeadObject": _on_object("s3:GetObject"),
    "s3.ListObjectsV2": _on("Bucket", "s3:ListBucket"),
    "s3.PutObject": _on_object("s3:PutObject"),
    "secretsmanager.CreateSecret": _on("Name", "secretsmanager:CreateSecret"),
    "secretsmanager.GetSecretValue": _on("SecretId", "secretsmanager:GetSecretValue"),
    "sns.Publish": _on("TopicArn", "sns:Publish"),
    "sns.PublishBatch": _on("TopicArn", "sns:Publish"),
    "sqs.ChangeMessageVisibility": _on("QueueUrl", "sqs:ChangeMessageVisibility"),
    "sqs.ChangeMessageVisibilityBatch": _on("QueueUrl", "sqs:ChangeMessageVisibility"),
    "sqs.DeleteMessage": _on("QueueUrl", "sqs:DeleteMessage"),
    "sqs.DeleteMessageBatch": _on("QueueUrl", "sqs:DeleteMessage"),
    "sqs.GetQueueAttributes": _on("QueueUrl", "sqs:GetQueueAttributes"),
    "sqs.GetQueueUrl": _on("QueueName", "sqs:GetQueueUrl"),
    "sqs.ReceiveMessage": _on("QueueUrl", "sqs:ReceiveMessage"),
    "sqs.SendMessage": _on("QueueUrl", "sqs:SendMessage"),
    "sqs.SendMessageBatch": _on("QueueUrl", "sqs:SendMessage"),
    "stepfunctions.StartExecution": _on("stateMachineArn", "states:StartExecution"),
}
"""What each operation needs, from AWS's service authorization reference and, of transactions, DynamoDB's own guide."""

CALLS_OF_TARGETS = frozenset(action for service in SERVICES.values() for action in (service.calls, *service.looks_up))


def needs(operation: str, params: Params) -> Needs:
    """The actions of `{service}.{Operation}` and what they are on. Raises UnknownOperation."""
    if operation not in OPERATIONS:
        raise UnknownOperation(f"say in scripts/least_privilege/recording.py which IAM actions {operation} needs")
    return OPERATIONS[operation](params)


def named(resource: str, *, action: str, environment: Mapping[str, str]) -> str:
    """A resource by the variable that names it."""
    name, slash, rest = (resource, "", "") if "://" in resource or resource.startswith("arn:") else _split(resource)
    for variable, value in sorted(environment.items()):
        if NAMES_A_RESOURCE.search(variable) and name in _names(value):
            return f"{variable}/{_folder(rest)}" if slash else variable
    return TARGETS if action in CALLS_OF_TARGETS and TARGETS in environment else f"?{resource}"


class Recorder:
    """Writes each different call once; `acting` says which function makes those that follow."""

    def __init__(self, folder: Path, *, function: str | None = None) -> None:
        self._file = folder / f"{os.getpid()}.txt"
        self._seen: set[str] = set()
        self._function = function
        self._passed_over = threading.local()

    def install(self) -> None:
        """Every session that is made from now on is recorded."""
        botocore.handlers.BUILTIN_HANDLERS.append(("before-parameter-build", self.hear))

    @contextmanager
    def acting(self, function: str) -> Iterator[None]:
        """Its calls, on whatever thread, are those of this function."""
        # The threads of two functions side by side could not be distinguished.
        assert self._function in {None, function}, f"{function} begins while {self._function} runs"
        before, self._function = self._function, function
        try:
            yield
        finally:
            self._function = before

    @contextmanager
    def passing_over(self) -> Iterator[None]:
        """What this thread asks for meanwhile is a test's own, though a function runs on another."""
        self._passed_over.now = True
        try:
            yield
        finally:
            self._passed_over.now = False

    def hear(self, params: Params, model: Any, **_: Any) -> None:
        """Called by botocore with what a client was asked for, also when it only signs an address."""
        if self._function is None or getattr(self._passed_over, "now", False):
            return
        operation = f"{model.service_model.service_name}.{model.name}"
        try:
            needed = needs(operation, params)
        except UnknownOperation:
            needed = [(f"?{operation}", "")]
        for action, resource in needed:
            self._write(action, named(resource, action=action, environment=os.environ))

    def _write(self, action: str, resource: str) -> None:
        line = f"{self._function} {action} {resource}"
        if line not in self._seen:
            self._seen.add(line)
            with self._file.open("a") as file:
                file.write(f"{line}\n")


def _split(resource: str) -> tuple[str, str, str]:
    return resource.partition("/")


def _folder(key: str) -> str:
    return f"{key.split('/', maxsplit=1)[0]}/*" if "/" in key else key


def _names(value: str) -> list[Any]:
    return json.loads(value) if value.startswith("[") else [value]
