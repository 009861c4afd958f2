"""The stores of a world, all made in one place: the ports, and what is looked into besides, whatever keeps the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NoReturn, Protocol

from functions.domain.jobs.claims import LedgerRow
from functions.domain.operations.operation import Operation
from functions.domain.tenants.usage import Usage
from functions.domain.wheel import Wheel
from functions.ports.collections import CollectionStore
from functions.ports.dead_letters import DeadLetter, DeadLetters
from functions.ports.flows import FlowStore
from functions.ports.ledger import Ledger
from functions.ports.operations import OperationStore
from functions.ports.schedules import ScheduleStore
from functions.ports.shards import ShardStore
from functions.ports.targets import BreakerStore, PermitStore
from functions.ports.tenants import PendingStore, RateStore, TenantStore, UsageStore
from functions.ports.timers import TimerStore
from testkit import fakes
from testkit.world.history import History


class KeptByAll(Protocol):
    """What outlives every process of a world, and all that is promised is looked up in."""

    wheel: Wheel
    clock: fakes.FakeClock
    timers: SeenTimers
    ready: fakes.InMemoryReadyQueue
    ledger: SeenLedger
    shards: SeenShards
    flows: FlowStore
    collections: CollectionStore
    payloads: fakes.InMemoryPayloadStore
    results: fakes.InMemoryResultStore
    history: History

    @property
    def schedules(self) -> ScheduleStore:
        """Of the definitions and states."""
        ...


class SeenLedger(Ledger, Protocol):
    """A ledger whose rows can be looked at."""

    @property
    def rows(self) -> Mapping[str, LedgerRow]:
        """By key. A row that is not written stays the same object."""
        ...


class SeenDeadLetters(DeadLetters, Protocol):
    """Dead letters that can be looked at."""

    @property
    def letters(self) -> Mapping[Any, DeadLetter]:
        """In the order in which they were put."""
        ...


class SeenTimers(TimerStore, Protocol):
    """A far ring whose rows can be looked at."""

    @property
    def rows(self) -> Mapping[tuple[int, int], Mapping[str, str]]:
        """Records by bucket and shard, and by key."""
        ...

    @property
    def written(self) -> Mapping[str, datetime]:
        """When each key was last put, also of rows that are gone."""
        ...


class SeenShards(ShardStore, Protocol):
    """Shards whose cursors can be looked at."""

    @property
    def rows(self) -> Mapping[int, Mapping[str, Any]]:
        """By shard; `cursors` as it is stored, None before the first."""
        ...

    def unpublish(self) -> None:
        """Forget the conditions that were published last."""
        ...


class SeenUsage(UsageStore, Protocol):
    """Usage that can be looked at."""

    @property
    def rows(self) -> Mapping[tuple[str, date], Usage]:
        """By tenant and day."""
        ...


class SeenPending(PendingStore, Protocol):
    """Counts of what waits that can be looked at."""

    @property
    def rows(self) -> Mapping[tuple[str, date], int]:
        """By tenant and day; fewer than none where more left than came."""
        ...


class SeenOperations(OperationStore, Protocol):
    """Operations that can be looked at."""

    @property
    def rows(self) -> Mapping[tuple[str, str], Operation]:
        """By tenant and id."""
        ...


Make = Callable[[], Any]
Die = Callable[[], NoReturn]


def whole(make: Make, _: Die) -> Any:
    """A fake writes all at once."""
    return make()


@dataclass(frozen=True, kw_only=True)
class Stores:
    """What outlives every process, but for queues and objects.

    expire: lets go of rows of the ledger and of the far ring that are past their ttl. close: when the world has ended. cut_short: makes a
    call, and lets its process die before its second write, if it comes to that.
    """

    ledger: SeenLedger
    dead_letters: SeenDeadLetters
    timers: SeenTimers
    shards: SeenShards
    schedules: ScheduleStore
    operations: SeenOperations
    breakers: BreakerStore
    rates: RateStore
    permits: PermitStore
    flows: FlowStore
    collections: CollectionStore
    tenants: TenantStore
    usage: SeenUsage
    pending: SeenPending
    expire: Callable[[datetime], None]
    close: Callable[[], None] = lambda: None
    cut_short: Callable[[Make, Die], Any] = whole


MakeStores = Callable[[Wheel, fakes.FakeClock], Stores]
"""Empty ones, for one world."""


def in_memory(wheel: Wheel, clock: fakes.FakeClock) -> Stores:
    """The fakes."""
    dead_letters = fakes.InMemoryDeadLetters()
    ledger = fakes.InMemoryLedger(skew=wheel.lease_skew, dead_letters=dead_letters)
    timers = fakes.InMemoryTimerStore(wheel=wheel, ledger=ledger, clock=clock)

    def expire(now: datetime) -> None:
        ledger.expire(now)
        timers.expire(now)

    return Stores(
        ledger=ledger,
        dead_letters=dead_letters,
        timers=timers,
        shards=fakes.InMemoryShardStore(),
        schedules=fakes.InMemoryScheduleStore(),
        operations=fakes.InMemoryOperationStore(),
        breakers=fakes.InMemoryBreakerStore(),
        rates=fakes.InMemoryRateStore(),
        permits=fakes.InMemoryPermitStore(),
        flows=fakes.InMemoryFlowStore(),
        collections=fakes.InMemoryCollectionStore(),
        tenants=fakes.InMemoryTenantStore(),
        usage=fakes.InMemoryUsageStore(),
        pending=fakes.InMemoryPendingStore(),
        expire=expire,
    )
