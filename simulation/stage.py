"""A stage on virtual time: ticks, budgets, queues and event sources around the real scanner, worker and placer.

What is left out: the API before `place`, the audit and the sweep of schedules, which only find what has gone wrong, and
the operations.
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
from simulation.calls import Calls
from simulation.event_source import EventSource, Function
from simulation.limits import Limits
from simulation.network import Tables
from simulation.partitions import Sample
from simulation.queues import Queue
from simulation.size import ROW_BYTES, StageSize
from simulation.stores import Counts, Target, TimerRows
from simulation.virtual_time import START, Dice, World, instant_of
from simulation.wiring import (
    ApiEnvironment,
    Kept,
    PublisherEnvironment,
    ScannerEnvironment,
    Surroundings,
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
    promoted_of: jobs by minute and tenant.
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
        self.sent_of: Counter[int] = Counter()
        self.promoted_of: Counter[tuple[int, str]] = Counter()
        self.is_down: Callable[[float], bool] = lambda _: False
        self.wheel = size.wheel()
        self.plans = GivenPlans()
        self.tables = Tables.of(limits, sample, partitions=size.partitions, ledger_partitions=size.ledger_partitions)
        self.kept = self._empty_stores()
        visibility = size.visibility(self.wheel).total_seconds()
        self.queues = {
            priority: Queue(self.world, limits, share=sample.share, visibility=visibility) for priority in Priority
        }
        self.functions = {priority: self._function(priority) for priority in Priority}
        self.sources = {priority: self._source(priority) for priority in Priority}
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
            ledger=InMemoryLedger(skew=self.wheel.skew, dead_letters=letters),
            letters=letters,
        )
        # Nothing is older than the run: a shard that was never scanned would look at a day of empty buckets.
        first = self.wheel.bucket_of(START)
        for shard in self.sample.sampled:
            lease = kept.shards.acquire(shard, owner="before", now=START, lease_until=START, skew=self.wheel.skew)
            assert lease is not None
            kept.shards.checkpoint(lease, first_cursors(first), lease_until=None)
        return kept

    def _function(self, priority: Priority) -> Function:
        make = partial(WorkerEnvironment, self, priority)
        return Function(self.world, self.limits, self.dice, make, share=self.sample.share)

    def _source(self, priority: Priority) -> EventSource:
        return EventSource(
            self.world,
            self.limits,
            self.dice,
            self.queues[priority],
            self.functions[priority],
            share=self.sample.share,
            most=self.size.most[priority.value],
            growth=self.size.growth,
            start=self.size.start,
        )

    def _old_wheel(self) -> Wheel:
        return self.size.wheel(write_shards=self.size.old_shards)

    def _plan_ticks(self, minute: float) -> None:
        jitter = self.limits.tick_jitter
        self.world.at(minute + jitter * self.dice.random.random(), self._publish)
        for shard in self.sample.sampled:
            self.world.at(minute + jitter * self.dice.random.random(), partial(self._scan, shard))

    def _scan(self, shard: int) -> None:
        if not self.is_down(self.world.now):
            environment = self._scanners[shard]
            seconds, sent = environment.scan(at=self.world.now)
            self.scanner_seconds += seconds
            self.scans += 1
            self.sent_of[shard] += sent

    def _publish(self) -> None:
        if self.is_down(self.world.now):
            return
        PublisherEnvironment(self).publish(at=self.world.now)

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
                concurrency=sum(function.busy for function in self.functions.values()) / share,
                oldest_bucket_age=max(0.0, age),
            )
        )
        self.kept.rows.forget_before(self._first_needed())

    def _first_needed(self) -> int:
        """The oldest bucket that any cursor has yet to finish, those of tenants that are held back and of alarms too."""
        return min(
            min(cursor.earliest_bucket, cursor.oldest_bucket)
            for cursors in self.kept.shards.cursors(self.sample.sampled).values()
            for cursor in cursors.values()
        )


def totals(stage: SimulatedStage) -> Mapping[str, float]:
    """What the sample has used, as of the whole stage: units, requests and GB-seconds."""
    share, queues = stage.sample.share, stage.queues.values()
    invocations = sum(function.spent.invocations for function in stage.functions.values())
    seconds = sum(function.spent.seconds for function in stage.functions.values())
    worker_gb, scanner_gb = stage.size.worker_mb / 1_024, stage.size.scanner_mb / 1_024
    tables = stage.tables.by_name().values()
    return {
        "dynamodb_write_unit": sum(table.writes.total for table in tables),
        "dynamodb_read_unit": sum(table.reads.total for table in tables),
        "sqs_request": sum(queue.sends + queue.receives + queue.deletes for queue in queues) / share,
        "lambda_request": (invocations + stage.scans) / share,
        "lambda_gb_second": (seconds * worker_gb + stage.scanner_seconds * scanner_gb) / share,
    }
