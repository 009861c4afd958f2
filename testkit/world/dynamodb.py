"""The stores of a world on DynamoDB's own engine: the adapters as Lambda has them, and a look at what they have written."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from functions.adapters.dynamodb import dead_letters as dynamodb_dead_letters
from functions.adapters.dynamodb import operations as dynamodb_operations
from functions.adapters.dynamodb import pending as dynamodb_pending
from functions.adapters.dynamodb import shards as dynamodb_shards
from functions.adapters.dynamodb import usage as dynamodb_usage
from functions.adapters.dynamodb.breakers import DynamoDBBreakerStore
from functions.adapters.dynamodb.collections import DynamoDBCollectionStore
from functions.adapters.dynamodb.day_marks import DynamoDBDayMarks
from functions.adapters.dynamodb.dead_letters import MARKS, DynamoDBDeadLetters
from functions.adapters.dynamodb.flows import DynamoDBFlowStore
from functions.adapters.dynamodb.ledger import DynamoDBLedger
from functions.adapters.dynamodb.ledger_row import STARTS, read_row
from functions.adapters.dynamodb.operations import DynamoDBOperationStore
from functions.adapters.dynamodb.pending import DynamoDBPendingStore
from functions.adapters.dynamodb.permits import DynamoDBPermitStore
from functions.adapters.dynamodb.rates import DynamoDBRateStore
from functions.adapters.dynamodb.schedules import DynamoDBScheduleStore
from functions.adapters.dynamodb.shards import DynamoDBShardStore
from functions.adapters.dynamodb.table import Item
from functions.adapters.dynamodb.tables import (
    ALL_TABLES,
    DEAD_LETTERS,
    LEDGER,
    SCHEDULE_STATE,
    SCHEDULES,
    SHARDS,
    TENANTS,
    TIMERS,
)
from functions.adapters.dynamodb.tenants import DynamoDBTenantStore
from functions.adapters.dynamodb.timers import DynamoDBTimerStore
from functions.adapters.dynamodb.usage import DynamoDBUsageStore
from functions.domain.instants import from_ms
from functions.domain.jobs.claims import LedgerRow
from functions.domain.operations.operation import Operation
from functions.domain.tenants.usage import Usage
from functions.domain.wheel import Wheel
from functions.ports.dead_letters import DeadLetter
from functions.ports.schedules import StatePage
from functions.ports.timers import Page
from testkit.dynamodb_local import client_at
from testkit.fakes import FakeClock
from testkit.world.stores import Stores
from testkit.world.tables import Key, Tables, WatchedTable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Name = TypeVar("Name")
Row = TypeVar("Row")

_numbers = itertools.count(1)


@dataclass(frozen=True)
class OnDynamoDB:
    """Makes the stores of a world on an engine that runs: each has tables of its own, gone when the world has ended.

    It can be pickled: every process has a client, and by its key a database, of its own.
    """

    endpoint_url: str

    def __call__(self, wheel: Wheel, clock: FakeClock) -> Stores:
        client = _client(self.endpoint_url)
        tables = Tables(client, ALL_TABLES, prefix=f"world-{next(_numbers)}")
        return _stores(tables, wheel, clock)


class Schedules(DynamoDBScheduleStore):
    """Pages of a scan are in the order of the fakes: that of the engine is nobody's business."""

    def scan(self, *, after: str | None, limit: int) -> StatePage:
        page = super().scan(after=after, limit=limit)
        return replace(page, states=dict(sorted(page.states.items())))


class _Rows(Generic[Name, Row]):
    """What the rows of a table say, by their names, read as they change. name_of: None for a row of another kind."""

    def __init__(
        self, table: WatchedTable, *, name_of: Callable[[Key], Name | None], read: Callable[[Item], Row]
    ) -> None:
        self._table = table
        self._name_of = name_of
        self._read = read
        self._rows: dict[Name, Row] = {}
        table.listeners.append(self._changed)

    def look(self) -> dict[Name, Row]:
        """As of now. A row that is not written stays the same object."""
        self._table.look()
        return self._rows

    def _changed(self, key: Key, item: Item | None) -> None:
        name = self._name_of(key)
        if name is None:
            return
        if item is None:
            del self._rows[name]
        else:
            self._rows[name] = self._read(item)


class _Looked:
    """What makes an adapter of one table a store that can be looked at."""

    def __init__(self, table: WatchedTable) -> None:
        super().__init__(table.stored)  # type: ignore[call-arg]  # the adapter's, which comes next
        self._looked = table


class Ledger(DynamoDBLedger):
    """Its rows can be looked at."""

    def __init__(self, table: WatchedTable, **given: Any) -> None:
        super().__init__(table.stored, **given)
        self._seen = _Rows(table, name_of=lambda key: None if STARTS in key[0] else key[0], read=read_row)

    @property
    def rows(self) -> dict[str, LedgerRow]:
        return self._seen.look()


class DeadLetters(DynamoDBDeadLetters):
    """They can be looked at."""

    def __init__(self, table: WatchedTable) -> None:
        super().__init__(table.stored)
        self._seen = _Rows(table, name_of=_letter_of, read=dynamodb_dead_letters._read)

    @property
    def letters(self) -> dict[Key, DeadLetter]:
        return self._seen.look()


class Timers(DynamoDBTimerStore):
    """Their rows can be looked at."""

    def __init__(self, table: WatchedTable, **given: Any) -> None:
        super().__init__(table=table.stored, writer=table.stored, **given)
        self._seen: dict[tuple[int, int], dict[str, str]] = {}
        self._written: dict[str, datetime] = {}
        self._looked = table
        table.listeners.append(self._changed)

    def read(self, bucket: int, shard: int, *, after: str = "", limit: int) -> Page:
        """A bucket that nothing is in is not asked for: months have a hundred thousand of them."""
        if not self.rows.get((bucket, shard)):
            return Page(rows=[], is_last=True)
        return super().read(bucket, shard, after=after, limit=limit)

    @property
    def rows(self) -> dict[tuple[int, int], dict[str, str]]:
        self._looked.look()
        return self._seen

    @property
    def written(self) -> dict[str, datetime]:
        self._looked.look()
        return self._written

    def _changed(self, key: Key, item: Item | None) -> None:
        partition, sort = key
        bucket, _, shard = partition.partition("#")
        rows = self._seen.setdefault((int(bucket), int(shard)), {})
        if item is None:
            del rows[sort]
        else:
            rows[sort] = item["j"]
            self._written[sort] = from_ms(item["w"])


class Shards(_Looked, DynamoDBShardStore):
    """Their cursors can be looked at."""

    @property
    def rows(self) -> dict[int, dict[str, Any]]:
        shards = {key[0]: item for key, item in self._looked.look().items() if key[0].isdigit()}
        return {int(key): {"cursors": item.get("c")} for key, item in shards.items()}

    def unpublish(self) -> None:
        self.table.delete({"k": dynamodb_shards._CONDITIONS})


class Operations(DynamoDBOperationStore):
    """They can be looked at."""

    def __init__(self, table: WatchedTable) -> None:
        super().__init__(table.stored)
        self._seen = _Rows(table, name_of=_operation_of, read=dynamodb_operations._read)

    @property
    def rows(self) -> dict[tuple[str, str], Operation]:
        return self._seen.look()


class UsageOfTenants(_Looked, DynamoDBUsageStore):
    """It can be looked at."""

    @property
    def rows(self) -> dict[tuple[str, date], Usage]:
        items = _items(self._looked, dynamodb_usage._ITEM)
        return {(item["t"], dynamodb_usage._day_of(item)): dynamodb_usage._usage_of(item) for item in items}


class Pending(_Looked, DynamoDBPendingStore):
    """It can be looked at."""

    @property
    def rows(self) -> dict[tuple[str, date], int]:
        items = _items(self._looked, dynamodb_pending._ITEM)
        return {(item["t"], dynamodb_pending._day(item["i"])): item["n"] for item in items}


def _letter_of(key: Key) -> Key | None:
    return None if key[0].endswith(f"#{MARKS}") else key


def _operation_of(key: Key) -> tuple[str, str] | None:
    tenant, row = key
    kind, _, operation_id = row.partition("#")
    return None if kind != "operation" or tenant.startswith("~") else (tenant, operation_id)


def _items(table: WatchedTable, kind: str) -> list[Item]:
    return [item for item in table.look().values() if item["i"].startswith(kind)]


class _AtOnce(Executor):
    """In place of a pool: batches side by side would land in any order, and no run could be repeated."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def _stores(tables: Tables, wheel: Wheel, clock: FakeClock) -> Stores:
    pool, tenants = _AtOnce(), tables[TENANTS].stored
    dead_letters = DeadLetters(tables[DEAD_LETTERS])
    timers = Timers(
        tables[TIMERS],
        wheel=wheel,
        clock=clock,
        pool=pool,
        marks=DynamoDBDayMarks(tenants, writer=tenants, pool=pool),
        ledger_table=tables[LEDGER].stored.name,
    )

    def expire(now: datetime) -> None:
        for table in tables:
            table.expire(now)

    return Stores(
        ledger=Ledger(tables[LEDGER], skew=wheel.lease_skew, dead_letters=dead_letters, timers=timers),
        dead_letters=dead_letters,
        timers=timers,
        shards=Shards(tables[SHARDS]),
        schedules=Schedules(tables[SCHEDULES].stored, tables[SCHEDULE_STATE].stored),
        operations=Operations(tables[TENANTS]),
        breakers=DynamoDBBreakerStore(tenants),
        rates=DynamoDBRateStore(tenants),
        permits=DynamoDBPermitStore(tenants),
        flows=DynamoDBFlowStore(tenants),
        collections=DynamoDBCollectionStore(tenants),
        tenants=DynamoDBTenantStore(tenants),
        usage=UsageOfTenants(tables[TENANTS]),
        pending=Pending(tables[TENANTS]),
        expire=expire,
        close=tables.drop,
        cut_short=tables.cut_short,
    )


@lru_cache
def _client(endpoint_url: str) -> DynamoDBClient:
    return client_at(endpoint_url, key=f"process{os.getpid()}")
