"""The far ring on DynamoDB: one partition a bucket and shard, read once, in order."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from functions.adapters.clients import tried
from functions.adapters.dynamodb.day_marks import DynamoDBDayMarks, mark_of
from functions.adapters.dynamodb.table import Found, Item, Table, attributes, instant_of
from functions.domain.errors import NotPlaced, Undecodable
from functions.domain.far_ring.run_terms import CALLBACKS_IN_RECORD
from functions.domain.far_ring.schedule_alarm import ALARM_LIFE, ScheduleAlarm
from functions.domain.far_ring.timer_key import alarm_key, is_alarm_key, key_of, owned_prefix, owner_of, timer_key
from functions.domain.far_ring.timer_record import decode_alarm, decode_timer, encode_alarm, encode_timer
from functions.domain.instants import to_seconds
from functions.domain.jobs.claims import TIMER_LIFE
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import JobId
from functions.domain.lifecycle import State
from functions.domain.operations.operation import OwnedDay
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.timers import Page, StoredTimer, sealed_row

FarRow = TypeVar("FarRow", Timer, ScheduleAlarm)

_BATCH = 25


@dataclass(kw_only=True)
class DynamoDBTimerStore:
    """Rows {p, s, j: record, w: written at (ms), x: ttl (s)}.

    writer: makes one attempt a call, because where a timer belongs is decided anew before each. pool: sends the batches of
    a put side by side. marks: written before the rows, so that a tenant's rows are found. ledger_table: for timers of
    registered jobs.
    """

    table: Table
    writer: Table
    wheel: Wheel
    clock: Clock
    pool: Executor
    marks: DynamoDBDayMarks
    ledger_table: str = ""

    def put(self, timers: Sequence[Timer]) -> list[Timer]:
        """One write unit a timer of up to 1,024 bytes; and its mark, where that is the first of its day."""
        unmarked = self.marks.put(timers)
        if not unmarked:
            return self._put(timers)
        # A row without its mark would never be found by its tenant.
        waiting = [timer for timer in timers if mark_of(timer) in unmarked]
        return [*waiting, *self._put([timer for timer in timers if mark_of(timer) not in unmarked])]

    def put_alarms(self, alarms: Sequence[ScheduleAlarm]) -> list[ScheduleAlarm]:
        """One write unit an alarm."""
        return self._put(alarms)

    def read(self, bucket: int, shard: int, *, after: str = "", limit: int) -> Page:
        """Eventually consistent, at half the price: a bucket was closed SKEW before it is first read."""
        partition = _partition(bucket, shard)
        if after:
            found = self.table.query("p = :p AND s > :after_s", limit=limit, only="s, j", p=partition, after_s=after)
        else:
            found = self.table.query("p = :p", limit=limit, only="s, j", p=partition)
        return Page(
            rows=[sealed_row(item["s"], item.get("j", "")) or _read(item) for item in found.items],
            is_last=not found.last,
        )

    def days(self, tenant: str) -> list[OwnedDay]:
        """One Query of marks. Raises Undecodable."""
        return self.marks.days(tenant)

    def read_owned(self, tenant: str, owned: OwnedDay, *, bucket: int, after: str = "", limit: int) -> Page:
        """A read unit for each 4 KB, and one where there is nothing."""
        partition = _partition(bucket, owned.shard)
        found = self.table.query(
            "p = :p AND begins_with(s, :owned)",
            limit=limit,
            after={"p": partition, "s": after} if after else None,
            only="s, j, w",
            is_consistent=True,
            p=partition,
            owned=owned_prefix(owned.priority, tenant),
        )
        return _page(found)

    def get(self, job_id: JobId) -> Timer | None:
        """As of all writes before."""
        row = self.stored(job_id)
        return row.timer if row else None

    def stored(self, job_id: JobId) -> StoredTimer | None:
        """As of all writes before."""
        item = self.table.get(_key_of(job_id))
        return _read(item) if item else None

    def delete(self, job_id: JobId) -> StoredTimer | None:
        """One write unit, whether there is a row or not."""
        item = self.writer.delete(_key_of(job_id), returns="ALL_OLD").item
        return _read(item) if item else None

    def put_over(self, job_id: JobId, timer: Timer, *, written_at: datetime | None) -> bool:
        """One write unit for each KB, refused or not."""
        item = {**self._item(timer), **_key_of(job_id), "w": written_at or self.clock.now()}
        return self.writer.put(item, condition="attribute_exists(s)").is_done

    def delete_unless_called_back(self, job_id: JobId) -> StoredTimer | None:
        """One write unit, refused or not; two for a row that only seems to have callbacks."""
        answer = self.writer.delete(
            _key_of(job_id), condition="NOT contains(j, :callbacks)", returns="ALL_OLD", callbacks=CALLBACKS_IN_RECORD
        )
        stored = _read(answer.item) if answer.item else None
        if stored is not None and not answer.is_done and (stored.timer is None or not stored.timer.job.callbacks):
            return self.delete(job_id)
        return stored

    def put_registered(self, timer: Timer) -> bool | None:
        """Four write units, for a submission that is repeated; and its mark, where that is the first of its day."""
        if self.marks.put([timer]):
            return None
        waits: Any = {
            "TableName": self.ledger_table,
            "Key": attributes({"k": timer.job.key}),
            "ConditionExpression": "s = :scheduled AND attribute_not_exists(c)",
            "ExpressionAttributeValues": attributes({":scheduled": State.SCHEDULED}),
        }
        put = tried(lambda: self.writer.transact({"ConditionCheck": waits}, {"Put": self.put_request(timer)}))
        return None if put is None else put.is_done

    def mark(self, timer: Timer) -> None:
        """What comes before `put_request`. Raises NotPlaced."""
        if self.marks.put([timer]):
            raise NotPlaced(["the mark of its day could not be written"])

    def put_request(self, timer: Timer) -> Any:
        """A put as a part of a transaction, of a timer that is marked."""
        return self.table.put_request(self._item(timer))

    def _put(self, rows: Sequence[FarRow]) -> list[FarRow]:
        if len(rows) == 1:
            return self._put_one(rows[0])
        batches = [rows[start : start + _BATCH] for start in range(0, len(rows), _BATCH)]
        unwritten = self.pool.map(lambda batch: self._put_batch(batch), batches)  # noqa: PLW0108  for its type
        return [row for left in unwritten for row in left]

    def _put_one(self, row: FarRow) -> list[FarRow]:
        return [row] if tried(lambda: self.writer.put(self._item(row))) is None else []

    def _put_batch(self, rows: Sequence[FarRow]) -> list[FarRow]:
        # A batch may not name a key twice; equal keys are equal jobs, and one row is enough for them.
        items = {(item["p"], item["s"]): item for item in map(self._item, rows)}
        unprocessed = tried(lambda: self.writer.put_many(items.values()))
        if unprocessed is None:
            return list(rows)
        left = {item["s"] for item in unprocessed}
        return [row for row in rows if _sort(row) in left]

    def _item(self, row: Timer | ScheduleAlarm) -> Item:
        bucket = self.wheel.bucket_of(row.wakes_at)
        is_alarm = isinstance(row, ScheduleAlarm)
        return {
            "p": _partition(bucket, row.shard if is_alarm else row.job.shard),
            "s": _sort(row),
            "j": encode_alarm(row) if is_alarm else encode_timer(row),
            "w": self.clock.now(),
            "x": to_seconds(row.wakes_at + (ALARM_LIFE if is_alarm else TIMER_LIFE)),
        }


def _partition(bucket: int, shard: int) -> str:
    return f"{bucket}#{shard:04d}"


def _sort(row: Timer | ScheduleAlarm) -> str:
    return alarm_key(row) if isinstance(row, ScheduleAlarm) else timer_key(row.job, due_at=row.wakes_at)


def _key_of(job_id: JobId) -> Item:
    sort = key_of(job_id.priority, job_id.tenant, job_id.due_at, job_id.identity)
    return {"p": _partition(job_id.bucket, job_id.shard), "s": sort}


def _page(found: Found) -> Page:
    return Page(rows=[_read(item) for item in found.items], is_last=not found.last)


def _read(item: Item) -> StoredTimer:
    key = item["s"]
    record = item.get("j", "")
    written_at = instant_of(item, "w")
    tenant = owner_of(key)[0]
    try:
        if is_alarm_key(key):
            return StoredTimer(key, None, written_at=written_at, alarm=decode_alarm(record, tenant=tenant))
        return StoredTimer(key, decode_timer(record, tenant=tenant), written_at=written_at)
    except Undecodable as error:
        return StoredTimer(key, None, raw=record, fault=str(error))
