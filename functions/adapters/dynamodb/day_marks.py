"""Which days of the far ring are a tenant's: a mark for each day, class and shard, written before its first row is."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from functions.adapters.clients import is_transient
from functions.domain.errors import Undecodable
from functions.domain.instants import EPOCH, to_seconds
from functions.domain.jobs.claims import TIMER_LIFE
from functions.domain.jobs.job import Priority, Timer
from functions.domain.operations.operation import OwnedDay

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MARK_LIFE = TIMER_LIFE + timedelta(days=1)
"""How long a mark stands after its day: longer than any row of it."""

MOST_KNOWN = 50_000
"""Marks that a process remembers. One that it forgets costs it half a read unit."""

Mark = tuple[str, OwnedDay]
"""A tenant, and where it has rows."""

_ITEM = "day#"
_DAY = "%Y%m%d"
_PARTS = 4
_BATCH = 25


class DynamoDBDayMarks:
    """{t: tenant, i: `day#{yyyymmdd}#{class}#{shard:04d}`, x: ttl (s)}, in the tenants table.

    client: for what may be repeated. writer: makes one attempt a call, because a timer waits for its mark. pool: writes
    the batches of many marks side by side. Safe for the threads of a batch.
    """

    def __init__(
        self,
        client: DynamoDBClient,
        table: str,
        *,
        writer: DynamoDBClient,
        pool: Executor,
        most_known: int = MOST_KNOWN,
    ) -> None:
        self._client = client
        self._writer = writer
        self._table = table
        self._pool = pool
        self._most_known = most_known
        self._known: dict[Mark, None] = {}
        self._lock = threading.Lock()

    def days(self, tenant: str) -> list[OwnedDay]:
        """A read unit for each 4 KB of marks. Raises Undecodable."""
        found: list[OwnedDay] = []
        start: Any = {}
        while True:
            answer = self._client.query(
                TableName=self._table,
                KeyConditionExpression="t = :t AND begins_with(i, :item)",
                ExpressionAttributeValues={":t": {"S": tenant}, ":item": {"S": _ITEM}},
                ProjectionExpression="i",
                ConsistentRead=True,
                **start,
            )
            found += [_read(item) for item in answer["Items"]]
            if "LastEvaluatedKey" not in answer:
                return found
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}

    def put(self, timers: Sequence[Timer]) -> set[Mark]:
        """Mark the days of timers; the marks that are not known to stand.

        Half a read unit for each that this process has not met, and a write unit for each that nobody has written.
        """
        wanted = {mark_of(timer) for timer in timers}
        unmet = [mark for mark in sorted(wanted) if mark not in self._known]
        batches = [unmet[start : start + _BATCH] for start in range(0, len(unmet), _BATCH)]
        put = self._pool.map if len(batches) > 1 else map
        return {mark for left in put(self._put, batches) for mark in left}

    def _put(self, marks: Sequence[Mark]) -> Sequence[Mark]:
        """Once, without retries; those that are not known to be written."""
        try:
            left = self._write(self._missing(marks))
        except (ClientError, BotoCoreError) as error:
            if not is_transient(error):
                raise
            return marks
        self._remember([mark for mark in marks if mark not in left])
        return left

    def _missing(self, marks: Sequence[Mark]) -> Sequence[Mark]:
        """Also those that the store left unread: writing one again changes nothing."""
        answer = self._writer.batch_get_item(RequestItems={self._table: {"Keys": [_key(mark) for mark in marks]}})
        items: Sequence[Mapping[str, Any]] = answer["Responses"].get(self._table, [])
        found = {(item["t"]["S"], item["i"]["S"]) for item in items}
        return [mark for mark in marks if (mark[0], _item(mark[1])) not in found]

    def _write(self, marks: Sequence[Mark]) -> Sequence[Mark]:
        if not marks:
            return []
        requests: Any = [{"PutRequest": {"Item": _row(mark)}} for mark in marks]
        answer = self._writer.batch_write_item(RequestItems={self._table: requests})
        tables: Mapping[str, Any] = answer.get("UnprocessedItems", {})
        items = [request["PutRequest"]["Item"] for request in tables.get(self._table, [])]
        unprocessed = {(item["t"]["S"], item["i"]["S"]) for item in items}
        return [mark for mark in marks if (mark[0], _item(mark[1])) in unprocessed]

    def _remember(self, marks: Sequence[Mark]) -> None:
        with self._lock:
            self._known.update(dict.fromkeys(marks))
            while len(self._known) > self._most_known:
                del self._known[next(iter(self._known))]


def mark_of(timer: Timer) -> Mark:
    """The mark that stands before the row of a timer is put."""
    return timer.job.tenant, OwnedDay.of(timer)


def _item(owned: OwnedDay) -> str:
    day = EPOCH + timedelta(days=owned.day)
    return f"{_ITEM}{day:{_DAY}}#{owned.priority.value}#{owned.shard:04d}"


def _key(mark: Mark) -> dict[str, Any]:
    tenant, owned = mark
    return {"t": {"S": tenant}, "i": {"S": _item(owned)}}


def _row(mark: Mark) -> dict[str, Any]:
    return {**_key(mark), "x": {"N": str(to_seconds(mark[1].ends_at + MARK_LIFE))}}


def _read(item: Mapping[str, Any]) -> OwnedDay:
    try:
        _, day, priority, shard = item["i"]["S"].split("#", _PARTS - 1)
        begins_at = datetime.strptime(day, _DAY).replace(tzinfo=UTC)
        return OwnedDay((begins_at - EPOCH).days, Priority(int(priority)), int(shard))
    except ValueError as error:
        raise Undecodable(f"not a mark: {error!r}") from error
