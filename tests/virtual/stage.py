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
from functions.domain.schedules.schedule import Schedule
from functions.domain.targets.options import TargetOptions
from functions.domain.wheel import Wheel
from functions.ports.ready_queue import Receipt
from functions.ports.targets import Invocation, Outcome, Succeeded
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
from functions.sweeper.heal import Healer
from functions.sweeper.publish import Publisher
from functions.sweeper.sweep import Sweeper
from functions.worker.execute import Message, Worker
from testkit.fakes import (
    FakeClock,
    GivenPlans,
    InMemoryBreakerStore,
    InMemoryDeadLetters,
    InMemoryLedger,
    InMemoryPayloadStore,
    InMemoryRateStore,
    InMemoryReadyQueue,
    InMemoryScheduleStore,
    InMemorySeatStore,
    InMemoryShardStore,
    InMemoryTimerStore,
    RecordingJournal,
)

MINUTE = timedelta(minutes=1)
_KEPT_BUCKETS = timedelta(hours=1)


@dataclass
class Targets:
    """What was called, when: by the key of the execution. Takes no time."""

    clock: FakeClock
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
        self.clock = FakeClock(now)
        self._tokens = itertools.count(1)
        letters = InMemoryDeadLetters()
        self.ledger = InMemoryLedger(skew=wheel.skew, dead_letters=letters)
        self.timers = InMemoryTimerStore(wheel=wheel, ledger=self.ledger)
        self.ready = InMemoryReadyQueue(self.clock)
        self.shards = InMemoryShardStore()
        self.schedules = InMemoryScheduleStore()
        self.journal = RecordingJournal()
        self.targets = Targets(self.clock)
        payloads = InMemoryPayloadStore()
        pacer = Pacer(
            wheel=wheel,
            clock=self.clock,
            plans=GivenPlans(),
            rates=InMemoryRateStore(),
            classes=KnownConditions(clock=self.clock, shards=self.shards, journal=self.journal),
            journal=self.journal,
        )
        placer = Placer(wheel=wheel, clock=self.clock, timers=self.timers, ready=self.ready, pacer=pacer)
        changer = ScheduleChanger(clock=self.clock, schedules=self.schedules)
        pauser = Pauser(changer=changer, journal=self.journal)
        stops = Stops(clock=self.clock, ledger=self.ledger, journal=self.journal, token=self._token)
        materialiser = Materialiser(
            wheel=wheel,
            clock=self.clock,
            schedules=self.schedules,
            ledger=self.ledger,
            placer=placer,
            plans=GivenPlans(),
            journal=self.journal,
            asides=Asides(clock=self.clock, schedules=self.schedules, pauser=pauser, journal=self.journal),
            stops=stops,
            side_by_side=_one_after_another,
        )
        self.manager = ScheduleManager(
            wheel=wheel,
            clock=self.clock,
            schedules=self.schedules,
            changer=changer,
            materialiser=materialiser,
            ledger=self.ledger,
            asked=AskedFires(
                clock=self.clock,
                ledger=self.ledger,
                placer=placer,
                token=self._token,
                side_by_side=_one_after_another,
            ),
            payloads=payloads,
            journal=self.journal,
        )
        ends = Ends(
            clock=self.clock,
            ledger=self.ledger,
            dead_letters=letters,
            runs=RunEnds(schedules=self.schedules, pauser=pauser, materialiser=materialiser),
            stops=stops,
            journal=self.journal,
        )
        self._scanner = Scanner(
            wheel=wheel,
            clock=self.clock,
            shards=self.shards,
            timers=self.timers,
            ready=self.ready,
            ledger=self.ledger,
            dead_letters=letters,
            plans=GivenPlans(),
            pacer=pacer,
            placer=placer,
            ends=ends,
            capacity=1_000_000,
            alarms=Ringer(
                wheel=self.wheel,
                clock=self.clock,
                schedules=self.schedules,
                materialiser=materialiser,
                journal=self.journal,
            ),
            journal=self.journal,
            token=self._token,
        )
        occurrences = Occurrences(
            wheel=wheel,
            clock=self.clock,
            schedules=self.schedules,
            ledger=self.ledger,
            placer=placer,
            ends=ends,
            journal=self.journal,
            token=self._token,
        )
        self._worker = Worker(
            wheel=wheel,
            clock=self.clock,
            ledger=self.ledger,
            settler=Settler(
                wheel=wheel,
                clock=self.clock,
                ledger=self.ledger,
                placer=placer,
                ends=ends,
                dead_letters=letters,
                payloads=payloads,
                journal=self.journal,
                jitter=lambda: 0.0,
            ),
            plans=GivenPlans(),
            breakers=Breakers(
                clock=self.clock,
                store=InMemoryBreakerStore(),
                journal=self.journal,
                token=self._token,
                jitter=lambda: 0.0,
                skew=wheel.skew,
            ),
            usher=Usher(
                wheel=wheel,
                clock=self.clock,
                seats=InMemorySeatStore(),
                journal=self.journal,
                token=self._token,
                jitter=lambda: 0.0,
            ),
            occurrences=occurrences,
            ready=self.ready,
            payloads=payloads,
            targets=self.targets,
            journal=self.journal,
            side_by_side=_all,
            token=self._token,
            jitter=lambda: 0.0,
        )
        self._sweeper = Sweeper(
            wheel=wheel,
            clock=self.clock,
            shards=self.shards,
            timers=self.timers,
            ledger=self.ledger,
            placer=placer,
            ends=ends,
            plans=GivenPlans(),
            journal=self.journal,
            token=self._token,
            sample=1.0,
            capacity=100_000,
        )
        self._publisher = Publisher(
            wheel=wheel,
            clock=self.clock,
            ready=self.ready,
            shards=self.shards,
            plans=GivenPlans(),
            journal=self.journal,
            capacity=100_000,
            shed_after=timedelta(minutes=5),
        )
        self._healer = Healer(
            wheel=wheel,
            clock=self.clock,
            shards=self.shards,
            schedules=self.schedules,
            materialiser=materialiser,
            plans=GivenPlans(),
            journal=self.journal,
        )

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
        messages = [
            Message(
                message_id=message.message_id,
                body=message.body,
                receipt=Receipt("arn:aws:sqs:us-east-1:1:ready", message.message_id),
                receive_count=message.receive_count,
            )
            for message in self.ready.receive(1_000)
        ]
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
