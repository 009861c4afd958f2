"""One tick of one shard: promote what comes due from the far ring to the ready queues.

Every bucket was closed before it opens, so it is read once, in order, behind a cursor, and nothing is written to a row
that is promoted. A crash repeats what was sent since the last checkpoint, and the ledger absorbs that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

from functions.auditing import UNAUDITED
from functions.domain.alarm import Alarm
from functions.domain.audit import Ending
from functions.domain.claims import may_claim
from functions.domain.cursor import ClassCursor, Cursors, Position, first_cursors, oldest_bucket
from functions.domain.fairness import budgets_of
from functions.domain.faults import fault_of
from functions.domain.instants import from_seconds
from functions.domain.job import Priority, Timer
from functions.domain.job_id import job_id_of
from functions.domain.lifecycle import State
from functions.domain.pulse import Figure
from functions.domain.reviving import lost_attempt
from functions.domain.tenant_plan import TenantPlan
from functions.domain.timer_key import class_bounds, owner_of
from functions.domain.wheel import FAR_MARGIN, Wheel
from functions.pacing import Pacer
from functions.placing import Placer
from functions.ports import (
    Audit,
    Clock,
    DeadLetter,
    DeadLetters,
    Journal,
    Ledger,
    Page,
    PulseCounter,
    ReadyQueue,
    Refused,
    ShardLease,
    ShardStore,
    StoredTimer,
    TenantPlans,
    TimerStore,
)
from functions.scanner.rounds import EVERYBODY_PAUSED, PAGE, ClassScan
from functions.tally import UNCOUNTED

CHECKPOINT_SENDS = 2_000
CHECKPOINT_SECONDS = 5.0
LEASE = timedelta(seconds=30)
"""Prolonged by every checkpoint: a tick that dies holds its shard no longer than this and SKEW."""

RUNG_AT_ONCE = 50
"""Alarms whose chains are carried on together: full batches of rows and of messages, and a fraction of a tick."""

FLOOR = 0.1
"""Of a tick: what is kept for each lower class, however much a higher one has. Low is delayed, and never starved."""

_REMEMBERED_ROWS = 20_000


@dataclass(slots=True)
class ScanReport:
    """What one tick of one shard did. stopped_by: why it ended before its horizon, if it did."""

    shard: int
    sent: int = 0
    rung: int = 0
    buried: int = 0
    stopped_by: str = ""
    cursors: Cursors = field(default_factory=dict)


class Alarms(Protocol):
    """What the alarm rows of schedules ring for."""

    def ring(self, alarms: Sequence[Alarm]) -> list[bool]:
        """Carry the chains of these alarms on; whether each is done."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanner:
    """Scans shards. capacity: jobs that a ready queue may hold. token: a fresh owner token."""

    wheel: Wheel
    clock: Clock
    shards: ShardStore
    timers: TimerStore
    ready: ReadyQueue
    ledger: Ledger
    dead_letters: DeadLetters
    alarms: Alarms
    plans: TenantPlans
    pacer: Pacer
    placer: Placer
    journal: Journal
    capacity: int
    token: Callable[[], str]
    pulse: PulseCounter = UNCOUNTED
    audit: Audit = UNAUDITED

    @property
    def empty_budgets(self) -> Mapping[Priority, int]:
        """The budgets of a tick if every ready queue were empty."""
        return budgets_of(dict.fromkeys(Priority, 0), capacity=self.capacity, shards=self.wheel.scan_shards)

    def scan(self, shard: int, *, time_limit: timedelta) -> ScanReport:
        """Promote everything of a shard that has come into reach, for at most 80 % of the time limit."""
        now = self.clock.now()
        lease = self.shards.acquire(shard, owner=self.token(), now=now, lease_until=now + LEASE, skew=self.wheel.skew)
        if lease is None:
            self.journal.event("shard_taken", shard=shard)
            return ScanReport(shard, stopped_by="another scanner has the shard")
        # A shard that nobody has scanned may hold rows that were written before its rule existed.
        cursors = lease.cursors or first_cursors(self.wheel.first_bucket(now=now))
        ends_at = self.clock.monotonic() + 0.8 * time_limit.total_seconds()
        tick = _Tick(self, lease, dict(cursors), ends_at=ends_at)
        # The answer to the first write has told how wrong this clock is: ahead, it would open buckets too early.
        is_skewed = abs(self.clock.offset()) > self.wheel.skew / 2
        self.journal.count("clock_skewed", int(is_skewed))
        report = tick.give_back("its clock is skewed") if is_skewed else tick.run(horizon=self.wheel.horizon(now=now))
        self._note(report)
        return report

    def _note(self, report: ScanReport) -> None:
        self.journal.count("promoted", report.sent)
        self.pulse.count(Figure.PROMOTED, amount=report.sent)
        # While everybody is paused nothing is late.
        if report.cursors and report.stopped_by != EVERYBODY_PAUSED:
            # `low` is meant to wait when there is no room for all.
            prompt = {priority: cursor for priority, cursor in report.cursors.items() if priority is not Priority.LOW}
            age = self.clock.now() + self.wheel.lookahead - from_seconds(oldest_bucket(prompt))
            self.journal.observe("oldest_bucket_age_s", max(0.0, age.total_seconds()))
            self.journal.count("cursors_behind", sum(len(cursor.own) for cursor in report.cursors.values()))
        self.journal.event(
            "shard_scanned",
            shard=report.shard,
            sent=report.sent,
            rung=report.rung,
            buried=report.buried,
            stopped_by=report.stopped_by,
        )


class _Stopped(Exception):
    """The tick ends here; what was passed is recorded, the rest is for the next one."""


class _Tick:
    def __init__(self, scanner: Scanner, lease: ShardLease, cursors: Cursors, *, ends_at: float) -> None:
        self._scanner = scanner
        self._lease = lease
        self._reader = _Reader(scanner.timers, lease.shard)
        self._began_at = scanner.clock.monotonic()
        self._ends_at = ends_at
        self._budgets: Mapping[Priority, int] | None = None
        self._checkpointed_at = scanner.clock.monotonic()
        self._unrecorded = 0
        self._report = ScanReport(lease.shard, cursors=cursors)

    def run(self, *, horizon: int) -> ScanReport:
        """Classes outermost, and within a class its tenants in turns."""
        try:
            for priority in Priority:
                reason = self._scan_class(priority, horizon=horizon)
                self._report.stopped_by = self._report.stopped_by or reason
        except _Stopped as reason:
            if str(reason) == _STALE:
                self._report.stopped_by = _STALE
                return self._report
            return self.give_back(str(reason))
        except Exception:
            # What was passed stays passed, and the next tick need not wait for this lease.
            self.give_back("an error")
            raise
        return self.give_back(self._report.stopped_by)

    def give_back(self, reason: str) -> ScanReport:
        """Record the cursors and give the shard back."""
        self._report.stopped_by = reason
        self._checkpoint(lease_until=None)
        return self._report

    def _scan_class(self, priority: Priority, *, horizon: int) -> str:
        scanner = self._scanner
        scan = ClassScan(
            self,
            priority,
            self._report.cursors[priority],
            wheel=scanner.wheel,
            plans=scanner.plans,
            horizon=horizon,
        )
        return scan.run()

    def read(self, at: Position, priority: Priority) -> Page:
        """As `Tick` promises."""
        return self._reader.read(at, priority)

    def read_between(self, at: Position, start: str, end: str, *, limit: int) -> Page:
        """As `Tick` promises."""
        after = max(at.key, start)
        page = self._scanner.timers.read(at.bucket, self._lease.shard, after=after, limit=limit)
        rows = [row for row in page.rows if row.key < end]
        return Page(rows, is_last=page.is_last or len(rows) < len(page.rows))

    def record(self, priority: Priority, cursor: ClassCursor) -> None:
        """As `Tick` promises."""
        self._report.cursors[priority] = cursor
        self._checkpoint_when_due()

    def with_bookings(self, tenant: str, plan: TenantPlan, rows: Sequence[StoredTimer]) -> Sequence[StoredTimer]:
        """As `Tick` promises. An alarm needs no booking: the fires that it rings for do."""
        wheel = self._scanner.wheel
        # Further than what is near is booked: a tenant that hands in all the time must not keep its own rows waiting.
        until = self._scanner.clock.now() + wheel.guard + wheel.bucket
        due_ats = [row.timer.due_at for row in rows if row.timer is not None]
        bookings = iter(self._scanner.pacer.bookings(tenant, plan, due_ats, until=until))
        paced: list[StoredTimer] = []
        for row in rows:
            if row.timer is None:
                paced.append(row)
            elif (booking := next(bookings, None)) is not None:
                paced.append(replace(row, timer=replace(row.timer, not_before=booking)))
            else:
                break
        return paced

    def renew(self, rows: Sequence[StoredTimer]) -> set[str]:
        """As `Tick` promises. An alarm needs it not: a chain whose alarm is gone is carried on by the sweep."""
        scanner = self._scanner
        now = scanner.clock.now()
        until = now + scanner.wheel.guard + FAR_MARGIN
        waiting: dict[str, Timer] = {}
        for row in rows:
            waits = self._what_waits(row.timer, until=until, now=now) if row.timer is not None else None
            if waits is not None:
                waiting[row.key] = replace(waits, not_before=until)
        placements = scanner.placer.place(list(waiting.values()))
        return {key for key, placement in zip(waiting, placements, strict=True) if placement.ring is None}

    def _what_waits(self, timer: Timer, *, until: datetime, now: datetime) -> Timer | None:
        """Its attempt, whose ledger row lives longer for it; None where its job has ended or gone on.

        A later attempt, where that has lost its message: this row may be all that is left of the job. Its ledger row is
        not told that it waits, for then a tick that dies before it is placed would leave nothing that is overdue.
        """
        if not timer.job.is_ledgered:
            return timer
        answer = self._scanner.ledger.park(timer, until=until, now=now)
        if not isinstance(answer, Refused):
            return timer
        lost = lost_attempt(timer, answer.row, now=now)
        if lost is not None:
            self._scanner.journal.event("revived", job_id=str(job_id_of(timer.job)), attempt=lost.attempt)
        return lost

    def budget(self, priority: Priority) -> int | None:
        """As `Tick` promises: one read a tick."""
        if self._budgets is None:
            conditions = self._scanner.shards.conditions()
            is_fresh = conditions is not None and conditions.is_fresh(self._scanner.clock.now())
            # A publisher that has stopped must not stop promotion for good, nor be taken for leave to flood the queues.
            self._budgets = conditions.budgets if conditions is not None and is_fresh else self._scanner.empty_budgets
        return self._budgets.get(priority)

    def has_time(self, priority: Priority) -> bool:
        """As `Tick` promises: every class keeps a share of the tick for those below it."""
        now = self._scanner.clock.monotonic()
        if now >= self._ends_at:
            raise _Stopped("80 % of the time limit is used")
        return now < self._ends_at - (self._ends_at - self._began_at) * FLOOR * (Priority.LOW - priority)

    def promote(self, rows: Sequence[StoredTimer]) -> set[str]:
        """As `Tick` promises."""
        unrung = self._ring(rows)
        # What comes behind an alarm that has not rung is read again: it is not sent twice.
        rows, left = _parted(rows, at=unrung)
        unsent = {row.key for row in left}
        for row in rows:
            if row.timer is None and row.alarm is None:
                self._bury(row, row.fault)
        sendable = {id(row.timer): row for row in rows if row.timer is not None}
        rejected = self._scanner.ready.send([row.timer for row in sendable.values() if row.timer is not None])
        for rejection in rejected:
            row = sendable[id(rejection.timer)]
            if rejection.is_permanent:
                self._bury(row, rejection.reason)
            else:
                unsent.add(row.key)
        kept = {id(rejection.timer) for rejection in rejected}
        sent_ids = [
            str(job_id_of(row.timer.job))
            for number, row in sendable.items()
            if row.timer is not None and number not in kept
        ]
        if sent_ids:
            self._scanner.journal.event("promoted", shard=self._report.shard, job_ids=sent_ids)
        sent = len(sendable) - len(rejected)
        self._report.sent += sent
        self._unrecorded += sent
        return unsent

    def _ring(self, rows: Sequence[StoredTimer]) -> str | None:
        """Let the alarms among the rows ring, some at a time; the key of the first whose schedule could not go on now."""
        alarms = [(row.key, row.alarm) for row in rows if row.alarm is not None]
        while alarms:
            if self._scanner.clock.monotonic() >= self._ends_at:
                return alarms[0][0]
            some = alarms[:RUNG_AT_ONCE]
            done = self._ring_safely([alarm for _, alarm in some])
            # Of schedules that are far behind only some go on at once.
            passed = done.index(False) if False in done else len(done)
            self._report.rung += passed
            self._unrecorded += passed
            if not passed:
                return alarms[0][0]
            alarms = alarms[passed:]
            # Alarms may take their time, and the lease must not run out meanwhile.
            self._checkpoint_when_due()
        return None

    def _ring_safely(self, alarms: Sequence[Alarm]) -> list[bool]:
        try:
            return self._scanner.alarms.ring(alarms)
        except Exception as error:  # noqa: BLE001  a store failed: the timers before them can still be sent
            self._scanner.journal.event("alarms_failed", error=fault_of(error))
            return [False] * len(alarms)

    def _bury(self, row: StoredTimer, fault: str) -> None:
        """A row that cannot be sent at all is kept as a dead letter and passed: it must not stop its shard."""
        scanner = self._scanner
        tenant, identity = owner_of(row.key)
        letter = DeadLetter(
            tenant=tenant,
            identity=identity,
            dead_at=scanner.clock.now(),
            error=f"could not be promoted: {fault}",
            error_class="not_promoted",
            attempt=row.timer.attempt if row.timer else 0,
            job_id=str(job_id_of(row.timer.job)) if row.timer else "",
            timer=row.timer,
            raw=row.raw,
        )
        if row.timer is None or not row.timer.job.is_ledgered:
            scanner.dead_letters.put(letter)
        else:
            timer, job = row.timer, row.timer.job
            seen, owner = scanner.ledger.get(job.key), scanner.token()
            if not may_claim(seen, attempt=timer.attempt, due_at=timer.due_at, owner=owner):
                if seen is not None and seen.state is State.FAILED:
                    self._note_end(timer, letter, is_repeated=True)  # perhaps by a tick that died before it was told
                return  # settled, or a worker has had this attempt by another message
            letter = replace(letter, fence=seen.fence if seen is not None else 0)
            if isinstance(scanner.ledger.bury(letter, job, row=seen, owner=owner, now=scanner.clock.now()), Refused):
                return
        self._report.buried += 1
        scanner.journal.count("dead_lettered")
        scanner.journal.event("dead_lettered", job_id=letter.job_id, tenant=tenant, error=letter.error_class)
        if row.timer is not None:
            self._note_end(row.timer, letter)

    def _note_end(self, timer: Timer, letter: DeadLetter, *, is_repeated: bool = False) -> None:
        self._scanner.audit.note(
            Ending(
                job_id=job_id_of(timer.job),
                outcome=State.FAILED,
                attempt=timer.attempt,
                ended_at=letter.dead_at,
                due_at=timer.due_at,
                target=timer.job.target,
                error_class=letter.error_class,
                is_repeated=is_repeated,
            )
        )

    def _checkpoint(self, *, lease_until: datetime | None) -> bool:
        # What is passed is not met again: should this tick die, nobody else tells how it ended.
        self._scanner.audit.flush()
        self._lease = replace(self._lease, sequence=self._lease.sequence + 1)
        return self._scanner.shards.checkpoint(self._lease, self._report.cursors, lease_until=lease_until)

    def _checkpoint_when_due(self) -> None:
        clock = self._scanner.clock
        is_due = self._unrecorded >= CHECKPOINT_SENDS or clock.monotonic() - self._checkpointed_at >= CHECKPOINT_SECONDS
        if not is_due:
            return
        if not self._checkpoint(lease_until=clock.now() + LEASE):
            raise _Stopped(_STALE)
        self._unrecorded = 0
        self._checkpointed_at = clock.monotonic()


def _parted(rows: Sequence[StoredTimer], *, at: str | None) -> tuple[Sequence[StoredTimer], Sequence[StoredTimer]]:
    """The rows before a key, and those from it on."""
    number = next((number for number, row in enumerate(rows) if row.key == at), len(rows))
    return rows[:number], rows[number:]


_STALE = "another scanner has taken the shard over"


class _Reader:
    """Reads a bucket class by class, with one Query a bucket as long as the bucket fits into a page.

    Rows are in class order: the first page of a bucket is remembered, and serves the other classes as far as it goes.
    """

    def __init__(self, timers: TimerStore, shard: int) -> None:
        self._timers = timers
        self._shard = shard
        self._first: dict[int, Page] = {}
        self._remembered = 0

    def read(self, at: Position, priority: Priority) -> Page:
        """The rows of one class behind a position; is_last: the class has no more in that bucket."""
        start, end = class_bounds(priority)
        low = max(at.key, start)
        page = self._first.get(at.bucket)
        if page is None or not (page.is_last or low < page.rows[-1].key):
            is_first = not at.key and priority is Priority.CRITICAL
            page = self._timers.read(at.bucket, self._shard, after="" if is_first else low, limit=PAGE)
            if is_first and self._remembered + len(page.rows) <= _REMEMBERED_ROWS:
                self._first[at.bucket] = page
                self._remembered += len(page.rows)
        rows = [row for row in page.rows if low < row.key < end]
        return Page(rows, is_last=page.is_last or page.rows[-1].key >= end)
