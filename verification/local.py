"""A run on the local stack: the deployed Lambdas, with the faults that can be brought about from outside.

The history is what clients received, what the sink saw, and the tables of the ledger and of the dead letters at the end.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from rich.progress import Progress

from functions.domain.far_ring.timer_key import is_alarm_key
from functions.domain.far_ring.timer_record import decode_timer, encode_envelope
from functions.domain.instants import SECOND
from functions.domain.jobs.claims import LEASE_MARGIN
from functions.domain.jobs.job import Delivery, Timer
from testkit.builders import LOCAL_WHEEL, a_schedule, every
from testkit.deployment import PRIORITIES, Deployment
from testkit.world.expected import fires_between
from tickwheel.client import Client
from tickwheel.client.jobs import NewJob, RetryPolicy, Submitted
from tickwheel.client.schedules import NewSchedule
from tickwheel.errors import ApiProblem, TickwheelError
from tickwheel.local import AwsSettings, Stack, local_stack
from tickwheel.local.installation import find_home
from tickwheel.local.state import read_running
from verification.checker import Invariant, judge
from verification.deployed import dead_letters_of, job_of, processes_of, row_of, rows_among, text_of
from verification.episode import EpisodeResult
from verification.faults import Fault
from verification.history import Cancel, Fires, History, Job
from verification.run import Total
from verification.sink import SLOW_TIMEOUT, Manner, Sink

OUTAGE = timedelta(minutes=3)
PATIENCE = timedelta(minutes=2)
"""A killed worker's message is hidden for 85 s at most before it comes back, and the next tick is up to a minute away."""

_FAR = LOCAL_WHEEL.guard + timedelta(seconds=8)
_SHARE_FAR = 0.25
_TENANTS = ("acme", "globex", "initech", "umbrella")
_MANNERS = (*[Manner.FINE] * 20, *[Manner.FLAKY] * 3, Manner.BROKEN)
_HELD = 3
_SLOW = 4
_COPIES = 20
_DELIVERIES = (*[Delivery.EXACTLY_ONCE] * 4, Delivery.AT_LEAST_ONCE, Delivery.AT_MOST_ONCE)
_RHYTHMS = {"often": timedelta(seconds=20), "seldom": timedelta(seconds=60)}
_LOOK_SECONDS = 1.0


def run(jobs: int, seed: int, faults: Collection[Fault], progress: Progress) -> Total:
    """On the local cloud that runs, else on one of its own."""
    task = progress.add_task("starting", total=None)
    with _stack(lambda line: progress.update(task, description=line[:60])) as stack:
        outcome = verify(stack, jobs, seed, faults, tell=lambda text: progress.update(task, description=text))
    return Total([outcome])


def verify(
    stack: Stack, jobs: int, seed: int, faults: Collection[Fault], *, tell: Callable[[str], None] = lambda _: None
) -> EpisodeResult:
    """Take a deployed stack through one run, and judge it."""
    deployment = Deployment(stack)
    try:
        with Sink() as sink, Client(stack.api_endpoint) as client:
            return _Run(deployment, client, sink, seed, faults, tell).verify(jobs)
    finally:
        deployment.close()


@contextlib.contextmanager
def _stack(progress: Callable[[str], None]) -> Iterator[Stack]:
    home = find_home()
    running = read_running(home)
    if running is None or running.api_endpoint is None:
        with local_stack(progress=progress) as stack:
            yield stack
        return
    yield Stack(
        api_endpoint=running.api_endpoint,
        port=running.port,
        aws=AwsSettings(f"http://127.0.0.1:{running.port}"),
        log=Path(running.log),
        outputs={},
        home=home,
        folder=home.folder_of(running.port) / "data",
    )


@dataclass
class _Run:
    deployment: Deployment
    client: Client
    sink: Sink
    seed: int
    faults: Collection[Fault]
    tell: Callable[[str], None]
    jobs: list[Job] = field(default_factory=list)
    cancels: list[Cancel] = field(default_factory=list)
    disturbed: set[str] = field(default_factory=set)
    struck: Counter[Fault] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._chance = random.Random(self.seed)
        # Of this run alone, so that another one on the same stack does not meet it.
        self._suffix = f"{self.seed}-{int(time.time())}"
        self._put: dict[str, tuple[timedelta, datetime, datetime]] = {}
        self._is_firing_until: datetime | None = None

    def verify(self, count: int) -> EpisodeResult:
        """Everything in its order; it takes as long as the far ring is wide, and an outage is."""
        began_at = datetime.now(UTC)
        with self._ticks_missing():
            self.tell("submitting")
            held = self._submit(count)
            self._create_schedules()
            self._cancel_some()
            self._duplicate()
            self._kill_workers(held)
            self._wait_until(began_at + OUTAGE, "the far ring waits")
        self._scan_twice()
        self._wait_until(began_at + _FAR + timedelta(seconds=30), "far jobs fire")
        self._await_ends(datetime.now(UTC))
        self._delete_schedules()
        history = self._history(fires_until=self._is_firing_until)
        judgement = judge(history)
        return EpisodeResult(
            seed=self.seed,
            jobs=len(history.jobs),
            fires=sum(len(fires.due) for fires in history.fires),
            calls=len(history.calls),
            struck=self.struck,
            judgement=judgement,
        )

    def _submit(self, count: int) -> list[str]:
        """The keys of the jobs that are going to be held."""
        special: list[Manner] = []
        if Fault.KILLED_AFTER in self.faults:
            special += [Manner.HELD] * _HELD
        if Fault.SLOW_TARGETS in self.faults:
            special += [Manner.SLOW] * _SLOW
        manners = [*special, *(self._chance.choice(_MANNERS) for _ in range(count))][:count]
        asked = [self._new_job(number, manner) for number, manner in enumerate(manners)]
        answers = self.client.submit_many(asked, batch_size=50)
        held: list[str] = []
        for job, manner, answer in zip(asked, manners, answers, strict=True):
            if not isinstance(answer, Submitted):
                raise TickwheelError(f"a job was not taken: {answer}")
            taken = job_of(job, answer)
            key = taken.key
            self.jobs.append(taken)
            self._ids[key] = answer.id
            if manner is Manner.SLOW:
                self.struck[Fault.SLOW_TARGETS] += 1
                self.disturbed.add(key)
            if manner is Manner.HELD:
                held.append(key)
                self.disturbed.add(key)
        return held

    def _new_job(self, number: int, manner: Manner) -> NewJob:
        chance = self._chance
        is_plain = manner in (Manner.HELD, Manner.SLOW)
        if is_plain:
            delay = timedelta(seconds=14)
        elif chance.random() < _SHARE_FAR:
            delay = _FAR + 15 * SECOND * chance.random()
        else:
            delay = (20 + 100 * chance.random()) * SECOND
        tenant = f"{chance.choice(_TENANTS)}-{self._suffix}"
        return NewJob(
            self.sink.address(manner),
            tenant=tenant,
            payload={"tenant": tenant, "number": number},
            run_at=datetime.now(UTC) + delay,
            delivery=cast("Any", str(Delivery.EXACTLY_ONCE if is_plain else chance.choice(_DELIVERIES))),
            priority=cast("Any", chance.choice(PRIORITIES).lower()),
            idempotency_key=f"key-{number}" if chance.random() < 0.3 else None,
            retry=RetryPolicy(strategy="fixed", attempts=3, base=3 * SECOND, cap=3 * SECOND),
            timeout=SLOW_TIMEOUT if manner is Manner.SLOW else 10 * SECOND,
        )

    def _create_schedules(self) -> None:
        for name, rhythm in _RHYTHMS.items():
            asked_at = datetime.now(UTC)
            tenant = f"{_TENANTS[0]}-{self._suffix}"
            self.client.schedules.put(
                NewSchedule(name, tenant=tenant, every=rhythm, target=self.sink.address(Manner.FINE), payload=name)
            )
            self._put[name] = (rhythm, asked_at, datetime.now(UTC))

    def _delete_schedules(self) -> None:
        for name in self._put:
            self.client.schedules.delete(name, tenant=f"{_TENANTS[0]}-{self._suffix}")

    def _cancel_some(self) -> None:
        for job in self.jobs[_HELD + _SLOW :: 20]:
            try:
                state = self.client.cancel(self._ids[job.key]).state
            except ApiProblem:
                continue  # too late: it runs
            self.cancels.append(Cancel(job.key, datetime.now(UTC), is_final=state == "cancelled"))

    def _duplicate(self) -> None:
        """Messages of far jobs, before the scanner has sent any of them."""
        if Fault.DUPLICATES not in self.faults:
            return
        timers = [timer for timer in self._far_timers() if timer.job.tenant.endswith(self._suffix)][:_COPIES]
        for timer in timers:
            self.deployment.client("sqs").send_message(
                QueueUrl=self.deployment.queue(PRIORITIES[timer.job.priority]),
                MessageBody=encode_envelope([timer]),
                DelaySeconds=max(0, (timer.due_at - datetime.now(UTC)) // SECOND),
                MessageGroupId=timer.job.tenant,
            )
        self.struck[Fault.DUPLICATES] += len(timers)

    def _far_timers(self) -> Iterator[Timer]:
        for item in self._scan("Timers"):
            if not is_alarm_key(item["s"]["S"]):
                yield decode_timer(item["j"]["S"], tenant=item["s"]["S"].split("#")[1])

    def _kill_workers(self, held: Sequence[str]) -> None:
        if not held:
            return
        self.tell("waiting for calls to be held")
        until = time.monotonic() + PATIENCE.total_seconds()
        while self.sink.held_count < len(held) and time.monotonic() < until:
            time.sleep(0.05)
        workers = processes_of(str(self.deployment.stack.folder), ("Worker",))
        began_at = datetime.now(UTC)
        for worker in workers:
            os.kill(worker.pid, signal.SIGKILL)
        self.sink.released.set()
        self.struck[Fault.KILLED_AFTER] += len(workers)
        # Whatever was with them is theirs, or may be.
        margin = 10 * SECOND + LEASE_MARGIN
        self.disturbed |= {job.key for job in self.jobs if abs(job.due_at - began_at) < margin}
        self.disturbed |= {call.key for call in self.sink.calls if abs(call.called_at - began_at) < margin}

    @contextlib.contextmanager
    def _ticks_missing(self) -> Iterator[None]:
        if Fault.MISSED_TICKS not in self.faults:
            yield
            return
        events = self.deployment.client("events")
        rules = [rule["Name"] for rule in events.list_rules()["Rules"] if self._is_of_scanner(rule["Name"])]
        for rule in rules:
            events.disable_rule(Name=rule)
        self.struck[Fault.MISSED_TICKS] += len(rules)
        try:
            yield
        finally:
            for rule in rules:
                events.enable_rule(Name=rule)

    def _is_of_scanner(self, rule: str) -> bool:
        targets = self.deployment.client("events").list_targets_by_rule(Rule=rule)["Targets"]
        scanner = self.deployment.function("Scanner")
        return any(scanner in target["Arn"] for target in targets)

    def _scan_twice(self) -> None:
        if Fault.DOUBLE_TICKS not in self.faults:
            return
        functions, name = self.deployment.client("lambda"), self.deployment.function("Scanner")

        def scan(shard: int) -> None:
            functions.invoke(FunctionName=name, Payload=json.dumps({"shard": shard}).encode())

        threads = [
            threading.Thread(target=scan, args=(shard,)) for shard in range(LOCAL_WHEEL.scan_shards) for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.struck[Fault.DOUBLE_TICKS] += LOCAL_WHEEL.scan_shards

    def _wait_until(self, instant: datetime, what: str) -> None:
        while (left := instant - datetime.now(UTC)) > timedelta(0):
            self.tell(f"{what}: {left // SECOND} s to go, {len(self.sink.calls)} calls")
            time.sleep(_LOOK_SECONDS)

    def _await_ends(self, fires_until: datetime) -> None:
        """Until nothing is missing any more, or for as long as it may take."""
        self._is_firing_until = fires_until
        ends_at = time.monotonic() + PATIENCE.total_seconds()
        while time.monotonic() < ends_at:
            missing = [
                violation
                for violation in judge(self._history(fires_until=fires_until)).violations
                if violation.invariant in (Invariant.NOTHING_LOST, Invariant.SCHEDULES_KEPT, Invariant.ENDS_AGREE)
            ]
            if not missing:
                break
            self.tell(f"{len(missing)} are under way")
            time.sleep(_LOOK_SECONDS)

    def _history(self, *, fires_until: datetime | None) -> History:
        rows = {row.key: row for row in map(row_of, rows_among(self._scan("Ledger"))) if self._is_mine(row.key)}
        letters = [letter for letter in dead_letters_of(self._scan("DeadLetters")) if self._is_mine(letter.key)]
        return History(
            jobs=self.jobs,
            fires=[self._owed(name, fires_until) for name in self._put],
            calls=self.sink.calls,
            rows=rows,
            letters=letters,
            cancels=self.cancels,
            ended_at=datetime.now(UTC),
            disturbed=frozenset(self.disturbed),
        )

    def _owed(self, name: str, until: datetime | None) -> Fires:
        rhythm, asked_at, acknowledged_at = self._put[name]
        tenant = f"{_TENANTS[0]}-{self._suffix}"
        schedule = a_schedule(tenant=tenant, schedule_id=name, rule=every(seconds=rhythm.total_seconds()))
        now = datetime.now(UTC)
        due = frozenset(fires_between(schedule, acknowledged_at, until or now))
        return Fires(
            key=f"{tenant}#{name}",
            tenant=tenant,
            delivery=Delivery.EXACTLY_ONCE,
            payload=text_of(name),
            due=due,
            possible=frozenset(fires_between(schedule, asked_at, now + SECOND)) - due,
        )

    def _is_mine(self, key: str) -> bool:
        return key.partition("#")[0].endswith(self._suffix)

    def _scan(self, table: str) -> Iterator[dict[str, Any]]:
        pages = self.deployment.client("dynamodb").get_paginator("scan")
        for page in pages.paginate(TableName=self.deployment.table(table), ConsistentRead=True):
            yield from page["Items"]
