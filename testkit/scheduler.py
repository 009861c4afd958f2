"""The whole scheduler on fakes, with its time in the hand of the test."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from functions.api.admission.admission import Admission
from functions.api.admission.gate import Gate
from functions.api.admission.quota import Quota
from functions.api.dead_letters.finder import LetterFinder
from functions.api.dead_letters.purge import Purger
from functions.api.jobs.explain import Explainer
from functions.api.jobs.find import Finder
from functions.api.jobs.known_ids import KnownIds
from functions.api.jobs.report_outcome import Finisher
from functions.api.jobs.submit import Accepted, Submitter
from functions.dead_letters.dead_message import DeadMessageHandler
from functions.domain.errors import TickwheelError
from functions.domain.far_ring.alarm import Alarm
from functions.domain.instants import EPOCH, from_seconds
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job import Job, Timer
from functions.domain.jobs.submission import Submission
from functions.domain.operations.operation import OwnedDay
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.state import ScheduleState
from functions.domain.stage.conditions import Conditions
from functions.domain.wheel import Ring, Wheel
from functions.operations.executor import Operator, WorkReport
from functions.ports.dead_letters import DeadLetter
from functions.ports.ledger import Ledger
from functions.ports.ready_queue import ReadyQueue, Receipt, Rejected
from functions.ports.schedules import StoredSchedule
from functions.ports.targets import Invocation
from functions.ports.timers import Page, StoredTimer, TimerStore
from functions.scanner.scan import Scanner, ScanReport
from functions.scanner.schedule_alarms import Ringer
from functions.services.far_ring.pacer import Pacer
from functions.services.far_ring.placer import Placer
from functions.services.jobs.canceller import Canceller
from functions.services.jobs.ends import Ends
from functions.services.jobs.occurrences import Occurrences
from functions.services.jobs.rescheduler import Rescheduler
from functions.services.jobs.settler import Settler
from functions.services.schedules.changer import ScheduleChanger
from functions.services.schedules.materialiser import Materialiser
from functions.services.schedules.pauser import Asides, Pauser
from functions.services.schedules.run_ends import RunEnds
from functions.services.schedules.stops import Stops
from functions.services.stage.conditions import KnownConditions
from functions.services.targets.breakers import Breakers
from functions.services.targets.seating import Usher
from functions.services.telemetry.usage import Tally
from functions.services.tenants.submission_rates import SubmissionRates
from functions.sweeper.heal import Healer, HealReport
from functions.sweeper.publish import Publisher
from functions.sweeper.sweep import Sweeper, SweepReport
from functions.worker.execute import Message, Worker
from testkit.builders import ID_SECRET, LOCAL_WHEEL, a_state, a_stored_schedule
from testkit.fakes import (
    FakeClock,
    GivenPlans,
    InMemoryBreakerStore,
    InMemoryDeadLetters,
    InMemoryExportStore,
    InMemoryLedger,
    InMemoryOperationStore,
    InMemoryPayloadStore,
    InMemoryPendingStore,
    InMemoryRateStore,
    InMemoryReadyQueue,
    InMemoryScheduleStore,
    InMemorySeatStore,
    InMemoryShardStore,
    InMemoryTimerStore,
    InMemoryUsageStore,
    RecordingAudit,
    RecordingJournal,
    RecordingPulse,
    RecordingTargets,
)

TIME_LIMIT = timedelta(seconds=60)
"""Of a function's invocation."""


class CrashError(Exception):
    """A call fails here."""


class DeathError(BaseException):
    """The process dies here, past every `except Exception`."""


@dataclass
class ObservedTimers:
    """A timer store that counts its reads, stalls, and fails when it is told to."""

    store: TimerStore
    clock: FakeClock
    reads: list[tuple[int, str]] = field(default_factory=list)
    puts: list[Sequence[Timer]] = field(default_factory=list)
    alarms: list[Alarm] = field(default_factory=list)
    before_read: Callable[[], None] = lambda: None
    unwritten: Callable[[Timer | Alarm], bool] = lambda _: False
    before_put: Callable[[], None] = lambda: None
    put_takes: timedelta = timedelta(0)
    delete_takes: timedelta = timedelta(0)

    def put(self, timers: Sequence[Timer]) -> list[Timer]:
        self.puts.append(timers)
        self.clock.tick(self.put_takes)
        left = [timer for timer in timers if self.unwritten(timer)]
        self.store.put([timer for timer in timers if timer not in left])
        return left

    def put_alarms(self, alarms: Sequence[Alarm]) -> list[Alarm]:
        self.clock.tick(self.put_takes)
        left = [alarm for alarm in alarms if self.unwritten(alarm)]
        written = [alarm for alarm in alarms if alarm not in left]
        self.alarms.extend(written)
        self.store.put_alarms(written)
        return left

    def put_registered(self, timer: Timer) -> bool | None:
        self.before_put()
        self.clock.tick(self.put_takes)
        if self.unwritten(timer):
            return None
        return self.store.put_registered(timer)

    def read(self, bucket: int, shard: int, *, after: str = "", limit: int) -> Page:
        self.before_read()
        self.reads.append((bucket, after))
        return self.store.read(bucket, shard, after=after, limit=limit)

    def days(self, tenant: str) -> list[OwnedDay]:
        return self.store.days(tenant)

    def read_owned(self, tenant: str, owned: OwnedDay, *, bucket: int, after: str = "", limit: int) -> Page:
        self.before_read()
        return self.store.read_owned(tenant, owned, bucket=bucket, after=after, limit=limit)

    def get(self, job_id: Any) -> Timer | None:
        return self.store.get(job_id)

    def stored(self, job_id: Any) -> StoredTimer | None:
        return self.store.stored(job_id)

    def delete(self, job_id: Any) -> Any:
        deleted = self.store.delete(job_id)
        self.clock.tick(self.delete_takes)
        return deleted


@dataclass
class ObservedReadyQueue(InMemoryReadyQueue):
    """A ready queue that remembers what was sent and deferred.

    dies_after: so many messages; whoever sends more dies before they are sent.
    """

    sent: list[Timer] = field(default_factory=list)
    deferred: list[tuple[str, datetime]] = field(default_factory=list)
    send_takes: timedelta = timedelta(0)
    dies_after: int | None = None

    def send(self, timers: Sequence[Timer]) -> list[Rejected]:
        if timers and self.dies_after is not None and len(self.sent) >= self.dies_after:
            raise DeathError
        self.clock.tick(self.send_takes if timers else timedelta(0))
        rejected = super().send(timers)
        refused = {id(rejection.timer) for rejection in rejected}
        self.sent.extend(timer for timer in timers if id(timer) not in refused)
        return rejected

    def defer(self, receipt: Receipt, *, until: datetime) -> None:
        self.deferred.append((receipt.handle, until))
        super().defer(receipt, until=until)


@dataclass(frozen=True)
class Watched:
    """Passes the calls to a port on, and tells of each before and after it is made."""

    port: Any
    name: str
    before: Callable[[str], None]
    after: Callable[[str], None]

    def __getattr__(self, call: str) -> Any:
        if not callable(getattr(self.port, call)):
            return getattr(self.port, call)

        def pass_on(*args: Any, **options: Any) -> Any:
            self.before(f"{self.name}.{call}")
            answer = getattr(self.port, call)(*args, **options)
            self.after(f"{self.name}.{call}")
            return answer

        return pass_on


class World:
    """Every part of the scheduler, sharing one clock and one set of stores.

    dates_rows: the far ring tells when its rows were written.
    """

    def __init__(self, *, wheel: Wheel = LOCAL_WHEEL, dates_rows: bool = False) -> None:
        self.wheel = wheel
        self.clock = FakeClock()
        self.letters = InMemoryDeadLetters()
        self.ledger = InMemoryLedger(skew=wheel.skew, dead_letters=self.letters)
        self.rows = InMemoryTimerStore(wheel=wheel, ledger=self.ledger, clock=self.clock if dates_rows else None)
        self.timers = ObservedTimers(self.rows, self.clock)
        self.ready = ObservedReadyQueue(self.clock)
        self.shards = InMemoryShardStore()
        self.plans = GivenPlans()
        self.rates = InMemoryRateStore()
        self.schedules = InMemoryScheduleStore()
        self.payloads = InMemoryPayloadStore()
        self.operations = InMemoryOperationStore()
        self.exports = InMemoryExportStore()
        self.breaker_store = InMemoryBreakerStore()
        self.seats = InMemorySeatStore()
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

    def a_tally(self) -> Tally:
        """Of a new process."""
        return Tally(clock=self.clock, plans=self.plans, usage=self.used, pending=self.waiting, journal=self.journal)

    def token(self) -> str:
        return f"token-{next(self._tokens)}"

    @property
    def placer(self) -> Placer:
        return Placer(wheel=self.wheel, clock=self.clock, timers=self.timers, ready=self.ready, pacer=self.pacer)

    @cached_property
    def pacer(self) -> Pacer:
        return Pacer(
            wheel=self.wheel,
            clock=self.clock,
            plans=self.plans,
            rates=self.rates,
            classes=self.conditions,
            journal=self.journal,
        )

    @cached_property
    def conditions(self) -> KnownConditions:
        return KnownConditions(clock=self.clock, shards=self.shards, journal=self.journal)

    @property
    def submission_rates(self) -> SubmissionRates:
        return SubmissionRates(clock=self.clock, plans=self.plans, rates=self.rates, journal=self.journal)

    @property
    def admission(self) -> Admission:
        return Admission(
            plans=self.plans,
            submission_rates=self.submission_rates,
            conditions=self.conditions,
            journal=self.journal,
        )

    @cached_property
    def gate(self) -> Gate:
        quota = Quota(clock=self.clock, plans=self.plans, pending_store=self.waiting, journal=self.journal)
        return Gate(admission=self.admission, quota=quota)

    @property
    def changer(self) -> ScheduleChanger:
        return ScheduleChanger(clock=self.clock, schedules=self.schedules)

    @property
    def pauser(self) -> Pauser:
        return Pauser(changer=self.changer, journal=self.journal, audit=self.trail)

    @property
    def asides(self) -> Asides:
        return Asides(clock=self.clock, schedules=self.schedules, pauser=self.pauser, journal=self.journal)

    @property
    def materialiser(self) -> Materialiser:
        return Materialiser(
            wheel=self.wheel,
            clock=self.clock,
            schedules=self.schedules,
            ledger=self.ledger,
            placer=self.placer,
            plans=self.plans,
            journal=self.journal,
            asides=self.asides,
            stops=self.stops(),
            side_by_side=lambda rule, items: [rule(item) for item in items],
        )

    def occurrences(self, *, ledger: Ledger | None = None) -> Occurrences:
        return Occurrences(
            wheel=self.wheel,
            clock=self.clock,
            schedules=self.schedules,
            ledger=ledger or self.ledger,
            placer=self.placer,
            ends=self.ends(ledger=ledger),
            stops=self.stops(ledger=ledger),
            journal=self.journal,
            token=self.token,
        )

    def ends(self, *, ledger: Ledger | None = None) -> Ends:
        return Ends(
            clock=self.clock,
            ledger=ledger or self.ledger,
            dead_letters=self.letters,
            runs=self.run_ends(),
            stops=self.stops(ledger=ledger),
            journal=self.journal,
            usage=self.tally,
            pending=self.tally,
            pulse=self.pulse,
            audit=self.trail,
        )

    def stops(self, *, ledger: Ledger | None = None) -> Stops:
        return Stops(
            clock=self.clock,
            ledger=ledger or self.ledger,
            journal=self.journal,
            token=self.token,
            pending=self.tally,
            audit=self.trail,
        )

    def run_ends(self) -> RunEnds:
        return RunEnds(
            schedules=self.schedules,
            pauser=self.pauser,
            materialiser=self.materialiser,
        )

    def ringer(self) -> Ringer:
        return Ringer(
            wheel=self.wheel,
            clock=self.clock,
            schedules=self.schedules,
            materialiser=self.materialiser,
            journal=self.journal,
        )

    def heal(self, *, time_limit: timedelta = TIME_LIMIT) -> HealReport:
        healer = Healer(
            wheel=self.wheel,
            clock=self.clock,
            shards=self.shards,
            schedules=self.schedules,
            materialiser=self.materialiser,
            plans=self.plans,
            journal=self.journal,
        )
        return healer.heal(time_limit=time_limit)

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

    def worker(self, *, ledger: Ledger | None = None, ready: ReadyQueue | None = None) -> Worker:
        return Worker(
            wheel=self.wheel,
            clock=self.clock,
            ledger=ledger or self.ledger,
            settler=self.settler(ledger=ledger),
            plans=self.plans,
            breakers=self.breakers,
            usher=self.usher,
            occurrences=self.occurrences(ledger=ledger),
            ready=ready or self.ready,
            payloads=self.payloads,
            targets=self.targets,
            journal=self.journal,
            side_by_side=_one_after_another,
            token=self.token,
            jitter=lambda: self.jitter,
            usage=self.tally,
            pulse=self.pulse,
        )

    @cached_property
    def breakers(self) -> Breakers:
        """Of one process, however many batches it runs."""
        return Breakers(
            clock=self.clock,
            store=self.breaker_store,
            journal=self.journal,
            token=self.token,
            jitter=lambda: self.jitter,
            skew=self.wheel.skew,
        )

    @cached_property
    def usher(self) -> Usher:
        """Of one process, however many batches it runs."""
        return Usher(
            wheel=self.wheel,
            clock=self.clock,
            seats=self.seats,
            journal=self.journal,
            token=self.token,
            jitter=lambda: self.jitter,
        )

    def settler(self, *, ledger: Ledger | None = None) -> Settler:
        return Settler(
            wheel=self.wheel,
            clock=self.clock,
            ledger=ledger or self.ledger,
            placer=self.placer,
            ends=self.ends(ledger=ledger),
            dead_letters=self.letters,
            payloads=self.payloads,
            journal=self.journal,
            jitter=lambda: self.jitter,
            usage=self.tally,
        )

    def work(self, *messages: Message, ledger: Ledger | None = None) -> list[str]:
        """Run a batch with a minute of time; the messages that must come back."""
        return self.worker(ledger=ledger).execute(messages, ends_at=self.clock.now() + TIME_LIMIT)

    def receive_and_work(self, *, ledger: Ledger | None = None, ring: Ring = Ring.NEAR) -> list[str]:
        """What a poller does: receive what is visible, run it, delete what is done. ring: by which it says to have come."""
        messages = [
            Message(
                message_id=message.message_id,
                body=message.body,
                receipt=Receipt("arn:aws:sqs:us-east-1:1:ready", message.message_id),
                receive_count=message.receive_count,
                ring=ring,
            )
            for message in self.ready.receive()
        ]
        returned = self.work(*messages, ledger=ledger)
        for message in messages:
            if message.message_id not in returned:
                self.ready.delete(message.message_id)
        return returned

    def scanner(self) -> Scanner:
        return Scanner(
            wheel=self.wheel,
            clock=self.clock,
            shards=self.shards,
            timers=self.timers,
            ready=self.ready,
            ledger=self.ledger,
            dead_letters=self.letters,
            alarms=self.ringer(),
            plans=self.plans,
            pacer=self.pacer,
            placer=self.placer,
            ends=self.ends(),
            capacity=self.capacity,
            journal=self.journal,
            token=self.token,
            audit=self.trail,
        )

    def scan(self, shard: int = 0, *, time_limit: timedelta = TIME_LIMIT) -> ScanReport:
        return self.scanner().scan(shard, time_limit=time_limit)

    def publish(self) -> Conditions:
        publisher = Publisher(
            wheel=self.wheel,
            clock=self.clock,
            ready=self.ready,
            shards=self.shards,
            plans=self.plans,
            journal=self.journal,
            capacity=self.ready_capacity,
            shed_after=timedelta(minutes=5),
        )
        return publisher.publish()

    def sweep(self, *, time_limit: timedelta = TIME_LIMIT, publishes: bool = True) -> SweepReport:
        """Without publishing first: as when that fails."""
        if publishes:
            self.publish()
        sweeper = Sweeper(
            plans=self.plans,
            wheel=self.wheel,
            clock=self.clock,
            shards=self.shards,
            timers=self.timers,
            ledger=self.ledger,
            placer=self.placer,
            ends=self.ends(),
            audit=self.trail,
            journal=self.journal,
            token=self.token,
            sample=self.sample,
            capacity=self.ready_capacity,
        )
        return sweeper.sweep(time_limit=time_limit)

    def burier(self) -> DeadMessageHandler:
        return DeadMessageHandler(
            clock=self.clock,
            skew=self.wheel.skew,
            ledger=self.ledger,
            dead_letters=self.letters,
            placer=self.placer,
            ends=self.ends(),
            plans=self.plans,
            journal=self.journal,
            token=self.token,
        )

    def purger(self) -> Purger:
        side_by_side: Any = lambda rule, items: [rule(item) for item in items]  # noqa: E731  as everywhere here
        return Purger(
            clock=self.clock,
            finder=LetterFinder(
                wheel=self.wheel,
                clock=self.clock,
                dead_letters=self.letters,
                payloads=self.payloads,
                side_by_side=side_by_side,
                marked_since=lambda: EPOCH,
            ),
            dead_letters=self.letters,
            ledger=self.ledger,
            payloads=self.payloads,
            ends=self.ends(),
            journal=self.journal,
            token=self.token,
            side_by_side=side_by_side,
            audit=self.trail,
        )

    def submitter(self) -> Submitter:
        return Submitter(
            wheel=self.wheel,
            clock=self.clock,
            ledger=self.ledger,
            payloads=self.payloads,
            placer=self.placer,
            plans=self.plans,
            journal=self.journal,
            identity=lambda: f"random-{next(self._tokens)}",
            id_secret=lambda: ID_SECRET,
            token=self.token,
            side_by_side=lambda rule, items: [rule(item) for item in items],
            usage=self.tally,
        )

    def submit(self, submission: Submission) -> Accepted:
        answer = self.submitter().submit([submission])[0]
        assert not isinstance(answer, TickwheelError), answer
        return answer

    def canceller(self) -> Canceller:
        return Canceller(
            wheel=self.wheel,
            clock=self.clock,
            ledger=self.ledger,
            timers=self.timers,
            payloads=self.payloads,
            placer=self.placer,
            ends=self.ends(),
            token=self.token,
            audit=self.trail,
        )

    def finder(self) -> Finder:
        return Finder(
            wheel=self.wheel, clock=self.clock, ledger=self.ledger, timers=self.timers, known=self.known_ids()
        )

    def known_ids(self) -> KnownIds:
        return KnownIds(
            wheel=self.wheel,
            clock=self.clock,
            ledger=self.ledger,
            timers=self.timers,
            schedules=self.schedules,
            plans=self.plans,
            id_secret=lambda: ID_SECRET,
        )

    def finisher(self, *, ledger: Ledger | None = None) -> Finisher:
        return Finisher(
            clock=self.clock,
            ledger=ledger or self.ledger,
            known=self.known_ids(),
            settler=self.settler(ledger=ledger),
            token=self.token,
            audit=self.trail,
        )

    def explainer(self) -> Explainer:
        return Explainer(
            wheel=self.wheel,
            clock=self.clock,
            finder=self.finder(),
            timers=self.timers,
            schedules=self.schedules,
            breakers=self.breaker_store,
            shards=self.shards,
            plans=self.plans,
        )

    def rescheduler(self) -> Rescheduler:
        return Rescheduler(
            wheel=self.wheel,
            clock=self.clock,
            ledger=self.ledger,
            timers=self.timers,
            payloads=self.payloads,
            placer=self.placer,
            plans=self.plans,
            journal=self.journal,
            identity=lambda: f"random-{next(self._tokens)}",
            id_secret=lambda: ID_SECRET,
            token=self.token,
            pending=self.tally,
            audit=self.trail,
        )

    def operator(self) -> Operator:
        return Operator(
            submission_rates=self.submission_rates,
            wheel=self.wheel,
            clock=self.clock,
            operations=self.operations,
            timers=self.timers,
            ledger=self.ledger,
            payloads=self.payloads,
            exports=self.exports,
            canceller=self.canceller(),
            rescheduler=self.rescheduler(),
            plans=self.plans,
            journal=self.journal,
            token=self.token,
            identity=lambda: f"random-{next(self._tokens)}",
            side_by_side=lambda rule, items: [rule(item) for item in items],
            audit=self.trail,
        )

    def operate(self, *, time_limit: timedelta = TIME_LIMIT) -> WorkReport:
        return self.operator().work(time_limit=time_limit)

    def watched(
        self, *, before: Callable[[str], None] = lambda _: None, after: Callable[[str], None] = lambda _: None
    ) -> World:
        """The same world, in which something happens at some of the calls to its stores."""
        world = copy(self)
        for name in ("timers", "ready", "ledger", "payloads", "operations", "exports"):
            setattr(world, name, Watched(getattr(self, name), name, before, after))
        return world

    def row(self, job: Job) -> LedgerRow:
        row = self.ledger.get(job.key)
        assert row is not None
        return row

    @property
    def calls(self) -> list[Invocation]:
        """What the target was told, call by call."""
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


def _one_after_another(jobs: Sequence[Callable[[], None]]) -> None:
    for job in jobs:
        job()
