"""The whole scheduler on fakes, with its time in the hand of the test."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from copy import copy
from datetime import datetime, timedelta
from functools import cached_property
from types import MappingProxyType
from typing import Any

from functions.api.admission.admission import Admission
from functions.api.admission.gate import Gate
from functions.api.dead_letters.purge import Purger
from functions.api.jobs.explain import Explainer
from functions.api.jobs.find import Finder
from functions.api.jobs.known_ids import KnownIds
from functions.api.jobs.report_outcome import OutcomeReports
from functions.api.jobs.submit import Accepted, Submitter
from functions.dead_letters.dead_message import DeadMessageHandler
from functions.domain.errors import TickwheelError
from functions.domain.instants import EPOCH, from_seconds
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job import Job
from functions.domain.jobs.submission import Submission
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.state import ScheduleState
from functions.domain.stage.conditions import Conditions
from functions.domain.wheel import Ring, Wheel
from functions.operations.executor import OperationExecutor, WorkReport
from functions.ports.dead_letters import DeadLetter
from functions.ports.schedules import StoredSchedule
from functions.ports.targets import Invocation
from functions.runtime.container import Built, Container
from functions.scanner.scan import Scanner, ScanReport
from functions.scanner.schedule_alarms import ScheduleAlarms
from functions.services.far_ring.pacer import Pacer
from functions.services.far_ring.placer import Placer
from functions.services.jobs.canceller import Canceller
from functions.services.jobs.ends import Ends
from functions.services.jobs.occurrences import Occurrences
from functions.services.jobs.rescheduler import Rescheduler
from functions.services.jobs.settler import Settler
from functions.services.schedules.changer import ScheduleChanger
from functions.services.schedules.materialiser import Materialiser
from functions.services.schedules.pauser import Asides
from functions.services.stage.conditions import KnownConditions
from functions.services.targets.breakers import Breakers
from functions.services.targets.concurrency_limiter import ConcurrencyLimiter
from functions.services.telemetry.usage import UsageTally
from functions.services.tenants.submission_rates import SubmissionRates
from functions.sweeper.collections import CollectionOpener
from functions.sweeper.heal import Healer, HealReport
from functions.sweeper.publish import Publisher
from functions.sweeper.rooms import RoomOpener
from functions.sweeper.sweep import Sweeper, SweepReport
from functions.worker.execute import Worker
from functions.worker.message import Message
from testkit.builders import ID_SECRET, LOCAL_WHEEL, a_state, a_stored_schedule
from testkit.fakes import (
    FakeClock,
    GivenPlans,
    InMemoryBreakerStore,
    InMemoryCollectionStore,
    InMemoryDeadLetters,
    InMemoryExportStore,
    InMemoryFlowStore,
    InMemoryLedger,
    InMemoryOperationStore,
    InMemoryPayloadStore,
    InMemoryPendingStore,
    InMemoryPermitStore,
    InMemoryRateStore,
    InMemoryResultStore,
    InMemoryScheduleStore,
    InMemoryShardStore,
    InMemoryTimerStore,
    InMemoryUsageStore,
    OpenGate,
    RecordingAudit,
    RecordingJournal,
    RecordingPulse,
    RecordingTargets,
)
from testkit.fakes.ready_queue import received
from testkit.observed import ObservedReadyQueue, ObservedTimers, Watched
from testkit.parts import PARTS

TIME_LIMIT = timedelta(seconds=60)
"""Of a function's invocation."""


class World:
    """Every part of the scheduler, sharing one clock and one set of stores.

    dates_rows: the far ring tells when its rows were written.
    """

    def __init__(self, *, wheel: Wheel = LOCAL_WHEEL, dates_rows: bool = False) -> None:
        self.instead: Mapping[type, type] = {}
        """Classes that stand in for others."""
        self.wheel = wheel
        self.clock = FakeClock()
        self.letters = InMemoryDeadLetters()
        self.ledger = InMemoryLedger(skew=wheel.lease_skew, dead_letters=self.letters)
        self.rows = InMemoryTimerStore(wheel=wheel, ledger=self.ledger, clock=self.clock if dates_rows else None)
        self.timers = ObservedTimers(self.rows, self.clock)
        self.ready = ObservedReadyQueue(self.clock)
        self.shards = InMemoryShardStore()
        self.plans = GivenPlans()
        self.rates = InMemoryRateStore()
        self.schedules = InMemoryScheduleStore()
        self.payloads = InMemoryPayloadStore()
        self.results = InMemoryResultStore()
        self.operations = InMemoryOperationStore()
        self.exports = InMemoryExportStore()
        self.breaker_store = InMemoryBreakerStore()
        self.permits = InMemoryPermitStore()
        self.flows = InMemoryFlowStore()
        self.collections = InMemoryCollectionStore()
        self.targets = RecordingTargets(self.clock)
        self.journal = RecordingJournal()
        self.trail = RecordingAudit()
        self.used = InMemoryUsageStore()
        self.waiting = InMemoryPendingStore()
        self.tally = self.a_tally()
        self.pulse = RecordingPulse()
        self._tokens = itertools.count(1)
        self.jitter = 0.0
        self.sample = 1.0
        self.capacity = 1_000_000
        self.ready_capacity = 100_000

    def a_tally(self) -> UsageTally:
        """Of a new process."""
        return UsageTally(
            clock=self.clock, plans=self.plans, usage_store=self.used, pending_store=self.waiting, journal=self.journal
        )

    def token(self) -> str:
        return f"token-{next(self._tokens)}"

    def given(self) -> dict[str, Any]:
        """What its parts are given, by the names of their fields."""
        return {
            **self._ports(),
            "breakers": self.breakers,
            "conditions": self.conditions,
            "gate": OpenGate(),
            "limiter": self.limiter,
            "pacer": self.pacer,
        }

    def _ports(self) -> dict[str, Any]:
        return {
            "audit": self.trail,
            "breaker_store": self.breaker_store,
            "clock": self.clock,
            "collections": self.collections,
            "dead_letters": self.letters,
            "exports": self.exports,
            "flows": self.flows,
            "id_secret": lambda: ID_SECRET,
            "identity": lambda: f"random-{next(self._tokens)}",
            "jitter": lambda: self.jitter,
            "journal": self.journal,
            "ledger": self.ledger,
            "end_side_by_side": lambda rule, items: [rule(item) for item in items],
            "marked_since": lambda: EPOCH,
            "operations": self.operations,
            "payloads": self.payloads,
            "results": self.results,
            "permits": self.permits,
            "pending": self.tally,
            "pending_store": self.waiting,
            "plans": self.plans,
            "pulse": self.pulse,
            "rates": self.rates,
            "ready": self.ready,
            "schedules": self.schedules,
            "shards": self.shards,
            "side_by_side": lambda rule, items: [rule(item) for item in items],
            "skew": self.wheel.skew,
            "targets": self.targets,
            "timers": self.timers,
            "token": self.token,
            "usage": self.tally,
            "wheel": self.wheel,
        }

    def build(self, wanted: type[Built], *, special: Mapping[str, Any] = MappingProxyType({}), **given: Any) -> Built:
        """As in a new process. given: in place of what this world has, to all that it is made of; special: to it alone."""
        container = Container({**self.given(), **given}, parts=PARTS, instead=self.instead)
        return container.build(wanted, **special)

    @cached_property
    def pacer(self) -> Pacer:
        """Of one process, however many batches it runs."""
        return self._of_one_process(Pacer, conditions=self.conditions)

    @cached_property
    def conditions(self) -> KnownConditions:
        """Of one process."""
        return self._of_one_process(KnownConditions)

    @cached_property
    def breakers(self) -> Breakers:
        """Of one process, however many batches it runs."""
        return self._of_one_process(Breakers)

    @cached_property
    def limiter(self) -> ConcurrencyLimiter:
        """Of one process, however many batches it runs."""
        return self._of_one_process(ConcurrencyLimiter)

    def _of_one_process(self, wanted: type[Built], **given: Any) -> Built:
        return Container({**self._ports(), **given}).build(wanted)

    @cached_property
    def gate(self) -> Gate:
        """Of one process."""
        return self.build(Gate)

    @property
    def placer(self) -> Placer:
        return self.build(Placer)

    @property
    def submission_rates(self) -> SubmissionRates:
        return self.build(SubmissionRates)

    @property
    def admission(self) -> Admission:
        return self.build(Admission)

    @property
    def changer(self) -> ScheduleChanger:
        return self.build(ScheduleChanger)

    @property
    def asides(self) -> Asides:
        return self.build(Asides)

    @property
    def materialiser(self) -> Materialiser:
        return self.build(Materialiser)

    def occurrences(self, **given: Any) -> Occurrences:
        return self.build(Occurrences, **given)

    def ends(self, **given: Any) -> Ends:
        return self.build(Ends, **given)

    def settler(self, **given: Any) -> Settler:
        return self.build(Settler, **given)

    def schedule_alarms(self) -> ScheduleAlarms:
        return self.build(ScheduleAlarms)

    def burier(self) -> DeadMessageHandler:
        return self.build(DeadMessageHandler)

    def purger(self) -> Purger:
        return self.build(Purger)

    def submitter(self) -> Submitter:
        return self.build(Submitter)

    def canceller(self) -> Canceller:
        return self.build(Canceller)

    def finder(self) -> Finder:
        return self.build(Finder)

    def known_ids(self) -> KnownIds:
        return self.build(KnownIds)

    def outcome_reports(self, **given: Any) -> OutcomeReports:
        return self.build(OutcomeReports, **given)

    def explainer(self) -> Explainer:
        return self.build(Explainer, special={"finder": self.finder(), "breakers": self.breaker_store})

    def rescheduler(self) -> Rescheduler:
        return self.build(Rescheduler)

    def operator(self) -> OperationExecutor:
        return self.build(OperationExecutor)

    def worker(self, **given: Any) -> Worker:
        return self.build(Worker, special={"side_by_side": lambda jobs: [job() for job in jobs]}, **given)

    def scanner(self) -> Scanner:
        return self.build(Scanner, capacity=self.capacity)

    def submit(self, submission: Submission) -> Accepted:
        answer = self.submitter().submit([submission])[0]
        assert not isinstance(answer, TickwheelError), answer
        return answer

    def work(self, *messages: Message, **given: Any) -> list[str]:
        """Run a batch with a minute of time; the messages that must come back."""
        return self.worker(**given).execute(messages, ends_at=self.clock.now() + TIME_LIMIT)

    def receive_and_work(self, *, ring: Ring = Ring.NEAR, **given: Any) -> list[str]:
        """What a poller does: receive what is visible, run it, delete what is done. ring: by which it says to have come."""
        messages = [received(message, ring=ring) for message in self.ready.receive()]
        returned = self.work(*messages, **given)
        for message in messages:
            if message.message_id not in returned:
                self.ready.delete(message.message_id)
        return returned

    def scan(self, shard: int = 0, *, time_limit: timedelta = TIME_LIMIT) -> ScanReport:
        return self.scanner().scan(shard, time_limit=time_limit)

    def publish(self) -> Conditions:
        publisher = self.build(Publisher, capacity=self.ready_capacity, shed_after=timedelta(minutes=5))
        return publisher.publish()

    def sweep(self, *, time_limit: timedelta = TIME_LIMIT, publishes: bool = True) -> SweepReport:
        """Without publishing first: as when that fails."""
        if publishes:
            self.publish()
        sweeper = self.build(Sweeper, sample=self.sample, capacity=self.ready_capacity)
        return sweeper.sweep(time_limit=time_limit)

    def heal(self, *, time_limit: timedelta = TIME_LIMIT) -> HealReport:
        return self.build(Healer).heal(time_limit=time_limit)

    def open_rooms(self) -> int:
        if "room_opener" not in vars(self):
            self.room_opener = self.build(RoomOpener)
        return self.room_opener.sweep()

    def open_collections(self) -> int:
        if "collection_opener" not in vars(self):
            self.collection_opener = self.build(CollectionOpener)
        return self.collection_opener.sweep()

    def operate(self, *, time_limit: timedelta = TIME_LIMIT) -> WorkReport:
        return self.operator().carry_on(time_limit=time_limit)

    def store(self, schedule: Schedule, **state: Any) -> StoredSchedule:
        """Put a schedule there in its first version, as if it had been changed to it an hour ago."""
        begun = a_state(**{"link": None, **state})
        stored = a_stored_schedule(schedule=schedule, version=begun.version, status=begun.status)
        assert self.schedules.change(stored, begun, seen=self.schedules.state(stored.key))
        return stored

    def state(self, schedule: Schedule) -> ScheduleState:
        state = self.schedules.state(schedule.uid)
        assert state is not None
        return state

    def watched(
        self, *, before: Callable[[str], None] = lambda _: None, after: Callable[[str], None] = lambda _: None
    ) -> World:
        """The same world, in which something happens at some of the calls to its stores."""
        world = copy(self)
        for name in ("timers", "ready", "ledger", "payloads", "results", "operations", "exports"):
            setattr(world, name, Watched(getattr(self, name), name, before, after))
        return world

    def row(self, job: Job) -> LedgerRow:
        row = self.ledger.get(job.key)
        assert row is not None
        return row

    @property
    def calls(self) -> list[Invocation]:
        """What the target was given, call by call."""
        return [invocation for _, _, _, invocation in self.targets.effects]

    @property
    def buried(self) -> list[DeadLetter]:
        return list(self.letters.letters.values())

    def events(self, name: str) -> list[dict[str, object]]:
        return [keys for event, keys in self.journal.events if event == name]


def pass_time(world: World, *, until: datetime) -> None:
    """Scanners tick each minute, and workers poll all the time; hours in which there is nothing to do pass at once."""
    while (now := world.clock.now()) < until:
        comes_at = [message.visible_at for message in world.ready.messages.values()]
        comes_at += [from_seconds(bucket) for bucket, _ in world.rows.rows if from_seconds(bucket) > now]
        if (idle := min(comes_at, default=until) - timedelta(minutes=5)) > now:
            world.clock.tick(min(idle, until) - now)
            continue
        world.scan(0)
        world.scan(1)
        for _ in range(6):
            while any(message.visible_at <= world.clock.instant for message in world.ready.messages.values()):
                world.receive_and_work()
            world.clock.tick(timedelta(seconds=10))
