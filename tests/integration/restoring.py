"""A stage on AWS's own DynamoDB engine, whose tables are copied one after the other, lost, and restored.

DynamoDB restores each table to a second by itself: jobs go on between the copy of one table and that of the next. The
queues are not restored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from moto import mock_aws

from functions.adapters.dynamodb.tables import ALL_TABLES, TableSchema
from functions.domain.instants import MILLISECOND, format_instant, parse_instant
from testkit.dynamodb_local import DynamoDBLocal
from testkit.events import Context
from testkit.world.tables import create_table
from tests.http_sink import HttpSink, answering
from tests.integration.queues import messages_of
from tests.integration.stage import QUEUES, Stage
from tests.least_privilege.plugin import recorder

RESTORED = "restored-"


class RestoredStage:
    """A stage, what its target has seen, and copies of its tables."""

    def __init__(self, stage: Stage, sink: HttpSink, patch: pytest.MonkeyPatch) -> None:
        self.stage = stage
        self._sink = sink
        self._patch = patch
        self._fails_next: set[str] = set()
        self._fires: dict[str, list[datetime]] = {}
        self._early: list[str] = []
        self.during: dict[str, Any] = {}
        sink.respond = self._respond

    def submit(self, name: str, *, fails_once: bool = False, **job: Any) -> str:
        """A job whose target is called by its name; the job's id."""
        if fails_once:
            self._fails_next.add(f"/{name}")
        return self.stage.submit(target=f"{self._sink.url}/{name}", **job)["id"]

    def put_schedule(self, name: str, **definition: Any) -> None:
        body = {"job": {"target": f"{self._sink.url}/{name}"}, **definition}
        status, answer = self.stage.call("PUT", f"/v1/schedules/{name}", body, query={"tenant": name})
        assert status == 201, answer

    def calls(self, name: str) -> int:
        return sum(request.path == f"/{name}" for request in self._sink.requests)

    def keys(self, name: str) -> set[str]:
        """The idempotency keys that its target was given."""
        return {request.headers["idempotency-key"] for request in self._sink.requests if request.path == f"/{name}"}

    def fires(self, name: str) -> list[datetime]:
        """For when its target was called and has answered 200, in order."""
        return sorted(self._fires[f"/{name}"])

    @property
    def early(self) -> Sequence[str]:
        """What was called before its time."""
        return self._early

    def copy(self, *schemas: TableSchema) -> None:
        """What point-in-time recovery would restore these tables to, as of now."""
        with recorder.passing_over():  # it may happen while a worker calls its target
            for schema in schemas:
                rows = self.stage.rows(schema.name)
                create_table(self.stage.dynamodb, schema, name=f"{RESTORED}{schema.name}")
                for row in rows:
                    self.stage.dynamodb.put_item(TableName=f"{RESTORED}{schema.name}", Item=row)

    def lose_everything(self) -> None:
        """The tables and every message."""
        for schema in ALL_TABLES:
            self.stage.dynamodb.delete_table(TableName=schema.name)
        for url in self.stage.urls.values():
            self.stage.sqs.purge_queue(QueueUrl=url)

    def restore(self) -> None:
        """The functions are deployed again with the names of the restored tables."""
        for schema in ALL_TABLES:
            self._patch.setenv(f"{schema.name.upper()}_TABLE", f"{RESTORED}{schema.name}")
        self.stage.forget_modules()

    def rewind(self, to: datetime) -> dict[str, Any]:
        return self.stage.module("scanner").handler({"rewind_to": format_instant(to)}, Context())

    def work(self, *queues: str, until_called: str) -> None:
        """One batch of each of these queues after the other, until that target was called."""
        for _ in range(50):
            if self.calls(until_called):
                return
            for queue in queues:
                self.stage.work(queue)
        pytest.fail(f"{until_called} was not called")

    def run_for(self, duration: timedelta, *, step: timedelta) -> None:
        """Ticks and batches, with time passing in between."""
        ends_at = self.stage.now() + duration
        while self.stage.now() < ends_at:
            self.stage.scan()
            self.stage.module("sweeper").handler({}, Context())
            for queue in QUEUES:
                while self._visible(queue):
                    self.stage.work(queue)
            self.travel(step)

    def travel(self, duration: timedelta) -> None:
        """As that of a stage; the queues go along: what waits in them, or is hidden, does so by their clock."""
        self.stage.travel(duration)
        for url in self.stage.urls.values():
            for message in messages_of(url):
                message.delayed_until -= duration / MILLISECOND
                message.visible_at -= duration / MILLISECOND

    def _visible(self, queue: str) -> int:
        name: Any = "ApproximateNumberOfMessages"
        found = self.stage.sqs.get_queue_attributes(QueueUrl=self.stage.urls[queue], AttributeNames=[name])
        return int(found["Attributes"][name])

    def _respond(self, request: BaseHTTPRequestHandler) -> None:
        due_at = parse_instant(str(request.headers["tickwheel-scheduled-at"]))
        if self.stage.now() < due_at:
            self._early.append(request.path)
        during = self.during.pop(request.path, None)
        if during is not None:
            during()
        if request.path in self._fails_next:
            self._fails_next.remove(request.path)
            answering(503)(request)
            return
        self._fires.setdefault(request.path, []).append(due_at)
        answering(200)(request)


@contextmanager
def stage_on(engine: DynamoDBLocal, sink: HttpSink, patch: pytest.MonkeyPatch) -> Iterator[RestoredStage]:
    """A whole stage: its tables on the engine, its queues and its bucket on moto."""
    patch.setenv("AWS_ENDPOINT_URL_DYNAMODB", engine.endpoint_url)
    options: Any = {"core": {"reset_boto3_session": False}}
    with mock_aws(config=options):
        stage = Stage(patch)
        try:
            yield RestoredStage(stage, sink, patch)
        finally:
            for name in stage.dynamodb.list_tables()["TableNames"]:
                if name.removeprefix(RESTORED) in {schema.name for schema in ALL_TABLES}:
                    stage.dynamodb.delete_table(TableName=name)
