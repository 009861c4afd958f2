"""What a job uses on every path, by DynamoDB Local's own count, and what a million of them cost.

The Submitter, the Scanner and the Worker run as they are deployed, on a clock that the benchmark sets.
"""

import itertools
import random
import string
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from rich.console import Console
from rich.progress import track

from bench import budgets, stage
from bench.boundary import hearing
from bench.budgets import Path, Units, over_budget
from bench.clock import SettableClock
from bench.measured import JOBS, PAYLOAD_BYTES, REQUEST, Measured, apart, as_json, show
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


def above_budget(measured: Measured) -> list[str]:
    """A sentence for each figure above its budget."""
    found = [
        sentence
        for path, used in measured.paths.items()
        for sentence in over_budget(path.name, used, budgets.UNITS[path])
    ]
    for overlap, used in measured.occurrences.items():
        found += over_budget(f"an occurrence, {overlap}", used, budgets.OCCURRENCES[overlap])
    for name, used in measured.flows.items():
        found += over_budget(name, used, budgets.FLOWS[name][1])
    for name, used in measured.collected.items():
        found += over_budget(name, used, budgets.COLLECTED[name][1])
    for name, (used, budget) in apart(measured).items():
        found += over_budget(name, used, budget)
    return found


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
            {
                name: rig.measure_flow(flow, jobs, is_used_up=name == budgets.WAITS)
                for name, (flow, _) in budgets.FLOWS.items()
            },
            {name: rig.measure_collected(*how, jobs) for name, (how, _) in budgets.COLLECTED.items()},
            tick,
            mark,
            knowledge,
        )


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
            create_table(clients.dynamodb(self.clock), schema)
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
        wheel = self._wiring.wheel
        due_at = self.clock.now() + wheel.guard / 2
        if path.ring is Ring.FAR:
            due_at = from_seconds(wheel.next_bucket(wheel.bucket_of(self.clock.now() + wheel.guard)))
        self._ran.clear()
        self._know()
        self._spent()
        self._submit([self._submission(path, due_at + number * _APART) for number in range(jobs)], path)
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
        return Units(used.writes / jobs, used.reads / jobs, used.sqs_requests / jobs)

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
        return Units(used.writes / schedules, used.reads / schedules, used.sqs_requests / schedules)

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
            self._execute()
            if len(self._ran) == jobs:
                break
            self.clock.sleep(SECOND)
        used = self._spent()
        assert len(self._ran) == len(set(self._ran)) == jobs, f"{flow.key}: {len(self._ran)} runs of {jobs} jobs"
        return Units(used.writes / jobs, used.reads / jobs, used.sqs_requests / jobs)

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
        return Units(used.writes / jobs, used.reads / jobs, used.sqs_requests / jobs)

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

    def _execute(self, *, at_once: int | None = None) -> None:
        """at_once: messages of a batch that run side by side; None for all."""
        receipt = Receipt("arn:aws:sqs:us-east-1:000000000000:n", "handle")
        for number, batch in enumerate(self._queues.deliver()):
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
