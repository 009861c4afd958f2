"""What a job of a file uses, by DynamoDB Local's own count, and how many a second are taken in on the local stack."""

import json
import os
import time
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial

from rich.console import Console

from bench import stage
from bench.boundary import hearing
from bench.budgets import OF_A_FILE, Units, over_budget
from bench.clock import SettableClock
from bench.meter import Meter
from bench.queues import HeldQueues
from bench.results import print_table, write_result
from functions.adapters import clients
from functions.adapters.dynamodb.tables import ALL_TABLES, SHARDS
from functions.api.http.problems import Refusals
from functions.api.http.requests import Rules
from functions.api.jobs.file_intake import FileIntake
from functions.domain.jobs.submission_files import FileProgress, SentFile
from functions.domain.targets.targets import DEFAULT_TARGETS, AllowedTargets
from functions.ports.ready_queue import Receipt
from functions.worker.execute import Worker
from functions.worker.message import Message
from testkit.deployment import Deployment
from testkit.dynamodb_local import DynamoDBLocal
from testkit.fakes import FakeClock
from testkit.fakes.submission_files import InMemorySubmissionFiles
from testkit.polling import eventually
from testkit.world.tables import create_table
from tickwheel.local import local_stack

LINES = 10_000
"""Of the file that the local stack takes in."""

COUNTED = 1_000
"""Lines of the file whose units are counted."""

PAYLOAD_BYTES = 512

_TENANT = "filer"
_NAME = "bench/jobs.jsonl"
_OF_JOBS = tuple(table.name for table in ALL_TABLES if table is not SHARDS)
_TIME_LIMIT = timedelta(minutes=1)
_PATIENCE = 1_800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OfAFile:
    """Of one job of a file that is due soon, from its line to its settlement. s3: requests of S3."""

    units: Units
    s3: float


def run(console: Console) -> list[str]:
    """Count, print, write files.json; a sentence for each figure above its budget."""
    with DynamoDBLocal() as engine:
        used = measure(engine.endpoint_url, lines=COUNTED)
    rows = {
        "write units": f"{used.units.writes:.3f}",
        "read units": f"{used.units.reads:.3f}",
        "requests of SQS": f"{used.units.sqs_requests:.3f}",
        "requests of S3": f"{used.s3:.4f}",
    }
    title = f"A job of a file of {COUNTED:,} lines, with a payload of {PAYLOAD_BYTES} bytes, due soon"
    print_table(console, title, of="figure", figure="a job", rows=rows)
    counted = {name: round(value, 4) for name, value in asdict(used.units).items()}
    write_result(
        "files.json",
        {
            "lines": COUNTED,
            "payload_bytes": PAYLOAD_BYTES,
            "of_a_job": {**counted, "s3_requests": round(used.s3, 5)},
            "budget": asdict(OF_A_FILE),
        },
    )
    return list(over_budget("a job of a file", used.units, OF_A_FILE))


def run_local(console: Console) -> list[str]:
    """Take a file in on a local stack, print, write file_rate.json. A slow one is told, and breaks nothing."""
    load = os.getloadavg()[0]
    seconds = take_in(lines=LINES)
    rows = {
        "jobs a second": f"{LINES / seconds:,.0f}",
        "seconds": f"{seconds:,.1f}",
        "load average before": f"{load:.1f}",
    }
    print_table(console, f"A file of {LINES:,} lines on the local stack", of="figure", figure="value", rows=rows)
    write_result(
        "file_rate.json",
        {
            "lines": LINES,
            "payload_bytes": PAYLOAD_BYTES,
            "seconds": round(seconds, 1),
            "jobs_a_second": round(LINES / seconds),
            "load_before": round(load, 1),
        },
    )
    return []


def measure(endpoint_url: str, *, lines: int) -> OfAFile:
    """Take in a file of so many lines and run its jobs, against the engine at that address."""
    clock, meter = SettableClock(), Meter()
    queues = HeldQueues(clock)
    ran: list[str] = []
    with hearing({**meter.handlers, **queues.handlers}, endpoints={"dynamodb": endpoint_url}):
        wiring = stage.wiring(clock, handlers={"note": lambda _, invocation: ran.append(invocation.idempotency_key)})
        for schema in ALL_TABLES:
            create_table(clients.dynamodb(clock, patience=30), schema)
        wiring.confirm()
        files = _CountedFiles(FakeClock(clock.now()))
        allowed = AllowedTargets(DEFAULT_TARGETS)
        intake = wiring.build(
            FileIntake,
            refusals=wiring.build(Refusals),
            files=files,
            rules=lambda: Rules(now=clock.now(), allow_plain_http=False, allowed=allowed, max_timeout=_TIME_LIMIT),
        )
        worker = wiring.build(Worker, side_by_side=wiring.run_side_by_side)

        take = partial(meter.take, *_OF_JOBS)

        def know() -> Units:
            """What jobs have used so far; then let the process read what it reads once in half a minute: that is no job's."""
            used = Units(*take(), sqs_requests=queues.take_requests())
            wiring.plans.of(_TENANT)
            wiring.plans.id_secret()
            wiring.conditions.full()
            take()
            return used

        know()
        file = files.put(_NAME, file_of(lines, target="handler:note", delay=5), tenant=_TENANT)
        while files.turns:
            intake.take(files.turns.pop(0)[1], time_left=_TIME_LIMIT)
        ended = files.progress(file)
        assert ended is not None
        assert (ended.state, ended.accepted) == ("done", lines), ended
        used = know()
        receipt = Receipt("arn:aws:sqs:us-east-1:000000000000:n", "handle")
        for number, batch in enumerate(queues.deliver()):
            used += know()
            messages = [
                Message(message_id=f"{number}-{index}", body=message.body, receipt=receipt, receive_count=1)
                for index, message in enumerate(batch)
            ]
            assert not worker.execute(messages, ends_at=clock.now() + _TIME_LIMIT)
        used += know()
    assert len(ran) == len(set(ran)) == lines, f"{len(ran)} runs of {lines} jobs"
    return OfAFile(
        units=Units(used.writes / lines, used.reads / lines, used.sqs_requests / lines), s3=files.requests / lines
    )


def take_in(*, lines: int) -> float:
    """Seconds from the putting of a file of so many lines to its end, on a local stack of its own. Its jobs are due in a day."""
    with local_stack() as stack:
        deployment = Deployment(stack)
        s3, bucket = deployment.client("s3"), deployment.files

        def state(name: str) -> str:
            key = f"results/{_TENANT}/{name}.progress.json"
            if not s3.list_objects_v2(Bucket=bucket, Prefix=key).get("Contents"):
                return "waits"
            return json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read())["state"]

        def take(name: str, count: int) -> float:
            body = file_of(count, target="handler:echo", delay=86_400)
            began = time.monotonic()
            s3.put_object(Bucket=bucket, Key=f"submissions/{_TENANT}/{name}", Body=body)
            ended = eventually(
                partial(state, name),
                lambda found: found not in ("waits", "running"),
                within=_PATIENCE,
                what=f"{name} is read",
            )
            assert ended == "done", ended
            return time.monotonic() - began

        take("warm-up.jsonl", 1)
        seconds = take(_NAME, lines)
        deployment.close()
        return seconds


def file_of(lines: int, *, target: str, delay: int) -> bytes:
    """JSON lines, each with a payload of its own."""
    filling = "x" * (PAYLOAD_BYTES - 10)
    jobs = ({"target": target, "delay": delay, "payload": f"{number:08}{filling}"} for number in range(lines))
    return "\n".join(map(json.dumps, jobs)).encode()


class _CountedFiles(InMemorySubmissionFiles):
    """requests: of S3."""

    requests = 0

    def read(self, file: SentFile, *, offset: int, length: int) -> bytes:
        self.requests += 1
        return super().read(file, offset=offset, length=length)

    def progress(self, file: SentFile) -> FileProgress | None:
        self.requests += 1
        return super().progress(file)

    def save(self, file: SentFile, progress: FileProgress) -> None:
        self.requests += 1
        super().save(file, progress)
