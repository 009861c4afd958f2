"""A whole stage on moto: the real handlers, as Lambda would import them, over tables, queues and a bucket."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import boto3

from functions.adapters import system_clock
from functions.adapters.dynamodb import tables
from functions.adapters.dynamodb.dead_letters import MARKS
from functions.adapters.dynamodb.shards import DynamoDBShardStore
from functions.adapters.dynamodb.table import Table
from functions.domain.far_ring.cursor import Cursors, first_cursors
from functions.domain.instants import EPOCH, SECOND, format_instant
from functions.domain.jobs.submission_queues import files_name, queue_name, refused_name
from functions.domain.stage.conditions import Conditions
from testkit.builders import LOCAL_WHEEL
from testkit.events import Context, a_request, an_sqs_event
from testkit.world.tables import create_table
from tests.integration.listed import as_listed
from tests.least_privilege.plugin import recorder

if TYPE_CHECKING:
    import pytest
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_firehose import FirehoseClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_sqs import SQSClient

NAMESPACE = "Tickwheel/local"
"""Of its metrics: the template of this stage has its alarms."""

QUEUES = ("critical", "high", "normal", "low")
OF_ACME = (queue_name("local", "acme"), refused_name("local", "acme"))
FILES = files_name("local")
FILES_BUCKET = "files"
"""Where acme sends jobs to, and finds those that were refused."""

LAYER = Path(__file__).parent / "layer"
"""Names of handlers that the API knows and no worker has: their code is gone, or a test brings it."""

BUCKET = "payloads"
AUDIT_BUCKET = "audit-trail"
AUDIT_STREAM = "audit"
MASTER_KEYS = json.dumps({"current_id": "k1", "current": "m" * 64})
CONSTANTS = {
    "STAGE": "local",
    "BUCKET_SECONDS": "60",
    "LOOKAHEAD_SECONDS": "90",
    "SKEW_SECONDS": "5",
    "GUARD_SECONDS": "155",
    "WRITE_SHARDS": "2",
    "SCAN_SHARDS": "2",
    "PLANS": '{"default": {}, "small": {"weight": 0.5, "execution_rate": 10}}',
}


_made: Callable[..., Any] = cache(lambda service, _: boto3.client(service))


def _client(service: str) -> Any:
    """Of all stages of a process at one address: making one takes longer than most of what a test asks of it."""
    return _made(service, os.environ.get(f"AWS_ENDPOINT_URL_{service.upper()}"))


class TravellingClock(system_clock.SystemClock):
    """The system's clock, moved on by the test together with those of the stores."""

    ahead = timedelta(0)

    def now(self) -> datetime:
        return super().now() + TravellingClock.ahead

    def observe_response(self, http_response: Any, **_: Any) -> None:
        """The stores' clocks do not travel: compared with them, this one would look wrong."""


class Stage:
    """Handlers by name, and the stores behind them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self._heard: list[ModuleType] = []
        self.dynamodb: DynamoDBClient = _client("dynamodb")
        self.sqs: SQSClient = _client("sqs")
        self.s3: S3Client = _client("s3")
        for schema in tables.ALL_TABLES:
            create_table(self.dynamodb, schema)
        self.urls = {queue: self.sqs.create_queue(QueueName=queue)["QueueUrl"] for queue in (*QUEUES, *OF_ACME, FILES)}
        self.s3.create_bucket(Bucket=BUCKET)
        self.s3.create_bucket(Bucket=AUDIT_BUCKET)
        self.s3.create_bucket(Bucket=FILES_BUCKET)
        self.firehose: FirehoseClient = _client("firehose")
        self.firehose.create_delivery_stream(
            DeliveryStreamName=AUDIT_STREAM,
            ExtendedS3DestinationConfiguration={
                "RoleARN": "arn:aws:iam::123456789012:role/audit",
                "BucketARN": f"arn:aws:s3:::{AUDIT_BUCKET}",
                "Prefix": "lines/",
            },
        )
        self.secrets: SecretsManagerClient = _client("secretsmanager")
        self.webhook_secret = self.secrets.create_secret(Name="webhooks", SecretString=MASTER_KEYS)["ARN"]
        environment = {
            **CONSTANTS,
            "TIMERS_TABLE": tables.TIMERS.name,
            "LEDGER_TABLE": tables.LEDGER.name,
            "SHARDS_TABLE": tables.SHARDS.name,
            "DEAD_LETTERS_TABLE": tables.DEAD_LETTERS.name,
            "SCHEDULES_TABLE": tables.SCHEDULES.name,
            "SCHEDULE_STATE_TABLE": tables.SCHEDULE_STATE.name,
            "TENANTS_TABLE": tables.TENANTS.name,
            "READY_QUEUE_URLS": json.dumps([self.urls[queue] for queue in QUEUES]),
            "PAYLOAD_BUCKET": BUCKET,
            "WEBHOOK_SECRET": self.webhook_secret,
            "ALLOWED_NETWORKS": '["127.0.0.0/8"]',
            "LAG_OBJECTIVE_MS": "2000",
            "ALLOW_PLAIN_HTTP": "true",
            "ALLOWED_TARGETS": json.dumps(["https://*", "http://*", "handler:*", "arn:aws:sqs:*:*:*"]),
            "MAX_TIMEOUT_SECONDS": "50",
            "OPERATIONS_FUNCTION": "operations",
            "LONGEST_TIMEOUT_SECONDS": "60",
            "OPERATORS": '["*"]',
            "JWT_TENANT_CLAIM": "",
            "SUBMISSION_QUEUE_URLS": json.dumps([self.urls[queue_name("local", "acme")], self.urls[FILES]]),
            "REFUSED_QUEUE_URLS": json.dumps([self.urls[refused_name("local", "acme")]]),
            "FILES_BUCKET": json.dumps([FILES_BUCKET]),
            "AUDIT_SAMPLE": "1.0",
            "READY_CAPACITY": "100000",
            "SHED_AFTER_SECONDS": "300",
            "AUDIT_STREAM": AUDIT_STREAM,
            "LOG_LEVEL": "DEBUG",
            "POWERTOOLS_SERVICE_NAME": "tickwheel",
            "POWERTOOLS_METRICS_NAMESPACE": NAMESPACE,
        }
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "path", [str(LAYER), *sys.path])
        TravellingClock.ahead = timedelta(0)
        monkeypatch.setattr(system_clock, "SystemClock", TravellingClock)
        self.forget_modules()
        self._scanned_until_now()

    def module(self, name: str) -> ModuleType:
        """A Lambda's module, imported as at a cold start; what it asks of AWS is heard."""
        with recorder.acting(name):
            module = import_module(f"functions.{name}.handler")
        if module not in self._heard:
            handler = recorder.acting(name)(module.handler)
            self._patch.setattr(module, "handler", as_listed(handler) if name == "api" else handler)
            self._heard.append(module)
        return module

    def travel(self, duration: timedelta) -> None:
        """Every clock of the stage moves on."""
        TravellingClock.ahead += duration

    def now(self) -> datetime:
        return TravellingClock().now()

    def call(self, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        """Ask the API; the status and the JSON of the answer."""
        answer = self.module("api").handler(a_request(method, path, body, **options), Context())
        return answer["statusCode"], json.loads(answer["body"])

    def submit(self, **job: Any) -> dict[str, Any]:
        """A job that calls the echo, due at once unless it says otherwise."""
        if "delay" not in job and "run_at" not in job:
            # A job that is due now may be sent within its very millisecond, with a delay of a second.
            job["run_at"] = format_instant(self.now() - SECOND)
        status, accepted = self.call("POST", "/v1/jobs", {"tenant": "acme", "target": "handler:echo", **job})
        assert status == 202, accepted
        return accepted

    def moment_ago(self) -> str:
        """The time of a job that is due at once."""
        return format_instant(self.now() - SECOND)

    def get(self, job_id: str) -> dict[str, Any]:
        status, found = self.call("GET", f"/v1/jobs/{job_id}")
        assert status == 200, found
        return found

    def scan(self) -> list[dict[str, Any]]:
        """One tick of every shard."""
        return [self.module("scanner").handler({"shard": shard}, Context()) for shard in range(2)]

    def receive(self, queue: str = "normal", *, within_seconds: int = 0) -> list[Any]:
        """What is visible; the queues' clocks do not travel, so a delayed message is waited for."""
        names: Any = ["ApproximateReceiveCount", "SentTimestamp", "ApproximateFirstReceiveTimestamp", "AWSTraceHeader"]
        answer = self.sqs.receive_message(
            QueueUrl=self.urls[queue],
            MaxNumberOfMessages=10,
            MessageSystemAttributeNames=names,
            MessageAttributeNames=["All"],
            WaitTimeSeconds=within_seconds,
        )
        return answer.get("Messages", [])

    def work(self, queue: str = "normal", *, within_seconds: int = 0, context: Context | None = None) -> dict[str, Any]:
        """What the event source mapping does: receive a batch, invoke the worker, delete what is done."""
        messages = self.receive(queue, within_seconds=within_seconds)
        answer = self.module("worker").handler(an_sqs_event(messages, queue=queue), context or Context())
        returned = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
        for message in messages:
            if message["MessageId"] not in returned:
                self.sqs.delete_message(QueueUrl=self.urls[queue], ReceiptHandle=message["ReceiptHandle"])
        return answer

    def audit_lines(self) -> list[dict[str, Any]]:
        """The audit trail in the order in which it happened."""
        listed = self.s3.list_objects_v2(Bucket=AUDIT_BUCKET).get("Contents", [])
        bodies = [self.s3.get_object(Bucket=AUDIT_BUCKET, Key=each["Key"])["Body"].read().decode() for each in listed]
        lines = [json.loads(line) for body in bodies for line in body.splitlines()]
        return sorted(lines, key=lambda line: line["happened_at"])

    def rows(self, table: str) -> list[dict[str, Any]]:
        return self.dynamodb.scan(TableName=table)["Items"]

    def letters(self) -> list[dict[str, Any]]:
        """The rows of dead letters, without the marks of their hours."""
        return [row for row in self.rows(tables.DEAD_LETTERS.name) if not row["p"]["S"].endswith(f"#{MARKS}")]

    def forget_modules(self) -> None:
        """The next import is a cold start, with the environment as it is then; the old modules come back at the end."""
        for name in list(sys.modules):
            if name.startswith("functions.runtime") or (name.startswith("functions.") and name.endswith(".handler")):
                self._patch.delitem(sys.modules, name)
        # Powertools keeps one logger for a service, with the output of whichever test was first: that one is closed by now.
        self._patch.delitem(logging.root.manager.loggerDict, "tickwheel", raising=False)

    def scanned_to(self, cursors: Cursors, *, shard: int) -> None:
        """A tick of this shard has recorded these cursors."""
        shards, now = DynamoDBShardStore(Table(self.dynamodb, tables.SHARDS.name)), self.now()
        lease = shards.acquire(shard, owner="stage", now=now, lease_until=now, skew=timedelta(0))
        assert lease is not None
        shards.checkpoint(lease, cursors, lease_until=None)

    def _scanned_until_now(self) -> None:
        """Its shards are those of a stage that is not new."""
        for shard in range(2):
            self.scanned_to(first_cursors(LOCAL_WHEEL.bucket_of(self.now())), shard=shard)
        # And the sweeper's first minute of a new stage, long ago: of what it has published, only this lasts.
        conditions = Conditions(published_at=EPOCH, marked_since=EPOCH)
        DynamoDBShardStore(Table(self.dynamodb, tables.SHARDS.name)).publish(conditions)
