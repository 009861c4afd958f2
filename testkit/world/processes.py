"""What the processes of a world are made of, and what is looked at when one of them makes a call."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from functions.domain import errors
from functions.domain.instants import EPOCH
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import job_id_of
from functions.ports.targets import BreakerStore
from functions.services.stage.conditions import KnownConditions
from functions.services.targets.breakers import Go
from functions.services.telemetry.usage import UsageTally
from functions.services.tenants.plans import KnownPlans
from testkit.fakes import CountingWaker, DiscardingAudit, DiscardingCounter, RecordingJournal
from testkit.world.carriers import cursors_of
from testkit.world.collected import opened_in
from testkit.world.host import FUNCTION_LIMIT
from testkit.world.operated import OPERATES
from testkit.world.passing import Passing
from testkit.world.plans import OperatedPlans
from testkit.world.process import Conditions, Process, Unavailable
from testkit.world.stores import SeenLedger, SeenPending, SeenUsage
from testkit.world.wiring import wiring_of

_REFUSALS = (
    errors.AlreadySettled,
    errors.ClockSkewed,
    errors.Busy,
    errors.InvalidJob,
    errors.InvalidSchedule,
    errors.JobBusy,
    errors.JobNotFailed,
    errors.JobNotFound,
    errors.KeyReused,
    errors.DeadLetterNotFound,
    errors.Moved,
    errors.NotChangeable,
    errors.NotHeld,
    errors.NotPlaced,
    errors.NotReplayable,
    errors.PayloadGone,
    errors.ScheduleBehind,
    errors.ScheduleBusy,
    errors.ScheduleNotFound,
    errors.StaleFence,
    errors.TooLate,
    errors.TooManyOperations,
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

    def decide(self, _: Timer, **__: object) -> Go:
        return Go("")

    def note(self, *_: object) -> None:
        """Nothing comes of it."""

    def release(self, *_: object) -> None:
        """Nothing was taken."""


class Processes(Passing):
    """A world as its processes find it. lambdas: classes that stand in for the real ones."""

    lambdas: dict[type, type]
    ledger: SeenLedger
    breakers: BreakerStore
    usage: SeenUsage
    pending: SeenPending
    plans: OperatedPlans
    journal: RecordingJournal
    _known_breakers: OrderedDict[Any, Any]
    _is_draining: bool
    _numbers: int
    _random: random.Random

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
            "results",
            "operations",
            "exports",
            "permits",
            "flows",
            "collections",
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
            "breaker_store": self.breakers,
            "pending_store": self.pending,
            "plans": plans,
            "usage": tally,
            "pending": tally,
            "pulse": DiscardingCounter(),
            "audit": DiscardingAudit(),
            "capacity": 1_000_000,
            "marked_since": lambda: EPOCH,
            "conditions": conditions,
            # A destination that stays down would keep its jobs for days.
            **({"breakers": _NoBreakers()} if self._is_draining else {}),
            **given,
        }
        stores = {name: getattr(self, name) for name in names}
        wiring = wiring_of(process, stores=stores, around=self._watch, lambdas=self.lambdas, given=everything)
        if not self._is_draining:
            # All workers of a world remember as one process does, so that jobs are parked within a short history.
            # Nothing goes wrong with their store: its contract and its own state machine look at that.
            object.__setattr__(wiring["breakers"], "_known", self._known_breakers)
        return wiring.build(wanted, **special)

    def _counts(self, process: Process) -> tuple[UsageTally, KnownPlans]:
        """What all parts of a process count, and what they know of plans: no steps either, but lost where it dies."""
        if process.counts is None:
            plans = self.plans.known_to(process.clock, self.journal)
            tally = UsageTally(
                clock=process.clock,
                plans=plans,
                usage_store=self.usage,
                pending_store=self.pending,
                journal=self.journal,
            )
            process.counts = tally, plans
        return process.counts

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
        if call == "collections.open":
            for collection, release in opened_in(self.collections):
                self.promises.released.opened(collection, release)
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

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers
