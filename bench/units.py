"""What a job uses on every path, by DynamoDB Local's own count, and what a million of them cost.

The Submitter, the Scanner and the Worker run as they are deployed, on a clock that the benchmark sets.
"""

import itertools
import random
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from rich.console import Console
from rich.progress import track

from bench import budgets, stage
from bench.boundary import hearing
from bench.budgets import Path, Units, over_budget
from bench.clock import SettableClock
from bench.measured import (
    JOBS,
    PAYLOAD_BYTES,
    REQUEST,
    TOGETHER,
    TOGETHER_NAME,
    Measured,
    apart,
    as_json,
    of_jobs,
    show,
)
from bench.meter import Meter
from bench.prices import read_prices
from bench.queues import HeldQueues
from bench.results import write_result
from functions.adapters import clients
from functions.adapters.dynamodb.tables import ALL_TABLES, SHARDS
from functions.api.jobs.submit import Accepted, Submitter
from functions.api.schedules.extra_runs import ExtraRuns
from functions.api.schedules.manager import ScheduleManager
from functions.domain.instants import MILLISECOND, SECOND, from_seconds
from functions.domain.jobs.collect import Collect
from functions.domain.jobs.job import Delivery, Payload, Precision, Priority, Timer
from functions.domain.jobs.overlap import Overlap
from functions.domain.jobs.retry import RetryPolicy
from functions.domain.jobs.submission import Submission, job_of
from functions.domain.schedules.rules import Every
from functions.domain.schedules.schedule import JobTemplate, Schedule
from functions.domain.targets.flows import FlowId, NamedFlow
from functions.domain.wheel import Ring
from functions.ports.ready_queue import Receipt
from functions.ports.targets import Invocation
from functions.runtime.wiring import job_identity
from functions.scanner.scan import Scanner
from functions.worker.execute import Worker
from functions.worker.message import Message
from testkit.dynamodb_local import DynamoDBLocal
from testkit.fakes import OpenGate
from testkit.world.tables import create_table

_APART = 10 * MILLISECOND
_TENANT = "acme"
_TIME_LIMIT = timedelta(minutes=1)
_TICK = timedelta(minutes=1)
_PERIOD = timedelta(hours=1)
_MOST_TURNS = 100
_ORDERED = 50
"""Jobs of an order, of which each begins when the one before it has ended."""

_WINDOW = timedelta(minutes=1)
_USED_UP = timedelta(seconds=15)
_OF_JOBS = tuple(table.name for table in ALL_TABLES if table is not SHARDS)
"""Tables whose units a job pays for; those of the shards table belong to a tick, however many jobs it promotes."""


# Printable characters at random: a payload that zlib cannot make smaller.
_LETTERS = string.ascii_letters + string.digits + "!#$%&()*+,-./:;<=>?@[]^_`{|}~"


def _random_payload(seed: int) -> str:
    return f'"{"".join(random.Random(seed).choices(_LETTERS, k=PAYLOAD_BYTES - 2))}"'


def _small_payload(number: int) -> str:
    return f'{{"order":{12_345_678 + 7_919 * number},"customer":"c-{31_337 * number % 100_003}","amount":"{97 * number}.50"}}'


_PAYLOAD = _random_payload(1)


def run(console: Console) -> list[str]:
    """Measure, print, write units.json; a sentence for each figure above its budget."""
    with DynamoDBLocal() as engine:
        measured = measure(engine.endpoint_url, console, jobs=JOBS)
    prices = read_prices()
    show(console, measured, prices)
    write_result("units.json", as_json(measured, prices))
    return above_budget(measured)


def run_only(console: Console, only: str) -> list[str]:
    """Measure and print the jobs that have this in their names; nothing is written, since the rest is missing."""
    rig = Rig()
    with DynamoDBLocal() as engine, hearing(rig.handlers, endpoints={"dynamodb": engine.endpoint_url}):
        rig.build()
        every: Mapping[str, tuple[Callable[[], Units], Units]] = {
            **{path.name: (partial(rig.measure, path, JOBS), units) for path, units in budgets.UNITS.items()},
            **{name: (partial(_of_flow, rig, name, JOBS), units) for name, (_, units) in budgets.FLOWS.items()},
            TOGETHER_NAME: (partial(rig.measure_together, JOBS), budgets.TOGETHER),
            **{
                name: (partial(rig.measure_collected, *how, JOBS), units)
                for name, (how, units) in budgets.COLLECTED.items()
            },
        }
        found = {name: (measured(), units) for name, (measured, units) in every.items() if only in name}
    for name, (used, _) in found.items():
        console.print(f"{name}: {used.writes:.3f} writes, {used.reads:.3f} reads, {used.sqs_requests:.3f} SQS requests")
    return [sentence for name, (used, budget) in found.items() for sentence in over_budget(name, used, budget)]


def above_budget(measured: Measured) -> list[str]:
    """A sentence for each figure above its budget."""
    every = {**of_jobs(measured), **apart(measured)}
    return [sentence for name, (used, budget) in every.items() for sentence in over_budget(name, used, budget)]


def measure(endpoint_url: str, console: Console, *, jobs: int) -> Measured:
    """Run so many jobs on every path, against the engine at that address."""
    rig = Rig()
    with hearing(rig.handlers, endpoints={"dynamodb": endpoint_url}):
        rig.build()
        tick, mark, knowledge = rig.measure_tick(), rig.measure_mark(), rig.measure_knowledge()
        progress = track(budgets.UNITS, description="units", console=console, transient=True)
        paths = {path: rig.measure(path, jobs) for path in progress}
        return Measured(
            paths,
            {overlap: rig.measure_fires(overlap, jobs) for overlap in budgets.OCCURRENCES},
            {name: _of_flow(rig, name, jobs) for name in budgets.FLOWS},
            {name: rig.measure_collected(*how, jobs) for name, (how, _) in budgets.COLLECTED.items()},
            rig.measure_together(jobs),
            tick,
            mark,
            knowledge,
        )


def _of_flow(rig: "Rig", name: str, jobs: int) -> Units:
    flow, _ = budgets.FLOWS[name]
    if name == budgets.IN_TURN:
        return sum((rig.measure_flow(flow, 1, is_used_up=False) for _ in range(_ORDERED)), Units(0, 0, 0)) / _ORDERED
    return rig.measure_flow(flow, _ORDERED if flow.is_ordered else jobs, is_used_up=name == budgets.WAITS)


class Rig:
    def __init__(self) -> None:
        self.clock = SettableClock()
        self._meter = Meter()
        self._queues = HeldQueues(self.clock)
        self._numbers = itertools.count(1)
        self._ran: list[str] = []
        self._used = Units(0, 0, 0)
        self.handlers = {**self._meter.handlers, **self._queues.handlers}

    def build(self) -> None:
        """Create the tables, and make the services as their handlers do."""
        note = {"note": self._note}
        self._wiring = wiring = stage.wiring(self.clock, handlers=note)
        for schema in ALL_TABLES:
            # A table that is made on a busy machine, and asked for again meanwhile, is there twice.
            create_table(clients.dynamodb(self.clock, patience=30), schema)
        wiring.confirm()
        self._submitter = wiring.build(Submitter)
        self._scanner = wiring.build(Scanner)
        self._schedules = wiring.build(ScheduleManager, gate=OpenGate())
        self._extra_runs = wiring.build(ExtraRuns, gate=OpenGate())
        self._worker = wiring.build(Worker, side_by_side=wiring.run_side_by_side)
        self._scan()  # a shard's first tick asks where to begin

    def measure_tick(self) -> Units:
        """One tick, a minute after the one before, of a shard that has nothing."""
        self._take(*_OF_JOBS, SHARDS.name)
        self.clock.sleep(_TICK)
        self._scan()
        return self._take(*_OF_JOBS, SHARDS.name)

    def measure_mark(self) -> Units:
        """The mark of the day on which all paths are measured."""
        wheel = self._wiring.wheel
        due_at = self.clock.now() + 2 * wheel.guard
        path = Path(Ring.FAR, Delivery.EXACTLY_ONCE, keyed=False)
        job = job_of(self._submission(path, due_at), identity=job_identity(), wheel=wheel)
        self._take(*_OF_JOBS)
        self._wiring.timers.mark(Timer(job=job, due_at=due_at))
        return self._take(*_OF_JOBS)

    def measure_knowledge(self) -> Units:
        """What a process reads once in half a minute, however many jobs there are: plans of tenants, and conditions."""
        self._know()
        self.clock.sleep(_TICK)
        self._take(*_OF_JOBS, SHARDS.name)
        self._wiring.plans.of(_TENANT)
        self._wiring.conditions.full()
        return self._take(*_OF_JOBS, SHARDS.name)

    def measure(self, path: Path, jobs: int) -> Units:
        """Units of one of so many jobs, from submission to settlement."""
        return self._measure(path, lambda due_at: [self._submission(path, due_at + n * _APART) for n in range(jobs)])

    def measure_together(self, jobs: int) -> Units:
        """The same of one of so many far jobs with short JSON objects, submitted in requests of TOGETHER."""
        path = Path(Ring.FAR, Delivery.EXACTLY_ONCE, keyed=False)
        return self._measure(
            path,
            lambda due_at: [
                replace(self._submission(path, due_at + n * _APART), payload=_small_payload(n)) for n in range(jobs)
            ],
            size=TOGETHER,
        )

    def _measure(self, path: Path, make: Callable[[datetime], Sequence[Submission]], *, size: int = REQUEST) -> Units:
        """make: the jobs that are due from then on. size: of a request."""
        wheel = self._wiring.wheel
        due_at = self.clock.now() + wheel.guard / 2
        if path.ring is Ring.FAR:
            due_at = from_seconds(wheel.next_bucket(wheel.bucket_of(self.clock.now() + wheel.guard)))
        self._ran.clear()
        self._know()
        self._spent()
        submissions = make(due_at)
        jobs = len(submissions)
        for start in range(0, jobs, size):
            self._submit(submissions[start : start + size], path)
        used = self._spent()
        if path.ring is Ring.FAR:
            opens_at = due_at - wheel.lookahead
            self.clock.set(opens_at - SECOND)
            self._scan()  # the ticks in between are idle, and measured as such
            self.clock.set(opens_at)
            self._know()
            self._spent()
            self._scan()
            used += self._spent()
        self._execute()
        used += self._spent()
        assert len(self._ran) == len(set(self._ran)) == jobs, f"{path.name}: {len(self._ran)} runs of {jobs} jobs"
        return used / jobs

    def measure_fires(self, overlap: Overlap, schedules: int) -> Units:
        """Units of the second fire of so many schedules, from its alarm to its settlement and the next alarm."""
        wheel = self._wiring.wheel
        begins = from_seconds(wheel.next_bucket(wheel.bucket_of(self.clock.now() + wheel.guard)))
        for number in range(schedules):
            self._schedules.put(
                Schedule(
                    tenant=_TENANT,
                    schedule_id=f"{overlap}-{number}",
                    rule=Every(interval=_PERIOD),
                    start=begins + number * _APART,
                    # The first fire is what the second finds in the slot.
                    max_runs=3,
                    overlap=overlap,
                    job=JobTemplate(target="handler:note", payload=Payload(text=_PAYLOAD)),
                )
            )
        for fires_at in (begins, begins + _PERIOD):
            self._ran.clear()
            self.clock.set(fires_at - wheel.lookahead - SECOND)
            self._scan()  # the ticks in between are idle, and measured as such
            self.clock.set(fires_at - wheel.lookahead)
            self._know()
            self._spent()
            self._scan()
            self._execute()
            used = self._spent()
            count = len(self._ran)
            assert count == len(set(self._ran)) == schedules, f"{overlap}: {count} runs of {schedules} schedules"
        for number in range(schedules):
            self._schedules.delete(_TENANT, f"{overlap}-{number}")
        return used / schedules

    def measure_flow(self, flow: NamedFlow, jobs: int, *, is_used_up: bool) -> Units:
        """Units of one of so many jobs that name a flow and are due at once, from submission to settlement.

        is_used_up: all of them wait for it.
        """
        path = Path(Ring.NEAR, Delivery.EXACTLY_ONCE, keyed=False)
        self._ran.clear()
        self._know()
        if is_used_up:
            # More than its burst: for some seconds there is no token for anybody.
            now = self.clock.now()
            self._wiring.flows.spend(FlowId(_TENANT, flow.key), cost=_USED_UP, now=now, latest=now, has_had_turn=False)
            self._take(*_OF_JOBS)
        self._spent()
        due_at = self.clock.now() + SECOND
        self._submit([replace(self._submission(path, due_at), flows=(flow,)) for _ in range(jobs)], path)
        for _ in range(_MOST_TURNS):
            # Of an ordered flow one runs after the other, long before the next turn of its room.
            self._execute(only_soonest=flow.is_ordered)
            if len(self._ran) == jobs and (self._queues.is_empty or not flow.is_ordered):
                break
            self.clock.sleep(SECOND)
        used = self._spent()
        assert len(self._ran) == len(set(self._ran)) == jobs, f"{flow.key}: {len(self._ran)} runs of {jobs} jobs"
        return used / jobs

    def measure_collected(self, size: int, is_small: bool, jobs: int) -> Units:
        """Units of one of so many jobs that are given a hundred at once, from submission to their ends.

        size: of a request. is_small: with short JSON objects as payloads.
        """
        path = Path(Ring.NEAR, Delivery.EXACTLY_ONCE, keyed=False)
        self._ran.clear()
        self._know()
        self._spent()
        due_at, collect = self.clock.now(), Collect(key=f"by-{size}-{is_small}", window=_WINDOW)
        payload = _small_payload if is_small else _random_payload
        submission = replace(self._submission(path, due_at), collect=collect)
        # Each its own: jobs of a row are compressed together.
        submissions = [replace(submission, payload=payload(number)) for number in range(jobs)]
        for start in range(0, jobs, size):
            self._submit(submissions[start : start + size], path)
        for _ in range(_MOST_TURNS):
            # A release that was sent ahead has ended before its own time comes.
            self._execute(at_once=1)
            if len(self._ran) == jobs:
                break
            self.clock.sleep(_WINDOW)
        used = self._spent()
        assert len(self._ran) == len(set(self._ran)) == jobs, f"{collect.key}: {len(self._ran)} runs of {jobs} jobs"
        return used / jobs

    def _note(self, payload: Any, invocation: Invocation) -> None:
        given = [job["key"] for job in payload] if isinstance(payload, list) else [invocation.idempotency_key]
        self._ran.extend(given)

    def _know(self) -> None:
        """Let the process read what it reads once in half a minute: that is no job's."""
        self._used += self._take(*_OF_JOBS)
        self._wiring.plans.of(_TENANT)
        self._wiring.plans.id_secret()
        self._wiring.conditions.full()
        self._take(*_OF_JOBS)

    def _spent(self) -> Units:
        """What jobs have used since this was asked last."""
        spent, self._used = self._used + self._take(*_OF_JOBS), Units(0, 0, 0)
        return spent

    def _submission(self, path: Path, due_at: datetime) -> Submission:
        return Submission(
            tenant=_TENANT,
            target="handler:note",
            payload=_PAYLOAD,
            due_at=due_at,
            idempotency_key=f"order-{next(self._numbers)}" if path.keyed else None,
            priority=Priority.NORMAL,
            delivery=path.delivery,
            precision=Precision.DEFAULT,
            retry=RetryPolicy(),
            timeout=timedelta(seconds=10),
            expires_after=None,
        )

    def _submit(self, submissions: Sequence[Submission], path: Path) -> None:
        for start in range(0, len(submissions), REQUEST):
            for outcome in self._submitter.submit(submissions[start : start + REQUEST]):
                assert isinstance(outcome, Accepted), f"{path.name}: {outcome}"
                assert outcome.ring is path.ring, f"{path.name}: placed {outcome.ring}"

    def _scan(self) -> None:
        report = self._scanner.scan(self._wiring.wheel.shard_of(_TENANT, ""), time_limit=_TIME_LIMIT)
        assert not report.stopped_by, report.stopped_by

    def _execute(self, *, at_once: int | None = None, only_soonest: bool = False) -> None:
        """at_once: messages of a batch that run side by side; None for all. only_soonest: what is not visible yet stays."""
        receipt = Receipt("arn:aws:sqs:us-east-1:000000000000:n", "handle")
        for number, batch in enumerate(self._queues.deliver(only_soonest=only_soonest)):
            self._know()
            messages = [
                Message(message_id=f"{number}-{index}", body=message.body, receipt=receipt, receive_count=1)
                for index, message in enumerate(batch)
            ]
            for start in range(0, len(messages), at_once or len(messages)):
                side_by_side = messages[start : start + (at_once or len(messages))]
                returned = self._worker.execute(side_by_side, ends_at=self.clock.now() + _TIME_LIMIT)
                assert not returned, f"messages came back: {returned}"

    def _take(self, *tables: str) -> Units:
        return Units(*self._meter.take(*tables), sqs_requests=self._queues.take_requests())
