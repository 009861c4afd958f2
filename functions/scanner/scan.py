"""One tick of one shard: promote what comes due from the far ring to the ready queues.

Every bucket was closed before it opens, so it is read once, in order, behind a cursor, and nothing is written to a row
that is promoted. A crash repeats what was sent since the last checkpoint, and the ledger absorbs that. The alarms of
schedules ring last, when all timers have been sent and that is recorded: whatever they come to, it keeps no job waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from functions.domain.far_ring.cursor import ClassCursor, Cursors, Position, first_cursors, oldest_bucket
from functions.domain.far_ring.fairness import budgets_of
from functions.domain.far_ring.timer_key import class_bounds, owner_of
from functions.domain.instants import from_seconds
from functions.domain.jobs.claims import may_claim
from functions.domain.jobs.job import Priority, Timer
from functions.domain.jobs.job_id import first_identity, job_id_of
from functions.domain.jobs.reviving import lost_attempt
from functions.domain.key_lengths import LETTER_IDENTITY, cut
from functions.domain.stage.pulse import Figure
from functions.domain.targets.error_classes import NOT_PROMOTED
from functions.domain.tenants.plan import TenantPlan
from functions.domain.wheel import FAR_MARGIN, MAX_DELAY, Wheel
from functions.ports.clock import Clock
from functions.ports.dead_letters import DeadLetter, DeadLetters
from functions.ports.ledger import Ledger, Refused
from functions.ports.ready_queue import ReadyQueue
from functions.ports.recorder import Audit, Journal, PulseCounter
from functions.ports.shards import ShardLease, ShardStore
from functions.ports.targets import Failed
from functions.ports.tenants import TenantPlans
from functions.ports.timers import Page, StoredTimer, TimerStore
from functions.scanner.fair_scan import EVERYBODY_PAUSED, PAGE, ClassScan
from functions.scanner.peal import OUT_OF_TIME, Alarms, Peal
from functions.services.far_ring.pacer import Pacer
from functions.services.far_ring.placer import Placer
from functions.services.jobs.ends import Ends
from functions.services.telemetry.audit_trail import UNAUDITED
from functions.services.telemetry.usage import UNCOUNTED

CHECKPOINT_SENDS = 2_000
CHECKPOINT_SECONDS = 5.0
LEASE = timedelta(seconds=30)
"""Prolonged by every checkpoint: a tick that dies holds its shard no longer than this and SKEW."""

RENEWING = 0.5
"""Of the time of a class: what putting rows anew may take, so that they keep nobody's jobs from going out."""

FLOOR = 0.1
"""Of a tick: what is kept for each lower class, however much a higher one has. Low is delayed, and never starved."""

ALARMS_FLOOR = 0.2
"""Of a tick: what is kept for alarms, where there are any."""

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
    ends: Ends
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
        if report.cursors:
            waits_since = from_seconds(min(cursor.earliest_bucket for cursor in report.cursors.values()))
            waits = self.clock.now() + self.wheel.lookahead - waits_since
            # A metric that most stages have no value of costs them nothing.
            if waits > timedelta(0):
                self.journal.observe("held_age_s", waits.total_seconds())
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
        self._renews_until: dict[Priority, float] = {}
        self._ringing: Position | None = None
        self._report = ScanReport(lease.shard, cursors=cursors)
        self._peal = Peal(
            self,
            scanner.alarms,
            dict(cursors),
            wheel=scanner.wheel,
            clock=scanner.clock,
            journal=scanner.journal,
            ends_at=ends_at,
            is_careful=lease.has_died,
            died_at=lease.died_at,
        )

    def run(self, *, horizon: int) -> ScanReport:
        """Classes outermost, and within a class its tenants in turns."""
        try:
            for priority in Priority:
                reason = self._scan_class(priority, horizon=horizon)
                self._report.stopped_by = self._report.stopped_by or reason
            reason = self._ring()
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

    def _ring(self) -> str:
        if not self._peal.is_due:
            return ""
        if self._unrecorded:
            # Whatever comes of the alarms, what has been sent is not sent again.
            self._record()
        return self._peal.ring()

    def cursor_of(self, priority: Priority) -> ClassCursor:
        """As `Tick` of the peal promises."""
        return self._report.cursors[priority]

    def will_ring(self, at: Position) -> None:
        """As `Tick` of the peal promises."""
        self._ringing = at
        self._record()

    def has_rung(self, count: int) -> None:
        """As `Tick` of the peal promises."""
        self._ringing = None
        self._report.rung += count
        self._unrecorded += count
        self._checkpoint_when_due()

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
        # And no further than a queue delays: what comes early is placed again, and would be held back without its booking.
        until = self._scanner.clock.now() + min(wheel.guard + wheel.bucket, MAX_DELAY)
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
        for row in rows:
            if row.timer is None and row.alarm is None:
                self._bury(row, row.fault)
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
            if first_identity(timer.job.identity) != timer.job.identity:
                # Whoever asks by its first id, or by its key, is told for as long as it waits.
                self._scanner.ledger.renew_first(timer, now=now)
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
            raise _Stopped(OUT_OF_TIME)
        return now < self._ends_of(priority)

    def may_renew(self, priority: Priority) -> bool:
        """As `Tick` promises."""
        now = self._scanner.clock.monotonic()
        until = self._renews_until.setdefault(priority, now + RENEWING * (self._ends_of(priority) - now))
        return self.has_time(priority) and now < until

    def _ends_of(self, priority: Priority) -> float:
        kept = FLOOR * (Priority.LOW - priority) + (ALARMS_FLOOR if self._peal.is_due else 0)
        return self._ends_at - (self._ends_at - self._began_at) * kept

    def promote(self, rows: Sequence[StoredTimer]) -> set[str]:
        """As `Tick` promises."""
        unsent: set[str] = set()
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
        self._remember_alarms(rows, before=min(unsent, default=None))
        return unsent

    def _remember_alarms(self, rows: Sequence[StoredTimer], *, before: str | None) -> None:
        """Those that are passed with these rows: up to the first of them that is read again."""
        for row in rows:
            if row.alarm is not None and (before is None or row.key < before):
                at = Position(self._scanner.wheel.bucket_of(row.alarm.wakes_at), row.key)
                self._peal.owe(row.alarm, priority=row.alarm.priority, at=at)

    def _bury(self, row: StoredTimer, fault: str) -> None:
        """A row that cannot be sent at all is kept as a dead letter and passed: it must not stop its shard."""
        error = f"could not be promoted: {fault}"
        if row.timer is None:
            self._keep_undecodable(row, error)
        elif not self._bury_timer(row.timer, row, Failed(error, NOT_PROMOTED)):
            return
        self._report.buried += 1

    def _bury_timer(self, timer: Timer, row: StoredTimer, failure: Failed) -> bool:
        """False where nothing has ended: its job had before, or a worker has had this attempt by another message."""
        scanner, job, seen = self._scanner, timer.job, None
        owner = scanner.token()
        if job.is_ledgered:
            seen = scanner.ledger.get(job.key)
            if not may_claim(seen, attempt=timer.attempt, due_at=timer.due_at, owner=owner):
                # Perhaps by a tick that died before it was told.
                scanner.ends.told_again(job_id_of(job), seen, attempt=timer.attempt, target=job.target)
                return False
        return scanner.ends.bury(timer, failure, row=seen, owner=owner, raw=row.raw)

    def _keep_undecodable(self, row: StoredTimer, error: str) -> None:
        """Whose job it was cannot be told, nor that one has ended."""
        scanner = self._scanner
        tenant, identity = owner_of(row.key)
        letter = DeadLetter(
            tenant=tenant,
            # Of what Tickwheel did not write it is the whole key, and that of the letter needs room for more.
            identity=cut(identity, LETTER_IDENTITY),
            dead_at=scanner.clock.now(),
            error=error,
            error_class=NOT_PROMOTED,
            raw=row.raw,
        )
        scanner.dead_letters.put(letter)
        scanner.journal.count("dead_lettered")
        scanner.journal.event("dead_lettered", job_id="", tenant=tenant, error=letter.error_class)

    def _checkpoint(self, *, lease_until: datetime | None) -> bool:
        # What is passed is not met again: should this tick die, nobody else tells how it ended.
        self._scanner.audit.flush()
        self._lease = replace(self._lease, sequence=self._lease.sequence + 1)
        cursors = {
            priority: replace(cursor, unrung=self._peal.unrung(priority))
            for priority, cursor in self._report.cursors.items()
        }
        self._report.cursors.update(cursors)
        ringing = self._ringing or self._peal.died_at
        return self._scanner.shards.checkpoint(self._lease, cursors, lease_until=lease_until, ringing=ringing)

    def _checkpoint_when_due(self) -> None:
        is_late = self._scanner.clock.monotonic() - self._checkpointed_at >= CHECKPOINT_SECONDS
        if is_late or self._unrecorded >= CHECKPOINT_SENDS:
            self._record()

    def _record(self) -> None:
        if not self._checkpoint(lease_until=self._scanner.clock.now() + LEASE):
            raise _Stopped(_STALE)
        self._unrecorded = 0
        self._checkpointed_at = self._scanner.clock.monotonic()


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
