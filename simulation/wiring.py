"""The real scanner, worker, placer and all they need, wired to the ports of this package: all of it is wired here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Protocol

from functions.domain.instants import from_seconds
from functions.domain.jobs.job import Priority, Timer
from functions.domain.wheel import Wheel
from functions.ports.ready_queue import Receipt
from functions.runtime.container import Container
from functions.scanner.fair_scan import FairScan
from functions.scanner.parts import PARTS as SCANNER_PARTS
from functions.scanner.promote import Promoter
from functions.scanner.scan import Scanner
from functions.scanner.warm import Warmer
from functions.services.far_ring.placer import Placement, Placer
from functions.sweeper.heal import Healer
from functions.sweeper.publish import Publisher
from functions.sweeper.sweep import SETTLING, Sweeper
from functions.worker.execute import Worker
from functions.worker.message import Message
from functions.worker.parts import PARTS as WORKER_PARTS
from infra.queue_sources import warm_messages
from simulation.calls import Calls
from simulation.collections import CollectionRows, SimulatedCollections
from simulation.limits import Limits
from simulation.network import Line, Tables, Throttled
from simulation.partitions import Sample
from simulation.prices import (
    Price,
    Remote,
    breaker_prices,
    flow_prices,
    ledger_prices,
    permit_prices,
    rate_prices,
    schedule_prices,
    shard_prices,
)
from simulation.queues import Parcel, Queue
from simulation.schedule_store import RemoteSchedules, Sums
from simulation.size import StageSize
from simulation.stores import SENDERS, Counts, SimulatedReady, SimulatedTargets, SimulatedTimers, Target, TimerRows
from simulation.telemetry import DiscardingStore, Stream, trail_on
from simulation.virtual_time import Dice, InvocationClock, instant_of
from testkit.fakes import (
    GivenPlans,
    InMemoryBreakerStore,
    InMemoryDeadLetters,
    InMemoryFlowStore,
    InMemoryLedger,
    InMemoryPayloadStore,
    InMemoryPermitStore,
    InMemoryRateStore,
    InMemoryResultStore,
    InMemoryScheduleStore,
    InMemoryShardStore,
)

RUNNERS = 10
"""Messages that a worker runs side by side, as the composition root has it."""


@dataclass(slots=True)
class Kept:
    """What is kept between invocations: the stores themselves."""

    rows: TimerRows
    ledger: InMemoryLedger
    letters: InMemoryDeadLetters
    shards: InMemoryShardStore = field(default_factory=InMemoryShardStore)
    schedules: InMemoryScheduleStore = field(default_factory=InMemoryScheduleStore)
    breakers: InMemoryBreakerStore = field(default_factory=InMemoryBreakerStore)
    rates: InMemoryRateStore = field(default_factory=InMemoryRateStore)
    permits: InMemoryPermitStore = field(default_factory=InMemoryPermitStore)
    sums: Sums = field(default_factory=Sums)
    flows: InMemoryFlowStore = field(default_factory=InMemoryFlowStore)
    collections: CollectionRows = field(default_factory=CollectionRows)


class Surroundings(Protocol):
    """What all environments of a stage share."""

    size: StageSize
    sample: Sample
    wheel: Wheel
    limits: Limits
    dice: Dice
    tables: Tables
    kept: Kept
    queues: dict[Priority, Queue]
    plans: GivenPlans
    target: Target
    calls: Calls
    counts: Counts
    stream: Stream

    def promoted(self, tenant: str, *, at: float) -> None:
        """A scanner sends a job of a tenant."""
        ...


def container_of(
    around: Surroundings,
    clock: InvocationClock,
    line: Line,
    *,
    wheel: Wheel | None = None,
    tables: Tables | None = None,
    stands_for: float = 1.0,
    parts: Mapping[str, type] = MappingProxyType({}),
) -> Container:
    """What an execution environment is made of: the stores behind its network, and the parts that every process has.

    tables: where its units are counted, if not with those of all others. stands_for: shards of the stage whose cursors it
    reads for each of the sample.
    """
    kept, tables, wheel = around.kept, tables or around.tables, wheel or around.wheel
    stream = trail_on(around.stream, line, around.counts, around.dice.token)
    uncounted = DiscardingStore()
    given = {
        "capacity": around.size.stage.ready_capacity,
        "clock": clock,
        "wheel": wheel,
        "skew": wheel.skew,
        "plans": around.plans,
        "journal": around.counts,
        "token": around.dice.token,
        "identity": around.dice.token,
        "id_secret": lambda: b"the secret of a simulated stage.",
        "jitter": around.dice.random.random,
        "ready": SimulatedReady(around.queues, line, share=around.sample.share, promoted=around.promoted),
        "timers": SimulatedTimers(kept.rows, line, around.limits, table=tables.timers),
        "ledger": Remote(kept.ledger, line, ledger_prices(tables)),
        "shards": Remote(kept.shards, line, shard_prices(tables, stands_for=stands_for)),
        "breaker_store": Remote(kept.breakers, line, breaker_prices(tables)),
        "schedules": RemoteSchedules(kept.schedules, line, schedule_prices(tables), kept.sums),
        "dead_letters": Remote(kept.letters, line, {"put": Price(tables.dead_letters, 1)}),
        "rates": Remote(kept.rates, line, rate_prices(tables)),
        "permits": Remote(kept.permits, line, permit_prices(tables)),
        "flows": Remote(kept.flows, line, flow_prices(tables)),
        "collections": SimulatedCollections(kept.collections, line, tables.tenants),
        "payloads": InMemoryPayloadStore(),
        "results": InMemoryResultStore(),
        "audit": stream,
        "usage_store": Remote(uncounted, line, {"add": Price(tables.tenants, 1)}),
        "pending_store": Remote(uncounted, line, {"add": Price(tables.tenants, 1)}),
        "pulses": Remote(uncounted, line, {"add": Price(tables.tenants, 1), "name": Price(tables.tenants, 1)}),
        "targets": SimulatedTargets(around.target, line, around.dice, around.calls),
        # Calls that a function makes at the same time.
        "end_side_by_side": lambda end, members: clock.side_by_side(
            [partial(end, member) for member in members], lanes=SENDERS
        ),
        "side_by_side": lambda rule, items: clock.side_by_side([partial(rule, item) for item in items], lanes=SENDERS),
    }
    container = Container(given, parts={**SCANNER_PARTS, **WORKER_PARTS, **parts})
    given |= {"usage": container["tally"], "pending": container["tally"]}
    return container


def flush(container: Container, line: Line, counts: Counts) -> None:
    """What an invocation hands over at its end, in the order of the deployed function; and its lines of the log."""
    container["audit"].flush()
    container["tally"].flush()
    container["pulse"].flush()
    line.clock.spend(0.0, cpu=counts.take_lines() * line.limits.log_line_cpu)


class ApiEnvironment:
    """Places what is submitted, by the constants of its time."""

    def __init__(self, around: Surroundings, *, wheel: Wheel) -> None:
        self._clock = InvocationClock()
        line = Line(self._clock, around.dice, around.limits)
        self._placer = container_of(around, self._clock, line, wheel=wheel).build(Placer)

    def place(self, timer: Timer, *, at: float) -> Placement:
        """Place a job at an instant."""
        self._clock.start(at)
        return self._placer.place([timer])[0]


class PublisherEnvironment:
    """The sweeper's first task, each minute."""

    def __init__(self, around: Surroundings) -> None:
        self._clock = InvocationClock()
        line = Line(self._clock, around.dice, around.limits)
        # A stage has one publisher, however many of its shards are simulated: its few units are not counted.
        self._publisher = container_of(around, self._clock, line).build(
            Publisher, shards=around.kept.shards, shed_after=around.size.stage.shed_after
        )

    def publish(self, *, at: float) -> None:
        """Publish how the stage stands at an instant."""
        self._clock.start(at)
        self._publisher.publish()


class SweepEnvironment:
    """The sweeper's second task, over the states of the sample, in the sample's share of its time.

    passes: how long each has taken (s), by when it began.
    """

    def __init__(self, around: Surroundings) -> None:
        self._clock = InvocationClock(speed=min(1.0, around.size.stage.sweeper.memory_mb / around.limits.vcpu_mb))
        container = container_of(around, self._clock, Line(self._clock, around.dice, around.limits))
        self._healer = container.build(Healer, shards=around.kept.shards)
        # Half of its time is the audit's.
        self._time_limit = around.size.stage.sweeper.timeout / 2 * around.sample.share
        self._shards = around.kept.shards
        self.passes: dict[int, float] = {}
        self.healed = 0

    def sweep(self, *, at: float) -> None:
        """One of each minute."""
        self._clock.start(at)
        self.healed += self._healer.heal(time_limit=self._time_limit).healed
        position = self._shards.sweep
        if position is not None and position.after is None:
            took = self._clock.now() - from_seconds(position.began_at)
            self.passes.setdefault(position.began_at, took.total_seconds())


@dataclass(frozen=True, slots=True)
class AuditRun:
    """What the audit of one minute came to. reads: units. behind_s: how old the bucket is that it reads next, of those it may read."""

    rows: int
    stragglers: int
    seconds: float
    reads: float
    behind_s: int


class AuditEnvironment:
    """The sweeper's third task. It reads as many shards of a bucket as that of the whole stage does, and has all of its time.

    The simulated shards are those among which it chooses; its units are counted apart, because they are the stage's as they
    are. runs: one for each minute.
    """

    def __init__(self, around: Surroundings) -> None:
        size, limits, count = around.size, around.limits, len(around.sample.sampled)
        self.tables = Tables.of(limits, Sample(count, tuple(range(count))), lambda table: size.room_of(table, limits))
        self._clock = InvocationClock(speed=min(1.0, size.stage.sweeper.memory_mb / limits.vcpu_mb))
        line = Line(self._clock, around.dice, limits)
        stands_for = 1 / around.sample.share
        self._container = container_of(around, self._clock, line, tables=self.tables, stands_for=stands_for)
        self._sweeper = self._container.build(
            Sweeper,
            wheel=replace(around.wheel, write_shards=count, scan_shards=count),
            sample=min(1.0, size.stage.audit_sample * stands_for),
        )
        # Half of its time is the sweep's.
        self._time_limit = size.stage.sweeper.timeout / 2
        self._wheel = around.wheel
        self._shards = around.kept.shards
        self.runs: list[AuditRun] = []

    @property
    def reached(self) -> int | None:
        """The bucket that it reads next."""
        position = self._shards.audited()
        return None if position is None else position.bucket

    def audit(self, *, at: float) -> None:
        """One of each minute."""
        self._clock.start(at)
        read = self._reads()
        report = self._sweeper.sweep(time_limit=self._time_limit)
        youngest = self._wheel.bucket_of(instant_of(at) - SETTLING)
        self.runs.append(
            AuditRun(
                rows=report.audited,
                stragglers=report.stragglers,
                seconds=self._clock.at - at,
                reads=self._reads() - read,
                behind_s=youngest - (self.reached or youngest),
            )
        )

    def _reads(self) -> float:
        return sum(table.reads.total for table in self.tables.by_name().values())


class ScannerEnvironment:
    """The scanner of one shard."""

    def __init__(self, around: Surroundings, shard: int, *, slowness: float) -> None:
        clock = InvocationClock(speed=min(1.0, around.size.stage.scanner.memory_mb / around.limits.vcpu_mb))
        line = Line(clock, around.dice, around.limits, slowness=slowness, is_ticked=True)
        self._shard = shard
        self._clock = clock
        self._time_limit = around.size.stage.scanner.timeout
        container = self._container = container_of(around, clock, line)
        self._line, self._counts = line, around.counts
        warmer = container.build(Warmer, most=dict(zip(Priority, warm_messages(around.size.stage), strict=False)))
        promoter = container.build(Promoter, warmer=warmer)
        self._scanner = container.build(Scanner, fair_scan=container.build(FairScan, promoter=promoter))

    def scan(self, *, at: float) -> tuple[float, int | None]:
        """One tick; the seconds that it took, and what it sent. None: it ended with an error, as an invocation that is throttled for too long."""
        self._clock.start(at)
        try:
            report = self._scanner.scan(self._shard, time_limit=self._time_limit)
        except Throttled:
            report = None
        flush(self._container, self._line, self._counts)
        return self._clock.at - at, None if report is None else report.sent + report.handled


class WorkerEnvironment:
    """One environment of the worker: what it has learned of destinations is its own."""

    def __init__(self, around: Surroundings) -> None:
        clock = InvocationClock(speed=min(1.0, around.size.stage.worker.memory_mb / around.limits.vcpu_mb))
        line = Line(clock, around.dice, around.limits)
        container = self._container = container_of(around, clock, line)
        self._line, self._counts = line, around.counts
        self._clock = clock
        self._limit = around.size.stage.worker.timeout
        self._worker = container.build(Worker, side_by_side=self._side_by_side)

    def run(self, parcels: Sequence[Parcel], *, at: float) -> tuple[float, list[str]]:
        """As `Environment` promises."""
        self._clock.start(at)
        messages = [
            Message(
                message_id=parcel.message_id,
                body=parcel.body,
                receipt=Receipt(parcel.queue, parcel.message_id),
                receive_count=parcel.receive_count,
            )
            for parcel in parcels
        ]
        returned = self._worker.execute(messages, ends_at=self._clock.now() + self._limit)
        flush(self._container, self._line, self._counts)
        return self._clock.at, returned

    def _side_by_side(self, jobs: Sequence[Callable[[], None]]) -> None:
        self._clock.side_by_side(jobs, lanes=RUNNERS)
