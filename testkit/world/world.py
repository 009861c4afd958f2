"""A whole Tickwheel on the fakes: the real Lambdas as processes, the stores that outlive them, and what was promised."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from functions.api.admission.quota import Quota
from functions.domain.errors import (
    AlreadySettled,
    ClockSkewed,
    DeadLetterNotFound,
    InvalidJob,
    InvalidSchedule,
    JobBusy,
    JobNotFailed,
    JobNotFound,
    KeyReused,
    Moved,
    NotChangeable,
    NotHeld,
    NotPlaced,
    NotReplayable,
    PayloadGone,
    ScheduleBehind,
    ScheduleBusy,
    ScheduleNotFound,
    StaleFence,
    TooLate,
    TooManyOperations,
)
from functions.domain.far_ring.cursor import first_cursors
from functions.domain.far_ring.timer_key import is_alarm_key
from functions.domain.instants import EPOCH
from functions.domain.jobs.claims import MESSAGE_LIFE, LedgerRow
from functions.domain.jobs.job import Priority, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.schedules.fire_rates import fires_an_hour
from functions.domain.schedules.load import Load
from functions.domain.schedules.state import ScheduleState, Status
from functions.domain.wheel import Wheel
from functions.ports.ready_queue import Rejected
from functions.services.stage.conditions import KnownConditions
from functions.services.targets.breakers import Breakers, Go
from functions.services.telemetry.usage import Tally
from functions.services.tenants.plans import KnownPlans
from functions.sweeper.heal import PASS_INTERVAL, Healer
from functions.sweeper.sweep import SETTLING
from testkit.builders import ID_SECRET, LOCAL_WHEEL
from testkit.fakes import (
    CountingWaker,
    DiscardingAudit,
    DiscardingCounter,
    FakeClock,
    InMemoryExportStore,
    InMemoryPayloadStore,
    InMemoryReadyQueue,
    RecordingJournal,
)
from testkit.world.carriers import carriers, cursors_of
from testkit.world.clients import Clients
from testkit.world.controls import Controls
from testkit.world.history import History
from testkit.world.host import FUNCTION_LIMIT
from testkit.world.operated import OPERATES
from testkit.world.passing import TICK, Passing
from testkit.world.plans import OperatedPlans
from testkit.world.process import Conditions, LateCall, Process, Unavailable
from testkit.world.promises import Promises
from testkit.world.store import WatchedSchedules
from testkit.world.stores import MakeStores, in_memory
from testkit.world.wiring import wiring_of

MOST_DRAINED = timedelta(hours=2)

_REFUSALS = (
    AlreadySettled,
    ClockSkewed,
    InvalidJob,
    InvalidSchedule,
    JobBusy,
    JobNotFailed,
    JobNotFound,
    KeyReused,
    DeadLetterNotFound,
    Moved,
    NotChangeable,
    NotHeld,
    NotPlaced,
    NotReplayable,
    PayloadGone,
    ScheduleBehind,
    ScheduleBusy,
    ScheduleNotFound,
    StaleFence,
    TooLate,
    TooManyOperations,
    Unavailable,
)


_OF_OPERATIONS = (
    "operations.create",
    "operations.finish",
    "timers.put",
    "timers.put_registered",
    "ledger.move",
)
"""Calls after which there may be another operation, or one less, or another row."""


class _NoBreakers:
    """Lets every call through."""

    def admit(self, _: Timer, **__: object) -> Go:
        return Go("")

    def note(self, *_: object) -> None:
        """Nothing comes of it."""

    def release(self, *_: object) -> None:
        """Nothing was taken."""


@dataclass
class World(Clients, Controls, Passing):
    """lambdas: classes that stand in for the real ones. is_new: no shard has ever been scanned."""

    wheel: Wheel = LOCAL_WHEEL
    audits: bool = True
    is_new: bool = False
    lambdas: dict[type, type] = field(default_factory=dict)
    clock: FakeClock = field(default_factory=FakeClock)
    make_stores: MakeStores = in_memory

    def __post_init__(self) -> None:
        stores = self.make_stores(self.wheel, self.clock)
        self.dead_letters = stores.dead_letters
        self.ledger = stores.ledger
        self.timers = stores.timers
        self.ready = InMemoryReadyQueue(self.clock, refuses=self._refuse)
        self.shards = stores.shards
        self.plans = OperatedPlans(stores.tenants, id_secret=ID_SECRET)
        self.usage, self.pending = stores.usage, stores.pending
        self.rates = stores.rates
        self.schedules = WatchedSchedules(stores.schedules)
        self.payloads = InMemoryPayloadStore()
        self.operations = stores.operations
        self.exports = InMemoryExportStore()
        self.breakers = stores.breakers
        self.seats = stores.seats
        self._expire, self._close = stores.expire, stores.close
        self.cut_short = stores.cut_short
        self._known_breakers: OrderedDict[Any, Any] = OrderedDict()
        self._is_draining = False
        self.journal = RecordingJournal()
        self.history = History()
        self.promises = Promises(self)
        self.schedules.promises = self.promises.schedules
        self.late: list[LateCall] = []
        self.live: list[Process] = []
        self.refused: dict[Priority, bool] = {}
        self.first_seen: dict[str, datetime] = {}
        self._numbers = 0
        self._random = random.Random(7)
        if not self.is_new:
            self._have_scanned()

    def drain(self) -> None:
        """Run without faults until nothing is left to do; it must come to that."""
        for process in self.live:
            process.finish()
        while self.late:
            self.land()
        self.refused.clear()
        self.shards.unpublish()
        self.promises.at_once.lifted()
        self.plans.lift(now=self.clock.instant)
        self._is_draining = True
        self.schedules.lags = False
        self._drain_schedules()
        ends_at = self.clock.instant + MOST_DRAINED
        while self.clock.instant < ends_at and not self._is_idle():
            self.pass_a_minute()
        self.promises.expect(not self.ready.messages and not self.ready.dead, "messages go round for ever")
        self.promises.expect(not self.promises.operations.open(), "an operation goes on for ever")

    def forget(self, duration: timedelta) -> None:
        """Days pass: rows and messages expire."""
        self.clock.tick(duration)
        self.let_go()

    def let_go(self) -> dict[str, LedgerRow]:
        """Rows that are past their ttl are gone, and messages that are too old; the rows of the ledger that were there."""
        for message in list(self.ready.messages.values()):
            if message.sent_at + MESSAGE_LIFE <= self.clock.instant:
                self.ready.delete(message.message_id)
        return self.expire()

    def expire(self) -> dict[str, LedgerRow]:
        """Rows that are past their ttl are gone; those of the ledger that were there until now."""
        before = dict(self.ledger.rows)
        self._expire(self.clock.instant)
        left = self.ledger.rows
        return {key: row for key, row in before.items() if key not in left}

    def come_to_an_end(self) -> None:
        """Drain it, and see that every promise has been kept. Raises AssertionError."""
        self.drain()
        self.promises.check_nothing_lost(is_over=True)
        self.promises.check_dead_letters()
        self.promises.operations.check_exports()
        self.promises.schedules.check(is_quiet=True)
        self.check()

    def end(self) -> None:
        """No thread outlives its history, and no table does."""
        for process in self.live:
            process.kill()
        self.live.clear()
        self._close()

    def look(self) -> None:
        """See that every promise is kept so far. Raises AssertionError."""
        self.promises.check_nothing_lost()
        self.promises.schedules.check(is_quiet=not self.live and not self.late)
        if self.promises.schedules.truth.versions:
            self.expect_sums_of_shares()
        self.check()

    def check(self) -> None:
        """Raises AssertionError with what was not kept, and how it came to that."""
        if self.promises.broken:
            violations = "\n".join(self.promises.broken)
            raise AssertionError(f"{violations}\n\n{self.history.tell(violations)}")

    def begin(self, process: Process, body: Callable[[], Any], conditions: Conditions) -> Process:
        def run() -> None:
            self.history.note_turn(self.clock.instant, process.name, f"begins with {conditions}")
            try:
                body()
            except _REFUSALS as refusal:
                self.history.note_turn(self.clock.instant, process.name, f"ends with {type(refusal).__name__}")
                self.history.disturb()
            finally:
                if process.is_disturbed:
                    self.history.disturb()
            if process.counts is not None:
                process.counts[0].flush()

        if conditions.is_held:
            process.start(run)
            self.live.append(process)
        else:
            process.run(run)
        return process

    def process(self, kind: str, conditions: Conditions, *, limit: timedelta = FUNCTION_LIMIT) -> Process:
        return Process(self, f"{kind} #{self._number()}", conditions, limit=limit)

    def build(
        self, wanted: type, process: Process, *, given: Mapping[str, Any] = MappingProxyType({}), **special: Any
    ) -> Any:
        names = (
            "timers",
            "ready",
            "ledger",
            "shards",
            "schedules",
            "dead_letters",
            "payloads",
            "operations",
            "exports",
            "seats",
            "rates",
        )
        # Read now and then by processes that place or admit: not a step of a history.
        tally, plans = self._counts(process)
        conditions = KnownConditions(clock=process.clock, shards=self.shards, journal=self.journal)
        everything = {
            "wheel": self.wheel,
            "skew": self.wheel.skew,
            "journal": self.journal,
            "waker": CountingWaker(),
            "token": lambda: f"{process.name} {self._number():05}",
            "identity": lambda: f"job-{self._number():05}",
            "id_secret": plans.id_secret,
            "jitter": self._random.random,
            "breakers": self._breakers(process),
            "plans": plans,
            "usage": tally,
            "pending": tally,
            "pulse": DiscardingCounter(),
            "audit": DiscardingAudit(),
            "quota": Quota(clock=process.clock, plans=plans, pending_store=self.pending, journal=self.journal),
            "capacity": 1_000_000,
            "marked_since": lambda: EPOCH,
            "classes": conditions,
            "conditions": conditions,
            **given,
        }
        stores = {name: getattr(self, name) for name in names}
        wiring = wiring_of(process, stores=stores, around=self._watch, lambdas=self.lambdas, given=everything)
        return wiring.build(wanted, **special)

    def _counts(self, process: Process) -> tuple[Tally, KnownPlans]:
        """What all parts of a process count, and what they know of plans: no steps either, but lost where it dies."""
        if process.counts is None:
            plans = self.plans.known_to(process.clock, self.journal)
            tally = Tally(
                clock=process.clock, plans=plans, usage=self.usage, pending=self.pending, journal=self.journal
            )
            process.counts = tally, plans
        return process.counts

    def _breakers(self, process: Process) -> Any:
        """All workers of a world remember as one process does, so that jobs are parked within a short history.

        Nothing goes wrong with their store: its contract and its own state machine look at that.
        """
        if self._is_draining:
            # A destination that stays down would keep its jobs for days.
            return _NoBreakers()
        breakers = Breakers(
            clock=process.clock,
            store=self.breakers,
            journal=self.journal,
            token=lambda: f"{process.name} {self._number():05}",
            jitter=self._random.random,
            skew=self.wheel.skew,
        )
        object.__setattr__(breakers, "_known", self._known_breakers)
        return breakers

    def _watch(self, process: Process, call: str, make: Callable[[], Any]) -> Any:
        """Make a call with the clock of its process, and look at what it did."""
        before = dict(self.ledger.rows) if call.startswith("ledger") else {}
        is_checkpoint = call == "shards.checkpoint"
        cursors = {shard: row["cursors"] for shard, row in self.shards.rows.items()} if is_checkpoint else {}
        self.clock.ahead = process.clock.ahead
        try:
            answer = make()
        finally:
            self.clock.ahead = timedelta(0)
            if call.startswith("ledger"):
                # Also when its process has died in the middle of it.
                self.promises.ledger_changed(before, self.ledger.rows, process)
        if process.name.startswith("trigger"):
            is_harmless = call not in ("schedules.change", "schedules.advance")
            self.promises.expect(is_harmless, f"a trigger has moved its schedule: {process.name}")
        if call in _OF_OPERATIONS:
            self.promises.operations.look()
        for shard, text in cursors.items():
            if text and text != (moved := self.shards.rows[shard]["cursors"]):
                self.promises.cursors_moved(shard, cursors_of(text), cursors_of(moved))
        if call == "timers.delete" and answer is not None and answer.timer is not None:
            expected = self.promises.jobs.get(str(job_id_of(answer.timer.job)))
            if expected is not None:
                expected.removed_by.add(process.name)
            self.promises.operations.removed(answer.timer, by_operation=process.name.startswith(OPERATES))
        return answer

    def _refuse(self, timer: Timer) -> Rejected | None:
        is_permanent = self.refused.get(timer.job.priority)
        if is_permanent is None:
            self.promises.schedules.fires.sent(timer)
            return None
        self.history.disturb()
        if is_permanent:
            self.promises.note_refusal(timer)
        return Rejected(timer, "refused", is_permanent=is_permanent)

    def _have_scanned(self) -> None:
        frontier = self.wheel.next_bucket(self.wheel.horizon(now=self.clock.now()))
        for shard in range(self.wheel.scan_shards):
            lease = self.shards.acquire(
                shard, owner="", now=self.clock.now(), lease_until=self.clock.now(), skew=self.wheel.skew
            )
            assert lease is not None
            self.shards.checkpoint(lease, first_cursors(frontier), lease_until=None)

    def _drain_schedules(self) -> None:
        """They catch up with what was missed, are healed, and are then deleted: there is no end to them."""
        promised = self.promises.schedules
        if not promised.truth.versions:
            return
        until, ends_at = self.clock.instant + PASS_INTERVAL + TICK, self.clock.instant + MOST_DRAINED
        while self.clock.instant < ends_at and not (self.clock.instant > until and promised.is_caught_up(until)):
            self.pass_a_minute()
        promised.check_caught_up(until)
        self._check_sums()
        for key in promised.truth.keys(Status.ACTIVE, Status.PAUSED):
            self.delete(key)

    def _check_sums(self) -> None:
        """What each tenant's schedules come to is what their definitions say, once the sweep has looked at them."""
        healer = self.build(Healer, self.process("recount", Conditions()))
        after, is_over = None, False
        while not is_over:
            page = self.schedules.scan(after=after, limit=100)
            for _ in healer.recount(page):
                pass
            after, is_over = page.after, page.after is None
        self.expect_sums_of_shares()
        expected = dict.fromkeys(self._states_by_tenant(), Load())
        for tenant, states in self._states_by_tenant().items():
            for key, state in states.items():
                stored, _ = self.schedules.get(key)
                if stored is None:
                    continue
                fires = fires_an_hour(stored.schedule)
                is_fired = state.status is Status.ACTIVE and state.link is not None
                expected[tenant] += Load(1, fires if is_fired else 0)
        found = {tenant: self.schedules.load(tenant) for tenant in expected}
        self.promises.expect(found == expected, f"the sums of schedules are {found}, not {expected}")

    def expect_sums_of_shares(self) -> None:
        """Whoever dies, and whenever: what is in a sum is what its schedules say that they count for."""
        for tenant, states in self._states_by_tenant().items():
            shares = sum((Load.of(state.share) for state in states.values()), Load())
            load = self.schedules.load(tenant)
            self.promises.expect(
                load == shares, f"the sum of the schedules of {tenant} is {load}, but of shares {shares}"
            )

    def _states_by_tenant(self) -> dict[str, dict[str, ScheduleState]]:
        by_tenant: dict[str, dict[str, ScheduleState]] = {}
        for key, state in self.schedules.states(list(self.promises.schedules.truth.versions)).items():
            by_tenant.setdefault(key.partition("#")[0], {})[key] = state
        return by_tenant

    def _is_idle(self) -> bool:
        """Nothing waits, and whatever was written has been audited."""
        buckets = [bucket for (bucket, _), rows in self.timers.rows.items() if not all(map(is_alarm_key, rows))]
        since = max(map(self.wheel.ends_at, buckets), default=self.clock.instant)
        is_audited = not self.audits or self.clock.instant > since + SETTLING + TICK
        is_quiet = is_audited and not self.promises.operations.open()
        return is_quiet and not carriers(self.ready, self.timers, self.shards)

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers
