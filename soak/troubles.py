"""What goes wrong while a soak runs: a timetable that comes round again, so that each cycle is like the one before."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime

import httpx

from functions.domain.far_ring.timer_key import is_alarm_key
from functions.domain.far_ring.timer_record import decode_timer, encode_envelope
from functions.domain.instants import SECOND
from functions.domain.jobs.job import Timer
from soak.load import PAUSED, Load
from soak.record import Record
from soak.schedules import Schedules
from testkit.builders import LOCAL_WHEEL
from testkit.deployment import PRIORITIES, Deployment
from tickwheel.local.throttling import PATH as THROTTLE
from verification.deployed import Process, processes_of

CYCLE = 240.0
"""Seconds after which everything happens again."""

_BURST = 60
_HELD = 4
_COPIES = 10
_PATIENCE = 25.0
_THROTTLED_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class _Trouble:
    """begin: so many seconds after a cycle began. lasts: until it is ended; 0: it is over at once."""

    begin: float
    start: Callable[[], None]
    lasts: float = 0.0
    end: Callable[[], None] | None = None


@dataclass
class Troubles:
    """Strikes by the timetable until it is stopped, and then repairs what it broke."""

    deployment: Deployment
    load: Load
    schedules: Schedules
    record: Record
    seed: int
    _rules: Sequence[str] = field(default=(), init=False)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self._folder = str(self.deployment.stack.folder)
        self._timetable = (
            _Trouble(5, self.schedules.edit),
            _Trouble(10, self._duplicate),
            _Trouble(15, self._kill_a_worker),
            _Trouble(25, self._kill_workers_that_hold),
            _Trouble(58, self._kill_scanners),
            _Trouble(70, self._throttle, 8, self._throttle_no_more),
            _Trouble(85, self.load.slow),
            _Trouble(90, self._take_down, 60, self._bring_up),
            _Trouble(100, lambda: self.load.burst(_BURST)),
            _Trouble(120, self._pause_tenant, 30, self._resume_tenant),
            _Trouble(130, self.schedules.pause, 45, self.schedules.resume),
            _Trouble(160, self._scan_twice),
            _Trouble(170, self._disable_ticks, 65, self._enable_ticks),
            _Trouble(200, self._kill_a_worker),
        )

    def run(self, until: datetime, stop: threading.Event) -> None:
        """Until that instant. What has an end ends before it, or is not begun."""
        begun_at = time.monotonic()
        left = (until - datetime.now(UTC)).total_seconds()
        agenda = sorted(
            [(at, number, act) for number, (at, act) in enumerate(self._agenda(left))], key=lambda each: each[:2]
        )
        self._rules = [rule for rule in self._all_rules() if self._is_of_scanner(rule)]
        futures: list[Future[None]] = []
        with ThreadPoolExecutor(8, thread_name_prefix="trouble") as pool:
            try:
                for at, _, act in agenda:
                    if stop.wait(max(0.0, begun_at + at - time.monotonic())):
                        break
                    futures.append(pool.submit(act))
                    for future in [future for future in futures if future.done()]:
                        future.result()
            finally:
                self._mend()
        for future in futures:
            future.result()

    def _agenda(self, seconds: float) -> Iterator[tuple[float, Callable[[], None]]]:
        for cycle in range(int(seconds // CYCLE) + 1):
            for trouble in self._timetable:
                begin = cycle * CYCLE + trouble.begin
                if begin + max(trouble.lasts, 10) > seconds:
                    continue
                yield begin, trouble.start
                if trouble.end is not None:
                    yield begin + trouble.lasts, trouble.end

    def _mend(self) -> None:
        """Whatever is still broken: nothing happens where nothing is."""
        self._throttle_no_more()
        self._bring_up()
        self._enable_ticks()
        self.load.sinks.usual.released.set()
        self.load.client.tenants.resume(PAUSED)

    def _duplicate(self) -> None:
        """Messages of far jobs, before the scanner has sent any of them."""
        timers = list(self._far_timers())
        chosen = self._chance.sample(timers, min(_COPIES, len(timers)))
        for timer in chosen:
            self.deployment.client("sqs").send_message(
                QueueUrl=self.deployment.queue(PRIORITIES[timer.job.priority]),
                MessageBody=encode_envelope([timer]),
                DelaySeconds=max(0, min(900, (timer.due_at - datetime.now(UTC)) // SECOND)),
                MessageGroupId=timer.job.tenant,
            )
        self.record.strike("message doubled", len(chosen))

    def _far_timers(self) -> Iterator[Timer]:
        opens = datetime.now(UTC) + LOCAL_WHEEL.lookahead
        for page in (
            self.deployment.client("dynamodb").get_paginator("scan").paginate(TableName=self.deployment.table("Timers"))
        ):
            for item in page["Items"]:
                if not is_alarm_key(item["s"]["S"]) and int(item["p"]["S"].partition("#")[0]) > opens.timestamp():
                    timer = decode_timer(item["j"]["S"], tenant=item["s"]["S"].split("#")[1])
                    if timer.job.is_ledgered:
                        yield timer

    def _kill_a_worker(self) -> None:
        workers = self._processes("Worker")
        self._kill("worker killed", self._chance.sample(workers, min(1, len(workers))))

    def _kill_workers_that_hold(self) -> None:
        """Half of the workers, while calls of six jobs are not answered."""
        sink = self.load.sinks.usual
        held = sink.held_count
        sink.released.clear()
        count = len(self.load.hold(_HELD))
        until = time.monotonic() + _PATIENCE
        while sink.held_count < held + count and time.monotonic() < until:
            time.sleep(0.05)
        workers = self._processes("Worker")
        self._kill("worker killed in a call", self._chance.sample(workers, -(-len(workers) // 2)))
        sink.released.set()

    def _kill_scanners(self) -> None:
        """In the middle of a tick."""
        for shard in range(LOCAL_WHEEL.scan_shards):
            self._scan(shard)
        time.sleep(self._chance.uniform(0.01, 0.15))
        self._kill("scanner killed", self._processes("Scanner"))

    def _kill(self, fault: str, processes: Sequence[Process]) -> None:
        now = datetime.now(UTC)
        for process in processes:
            with contextlib.suppress(ProcessLookupError):  # it has ended already
                os.kill(process.pid, signal.SIGKILL)
        self.record.strike(fault, len(processes))
        if any(process.function == "Worker" for process in processes):
            self.record.disturb(now, now)

    def _processes(self, function: str) -> list[Process]:
        return processes_of(self._folder, (function,))

    def _throttle(self) -> None:
        self._set_share(_THROTTLED_SHARE)
        self.record.strike("store throttled")
        now = datetime.now(UTC)
        self.record.disturb(now, now + 10 * SECOND)

    def _throttle_no_more(self) -> None:
        self._set_share(0)

    def _set_share(self, share: float) -> None:
        url = f"{self.deployment.stack.aws.endpoint_url}{THROTTLE}"
        httpx.post(url, params={"share": share}, trust_env=False, timeout=30).raise_for_status()

    def _take_down(self) -> None:
        self.load.sinks.moody.is_down.set()
        self.record.strike("destination down")

    def _bring_up(self) -> None:
        self.load.sinks.moody.is_down.clear()

    def _pause_tenant(self) -> None:
        self.load.client.tenants.pause(PAUSED)
        self.record.strike("tenant paused")

    def _resume_tenant(self) -> None:
        self.load.client.tenants.resume(PAUSED)

    def _scan_twice(self) -> None:
        for shard in range(LOCAL_WHEEL.scan_shards):
            for _ in range(2):
                self._scan(shard)
        self.record.strike("shard scanned twice at once", LOCAL_WHEEL.scan_shards)

    def _scan(self, shard: int) -> None:
        """As EventBridge does: nobody waits for the answer."""
        self.deployment.client("lambda").invoke(
            FunctionName=self.deployment.function("Scanner"),
            InvocationType="Event",
            Payload=json.dumps({"shard": shard}).encode(),
        )

    def _disable_ticks(self) -> None:
        for rule in self._rules:
            self.deployment.client("events").disable_rule(Name=rule)
        self.record.strike("tick left out", len(self._rules))

    def _enable_ticks(self) -> None:
        for rule in self._rules:
            self.deployment.client("events").enable_rule(Name=rule)

    def _all_rules(self) -> list[str]:
        return [rule["Name"] for rule in self.deployment.client("events").list_rules()["Rules"]]

    def _is_of_scanner(self, rule: str) -> bool:
        targets = self.deployment.client("events").list_targets_by_rule(Rule=rule)["Targets"]
        scanner = self.deployment.function("Scanner")
        return any(scanner in target["Arn"] for target in targets)
