"""What a job uses on every path, by DynamoDB Local's own count, and what a million of them cost.

The Submitter, the Scanner and the Worker run as they are deployed, on a clock that the benchmark sets.
"""

import itertools
import random
import string
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.padding import Padding
from rich.progress import track
from rich.table import Table

from bench import budgets, stage
from bench.boundary import hearing
from bench.budgets import ROUNDING, Path, Units, over_budget
from bench.clock import SettableClock
from bench.meter import Meter
from bench.prices import price_of_a_million, read_prices
from bench.queues import HeldQueues
from bench.results import write_result
from functions.adapters import clients
from functions.adapters.dynamodb.tables import ALL_TABLES, SHARDS
from functions.api.jobs.submit import Accepted, Submitter
from functions.api.schedules.manager import ScheduleManager
from functions.domain.instants import MILLISECOND, SECOND, from_seconds
from functions.domain.jobs.job import Delivery, Payload, Precision, Priority, Timer
from functions.domain.jobs.overlap import Overlap
from functions.domain.jobs.retry import RetryPolicy
from functions.domain.jobs.submission import Submission, job_of
from functions.domain.schedules.rules import Every
from functions.domain.schedules.schedule import JobTemplate, Schedule
from functions.domain.targets.flows import FlowId, NamedFlow
from functions.domain.wheel import Ring
from functions.ports.ready_queue import Receipt
from functions.runtime.wiring import job_identity
from functions.scanner.scan import Scanner
from functions.worker.execute import Worker
from functions.worker.message import Message
from testkit.dynamodb_local import DynamoDBLocal
from testkit.fakes import OpenGate
from testkit.world.tables import create_table

JOBS = 1_000
PAYLOAD_BYTES = 512
_REQUEST = 500
"""Jobs in one call of the API: its limit."""

_APART = 10 * MILLISECOND
_TENANT = "acme"
_TIME_LIMIT = timedelta(minutes=1)
_TICK = timedelta(minutes=1)
_PERIOD = timedelta(hours=1)
_MOST_TURNS = 100
_USED_UP = timedelta(seconds=15)
_OF_JOBS = tuple(table.name for table in ALL_TABLES if table is not SHARDS)
"""Tables whose units a job pays for; those of the shards table belong to a tick, however many jobs it promotes."""


# Printable characters at random: a payload that zlib cannot make smaller.
_LETTERS = string.ascii_letters + string.digits + "!#$%&()*+,-./:;<=>?@[]^_`{|}~"
_PAYLOAD = f'"{"".join(random.Random(1).choices(_LETTERS, k=PAYLOAD_BYTES - 2))}"'


@dataclass(frozen=True, slots=True)
class Measured:
    """Units of one job on every path, of one fire of a schedule, of one job that names a flow, of one tick that promotes nothing, of one mark.

    And of what a process reads once in half a minute.
    """

    paths: Mapping[Path, Units]
    occurrences: Mapping[Overlap, Units]
    flows: Mapping[str, Units]
    tick: Units
    mark: Units
    knowledge: Units


def run(console: Console) -> list[str]:
    """Measure, print, write units.json; a sentence for each figure above its budget."""
    with DynamoDBLocal() as engine:
        measured = measure(engine.endpoint_url, console, jobs=JOBS)
    prices = read_prices()
    _print(console, measured, prices)
    write_result("units.json", _as_json(measured, prices))
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
    for name, (used, budget) in _apart(measured).items():
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
        note = {"note": lambda _, invocation: self._ran.append(invocation.idempotency_key)}
        self._wiring = wiring = stage.wiring(self.clock, handlers=note)
        for schema in ALL_TABLES:
            create_table(clients.dynamodb(self.clock), schema)
        wiring.confirm()
        self._submitter = wiring.build(Submitter)
        self._scanner = wiring.build(Scanner)
        self._schedules = wiring.build(ScheduleManager, gate=OpenGate())
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
        for start in range(0, len(submissions), _REQUEST):
            for outcome in self._submitter.submit(submissions[start : start + _REQUEST]):
                assert isinstance(outcome, Accepted), f"{path.name}: {outcome}"
                assert outcome.ring is path.ring, f"{path.name}: placed {outcome.ring}"

    def _scan(self) -> None:
        report = self._scanner.scan(self._wiring.wheel.shard_of(_TENANT, ""), time_limit=_TIME_LIMIT)
        assert not report.stopped_by, report.stopped_by

    def _execute(self) -> None:
        receipt = Receipt("arn:aws:sqs:us-east-1:000000000000:n", "handle")
        for number, batch in enumerate(self._queues.deliver()):
            self._know()
            messages = [
                Message(message_id=f"{number}-{index}", body=message.body, receipt=receipt, receive_count=1)
                for index, message in enumerate(batch)
            ]
            returned = self._worker.execute(messages, ends_at=self.clock.now() + _TIME_LIMIT)
            assert not returned, f"messages came back: {returned}"

    def _take(self, *tables: str) -> Units:
        return Units(*self._meter.take(*tables), sqs_requests=self._queues.take_requests())


def _print(console: Console, measured: Measured, prices: Mapping[str, float]) -> None:
    table = Table(title=f"Units of a job (payload of {PAYLOAD_BYTES} bytes, {JOBS:,} jobs a path)", box=SIMPLE)
    table.add_column("used / budget", no_wrap=True)
    for heading in ("write units", "read units", "SQS requests", "USD/M"):
        table.add_column(heading, justify="right")
    for path, used in measured.paths.items():
        budget = budgets.UNITS[path]
        cells = [_beside(getattr(used, field.name), getattr(budget, field.name)) for field in fields(Units)]
        table.add_row(path.name, *cells, f"{price_of_a_million(used, prices):.2f}")
    for overlap, used in measured.occurrences.items():
        budget = budgets.OCCURRENCES[overlap]
        cells = [_beside(getattr(used, field.name), getattr(budget, field.name)) for field in fields(Units)]
        table.add_row(f"an occurrence, {overlap}", *cells, f"{price_of_a_million(used, prices):.2f}")
    for name, used in measured.flows.items():
        budget = budgets.FLOWS[name][1]
        cells = [_beside(getattr(used, field.name), getattr(budget, field.name)) for field in fields(Units)]
        table.add_row(name, *cells, f"{price_of_a_million(used, prices):.2f}")
    for name, (used, budget) in _apart(measured).items():
        cells = [_beside(getattr(used, field.name), getattr(budget, field.name)) for field in fields(Units)]
        table.add_row(name, *cells, f"{price_of_a_million(used, prices):.2f}", style="dim")
    console.print(table)
    ingress = prices["http_api_request"] + prices["lambda_request"]
    notes = [*_NOTES, f"Ingress on top: {ingress:.2f} USD a million HTTP requests, of one to {_REQUEST} jobs each."]
    for note in notes:
        console.print(Padding(f"- {note}", (0, 0, 0, 2)), highlight=False)
    console.print()


_NOTES = (
    "USD/M: a million of them, of DynamoDB's and SQS's requests alone; Lambda, storage, logs and ingress come on top.",
    f"Submitted {_REQUEST} jobs a request, so that every batch is full; a job submitted alone is 1.2 SQS requests.",
    "SQS: sends are counted; a receive and a delete are 0.1 each, made by the event source mapping in batches of ten.",
    "DynamoDB Local reports nothing for a lost condition, a query without rows, a missing key of a batch: counted as billed.",
    "A tick's lease and checkpoint are its own, however many jobs it promotes: a shard ticks 43,200 times in 30 days.",
    "A mark is paid by a tenant's first far job of a day, class and shard, for all that follow.",
)


def _apart(measured: Measured) -> Mapping[str, tuple[Units, Units]]:
    """What no single job pays for: used, and its budget."""
    return {
        "an idle tick of a shard": (measured.tick, budgets.TICK),
        "the mark of a tenant's day": (measured.mark, budgets.MARK),
        "half a minute of a process": (measured.knowledge, budgets.KNOWLEDGE),
    }


def _beside(used: float, budget: float) -> str:
    text = f"{used:.3f}".rstrip("0").rstrip(".")
    shown = f"{text} / {budget:g}"
    return f"[red]{shown}[/red]" if used > budget + ROUNDING else shown


def _as_json(measured: Measured, prices: Mapping[str, float]) -> dict[str, Any]:
    def described(used: Units, budget: Units) -> dict[str, Any]:
        return {
            **{figure: round(value, 4) for figure, value in asdict(used).items()},
            "budget": asdict(budget),
            "usd_a_million": round(price_of_a_million(used, prices), 3),
        }

    return {
        "jobs_a_path": JOBS,
        "payload_bytes": PAYLOAD_BYTES,
        "jobs_a_request": _REQUEST,
        "notes": _NOTES,
        "paths": {path.name: described(used, budgets.UNITS[path]) for path, used in measured.paths.items()},
        "occurrences": {
            overlap.value: described(used, budgets.OCCURRENCES[overlap])
            for overlap, used in measured.occurrences.items()
        },
        "flows": {name: described(used, budgets.FLOWS[name][1]) for name, used in measured.flows.items()},
        "idle_tick_of_a_shard": described(measured.tick, budgets.TICK),
        "mark": described(measured.mark, budgets.MARK),
        "half_a_minute_of_a_process": described(measured.knowledge, budgets.KNOWLEDGE),
        "usd_a_million_http_requests": prices["http_api_request"] + prices["lambda_request"],
    }
