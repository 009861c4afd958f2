"""A stage on virtual time: ticks, budgets, queues and event sources around the real scanner, worker and placer.

The bucket audit and the sweep of schedules, which only find what has gone wrong, and the API run where a scenario says so. The
operations are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from functions.domain.far_ring.cursor import first_cursors, oldest_bucket
from functions.domain.instants import from_seconds
from functions.domain.jobs.job import Priority, Timer
from functions.domain.tenants.plan import TenantPlan
from functions.domain.wheel import Wheel
from functions.services.far_ring.placer import Placement
from functions.sweeper.sweep import SETTLING
from simulation.calls import Calls
from simulation.event_source import EventSource, Function
from simulation.front_door import FrontDoor
from simulation.limits import Limits
from simulation.network import Tables
from simulation.partitions import Sample
from simulation.queues import Queue
from simulation.size import ROW_BYTES, StageSize
from simulation.stores import Counts, Target, TimerRows
from simulation.telemetry import Stream
from simulation.virtual_time import START, Dice, World, instant_of
from simulation.wiring import (
    ApiEnvironment,
    AuditEnvironment,
    Kept,
    PublisherEnvironment,
    ScannerEnvironment,
    Surroundings,
    SweepEnvironment,
    WorkerEnvironment,
)
from testkit.fakes import GivenPlans, InMemoryDeadLetters, InMemoryLedger

MINUTE = 60.0


@dataclass(slots=True)
class Minute:
    """How a stage stood at a full minute, as of the whole stage: messages of all queues, and the oldest bucket's age."""

    at: float
    visible: float
    delayed: float
    in_flight: float
    concurrency: float
    oldest_bucket_age: float


class SimulatedStage(Surroundings):
    """A sample of the shards of a stage, with the same sample of everything that they share.

    slowness: of the scanner of a shard, how many times longer its calls take. sent_of: jobs and alarms by shard.
    promoted_of: jobs by minute and tenant. sweeps, audits: whether schedules are swept, and buckets that have ended audited.
    """

    def __init__(
        self,
        size: StageSize,
        sample: Sample,
        *,
        seed: int,
        target: Target,
        limits: Limits,
        slowness: Callable[[int], float] = lambda _: 1.0,
    ) -> None:
        self.size = size
        self.sample = sample
        self.target = target
        self.limits = limits
        self.world = World()
        self.dice = Dice(seed)
        self.calls = Calls()
        self.counts = Counts()
        self.minutes: list[Minute] = []
        self.scanner_seconds = 0.0
        self.scans = 0
        self.failed_scans = 0
        self.sent_of: Counter[int] = Counter()
        self.promoted_of: Counter[tuple[int, str]] = Counter()
        self.is_down: Callable[[float], bool] = lambda _: False
        self.wheel = size.wheel()
        self.plans = GivenPlans()
        self.tables = Tables.of(limits, sample, lambda table: size.room_of(table, limits))
        self.kept = self._empty_stores()
        self.stream = Stream(limits, share=sample.share)
        visibility = size.stage.visibility.total_seconds()
        self.queues = {
            priority: Queue(self.world, limits, share=sample.share, visibility=visibility) for priority in Priority
        }
        # One function has all four queues.
        self.worker = Function(self.world, limits, self.dice, partial(WorkerEnvironment, self), share=sample.share)
        self.front_door = FrontDoor(self, self.world, self.dice, limits)
        self.sources = {priority: self._source(priority) for priority in Priority}
        self.sweeps = False
        self.sweep = SweepEnvironment(self)
        self.audits = False
        self.audit = AuditEnvironment(self)
        self._api = ApiEnvironment(self, wheel=self._old_wheel())
        self._resharded_api = ApiEnvironment(self, wheel=self.wheel)
        self._scanners = {shard: ScannerEnvironment(self, shard, slowness=slowness(shard)) for shard in sample.sampled}

    def writing_wheel(self, at: float) -> Wheel:
        """The constants by which jobs are written then."""
        return self.wheel if at >= self.size.resharded_at else self._old_wheel()

    def give_plan(self, tenant: str, plan: TenantPlan) -> None:
        """Let a tenant have a plan of its own."""
        self.plans.plans[tenant] = plan

    def submit(self, timer: Timer, *, at: float) -> Placement:
        """Place a job at an instant."""
        api = self._resharded_api if at >= self.size.resharded_at else self._api
        return api.place(timer, at=at)

    def run(self, *, until: float, advance: Callable[[float], None] = lambda _: None) -> None:
        """Let the stage run, minute by minute. advance: called with the progress."""
        minute = 0.0
        while minute < until:
            self.world.at(minute, self._note_minute)
            self._plan_ticks(minute)
            self.world.run(until=min(minute + MINUTE, until))
            minute += MINUTE
            advance(min(minute, until))

    def promoted(self, tenant: str, *, at: float) -> None:
        """A scanner sends a job of a tenant."""
        self.promoted_of[int(at // MINUTE), tenant] += 1

    def _empty_stores(self) -> Kept:
        letters = InMemoryDeadLetters()
        kept = Kept(
            rows=TimerRows(self.wheel, self.tables.timers, row_bytes=ROW_BYTES),
            ledger=InMemoryLedger(skew=self.wheel.lease_skew, dead_letters=letters),
            letters=letters,
        )
        # Nothing is older than the run: a shard that was never scanned would look at a day of empty buckets.
        first = self.wheel.bucket_of(START)
        for shard in self.sample.sampled:
            lease = kept.shards.acquire(shard, owner="before", now=START, lease_until=START, skew=self.wheel.skew)
            assert lease is not None
            kept.shards.checkpoint(lease, first_cursors(first), lease_until=None)
        return kept

    def _source(self, priority: Priority) -> EventSource:
        return EventSource(
            self.world,
            self.limits,
            self.dice,
            self.queues[priority],
            self.worker,
            self.size.source_of(priority.value, self.limits),
            share=self.sample.share,
        )

    def _old_wheel(self) -> Wheel:
        return self.size.wheel(write_shards=self.size.old_shards)

    def _plan_ticks(self, minute: float) -> None:
        jitter = self.limits.tick_jitter
        self.world.at(minute + jitter * self.dice.random.random(), self._publish)
        # Those of all shards are spread over the jitter, and so are those of a few: one at a random instant of each part of it.
        sampled = list(self.sample.sampled)
        self.dice.random.shuffle(sampled)
        for number, shard in enumerate(sampled):
            late = (number + self.dice.random.random()) / len(sampled)
            self.world.at(minute + jitter * late, partial(self._scan, shard))

    def _scan(self, shard: int) -> None:
        if not self.is_down(self.world.now):
            environment = self._scanners[shard]
            seconds, sent = environment.scan(at=self.world.now)
            self.scanner_seconds += seconds
            self.scans += 1
            self.failed_scans += sent is None
            self.sent_of[shard] += sent or 0

    def _publish(self) -> None:
        if self.is_down(self.world.now):
            return
        PublisherEnvironment(self).publish(at=self.world.now)
        if self.sweeps:
            self.sweep.sweep(at=self.world.now)
        if self.audits:
            self.audit.audit(at=self.world.now)

    def _note_minute(self) -> None:
        now, share = self.world.now, self.sample.share
        oldest = min(oldest_bucket(cursors) for cursors in self.kept.shards.cursors(self.sample.sampled).values())
        age = (instant_of(now) + self.wheel.lookahead - from_seconds(oldest)).total_seconds()
        self.minutes.append(
            Minute(
                at=now,
                visible=sum(queue.visible_count for queue in self.queues.values()) / share,
                delayed=sum(queue.delayed_count for queue in self.queues.values()) / share,
                in_flight=sum(queue.in_flight_count for queue in self.queues.values()) / share,
                concurrency=self.worker.busy / share,
                oldest_bucket_age=max(0.0, age),
            )
        )
        self.kept.rows.forget_before(self._first_needed())

    def _first_needed(self) -> int:
        """The oldest bucket that any cursor has yet to finish, those of tenants that are held back and of alarms too; or the audit."""
        first = min(
            min(cursor.earliest_bucket, cursor.oldest_bucket)
            for cursors in self.kept.shards.cursors(self.sample.sampled).values()
            for cursor in cursors.values()
        )
        if not self.audits:
            return first
        ripe = self.wheel.bucket_of(instant_of(self.world.now) - SETTLING)
        return min(first, ripe, self.audit.reached or ripe)


def _log_bytes(stage: SimulatedStage) -> float:
    """Of the sample: what the benchmark has measured of each execution, and of each tick."""
    limits, promoted = stage.limits, sum(stage.promoted_of.values())
    executions = len(stage.calls.table().at)
    return (
        executions * limits.near_log
        + promoted * (limits.far_log - limits.near_log)
        + stage.scans * limits.tick_log
        + stage.front_door.function.spent.invocations * limits.request_log
    )


def totals(stage: SimulatedStage) -> Mapping[str, float]:
    """What the sample has used, as of the whole stage: units, requests, GB-seconds and GB of log."""
    share, queues = stage.sample.share, stage.queues.values()
    spent, api = stage.worker.spent, stage.front_door.function.spent
    deployed = stage.size.stage
    worker_gb, scanner_gb, api_gb = (
        size.memory_mb / 1_024 for size in (deployed.worker, deployed.scanner, deployed.api)
    )
    tables = [*stage.tables.by_name().values(), *stage.audit.tables.by_name().values()]
    return {
        "dynamodb_write_unit": sum(table.writes.total for table in tables),
        "dynamodb_read_unit": sum(table.reads.total for table in tables),
        "sqs_request": sum(queue.sends + queue.receives + queue.deletes for queue in queues) / share,
        "firehose_5_kb": stage.stream.steps / share,
        "log_gb": _log_bytes(stage) / share / 1e9,
        "lambda_request": (spent.invocations + stage.scans + api.invocations) / share,
        "http_api_request": stage.front_door.requests / share,
        "lambda_gb_second": (spent.billed * worker_gb + stage.scanner_seconds * scanner_gb + api.billed * api_gb)
        / share,
    }
