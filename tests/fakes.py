"""The ports in memory, small enough to be read, and held to the same contract suites as the adapters.

They hold rows, not references: what is written is encoded and decoded as the real stores would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from functions.domain.claims import LedgerRow, expires_at, may_claim
from functions.domain.cursor import AuditPosition, Cursors, decode_cursors, encode_cursors
from functions.domain.delays import delay_seconds
from functions.domain.envelope import decode_timer, encode_envelope, encode_timer
from functions.domain.errors import Undecodable, WheelChanged
from functions.domain.instants import SECOND, from_ms, to_ms
from functions.domain.job import Job, Priority, Timer
from functions.domain.job_id import JobId, job_id_of
from functions.domain.lifecycle import Event, State, sources, target
from functions.domain.timer_key import key_of, owner_of, timer_key
from functions.domain.wheel import Wheel
from functions.ports import (
    Applied,
    Claimed,
    DeadLetter,
    Failed,
    Invocation,
    Page,
    Receipt,
    Refused,
    Rejected,
    ShardLease,
    StoredTimer,
    Succeeded,
)
from tests.builders import NOON


class FakeClock:
    """Time in the hand of the test. Sleeping moves it on."""

    def __init__(self, now: datetime = NOON) -> None:
        self.instant = now
        self.ahead = timedelta(0)
        self.known_offset = timedelta(0)

    def now(self) -> datetime:
        return self.instant + self.ahead

    def monotonic(self) -> float:
        return (self.instant - NOON).total_seconds()

    def sleep(self, duration: timedelta) -> None:
        self.tick(duration)

    def offset(self) -> timedelta:
        return self.known_offset

    def tick(self, duration: timedelta) -> None:
        self.instant += max(duration, timedelta(0))


class InMemoryTimerStore:
    def __init__(self, *, wheel: Wheel, ledger: InMemoryLedger | None = None, clock: FakeClock | None = None) -> None:
        self._wheel = wheel
        self._ledger = ledger
        self._clock = clock
        self._written: dict[str, datetime] = {}
        self.rows: dict[tuple[int, int], dict[str, str]] = {}

    def put(self, timers: Sequence[Timer]) -> list[Timer]:
        for timer in timers:
            place = (self._wheel.bucket_of(timer.due_at), timer.job.shard)
            key = timer_key(timer.job, due_at=timer.due_at)
            self.rows.setdefault(place, {})[key] = encode_timer(timer)
            if self._clock is not None:
                self._written[key] = self._clock.now()
        return []

    def put_registered(self, timer: Timer) -> bool | None:
        assert self._ledger is not None
        row = self._ledger.get(timer.job.key)
        if row is None or row.state is not State.SCHEDULED or row.cancel_requested:
            return False
        return not self.put([timer])

    def read(self, bucket: int, shard: int, *, after: str = "", limit: int) -> Page:
        keys = sorted(key for key in self.rows.get((bucket, shard), {}) if key > after)
        rows = [_stored(key, self.rows[bucket, shard][key]) for key in keys[:limit]]
        return Page(rows, is_last=len(keys) <= limit)

    def get(self, job_id: JobId) -> Timer | None:
        row = self.stored(job_id)
        return row.timer if row is not None else None

    def stored(self, job_id: JobId) -> StoredTimer | None:
        key = key_of(job_id.priority, job_id.tenant, job_id.due_at, job_id.identity)
        record = self.rows.get((job_id.bucket, job_id.shard), {}).get(key)
        return replace(_stored(key, record), written_at=self._written.get(key)) if record is not None else None

    def delete(self, job_id: JobId) -> StoredTimer | None:
        row = self.stored(job_id)
        if row is not None:
            del self.rows[job_id.bucket, job_id.shard][row.key]
        return row


def _stored(key: str, record: str) -> StoredTimer:
    try:
        return StoredTimer(key, decode_timer(record, tenant=owner_of(key)[0]))
    except Undecodable as error:
        return StoredTimer(key, None, raw=record, fault=str(error))


@dataclass
class QueuedMessage:
    message_id: str
    body: str
    visible_at: datetime
    priority: Priority
    receive_count: int = 0
    sent_at: datetime = NOON


@dataclass
class InMemoryReadyQueue:
    """One list of messages with a delay and a visibility each; a dead-letter list behind it."""

    clock: FakeClock
    visibility: timedelta = timedelta(seconds=95)
    max_receive_count: int = 10
    messages: dict[str, QueuedMessage] = field(default_factory=dict)
    dead: list[QueuedMessage] = field(default_factory=list)
    refuses: Callable[[Timer], Rejected | None] = lambda _: None
    _sent: int = 0

    def send(self, timers: Sequence[Timer]) -> list[Rejected]:
        rejected: list[Rejected] = []
        for timer in timers:
            if rejection := self.refuses(timer):
                rejected.append(rejection)
                continue
            delay = delay_seconds(timer.due_at, now=self.clock.now(), precision=timer.job.precision)
            self._sent += 1
            message_id = f"m{self._sent}"
            self.messages[message_id] = QueuedMessage(
                message_id,
                encode_envelope([timer]),
                # The queue's own clock counts the delay.
                self.clock.instant + delay * SECOND,
                timer.job.priority,
                sent_at=self.clock.instant,
            )
        return rejected

    def receive(self, limit: int = 10) -> list[QueuedMessage]:
        """What a poller gets now: visible messages, hidden from others for the visibility timeout."""
        received: list[QueuedMessage] = []
        for message in sorted(self.messages.values(), key=lambda message: message.visible_at):
            if len(received) == limit or message.visible_at > self.clock.instant:
                break
            if message.receive_count >= self.max_receive_count:
                self.dead.append(self.messages.pop(message.message_id))
                continue
            message.receive_count += 1
            message.visible_at = self.clock.instant + self.visibility
            received.append(message)
        return received

    def delete(self, message_id: str) -> None:
        self.messages.pop(message_id, None)

    def defer(self, receipt: Receipt, *, until: datetime) -> None:
        message = self.messages.get(receipt.handle)
        if message is not None:
            left = max(until - self.clock.now(), timedelta(0))
            message.visible_at = self.clock.instant + -(-left // SECOND) * SECOND


class InMemoryLedger:
    """The rules of `functions.domain.claims` and the lifecycle table, applied to a dictionary."""

    def __init__(self, *, skew: timedelta, dead_letters: InMemoryDeadLetters | None = None) -> None:
        self._skew = skew
        self._dead_letters = dead_letters or InMemoryDeadLetters()
        self.rows: dict[str, LedgerRow] = {}
        self.expiry: dict[str, datetime] = {}

    def register(self, job: Job, *, job_id: str, fingerprint: str, owner: str, now: datetime) -> Applied | Refused:
        row = self.rows.get(job.key)
        if row is not None and not (row.state is target(Event.REGISTER) and row.owner == owner):
            return Refused(row)
        row = LedgerRow(state=target(Event.REGISTER), owner=owner, due_at=_kept(job.scheduled_at), job_id=job_id)
        return self._write(job.key, replace(row, fingerprint=fingerprint), now=now)

    def claim(self, timer: Timer, *, owner: str, lease_until: datetime, now: datetime) -> Claimed | Refused:
        row = self.rows.get(timer.job.key)
        if not may_claim(row, attempt=timer.attempt, owner=owner):
            return Refused(row)
        return self._take(timer, row, owner=owner, lease_until=lease_until, now=now, rescue_count=0)

    def rescue(
        self, timer: Timer, *, row: LedgerRow, owner: str, lease_until: datetime, now: datetime
    ) -> Claimed | Refused:
        met = self.rows.get(timer.job.key)
        if met is None or met.state is not State.RUNNING or met.lease_until is None:
            return Refused(met)
        is_over = met.fence == row.fence and met.lease_until < now - self._skew and met.attempt <= timer.attempt
        if not (is_over or (met.owner == owner and met.attempt == timer.attempt)):
            return Refused(met)
        return self._take(
            timer, row, owner=owner, lease_until=lease_until, now=now, rescue_count=row.rescue_count + 1, met=met
        )

    def attempt(self, timer: Timer, event: Event, *, owner: str, now: datetime) -> Applied | Refused:
        row = self.rows.get(timer.job.key)
        is_mine = row is not None and row.state is target(event) and row.owner == owner
        if _state(row) not in sources(event) and not is_mine:
            return Refused(row)
        row = replace(row or LedgerRow(state=State.ABSENT), state=target(event), owner=owner)
        row = replace(row, attempt=timer.attempt, due_at=_kept(timer.due_at), job_id=str(job_id_of(timer.job)))
        return self._write(timer.job.key, row, now=now)

    def settle(
        self,
        job: Job,
        event: Event,
        *,
        fence: int,
        owner: str,
        due_at: datetime,
        now: datetime,
        result: str = "",
        error: str = "",
    ) -> Applied | Refused:
        row = self.rows.get(job.key)
        is_mine = row is not None and row.fence == fence and row.owner == owner
        is_withdrawn = event is Event.RETRY and row is not None and row.cancel_requested
        is_done = row is not None and row.state is target(event)
        if row is None or not is_mine or not (is_done or (row.state is State.RUNNING and not is_withdrawn)):
            return Refused(row)
        row = replace(row, state=target(event), due_at=_kept(due_at), result=_cut(result), error=_cut(error))
        return self._write(job.key, row, now=now)

    def cancel(self, job_id: JobId, *, owner: str, now: datetime) -> Applied | Refused:
        row = self.rows.get(job_id.key)
        if _state(row) not in sources(Event.CANCEL) | {target(Event.CANCEL)}:
            return Refused(row)
        row = row or LedgerRow(state=State.ABSENT, due_at=job_id.due_at, job_id=str(job_id))
        return self._write(job_id.key, replace(row, state=target(Event.CANCEL), owner=owner), now=now)

    def request_cancel(self, job_id: JobId, *, row: LedgerRow, now: datetime) -> Applied | Refused:
        met = self.rows.get(job_id.key)
        if met is None or not _is_unchanged(met, row):
            return Refused(met)
        self.rows[job_id.key] = replace(met, cancel_requested=True, updated_at=_kept(now))
        return Applied()

    def fail(self, letter: DeadLetter, job: Job, *, fence: int, owner: str, now: datetime) -> Applied | Refused:
        met = self.rows.get(job.key)
        is_running = met is not None and met.fence == fence and met.state is State.RUNNING
        return self._end_with_letter(letter, job, Event.FAIL, met, may_end=is_running, owner=owner, now=now)

    def bury(
        self, letter: DeadLetter, job: Job, *, row: LedgerRow | None, owner: str, now: datetime
    ) -> Applied | Refused:
        met = self.rows.get(job.key)
        if row is not None and row.state not in sources(Event.BURY):
            return Refused(row)
        return self._end_with_letter(
            letter, job, Event.BURY, met, may_end=_is_unchanged(met, row), owner=owner, now=now
        )

    def get(self, key: str) -> LedgerRow | None:
        return self.rows.get(key)

    def get_many(self, keys: Sequence[str]) -> dict[str, LedgerRow]:
        return {key: self.rows[key] for key in keys if key in self.rows}

    def expire(self, now: datetime) -> None:
        """What the table's ttl does, in the end."""
        for key in [key for key, instant in self.expiry.items() if instant <= now]:
            del self.rows[key], self.expiry[key]

    def _end_with_letter(
        self,
        letter: DeadLetter,
        job: Job,
        event: Event,
        met: LedgerRow | None,
        *,
        may_end: bool,
        owner: str,
        now: datetime,
    ) -> Applied | Refused:
        is_mine = met is not None and met.state is target(event) and met.owner == owner
        if not may_end and not is_mine:
            return Refused(met)
        due_at = letter.timer.due_at if letter.timer else job.scheduled_at
        met = met or LedgerRow(state=State.ABSENT, due_at=_kept(due_at), job_id=str(job_id_of(job)))
        self._dead_letters.put(letter)
        row = replace(met, state=target(event), owner=owner, error=_cut(letter.error))
        self._write(job.key, row, now=now)
        self.expiry[job.key] = expires_at(now=now, due_at=due_at, lease_until=None)
        return Applied()

    def _take(
        self,
        timer: Timer,
        row: LedgerRow | None,
        *,
        owner: str,
        lease_until: datetime,
        now: datetime,
        rescue_count: int,
        met: LedgerRow | None = None,
    ) -> Claimed:
        taken = replace(
            met or row or LedgerRow(state=State.ABSENT),
            state=target(Event.CLAIM),
            attempt=timer.attempt,
            fence=(row.fence if row else 0) + 1,
            owner=owner,
            due_at=_kept(timer.due_at),
            lease_until=_kept(lease_until),
            rescue_count=rescue_count,
            job_id=str(job_id_of(timer.job)),
        )
        self._write(timer.job.key, taken, now=now)
        return Claimed(taken.fence, taken.rescue_count, taken.cancel_requested)

    def _write(self, key: str, row: LedgerRow, *, now: datetime) -> Applied:
        self.rows[key] = replace(row, updated_at=_kept(now))
        lease_until = row.lease_until if row.state is State.RUNNING else None
        self.expiry[key] = expires_at(now=now, due_at=row.due_at, lease_until=lease_until)
        return Applied()


def _is_unchanged(met: LedgerRow | None, seen: LedgerRow | None) -> bool:
    if met is None or seen is None:
        return met is seen
    return met.state is seen.state and met.fence == seen.fence


def _state(row: LedgerRow | None) -> State:
    return row.state if row else State.ABSENT


def _kept(instant: datetime) -> datetime:
    """As a store keeps it: whole milliseconds."""
    return from_ms(to_ms(instant))


def _cut(text: str) -> str:
    """As a row keeps it: within one write unit."""
    return text[:400]


class InMemoryShardStore:
    def __init__(self) -> None:
        self.rows: dict[int, dict[str, Any]] = {}
        self.audit: AuditPosition | None = None
        self.wheel: tuple[timedelta, int] | None = None

    def acquire(
        self, shard: int, *, owner: str, now: datetime, lease_until: datetime, skew: timedelta
    ) -> ShardLease | None:
        row = self.rows.setdefault(shard, {"epoch": 0, "lease_until": None, "owner": "", "cursors": None})
        is_taken = row["lease_until"] is not None and row["lease_until"] >= now - skew and row["owner"] != owner
        if is_taken:
            return None
        row |= {"epoch": row["epoch"] + 1, "lease_until": lease_until, "owner": owner}
        cursors = decode_cursors(row["cursors"]) if row["cursors"] else None
        return ShardLease(shard=shard, owner=owner, epoch=row["epoch"], cursors=cursors)

    def checkpoint(self, lease: ShardLease, cursors: Cursors, *, lease_until: datetime | None) -> bool:
        row = self.rows[lease.shard]
        if row["epoch"] != lease.epoch:
            return False
        row |= {"cursors": encode_cursors(cursors), "lease_until": lease_until}
        return True

    def cursors(self, shards: Sequence[int]) -> dict[int, Cursors]:
        rows = {shard: self.rows[shard]["cursors"] for shard in shards if shard in self.rows}
        return {shard: decode_cursors(cursors) for shard, cursors in rows.items() if cursors}

    def audited(self) -> AuditPosition | None:
        return self.audit

    def advance_audit(self, *, before: AuditPosition | None, to: AuditPosition) -> bool:
        if self.audit not in (before, to):
            return False
        self.audit = to
        return True

    def confirm(self, wheel: Wheel) -> None:
        bucket, most_written = self.wheel or (wheel.bucket, 0)
        if bucket != wheel.bucket:
            raise WheelChanged(f"BUCKET was {bucket}")
        if wheel.scan_shards < most_written:
            raise WheelChanged(f"{most_written} shards have been written")
        self.wheel = (bucket, max(most_written, wheel.write_shards))


class InMemoryDeadLetters:
    def __init__(self) -> None:
        self.letters: dict[tuple[str, datetime, str], DeadLetter] = {}

    def put(self, letter: DeadLetter) -> None:
        self.letters[letter.tenant, letter.dead_at, letter.identity] = letter


class InMemoryPayloadStore:
    def __init__(self) -> None:
        self.objects: dict[str, str] = {}

    def put(self, job: Job, text: str) -> str:
        pointer = f"{job.tenant}/{job.identity}"
        self.objects[pointer] = text
        return pointer

    def get(self, pointer: str) -> str | None:
        return self.objects.get(pointer)

    def delete(self, pointer: str) -> None:
        self.objects.pop(pointer, None)


@dataclass
class RecordingTargets:
    """Remembers each effect, and answers what the test says."""

    clock: FakeClock
    answer: Callable[[str, Invocation], Succeeded | Failed] = lambda _, __: Succeeded()
    effects: list[tuple[datetime, str, str | None, Invocation]] = field(default_factory=list)

    def call(
        self, target: str, payload: str | None, invocation: Invocation, *, timeout: timedelta
    ) -> Succeeded | Failed:
        self.effects.append((self.clock.now(), target, payload, invocation))
        return self.answer(target, invocation)


@dataclass
class RecordingJournal:
    events: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    values: dict[str, list[float]] = field(default_factory=dict)

    def event(self, name: str, /, **keys: object) -> None:
        self.events.append((name, keys))

    def count(self, metric: str, amount: int = 1) -> None:
        self.counts[metric] = self.counts.get(metric, 0) + amount

    def observe(self, metric: str, value: float) -> None:
        self.values.setdefault(metric, []).append(value)
