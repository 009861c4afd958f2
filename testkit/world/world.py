"""A whole Tickwheel on the fakes: the real Lambdas as processes, the stores that outlive them, and what was promised."""

from __future__ import annotations

import random
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from functions.domain.far_ring.cursor import first_cursors
from functions.domain.far_ring.timer_key import is_alarm_key
from functions.domain.jobs.claims import MESSAGE_LIFE, LedgerRow
from functions.domain.jobs.job import Priority, Timer
from functions.domain.schedules.state import Status
from functions.domain.targets.flows import FlowId, FlowLimits
from functions.domain.wheel import Wheel
from functions.ports.ready_queue import Rejected
from functions.sweeper.heal import PASS_INTERVAL
from functions.sweeper.sweep import SETTLING
from testkit.builders import ID_SECRET, LOCAL_WHEEL
from testkit.fakes import (
    FakeClock,
    InMemoryExportStore,
    InMemoryPayloadStore,
    InMemoryReadyQueue,
    InMemoryResultStore,
    RecordingJournal,
)
from testkit.world.carriers import carriers
from testkit.world.clients import Clients
from testkit.world.controls import Controls
from testkit.world.history import History
from testkit.world.passing import TICK
from testkit.world.plans import OperatedPlans
from testkit.world.process import LateCall, Process
from testkit.world.processes import Processes
from testkit.world.promises import Promises
from testkit.world.store import WatchedSchedules
from testkit.world.stores import MakeStores, in_memory
from testkit.world.sums import Sums

MOST_DRAINED = timedelta(hours=4)
"""Ten jobs of a batch that kill their workers take turns at it: each is a dead letter after its ten receives, and the others begin anew."""

LONGEST_DRAINED = timedelta(hours=40)
"""In an ordered flow, a job whose submission died before it was placed holds those behind it for an hour, and one that is due after it was
missed for another."""


@dataclass
class World(Clients, Controls, Sums, Processes):
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
        self.results = InMemoryResultStore()
        self.operations = stores.operations
        self.exports = InMemoryExportStore()
        self.breakers = stores.breakers
        self.permits = stores.permits
        self.flows = stores.flows
        self.collections = stores.collections
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
        self.shards.confirm(self.wheel, clock=self.clock)
        if not self.is_new:
            self._have_scanned()

    def have_flow(self, flow: FlowId, limits: FlowLimits) -> None:
        """Jobs are going to name it, with these limits; those of a flow of the stage are set."""
        self.promises.flows.promised(flow, limits)
        if flow.tenant is None:
            self.flows.set_limits(flow, limits)

    def deploy(self, *, write_shards: int) -> None:
        """The stage with another number of shards that are written."""
        self.wheel = replace(self.wheel, write_shards=write_shards)
        self.shards.confirm(self.wheel, clock=self.clock)

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
        ends_at, latest = self.clock.instant + MOST_DRAINED, self.clock.instant + LONGEST_DRAINED
        while not self._is_idle() and (self.clock.instant < ends_at or self._waits_in_order(until=latest)):
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
        self.promises.check_callbacks()
        self.promises.flows.check()
        self.promises.collections.check_empty()
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
        self.check_sums()
        for key in promised.truth.keys(Status.ACTIVE, Status.PAUSED):
            self.delete(key)

    def _waits_in_order(self, *, until: datetime) -> bool:
        return self.promises.flows.has_order and self.clock.instant < until and bool(carriers(self))

    def _is_idle(self) -> bool:
        """Nothing waits, and whatever was written has been audited."""
        buckets = [bucket for (bucket, _), rows in self.timers.rows.items() if not all(map(is_alarm_key, rows))]
        is_audited = not self.audits or all(
            self.clock.instant > self.wheel.ends_at(bucket) + SETTLING + TICK for bucket in buckets
        )
        is_quiet = is_audited and not self.promises.operations.open() and self.promises.collections.are_empty()
        return is_quiet and not carriers(self)
