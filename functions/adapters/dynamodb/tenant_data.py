"""All that is stored of a tenant, on DynamoDB and S3, deleted page by page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from functions.adapters.dynamodb.breakers import INDEX
from functions.adapters.dynamodb.day_marks import DynamoDBDayMarks
from functions.adapters.dynamodb.dead_letters import MARKS
from functions.adapters.dynamodb.operations import OPEN
from functions.domain.dead_letters.dead_letter_id import DEAD_LETTER_LIFE
from functions.domain.far_ring.timer_key import owned_prefix
from functions.domain.instants import EPOCH, format_instant, from_ms
from functions.domain.jobs.job import Priority
from functions.domain.operations.operation import JobFilter, WalkPosition, rest_of, stretches
from functions.domain.tenants.deletion import DeletionStage
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.tenants import Swept, TenantPlans

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

_BATCH = 25
_PAGE = 500
_SCANNED = 2_000
_BUCKETS = 240
_HOURS = 72
_HOUR = timedelta(hours=1)
_PREFIXES = ("jobs", "schedules", "exports")
_TRIES = 8


class NotDeleted(RuntimeError):
    """A store did not delete all that it was asked to: the next turn tries again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The names of the tables."""

    timers: str
    ledger: str
    schedules: str
    schedule_state: str
    tenants: str
    dead_letters: str


class StoredRemains:
    """What there is of a tenant; where a page of it ends is the key of its last row, or a place of its own, as JSON."""

    def __init__(
        self,
        client: DynamoDBClient,
        s3: S3Client,
        *,
        tables: Tables,
        bucket: str,
        wheel: Wheel,
        clock: Clock,
        plans: TenantPlans,
        marks: DynamoDBDayMarks,
    ) -> None:
        self._client = client
        self._s3 = s3
        self._tables = tables
        self._bucket = bucket
        self._wheel = wheel
        self._clock = clock
        self._plans = plans
        self._marks = marks

    def sweep(self, tenant: str, part: DeletionStage, *, after: str) -> Swept:
        """A write unit for each KB of a row that is deleted, and what it reads.

        That is a read unit for each bucket of a marked day, each hour of dead letters, and each 8 KB of the states of
        schedules and of the ledger, whosever they are. Raises NotDeleted.
        """
        sweep: Mapping[DeletionStage, Callable[[str, str], Swept]] = {
            DeletionStage.OPERATIONS: self._operations,
            DeletionStage.TIMERS: self._timers,
            DeletionStage.SCHEDULES: self._schedules,
            DeletionStage.STATES: partial(self._scan, self._tables.schedule_state),
            DeletionStage.OBJECTS: self._objects,
            DeletionStage.LETTERS: self._letters,
            DeletionStage.BREAKERS: self._breakers,
            DeletionStage.ROWS: self._rows,
            DeletionStage.LEDGER: partial(self._scan, self._tables.ledger),
        }
        return sweep[part](tenant, after)

    def _operations(self, tenant: str, after: str) -> Swept:
        """Those that are open, by the partition in which everybody's are."""
        page = self._query(self._tables.tenants, "t = :t", {":t": OPEN}, after=after)
        keys = [key for key in page["Items"] if key["i"]["S"].split("#")[1] == tenant]
        return self._swept(self._tables.tenants, keys, page)

    def _timers(self, tenant: str, after: str) -> Swept:
        """The buckets of marked days, some at a time."""
        place = WalkPosition(*json.loads(after)) if after else None
        everything = JobFilter(tenant=tenant, due_from=EPOCH)
        way = rest_of(stretches(self._marks.days(tenant), everything, wheel=self._wheel), place)
        width = self._wheel.next_bucket(0)
        buckets = ((stretch, bucket) for stretch, _ in way for bucket in range(stretch.first, stretch.end, width))
        deleted, last = 0, None
        for stretch, bucket in islice(buckets, _BUCKETS):
            owned = stretch.owned
            prefix = owned_prefix(owned.priority, tenant)
            values = {":p": f"{bucket}#{owned.shard:04d}", ":owned": prefix}
            deleted += self._all(self._tables.timers, "p = :p AND begins_with(s, :owned)", values)
            last = WalkPosition(owned.day, owned.priority.value, owned.shard, bucket + width)
        return Swept(deleted, json.dumps(last) if last is not None else None)

    def _schedules(self, tenant: str, after: str) -> Swept:
        """Alarm rows and states first: they are found by their definitions."""
        table = self._tables.schedules
        page = self._query(table, "t = :t", {":t": tenant}, after=after, limit=_BATCH)
        for item in page["Items"]:
            self._delete_alarms(tenant, item["i"]["S"])
            self._client.delete_item(
                TableName=self._tables.schedule_state, Key={"k": {"S": f"{tenant}#{item['i']['S']}"}}
            )
        keys = [{"t": item["t"], "i": item["i"]} for item in page["Items"]]
        return self._swept(table, keys, page)

    def _delete_alarms(self, tenant: str, schedule_id: str) -> None:
        key = {"k": {"S": f"{tenant}#{schedule_id}"}}
        state = self._client.get_item(TableName=self._tables.schedule_state, Key=key, ConsistentRead=True).get("Item")
        if state is None or "r" not in state:
            return
        bucket = self._wheel.bucket_of(from_ms(int(state["r"]["N"])))
        spreads = {1, self._plans.of(tenant).subshards}
        for shard in {self._wheel.shard_of(tenant, schedule_id, subshards=spread) for spread in spreads}:
            for priority in Priority:
                values = {":p": f"{bucket}#{shard:04d}", ":owned": owned_prefix(priority, tenant)}
                self._all(self._tables.timers, "p = :p AND begins_with(s, :owned)", values)

    def _objects(self, tenant: str, after: str) -> Swept:
        """From the first on, again and again: what was listed is gone."""
        del after
        for folder in _PREFIXES:
            prefix = f"{folder}/{quote(tenant, safe='')}/"
            found = self._s3.list_objects_v2(Bucket=self._bucket, Prefix=prefix).get("Contents", [])
            if found:
                objects: Any = [{"Key": each["Key"]} for each in found if "Key" in each]
                answer = self._s3.delete_objects(Bucket=self._bucket, Delete={"Objects": objects, "Quiet": True})
                for error in answer.get("Errors", []):
                    raise NotDeleted(f"{error.get('Key')}: {error.get('Code')}")
                return Swept(len(objects), prefix)
        return Swept(0, None)

    def _letters(self, tenant: str, after: str) -> Swept:
        """Hour by hour, from the oldest that may be there."""
        now = self._clock.now()
        hour = (
            datetime.fromisoformat(after)
            if after
            else (now - DEAD_LETTER_LIFE).replace(minute=0, second=0, microsecond=0)
        )
        deleted = 0
        for _ in range(_HOURS):
            if hour > now + _HOUR:
                # Last: until then they say where there may be some.
                deleted += self._all(self._tables.dead_letters, "p = :p", {":p": f"{tenant}#{MARKS}"})
                return Swept(deleted, None)
            partition = f"{tenant}#{format_instant(hour)[: len('2027-03-01T12')]}"
            deleted += self._all(self._tables.dead_letters, "p = :p", {":p": partition})
            hour += _HOUR
        return Swept(deleted, hour.isoformat())

    def _breakers(self, tenant: str, after: str) -> Swept:
        """Of those that are not closed, which stand together."""
        values = {":t": INDEX, ":owned": f"{tenant}#"}
        page = self._query(self._tables.tenants, "t = :t AND begins_with(i, :owned)", values, after=after)
        return self._swept(self._tables.tenants, page["Items"], page)

    def _rows(self, tenant: str, after: str) -> Swept:
        """Whatever is his in the table of everybody's."""
        page = self._query(self._tables.tenants, "t = :t", {":t": tenant}, after=after)
        return self._swept(self._tables.tenants, page["Items"], page)

    def _scan(self, table: str, tenant: str, after: str) -> Swept:
        """Of keys `{tenant}#...`."""
        page = self._client.scan(
            TableName=table,
            FilterExpression="begins_with(k, :owned)",
            ExpressionAttributeValues={":owned": {"S": f"{tenant}#"}},
            ProjectionExpression="k",
            Limit=_SCANNED,
            **_start(after),
        )
        return self._swept(table, page["Items"], page)

    def _all(self, table: str, condition: str, values: Mapping[str, str]) -> int:
        """Every selected row of a partition."""
        deleted, after = 0, ""
        while True:
            page = self._query(table, condition, values, after=after, keys="p, s")
            swept = self._swept(table, page["Items"], page)
            deleted += swept.deleted
            if swept.after is None:
                return deleted
            after = swept.after

    def _query(
        self,
        table: str,
        condition: str,
        values: Mapping[str, str],
        *,
        after: str,
        keys: str = "t, i",
        limit: int = _PAGE,
    ) -> Any:
        return self._client.query(
            TableName=table,
            KeyConditionExpression=condition,
            ExpressionAttributeValues={name: {"S": value} for name, value in values.items()},
            ProjectionExpression=keys,
            ConsistentRead=True,
            Limit=limit,
            **_start(after),
        )

    def _swept(self, table: str, keys: Sequence[Mapping[str, Any]], page: Any) -> Swept:
        for batch in _batches(keys):
            requests: Any = {table: [{"DeleteRequest": {"Key": key}} for key in batch]}
            for _ in range(_TRIES):
                requests = self._client.batch_write_item(RequestItems=requests).get("UnprocessedItems", {})
                if not requests:
                    break
            else:
                raise NotDeleted(f"{table} is too busy")
        last = page.get("LastEvaluatedKey")
        return Swept(len(keys), json.dumps(last) if last else None)


def _batches(keys: Sequence[Mapping[str, Any]]) -> Iterable[Sequence[Mapping[str, Any]]]:
    return (keys[start : start + _BATCH] for start in range(0, len(keys), _BATCH))


def _start(after: str) -> Any:
    return {"ExclusiveStartKey": json.loads(after)} if after else {}
