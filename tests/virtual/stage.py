"""The real scanner, materialisation, worker and sweeper on virtual time: days in seconds, minute by minute.

Each minute every shard is scanned, schedules and closed buckets are swept, and messages are worked off at the instant
at which they become visible.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from functions.api.schedules.asked_fires import AskedFires
from functions.api.schedules.manager import ScheduleManager
from functions.domain.far_ring.timer_record import decode_envelope
from functions.domain.instants import MINUTE
from functions.domain.schedules.schedule import Schedule
from functions.domain.targets.options import TargetOptions
from functions.domain.wheel import Wheel
from functions.ports.targets import Invocation, Outcome, Succeeded
from functions.runtime.container import Container
from functions.scanner.parts import PARTS as SCANNER_PARTS
from functions.scanner.scan import Scanner
from functions.sweeper.heal import Healer
from functions.sweeper.publish import Publisher
from functions.sweeper.sweep import Sweeper
from functions.worker.execute import Worker
from functions.worker.parts import PARTS as WORKER_PARTS
from testkit import fakes
from testkit.fakes.ready_queue import received

_KEPT_BUCKETS = timedelta(hours=1)


@dataclass
class Targets:
    """What was called, when: by the key of the execution. Takes no time."""

    clock: fakes.FakeClock
    calls: dict[str, list[datetime]] = field(default_factory=lambda: defaultdict(list))
    early: list[str] = field(default_factory=list)

    def call(
        self, target: str, payload: str | None, invocation: Invocation, *, options: TargetOptions, timeout: timedelta
    ) -> Outcome:
        self.calls[invocation.idempotency_key].append(self.clock.instant)
        if self.clock.instant < invocation.scheduled_at:
            self.early.append(invocation.idempotency_key)
        return Succeeded()


class VirtualStage:
    """A stage, and the hands that drive it."""

    def __init__(self, *, wheel: Wheel, now: datetime) -> None:
        self.wheel = wheel
        self.clock = fakes.FakeClock(now)
        self._tokens = itertools.count(1)
        letters = fakes.InMemoryDeadLetters()
        self.ledger = fakes.InMemoryLedger(skew=wheel.lease_skew, dead_letters=letters)
        self.timers = fakes.InMemoryTimerStore(wheel=wheel, ledger=self.ledger)
        self.ready = fakes.InMemoryReadyQueue(self.clock)
        self.shards = fakes.InMemoryShardStore()
        self.schedules = fakes.InMemoryScheduleStore()
        self.journal = fakes.RecordingJournal()
        self.targets = Targets(self.clock)
        uncounted = fakes.DiscardingCounter()
        container = Container(
            {
                "capacity": 1_000_000,
                "wheel": wheel,
                "skew": wheel.skew,
                "clock": self.clock,
                "journal": self.journal,
                "plans": fakes.GivenPlans(),
                "ledger": self.ledger,
                "dead_letters": letters,
                "timers": self.timers,
                "ready": self.ready,
                "shards": self.shards,
                "schedules": self.schedules,
                "payloads": fakes.InMemoryPayloadStore(),
                "results": fakes.InMemoryResultStore(),
                "rates": fakes.InMemoryRateStore(),
                "permits": fakes.InMemoryPermitStore(),
                "flows": fakes.InMemoryFlowStore(),
                "collections": fakes.InMemoryCollectionStore(),
                "end_side_by_side": lambda end, members: [end(member) for member in members],
                "targets": self.targets,
                "breaker_store": fakes.InMemoryBreakerStore(),
                "audit": fakes.DiscardingAudit(),
                "gate": fakes.OpenGate(),
                "pending": uncounted,
                "pulse": uncounted,
                "usage": uncounted,
                "token": self._token,
                "jitter": lambda: 0.0,
                "side_by_side": _one_after_another,
            },
            parts={**SCANNER_PARTS, **WORKER_PARTS, "asked": AskedFires},
        )
        self.manager = container.build(ScheduleManager)
        self._scanner = container.build(Scanner)
        self._worker = container.build(Worker, side_by_side=_all)
        self._sweeper = container.build(Sweeper, sample=1.0, capacity=100_000)
        self._publisher = container.build(Publisher, capacity=100_000, shed_after=timedelta(minutes=5))
        self._healer = container.build(Healer)

    def put(self, schedules: Sequence[Schedule]) -> None:
        """Create schedules."""
        for schedule in schedules:
            self.manager.put(schedule)

    def run_until(self, instant: datetime) -> None:
        """Everything runs, a minute after the other."""
        while self.clock.instant < instant:
            self.tick()
            self.work_until(min(self.clock.instant + MINUTE, instant))

    def be_down_until(self, instant: datetime) -> None:
        """Nothing runs at all."""
        self.clock.tick(instant - self.clock.instant)

    def tick(self) -> None:
        """What EventBridge calls each minute."""
        for shard in range(self.wheel.scan_shards):
            self._scanner.scan(shard, time_limit=MINUTE)
        self._publisher.publish()
        self._healer.heal(time_limit=MINUTE)
        self._sweeper.sweep(time_limit=MINUTE)
        self._forget_old_rows()

    def work_until(self, instant: datetime) -> None:
        """Work messages off, each as soon as it is visible."""
        while self.ready.messages:
            visible_at = min(message.visible_at for message in self.ready.messages.values())
            if visible_at > instant:
                break
            self.clock.tick(visible_at - self.clock.instant)
            self._work()
        self.clock.tick(instant - self.clock.instant)

    def waiting(self) -> set[str]:
        """The keys of the executions whose messages wait."""
        return {timer.job.key for message in self.ready.messages.values() for timer in decode_envelope(message.body)}

    def _work(self) -> None:
        messages = [received(message) for message in self.ready.receive(1_000)]
        returned = self._worker.execute(messages, ends_at=self.clock.instant + MINUTE)
        for message in messages:
            if message.message_id not in returned:
                self.ready.delete(message.message_id)

    def _forget_old_rows(self) -> None:
        """As the table's ttl does, only sooner: what has been audited is not read again."""
        oldest = self.wheel.bucket_of(self.clock.instant - _KEPT_BUCKETS)
        audited = self.shards.audited()
        for place in [
            place for place in self.timers.rows if place[0] < oldest and audited and place[0] < audited.bucket
        ]:
            del self.timers.rows[place]

    def _token(self) -> str:
        return f"token-{next(self._tokens)}"


def _all(jobs: Sequence[Callable[[], None]]) -> None:
    for job in jobs:
        job()


def _one_after_another(rule: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    return [rule(item) for item in items]
