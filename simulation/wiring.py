"""The real scanner, worker, placer and all they need, wired to the ports of this package: all of it is wired here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from functions.domain.jobs.job import Priority
from functions.domain.wheel import Wheel
from functions.ports.ready_queue import Receipt
from functions.ports.tenants import TenantPlans
from functions.scanner.scan import Scanner
from functions.scanner.schedule_alarms import Ringer
from functions.services.far_ring.pacer import Pacer
from functions.services.far_ring.placer import Placer
from functions.services.jobs.ends import Ends
from functions.services.jobs.occurrences import Occurrences
from functions.services.jobs.settler import Settler
from functions.services.schedules.changer import ScheduleChanger
from functions.services.schedules.materialiser import Materialiser
from functions.services.schedules.pauser import Asides, Pauser
from functions.services.schedules.run_ends import RunEnds
from functions.services.schedules.stops import Stops
from functions.services.stage.conditions import KnownConditions
from functions.services.targets.breakers import Breakers
from functions.services.targets.seating import Usher
from functions.worker.execute import Message, Worker
from simulation.calls import Calls
from simulation.limits import Limits
from simulation.network import Line, Tables
from simulation.prices import (
    Price,
    Remote,
    breaker_prices,
    ledger_prices,
    rate_prices,
    schedule_prices,
    seat_prices,
    shard_prices,
)
from simulation.queues import Parcel, Queue
from simulation.size import TICK_LIMIT, StageSize
from simulation.stores import SENDERS, Counts, SimulatedReady, SimulatedTargets, SimulatedTimers, Target, TimerRows
from simulation.virtual_time import Dice, InvocationClock
from testkit.fakes import (
    InMemoryBreakerStore,
    InMemoryDeadLetters,
    InMemoryLedger,
    InMemoryPayloadStore,
    InMemoryRateStore,
    InMemoryScheduleStore,
    InMemorySeatStore,
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
    seats: InMemorySeatStore = field(default_factory=InMemorySeatStore)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all environments of a stage share. promoted: told what a scanner sends, and when."""

    size: StageSize
    wheel: Wheel
    share: float
    limits: Limits
    dice: Dice
    tables: Tables
    kept: Kept
    queues: dict[Priority, Queue]
    plans: TenantPlans
    target: Target
    calls: Calls
    counts: Counts
    promoted: Callable[..., None]


class Components:
    """What an execution environment is made of. line: its network; None for a usual one."""

    def __init__(self, around: Surroundings, clock: InvocationClock, *, wheel: Wheel, line: Line | None = None) -> None:
        kept, tables = around.kept, around.tables
        line = line or Line(clock, around.dice, around.limits)
        self.clock = clock
        self.line = line
        self.token = around.dice.token
        self.jitter = around.dice.random.random
        self.ready = SimulatedReady(around.queues, line, share=around.share, promoted=around.promoted)
        self.timers: Any = SimulatedTimers(kept.rows, line, around.limits)
        self.ledger: Any = Remote(kept.ledger, line, ledger_prices(tables))
        self.shards: Any = Remote(kept.shards, line, shard_prices(tables))
        self.schedules: Any = Remote(kept.schedules, line, schedule_prices(tables))
        self.breaker_rows: Any = Remote(kept.breakers, line, breaker_prices(tables))
        self.letters: Any = Remote(kept.letters, line, {"put": Price(tables.dead_letters, 1)})
        self.conditions = KnownConditions(clock=clock, shards=self.shards, journal=around.counts)
        self.rates: Any = Remote(kept.rates, line, rate_prices(tables))
        self.seats: Any = Remote(kept.seats, line, seat_prices(tables))
        self.pacer = Pacer(
            wheel=wheel,
            clock=clock,
            plans=around.plans,
            rates=self.rates,
            classes=self.conditions,
            journal=around.counts,
        )
        self.placer = Placer(wheel=wheel, clock=clock, timers=self.timers, ready=self.ready, pacer=self.pacer)
        changer = ScheduleChanger(clock=clock, schedules=self.schedules)
        self.pauser = Pauser(changer=changer, journal=around.counts)
        stops = Stops(clock=clock, ledger=self.ledger, journal=around.counts, token=around.dice.token)
        self.materialiser = Materialiser(
            wheel=wheel,
            clock=clock,
            schedules=self.schedules,
            ledger=self.ledger,
            placer=self.placer,
            plans=around.plans,
            journal=around.counts,
            asides=Asides(clock=clock, schedules=self.schedules, pauser=self.pauser, journal=around.counts),
            stops=stops,
            side_by_side=self.map_side_by_side,
        )
        self.ends = Ends(
            clock=clock,
            ledger=self.ledger,
            dead_letters=self.letters,
            runs=RunEnds(
                schedules=self.schedules,
                pauser=self.pauser,
                materialiser=self.materialiser,
            ),
            stops=stops,
            journal=around.counts,
        )

    def map_side_by_side(self, rule: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """Calls that a function makes at the same time."""
        return self.clock.side_by_side([partial(rule, item) for item in items], lanes=SENDERS)


class ScannerEnvironment:
    """The scanner of one shard."""

    def __init__(self, around: Surroundings, shard: int, *, slowness: float) -> None:
        clock = InvocationClock(speed=min(1.0, around.size.scanner_mb / around.limits.vcpu_mb))
        line = Line(clock, around.dice, around.limits, slowness=slowness, is_ticked=True)
        components = Components(around, clock, line=line, wheel=around.wheel)
        self._shard = shard
        self._clock = clock
        self._scanner = Scanner(
            wheel=around.wheel,
            clock=clock,
            shards=components.shards,
            timers=components.timers,
            ready=components.ready,
            ledger=components.ledger,
            dead_letters=components.letters,
            alarms=Ringer(
                wheel=around.wheel,
                clock=clock,
                schedules=components.schedules,
                materialiser=components.materialiser,
                journal=around.counts,
            ),
            plans=around.plans,
            pacer=components.pacer,
            placer=components.placer,
            ends=components.ends,
            capacity=around.size.ready_capacity,
            journal=around.counts,
            token=components.token,
        )

    def scan(self, *, at: float) -> tuple[float, int]:
        """One tick; the seconds that it took, and what it sent."""
        self._clock.start(at)
        report = self._scanner.scan(self._shard, time_limit=TICK_LIMIT)
        return self._clock.at - at, report.sent + report.rung


class WorkerEnvironment:
    """One environment of the worker, of one class: what it has learned of destinations is its own."""

    def __init__(self, around: Surroundings, priority: Priority) -> None:
        clock = InvocationClock(speed=min(1.0, around.size.worker_mb / around.limits.vcpu_mb))
        components = Components(around, clock, wheel=around.wheel)
        self._queue_name = priority.name
        self._clock = clock
        self._limit = around.size.worker_limit
        occurrences = Occurrences(
            wheel=around.wheel,
            clock=clock,
            schedules=components.schedules,
            ledger=components.ledger,
            placer=components.placer,
            ends=components.ends,
            journal=around.counts,
            token=components.token,
        )
        payloads = InMemoryPayloadStore()
        self._worker = Worker(
            wheel=around.wheel,
            clock=clock,
            ledger=components.ledger,
            settler=Settler(
                wheel=around.wheel,
                clock=clock,
                ledger=components.ledger,
                placer=components.placer,
                ends=components.ends,
                dead_letters=components.letters,
                payloads=payloads,
                journal=around.counts,
                jitter=components.jitter,
            ),
            plans=around.plans,
            usher=Usher(
                wheel=around.wheel,
                clock=clock,
                seats=components.seats,
                journal=around.counts,
                token=components.token,
                jitter=components.jitter,
            ),
            breakers=Breakers(
                clock=clock,
                store=components.breaker_rows,
                journal=around.counts,
                token=components.token,
                jitter=components.jitter,
                skew=around.wheel.skew,
            ),
            occurrences=occurrences,
            ready=components.ready,
            payloads=payloads,
            targets=SimulatedTargets(around.target, components.line, around.dice, around.calls),
            journal=around.counts,
            side_by_side=self._side_by_side,
            token=components.token,
            jitter=components.jitter,
        )

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
