"""All that is stored of a tenant, on DynamoDB and S3, deleted page by page."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from functions.adapters.dynamodb.breakers import INDEX
from functions.adapters.dynamodb.collections import OF_TENANT
from functions.adapters.dynamodb.day_marks import DynamoDBDayMarks
from functions.adapters.dynamodb.dead_letters import MARKS
from functions.adapters.dynamodb.flows import ROOM
from functions.adapters.dynamodb.operations import OPEN
from functions.adapters.dynamodb.table import Found, Item, Table, attributes, plain
from functions.domain.dead_letters.dead_letter_id import DEAD_LETTER_LIFE
from functions.domain.far_ring.timer_key import owned_prefix
from functions.domain.instants import EPOCH, format_instant, from_ms
from functions.domain.jobs.collection import CollectionId
from functions.domain.jobs.job import Priority
from functions.domain.operations.operation import JobFilter, WalkPosition, rest_of, stretches
from functions.domain.targets.flows import THE_STAGE
from functions.domain.tenants.deletion import DeletionStage
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.tenants import Swept, TenantPlans

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_BATCH = 25
_PAGE = 500
_SCANNED = 2_000
_BUCKETS = 240
_HOURS = 72
_HOUR = timedelta(hours=1)
_PREFIXES = ("jobs", "schedules", "exports", "results")
_TRIES = 8
_FROM_THE_START = "{}"
"""Where a page begins that says nothing else, as JSON."""


class NotDeleted(RuntimeError):
    """A store did not delete all that it was asked to: the next turn tries again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTenantData:
    """What there is of a tenant; where a page of it ends is the key of its last row, or a place of its own, as JSON."""

    s3: S3Client
    bucket: str
    timer_rows: Table
    ledger_rows: Table
    schedule_rows: Table
    state_rows: Table
    tenant_rows: Table
    dead_letter_rows: Table
    wheel: Wheel
    clock: Clock
    plans: TenantPlans
    marks: DynamoDBDayMarks

    def sweep(self, tenant: str, part: DeletionStage, *, after: str) -> Swept:
        """A write unit for each KB of a row that is deleted, and what it reads.

        That is a read unit for each bucket of a marked day, each hour of dead letters, and each 8 KB of the states of
        schedules, of the ledger and of the table of tenants, whosever they are. Raises NotDeleted.
        """
        sweep: Mapping[DeletionStage, Callable[[str, str], Swept]] = {
            DeletionStage.OPERATIONS: self._operations,
            DeletionStage.TIMERS: self._timers,
            DeletionStage.SCHEDULES: self._schedules,
            DeletionStage.STATES: partial(self._scan, self.state_rows),
            DeletionStage.OBJECTS: self._objects,
            DeletionStage.LETTERS: self._letters,
            DeletionStage.BREAKERS: self._breakers,
            DeletionStage.FLOWS: self._flows,
            DeletionStage.ROWS: self._rows,
            DeletionStage.LEDGER: partial(self._scan, self.ledger_rows),
        }
        return sweep[part](tenant, after)

    def _operations(self, tenant: str, after: str) -> Swept:
        """Those that are open, by the partition in which everybody's are."""
        found = _query(self.tenant_rows, "t = :t", after=after, t=OPEN)
        return _swept(self.tenant_rows, found, [key for key in found.items if key["i"].split("#")[1] == tenant])

    def _timers(self, tenant: str, after: str) -> Swept:
        """The buckets of marked days, some at a time."""
        place = WalkPosition(*json.loads(after)) if after else None
        everything = JobFilter(tenant=tenant, due_from=EPOCH)
        way = rest_of(stretches(self.marks.days(tenant), everything, wheel=self.wheel), place)
        width = self.wheel.next_bucket(0)
        buckets = ((stretch, bucket) for stretch, _ in way for bucket in range(stretch.first, stretch.end, width))
        deleted, last = 0, None
        for stretch, bucket in islice(buckets, _BUCKETS):
            owned = stretch.owned
            deleted += self._delete_timers(tenant, bucket, owned.shard, owned.priority)
            last = WalkPosition(owned.day, owned.priority.value, owned.shard, bucket + width)
        return Swept(deleted, json.dumps(last) if last is not None else None)

    def _schedules(self, tenant: str, after: str) -> Swept:
        """Alarm rows and states first: they are found by their definitions."""
        table = self.schedule_rows
        found = _query(table, "t = :t", after=after, limit=_BATCH, t=tenant)
        for item in found.items:
            self._delete_alarms(tenant, item["i"])
            self.state_rows.delete({"k": f"{tenant}#{item['i']}"})
        return _swept(table, found, found.items)

    def _delete_alarms(self, tenant: str, schedule_id: str) -> None:
        state = self.state_rows.get({"k": f"{tenant}#{schedule_id}"})
        if "r" not in state:
            return
        bucket = self.wheel.bucket_of(from_ms(state["r"]))
        spreads = {1, self.plans.of(tenant).subshards}
        for shard in {self.wheel.shard_of(tenant, schedule_id, subshards=spread) for spread in spreads}:
            for priority in Priority:
                self._delete_timers(tenant, bucket, shard, priority)

    def _delete_timers(self, tenant: str, bucket: int, shard: int, priority: Priority) -> int:
        """Jobs and alarms of a class."""
        owned, partition = owned_prefix(priority, tenant), f"{bucket}#{shard:04d}"
        return _delete_all(self.timer_rows, "p = :p AND begins_with(s, :owned)", p=partition, owned=owned)

    def _objects(self, tenant: str, after: str) -> Swept:
        """From the first on, again and again: what was listed is gone."""
        del after
        for folder in _PREFIXES:
            prefix = f"{folder}/{quote(tenant, safe='')}/"
            found = self.s3.list_objects_v2(Bucket=self.bucket, Prefix=prefix).get("Contents", [])
            if found:
                objects: Any = [{"Key": each["Key"]} for each in found if "Key" in each]
                answer = self.s3.delete_objects(Bucket=self.bucket, Delete={"Objects": objects, "Quiet": True})
                for error in answer.get("Errors", []):
                    raise NotDeleted(f"{error.get('Key')}: {error.get('Code')}")
                return Swept(len(objects), prefix)
        return Swept(0, None)

    def _letters(self, tenant: str, after: str) -> Swept:
        """Hour by hour, from the oldest that may be there."""
        now = self.clock.now()
        oldest = (now - DEAD_LETTER_LIFE).replace(minute=0, second=0, microsecond=0)
        hour = datetime.fromisoformat(after) if after else oldest
        deleted = 0
        for _ in range(_HOURS):
            if hour > now + _HOUR:
                # Last: until then they say where there may be some.
                deleted += _delete_all(self.dead_letter_rows, "p = :p", p=f"{tenant}#{MARKS}")
                return Swept(deleted, None)
            partition = f"{tenant}#{format_instant(hour)[: len('2027-03-01T12')]}"
            deleted += _delete_all(self.dead_letter_rows, "p = :p", p=partition)
            hour += _HOUR
        return Swept(deleted, hour.isoformat())

    def _breakers(self, tenant: str, after: str) -> Swept:
        """Those that are not closed, which stand together."""
        return _delete_page(
            self.tenant_rows, "t = :t AND begins_with(i, :owned)", after=after, t=INDEX, owned=f"{tenant}#"
        )

    def _flows(self, tenant: str, after: str) -> Swept:
        """A page of the table of tenants: no list says which flows jobs have named."""
        found = self.tenant_rows.scan(
            limit=_SCANNED,
            after=_start(after),
            only="t, i",
            condition="begins_with(t, :owned) OR (begins_with(t, :of_stage) AND begins_with(i, :waiting))",
            owned=f"{tenant}#",
            of_stage=f"{THE_STAGE}#",
            waiting=f"{ROOM}{tenant}#",
        )
        return _swept(self.tenant_rows, found, found.items)

    def _rows(self, tenant: str, after: str) -> Swept:
        """The tenant's own rows in the table of all tenants. What waits in its collections goes before what names these."""
        named = _query(
            self.tenant_rows, "t = :t AND begins_with(i, :owned)", after="", t=tenant, owned=OF_TENANT, limit=_BATCH
        )
        for item in named.items:
            digest = item["i"].removeprefix(OF_TENANT)
            _delete_all(self.tenant_rows, "t = :t", only="t, i", t=str(CollectionId(tenant, digest)))
        if named.items:
            swept = _swept(self.tenant_rows, named, named.items)
            # Again from where it was, until none is named any more.
            return Swept(swept.deleted, after or _FROM_THE_START)
        return _delete_page(self.tenant_rows, "t = :t", after=after, t=tenant)

    def _scan(self, table: Table, tenant: str, after: str) -> Swept:
        """Rows with keys `{tenant}#...`."""
        found = table.scan(
            limit=_SCANNED, after=_start(after), only="k", condition="begins_with(k, :owned)", owned=f"{tenant}#"
        )
        return _swept(table, found, found.items)


def _delete_all(table: Table, condition: str, *, only: str = "p, s", **values: Any) -> int:
    """Every selected row of a partition."""
    deleted, after = 0, ""
    while True:
        swept = _delete_page(table, condition, after=after, only=only, **values)
        deleted += swept.deleted
        if swept.after is None:
            return deleted
        after = swept.after


def _delete_page(table: Table, condition: str, **asked: Any) -> Swept:
    found = _query(table, condition, **asked)
    return _swept(table, found, found.items)


def _query(table: Table, condition: str, *, after: str, only: str = "t, i", limit: int = _PAGE, **values: Any) -> Found:
    return table.query(condition, limit=limit, after=_start(after), only=only, is_consistent=True, **values)


def _swept(table: Table, found: Found, keys: Sequence[Item]) -> Swept:
    for start in range(0, len(keys), _BATCH):
        left = keys[start : start + _BATCH]
        for _ in range(_TRIES):
            left = table.delete_many(left)
            if not left:
                break
        else:
            raise NotDeleted(f"{table.name} is too busy")
    return Swept(len(keys), json.dumps(attributes(found.last)) if found.last else None)


def _start(after: str) -> Item | None:
    return (plain(json.loads(after)) or None) if after else None
