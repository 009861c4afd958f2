"""The far ring in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from functions.domain.errors import Undecodable
from functions.domain.far_ring.schedule_alarm import ALARM_LIFE, ScheduleAlarm
from functions.domain.far_ring.timer_key import alarm_key, is_alarm_key, key_of, owned_prefix, owner_of, timer_key
from functions.domain.far_ring.timer_record import decode_alarm, decode_timer, encode_alarm, encode_timer
from functions.domain.jobs.claims import TIMER_LIFE
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import JobId
from functions.domain.lifecycle import State
from functions.domain.operations.operation import OwnedDay
from functions.domain.wheel import Wheel
from functions.ports.timers import Page, StoredTimer, sealed_row
from testkit.fakes.clock import FakeClock
from testkit.fakes.kept import kept
from testkit.fakes.ledger import InMemoryLedger


class InMemoryTimerStore:
    def __init__(self, *, wheel: Wheel, ledger: InMemoryLedger | None = None, clock: FakeClock | None = None) -> None:
        self._wheel = wheel
        self._ledger = ledger
        self._clock = clock
        self.written: dict[str, datetime] = {}
        self.expiry: dict[tuple[tuple[int, int], str], datetime] = {}
        if ledger is not None:
            ledger.put_far = lambda timer: self.put([timer])
        self.rows: dict[tuple[int, int], dict[str, str]] = {}
        self.marks: set[tuple[str, OwnedDay]] = set()

    def put(self, timers: Sequence[Timer]) -> list[Timer]:
        for timer in timers:
            self.marks.add((timer.job.tenant, OwnedDay.of(timer)))
            key = timer_key(timer.job, due_at=timer.wakes_at)
            self._put(timer.wakes_at, timer.job.shard, key, encode_timer(timer), life=TIMER_LIFE)
        return []

    def put_alarms(self, alarms: Sequence[ScheduleAlarm]) -> list[ScheduleAlarm]:
        for alarm in alarms:
            self._put(alarm.wakes_at, alarm.shard, alarm_key(alarm), encode_alarm(alarm), life=ALARM_LIFE)
        return []

    def put_registered(self, timer: Timer) -> bool | None:
        assert self._ledger is not None
        row = self._ledger.get(timer.job.key)
        if row is None or row.state is not State.SCHEDULED or row.cancel_requested:
            return False
        return not self.put([timer])

    def read(self, bucket: int, shard: int, *, after: str = "", limit: int) -> Page:
        keys = sorted(key for key in self.rows.get((bucket, shard), {}) if key > after)
        records = self.rows.get((bucket, shard), {})
        rows = [sealed_row(key, records[key]) or _stored(key, records[key]) for key in keys[:limit]]
        return Page(rows, is_last=len(keys) <= limit)

    def days(self, tenant: str) -> list[OwnedDay]:
        return sorted(owned for owner, owned in self.marks if owner == tenant)

    def read_owned(self, tenant: str, owned: OwnedDay, *, bucket: int, after: str = "", limit: int) -> Page:
        rows = self.rows.get((bucket, owned.shard), {})
        keys = sorted(key for key in rows if key.startswith(owned_prefix(owned.priority, tenant)) and key > after)
        found = [replace(_stored(key, rows[key]), written_at=self.written.get(key)) for key in keys[:limit]]
        return Page(found, is_last=len(keys) <= limit)

    def get(self, job_id: JobId) -> Timer | None:
        row = self.stored(job_id)
        return row.timer if row is not None else None

    def stored(self, job_id: JobId) -> StoredTimer | None:
        key = key_of(job_id.priority, job_id.tenant, job_id.due_at, job_id.identity)
        record = self.rows.get((job_id.bucket, job_id.shard), {}).get(key)
        return replace(_stored(key, record), written_at=self.written.get(key)) if record is not None else None

    def delete(self, job_id: JobId) -> StoredTimer | None:
        row = self.stored(job_id)
        if row is not None:
            del self.rows[job_id.bucket, job_id.shard][row.key]
        return row

    def put_over(self, job_id: JobId, timer: Timer, *, written_at: datetime | None) -> bool:
        row = self.stored(job_id)
        if row is None:
            return False
        self.rows[job_id.bucket, job_id.shard][row.key] = encode_timer(timer)
        if written_at is not None:
            self.written[row.key] = kept(written_at)
        return True

    def delete_unless_called_back(self, job_id: JobId) -> StoredTimer | None:
        row = self.stored(job_id)
        return row if row is not None and row.timer is not None and row.timer.job.callbacks else self.delete(job_id)

    def expire(self, now: datetime) -> None:
        """What the table's ttl does, in the end."""
        for place, key in [each for each, instant in self.expiry.items() if instant <= now]:
            del self.expiry[place, key]
            self.rows.get(place, {}).pop(key, None)

    def _put(self, due_at: datetime, shard: int, key: str, record: str, *, life: timedelta) -> None:
        place = self._wheel.bucket_of(due_at), shard
        self.rows.setdefault(place, {})[key] = record
        self.expiry[place, key] = due_at + life
        if self._clock is not None:
            self.written[key] = kept(self._clock.now())


def _stored(key: str, record: str) -> StoredTimer:
    tenant = owner_of(key)[0]
    try:
        if is_alarm_key(key):
            return StoredTimer(key, None, alarm=decode_alarm(record, tenant=tenant))
        return StoredTimer(key, decode_timer(record, tenant=tenant))
    except Undecodable as error:
        return StoredTimer(key, None, raw=record, fault=str(error))
