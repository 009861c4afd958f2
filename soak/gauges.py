"""What is read from the stack while a soak runs, every ten seconds; what takes long to read, every thirty."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from functions.domain.jobs.job_id import parse_job_id
from functions.domain.lifecycle import TERMINAL, State
from testkit.builders import LOCAL_WHEEL
from testkit.deployment import FUNCTIONS, PRIORITIES, Deployment
from tickwheel.client import Client
from verification.deployed import memory_of, processes_of

STEP = 10.0
_SLOW_EVERY = 3
_MIB = 2**20
_ROWS = {"Schedules": "schedules", "ScheduleState": "schedule_state", "Shards": "shards"}
_OF_MINUTES = ("~pulse#", "~busy#")
_KINDS = ("", "NotVisible", "Delayed")
_DEAD_LETTERS = "NormalDead"

Curve = list[tuple[float, float]]


@dataclass
class Gauges:
    """curves: by name, points of seconds since the start and a value. lives: of each process of a function, its memory."""

    deployment: Deployment
    client: Client
    curves: dict[str, Curve] = field(default_factory=lambda: defaultdict(list))
    lives: dict[str, dict[int, Curve]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))

    def __post_init__(self) -> None:
        self.begun_at = datetime.now(UTC)
        self._begun = time.monotonic()
        self._pid = int((Path(self.deployment.stack.folder) / "pid").read_text())

    def run(self, stop: threading.Event) -> None:
        """Until it is stopped."""
        for number in range(10**9):
            if stop.wait(max(0.0, self._begun + number * STEP - time.monotonic())):
                return
            self.read(is_whole=number % _SLOW_EVERY == 0)

    def read(self, *, is_whole: bool) -> None:
        """Add a point to each curve; to those of tables only when the reading is whole."""
        self._read_processes()
        self._read_queues()
        self._read_health()
        if is_whole:
            self._read_tables()

    def last(self, name: str) -> float:
        """The newest value of a curve; 0 of one without points."""
        return self.curves[name][-1][1] if self.curves[name] else 0.0

    def scan(self, table: str, **asked: Any) -> Iterator[dict[str, Any]]:
        """The rows of a table."""
        for page in self._pages(table, **asked):
            yield from page["Items"]

    def _note(self, name: str, value: float) -> None:
        self.curves[name].append((time.monotonic() - self._begun, value))

    def _read_processes(self) -> None:
        found = processes_of(str(self.deployment.stack.folder), FUNCTIONS)
        at = time.monotonic() - self._begun
        for process in found:
            self.lives[process.function][process.pid].append((at, process.memory / _MIB))
        for function in FUNCTIONS:
            sizes = [process.memory / _MIB for process in found if process.function == function]
            self._note(f"processes {function}", len(sizes))
            if sizes:
                self._note(f"memory {function}", max(sizes))
        self._note("processes", len(found))
        self._note("memory emulator", memory_of(self._pid) / _MIB)

    def _read_queues(self) -> None:
        read: dict[str, int] = dict.fromkeys(_KINDS, 0)
        for priority in PRIORITIES:
            for name, count in self._depth(priority).items():
                read[name] += count
        self._note("depth", sum(read.values()))
        self._note("waiting", read[""])
        self._note("dead-letter queues", sum(self._depth(_DEAD_LETTERS).values()))

    def _depth(self, queue: str) -> dict[str, int]:
        names = {kind: f"ApproximateNumberOfMessages{kind}" for kind in _KINDS}
        answer = self.deployment.client("sqs").get_queue_attributes(
            QueueUrl=self.deployment.queue(queue), AttributeNames=list(names.values())
        )
        return {kind: int(answer["Attributes"][name]) for kind, name in names.items()}

    def _read_health(self) -> None:
        health = self.client.health()
        self._note("oldest bucket", max(each.age.total_seconds() for each in health.classes))
        self._note("cursors behind", health.shards.cursors_behind)
        self._note("breakers", health.breaker_count)

    def _read_tables(self) -> None:
        now = datetime.now(UTC)
        # What has been promoted stays until its ttl; the audit reads it again within ten minutes.
        ended = now.timestamp() - LOCAL_WHEEL.bucket.total_seconds()
        timers = [int(row["p"]["S"].partition("#")[0]) for row in self.scan("Timers", ProjectionExpression="p")]
        self._note("timers", sum(bucket > ended for bucket in timers))
        self._note("timers, all rows", len(timers))
        self._read_ledger(now)
        for table, name in _ROWS.items():
            self._note(f"rows of {name}", self._count(table))
        self._note("rows of dead_letters", self._count("DeadLetters"))
        partitions = [row["t"]["S"] for row in self.scan("Tenants", ProjectionExpression="t")]
        minutes = sum(partition.startswith(_OF_MINUTES) for partition in partitions)
        self._note("rows of tenants", len(partitions) - minutes)
        self._note("rows of minutes", minutes)

    def _read_ledger(self, now: datetime) -> None:
        terminal = {f":{number}": {"S": str(state)} for number, state in enumerate(sorted(TERMINAL))}
        pages = self._pages(
            "Ledger",
            FilterExpression=f"attribute_exists(s) AND NOT s IN ({', '.join(terminal)})",
            ExpressionAttributeValues=terminal,
            ProjectionExpression="s, l, i",
        )
        total, is_open, leases = 0, 0, []
        for page in pages:
            total += page["ScannedCount"]
            is_open += sum(is_settled_later(row) for row in page["Items"])
            leases += [int(row["l"]["N"]) for row in page["Items"] if row["s"]["S"] == State.RUNNING]
        self._note("ledger, all rows", total)
        self._note("ledger, open", is_open)
        self._note("leases", len(leases))
        self._note("leases that are over", sum(lease < now.timestamp() * 1000 for lease in leases))

    def _count(self, table: str) -> int:
        return sum(page["Count"] for page in self._pages(table, Select="COUNT"))

    def _pages(self, table: str, **asked: Any) -> Any:
        pages = self.deployment.client("dynamodb").get_paginator("scan")
        return pages.paginate(TableName=self.deployment.table(table), **asked)


def is_settled_later(row: dict[str, Any]) -> bool:
    """Whether a row of the ledger that is not terminal comes to its end.

    That of an at-least-once job does not: it holds the job's idempotency key until its ttl, and no worker looks at it.
    """
    return "i" not in row or parse_job_id(row["i"]["S"]).is_ledgered
