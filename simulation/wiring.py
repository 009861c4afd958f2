"""The real scanner, worker, placer and all they need, wired to the ports of this package: all of it is wired here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from functions.domain.jobs.job import Priority, Timer
from functions.domain.wheel import Wheel
from functions.ports.ready_queue import Receipt
from functions.runtime.container import Container
from functions.scanner.parts import PARTS as SCANNER_PARTS
from functions.scanner.scan import Scanner
from functions.services.far_ring.placer import Placement, Placer
from functions.sweeper.publish import Publisher
from functions.worker.execute import Worker
from functions.worker.message import Message
from functions.worker.parts import PARTS as WORKER_PARTS
from simulation.calls import Calls
from simulation.limits import Limits
from simulation.network import Line, Tables
from simulation.partitions import Sample
from simulation.prices import (
    Price,
    Remote,
    breaker_prices,
    ledger_prices,
    permit_prices,
    rate_prices,
    schedule_prices,
    shard_prices,
)
from simulation.queues import Parcel, Queue
from simulation.size import SHED_AFTER, TICK_LIMIT, StageSize
from simulation.stores import SENDERS, Counts, SimulatedReady, SimulatedTargets, SimulatedTimers, Target, TimerRows
from simulation.virtual_time import Dice, InvocationClock
from testkit.fakes import (
    DiscardingAudit,
    DiscardingCounter,
    GivenPlans,
    InMemoryBreakerStore,
    InMemoryDeadLetters,
    InMemoryLedger,
    InMemoryPayloadStore,
    InMemoryPermitStore,
    InMemoryRateStore,
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

    def promoted(self, tenant: str, *, at: float) -> None:
        """A scanner sends a job of a tenant."""
        ...


def _container(around: Surroundings, clock: InvocationClock, line: Line, *, wheel: Wheel | None = None) -> Container:
    """What an execution environment is made of: the stores behind its network, and the parts that every process has."""
    kept, tables, wheel = around.kept, around.tables, wheel or around.wheel
    uncounted = DiscardingCounter()
    given = {
        "capacity": around.size.ready_capacity,
        "clock": clock,
        "wheel": wheel,
        "skew": wheel.skew,
        "plans": around.plans,
        "journal": around.counts,
        "token": around.dice.token,
        "jitter": around.dice.random.random,
        "ready": SimulatedReady(around.queues, line, share=around.sample.share, promoted=around.promoted),
        "timers": SimulatedTimers(kept.rows, line, around.limits),
        "ledger": Remote(kept.ledger, line, ledger_prices(tables)),
        "shards": Remote(kept.shards, line, shard_prices(tables)),
        "breaker_store": Remote(kept.breakers, line, breaker_prices(tables)),
        "schedules": Remote(kept.schedules, line, schedule_prices(tables)),
        "dead_letters": Remote(kept.letters, line, {"put": Price(tables.dead_letters, 1)}),
        "rates": Remote(kept.rates, line, rate_prices(tables)),
        "permits": Remote(kept.permits, line, permit_prices(tables)),
        "payloads": InMemoryPayloadStore(),
        # What tenants use and what is kept of their jobs is written in batches: it is no part of what is simulated.
        "audit": DiscardingAudit(),
        "pending": uncounted,
        "pulse": uncounted,
        "usage": uncounted,
        "targets": SimulatedTargets(around.target, line, around.dice, around.calls),
        # Calls that a function makes at the same time.
        "side_by_side": lambda rule, items: clock.side_by_side([partial(rule, item) for item in items], lanes=SENDERS),
    }
    return Container(given, parts={**SCANNER_PARTS, **WORKER_PARTS})


class ApiEnvironment:
    """Places what is submitted, by the constants of its time."""

    def __init__(self, around: Surroundings, *, wheel: Wheel) -> None:
        self._clock = InvocationClock()
        line = Line(self._clock, around.dice, around.limits)
        self._placer = _container(around, self._clock, line, wheel=wheel).build(Placer)

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
        self._publisher = _container(around, self._clock, line).build(
            Publisher, shards=around.kept.shards, shed_after=SHED_AFTER
        )

    def publish(self, *, at: float) -> None:
        """Publish how the stage stands at an instant."""
        self._clock.start(at)
        self._publisher.publish()


class ScannerEnvironment:
    """The scanner of one shard."""

    def __init__(self, around: Surroundings, shard: int, *, slowness: float) -> None:
        clock = InvocationClock(speed=min(1.0, around.size.scanner_mb / around.limits.vcpu_mb))
        line = Line(clock, around.dice, around.limits, slowness=slowness, is_ticked=True)
        self._shard = shard
        self._clock = clock
        self._scanner = _container(around, clock, line).build(Scanner)

    def scan(self, *, at: float) -> tuple[float, int]:
        """One tick; the seconds that it took, and what it sent."""
        self._clock.start(at)
        report = self._scanner.scan(self._shard, time_limit=TICK_LIMIT)
        return self._clock.at - at, report.sent + report.handled


class WorkerEnvironment:
    """One environment of the worker, of one class: what it has learned of destinations is its own."""

    def __init__(self, around: Surroundings, priority: Priority) -> None:
        clock = InvocationClock(speed=min(1.0, around.size.worker_mb / around.limits.vcpu_mb))
        line = Line(clock, around.dice, around.limits)
        container = _container(around, clock, line)
        self._queue_name = priority.name
        self._clock = clock
        self._limit = around.size.worker_limit
        self._worker = container.build(Worker, side_by_side=self._side_by_side)

    def run(self, parcels: Sequence[Parcel], *, at: float) -> tuple[float, list[str]]:
        """As `Environment` promises."""
        self._clock.start(at)
        messages = [
            Message(
                message_id=parcel.message_id,
                body=parcel.body,
                receipt=Receipt(self._queue_name, parcel.message_id),
                receive_count=parcel.receive_count,
            )
            for parcel in parcels
        ]
        returned = self._worker.execute(messages, ends_at=self._clock.now() + self._limit)
        return self._clock.at, returned

    def _side_by_side(self, jobs: Sequence[Callable[[], None]]) -> None:
        self._clock.side_by_side(jobs, lanes=RUNNERS)
