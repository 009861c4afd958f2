"""Back to the release before, and then without a scheduler at all: what docs/upgrading.md promises of both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from functions.domain.instants import MINUTE, format_instant
from testkit.builders import LOCAL_WHEEL
from testkit.deployment import Deployment, Identity
from testkit.polling import eventually
from tests.e2e.releases import Releases
from tests.e2e.schedules import fires_of
from tests.e2e.sink import Sink
from tests.e2e.waiting import Sent, Ticking, send
from tickwheel.client import Client
from tickwheel.client.jobs import NewJob, Submitted


@dataclass(frozen=True)
class Rollback:
    """The release before, deployed over this one while jobs of this one waited in both rings and one ran.

    far: one a bucket. Those whose bucket opened later than the rollback ended are the ones that its scanner promoted.
    """

    began_at: datetime
    ended_at: datetime
    near: Sequence[Sent]
    running: Sent
    far: Sequence[Sent]
    before: Identity
    after: Identity

    @property
    def promoted_after(self) -> Sequence[Sent]:
        return [sent for sent in self.far if opens_at(sent) > self.ended_at]


@dataclass(frozen=True)
class Return:
    """The scheduler was destroyed, with jobs in its queues, and this release deployed.

    refused: what `make destroy` said of it. near: known to a message alone, under a key. rows: of the far jobs, while
    there was no scheduler.
    """

    destroyed_at: datetime
    deployed_at: datetime
    refused: subprocess.CompletedProcess[str]
    near: Sent
    rows: int
    queues: Sequence[str]
    rewound: dict[str, Any]


def opens_at(sent: Sent) -> datetime:
    """When the scanner may promote a far job."""
    return datetime.fromtimestamp(LOCAL_WHEEL.bucket_of(sent.job.due_at), UTC) - LOCAL_WHEEL.lookahead


def roll_back(deployment: Deployment, client: Client, sink: Sink, releases: Releases) -> Rollback:
    margin = timedelta(seconds=30)  # for the request, on a busy machine
    first = datetime.fromtimestamp(LOCAL_WHEEL.bucket_of(datetime.now(UTC) + LOCAL_WHEEL.guard + margin) + 60, UTC)
    targets = [sink.target() for _ in range(4)]
    jobs = [NewJob(target.url, tenant="acme", run_at=first + MINUTE * n) for n, target in enumerate(targets)]
    submitted = [answer for answer in client.submit_many(jobs) if isinstance(answer, Submitted)]
    assert [job.ring for job in submitted] == ["far"] * len(jobs)
    near = [send(client, sink.target(), seconds=seconds) for seconds in (1, 5, 12, 30, 60, 90)]
    running = send(client, sink.target(holds=True), seconds=0)
    running.target.wait()
    began_at, before = datetime.now(UTC), deployment.identity
    deployment.roll_back(releases.previous)
    running.target.released.set()
    far = [Sent(job, target) for job, target in zip(submitted, targets, strict=True)]
    return Rollback(began_at, datetime.now(UTC), near, running, far, before, deployment.identity)


def destroy_and_deploy(
    deployment: Deployment, client: Client, sink: Sink, releases: Releases, rollback: Rollback, ticking: Ticking
) -> Return:
    near = send(client, sink.target(), seconds=140, idempotency_key="near and keyed")
    refused = _refuse_to_strand(deployment)
    version = client.schedules.get(ticking.name, tenant=ticking.name).version
    eventually(
        lambda: _is_next_fire_placed(deployment, ticking.name, version),
        bool,
        what="the next fire of the schedule is a message, and goes with its queue",
    )
    destroyed_at = datetime.now(UTC)
    tables = {name: deployment.table(name) for name in ("Timers",)}
    deployment.destroy_scheduler()
    found = deployment.client("dynamodb").scan(TableName=tables["Timers"], ConsistentRead=True)["Items"]
    rows = sum(any(sent.job.id.rpartition("~")[2] in row["s"]["S"] for sent in rollback.far) for row in found)
    queues = deployment.client("sqs").list_queues().get("QueueUrls", [])
    deployment.deploy(releases.this)
    scanner = {"FunctionName": deployment.function("Scanner")}
    payload = json.dumps({"rewind_to": format_instant(rollback.began_at)}).encode()
    answer = deployment.client("lambda").invoke(**scanner, Payload=payload)
    rewound = json.loads(answer["Payload"].read())
    return Return(destroyed_at, datetime.now(UTC), refused, near, rows, queues, rewound)


def _is_next_fire_placed(deployment: Deployment, name: str, version: int) -> bool:
    """Whether its chain waits for a fire behind the next one; between two rings of its alarm there may be no message."""
    soon = datetime.now(UTC) + timedelta(seconds=15)
    _, *behind = fires_of(MINUTE, timedelta(0), after=soon, until=soon + LOCAL_WHEEL.guard + 2 * MINUTE)
    return any(deployment.alarm_row(name, name, version=version, alarm_at=at) for at in behind)


def _refuse_to_strand(deployment: Deployment) -> subprocess.CompletedProcess[str]:
    environment = os.environ | deployment.stack.aws.as_environment()
    command = [sys.executable, "-m", "scripts.refuse_to_strand", "local"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
