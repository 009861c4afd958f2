"""The bucket audit: buckets that have ended are read once more, to prove that the scanner lost nothing.

A ledgered row whose attempt could still be claimed was not promoted, or its message was lost: it is sent again and
counted as a straggler. There should never be one. While messages wait for workers it is neither: the audit waits too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta

import xxhash

from functions.domain.errors import NotPlaced
from functions.domain.far_ring.cursor import BucketAuditPosition, Cursors, has_passed, oldest_bucket
from functions.domain.jobs.claims import ABSENT_IS_OVER, LedgerRow, may_claim
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.lifecycle import State
from functions.domain.stage.conditions import Conditions
from functions.domain.targets.error_classes import NOT_PROMOTED
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.ledger import Ledger
from functions.ports.recorder import AuditTrail, Journal
from functions.ports.shards import ShardStore
from functions.ports.targets import Failed
from functions.ports.tenants import TenantPlans
from functions.ports.timers import TimerStore
from functions.services.far_ring.placer import Placer
from functions.services.jobs.ends import Ends

SETTLING = timedelta(minutes=5)
"""How long after its end a bucket is audited: its messages have been claimed by then, unless they wait for a worker."""

MIN_BACKLOG = 100
BACKLOG = 0.001
"""The share of a ready queue's capacity, but MIN_BACKLOG at least: with more messages waiting, the audit waits too."""

PAGE = 500
_OLDEST = ABSENT_IS_OVER - timedelta(days=1)
_CERTAIN = 2**32

_UNPLACED = "could not be placed by the audit"
"""How the error of a straggler begins that no queue will ever take."""


@dataclass(slots=True)
class SweepReport:
    """What one sweep did. unplaced: stragglers that no queue will ever take, which are dead letters by then.

    waits_for: the shards whose scanner is still behind the next bucket to audit. waits_for_queues: it is not known that
    the messages of that bucket have been claimed.
    """

    audited: int = 0
    stragglers: int = 0
    unplaced: int = 0
    waits_for: Sequence[int] = ()
    waits_for_queues: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweeper:
    """Audits. sample: the share of a bucket's shards that is read, from 0 to 1; the choice is stable.

    capacity: jobs that a ready queue may hold. token: a fresh owner token.
    """

    wheel: Wheel
    clock: Clock
    shards: ShardStore
    timers: TimerStore
    ledger: Ledger
    placer: Placer
    ends: Ends
    plans: TenantPlans
    journal: Journal
    token: Callable[[], str]
    sample: float
    capacity: int
    audit: AuditTrail

    def sweep(self, *, time_limit: timedelta) -> SweepReport:
        """Audit the buckets that are ripe, oldest first, for at most 80 % of the time limit."""
        audit = _Audit(self, ends_at=self.clock.monotonic() + 0.8 * time_limit.total_seconds())
        try:
            audit.run(now=self.clock.now())
        finally:
            report = audit.report
            self.journal.count("audited", report.audited)
            self.journal.count("stragglers", report.stragglers)
            self.journal.event("swept", **asdict(report))
        return report

    def has_drained(self, conditions: Conditions | None) -> bool:
        """Whether what has been due for SETTLING had been promoted when these were published, and waits no more."""
        if conditions is None or not conditions.is_fresh(self.clock.now()):
            return False
        # What was promoted after they were published is in no depth of theirs.
        is_promoted = all(lag <= SETTLING.total_seconds() for lag in conditions.lags.values())
        most = max(MIN_BACKLOG, BACKLOG * self.capacity)
        return is_promoted and all(waiting <= most for waiting in conditions.waiting.values())

    def is_sampled(self, bucket: int, shard: int) -> bool:
        """Whether the audit reads this shard of this bucket."""
        return xxhash.xxh3_64_intdigest(f"{bucket}#{shard}".encode()) % _CERTAIN < self.sample * _CERTAIN


class _Stopped(Exception):
    """The sweep ends here; the next one continues from the recorded position."""


@dataclass(slots=True)
class _Audit:
    """One sweep: its position, and what it has found so far."""

    sweeper: Sweeper
    ends_at: float
    report: SweepReport = field(default_factory=SweepReport)
    _recorded: BucketAuditPosition | None = field(init=False)

    def __post_init__(self) -> None:
        self._recorded = self.sweeper.shards.audited()

    def run(self, *, now: datetime) -> None:
        """Audit up to the youngest bucket that is ripe."""
        sweeper, wheel = self.sweeper, self.sweeper.wheel
        ripe_until = wheel.bucket_of(now - SETTLING)
        at = self._recorded or BucketAuditPosition(ripe_until)
        # Rows older than the ledger's memory cannot be distinguished from settled ones.
        at = max(at, BucketAuditPosition(wheel.bucket_of(now - _OLDEST)))
        # Before the cursors: what these have passed since is in no depth.
        has_drained = sweeper.has_drained(sweeper.shards.conditions())
        cursors = sweeper.shards.cursors(range(wheel.scan_shards))
        try:
            self._advance(at)
            while at.bucket < ripe_until:
                shards = [shard for shard in range(at.shard, wheel.scan_shards) if sweeper.is_sampled(at.bucket, shard)]
                # What a scanner has not passed is late, not lost.
                self.report.waits_for = [
                    shard for shard in shards if shard not in cursors or oldest_bucket(cursors[shard]) <= at.bucket
                ]
                self.report.waits_for_queues = not (self.report.waits_for or has_drained)
                if self.report.waits_for or self.report.waits_for_queues:
                    return
                for shard in shards:
                    if shard > at.shard and self._is_over():
                        self._advance(BucketAuditPosition(at.bucket, shard))
                    self._audit_shard(at.bucket, shard, after=at.key if shard == at.shard else "", to=cursors[shard])
                at = BucketAuditPosition(wheel.next_bucket(at.bucket))
                self._advance(at)
        except _Stopped:
            return

    def _audit_shard(self, bucket: int, shard: int, *, after: str, to: Cursors) -> None:
        while True:
            page = self.sweeper.timers.read(bucket, shard, after=after, limit=PAGE)
            # What has not been passed waits for its tenant to be resumed.
            passed = [row for row in page.rows if has_passed(to, bucket, row.key)]
            self._audit_page(
                [row.timer for row in passed if row.timer is not None and self._is_claimed_soon(row.timer)]
            )
            if page.is_last:
                return
            after = page.rows[-1].key
            self._advance(BucketAuditPosition(bucket, shard, after))

    def _is_claimed_soon(self, timer: Timer) -> bool:
        """Whether a timer that has been promoted has a ledger row by now.

        One of a tenant whose rate is capped may still wait for its booking, a buffered fire for its slot, and one that is
        forgotten never has one.
        """
        plan, occurrence = self.sweeper.plans.of(timer.job.tenant), timer.job.occurrence
        may_wait = occurrence is not None and occurrence.overlap.waits and timer.attempt == 1
        return timer.job.is_ledgered and not (may_wait or plan.has_rate or plan.is_deleted)

    def _audit_page(self, timers: Sequence[Timer]) -> None:
        rows = self.sweeper.ledger.get_many([timer.job.key for timer in timers])
        now = self.sweeper.clock.now()
        for timer in timers:
            row = rows.get(timer.job.key)
            if row is not None and row.state is State.FAILED and row.error.startswith(_UNPLACED):
                # By a sweep that died before it had passed it, and perhaps before it had reported it.
                self.sweeper.ends.found(timer, row)
        stragglers = [timer for timer in timers if self._is_straggler(timer, rows.get(timer.job.key), now=now)]
        self.report.audited += len(timers)
        self.report.stragglers += len(stragglers)
        for timer, placement in zip(stragglers, self.sweeper.placer.place(stragglers), strict=True):
            self.sweeper.journal.event(
                "straggler", job_id=str(job_id_of(timer.job)), attempt=timer.attempt, fault=placement.fault
            )
            if placement.ring is None and not placement.is_permanent:
                raise NotPlaced([placement.fault])
            if placement.ring is None:
                # What can never be sent must not hold up the audit of everything else, nor be passed in silence.
                failure = Failed(f"{_UNPLACED}: {placement.fault}", NOT_PROMOTED)
                row, owner = rows.get(timer.job.key), self.sweeper.token()
                self.report.unplaced += self.sweeper.ends.bury(timer, failure, row=row, owner=owner)

    def _is_straggler(self, timer: Timer, row: LedgerRow | None, *, now: datetime) -> bool:
        """Whether nobody has claimed an attempt that should have been, and it has not been parked either."""
        if row is not None and row.parked_until is not None and now < row.parked_until + SETTLING:
            return False
        if row is not None and row.state is State.RUNNING and row.attempt < timer.attempt:
            # A watchdog, which looks again whenever a lease is over.
            settled_by = now - SETTLING - self.sweeper.wheel.skew
            return row.lease_until is not None and row.lease_until < settled_by
        return may_claim(row, attempt=timer.attempt, due_at=timer.due_at, owner="")

    def _advance(self, to: BucketAuditPosition) -> None:
        # A row that is passed is not read again: if this sweep dies, no other reports how it ended.
        self.sweeper.audit.flush()
        if to != self._recorded:
            if not self.sweeper.shards.advance_audit(before=self._recorded, to=to):
                raise _Stopped("another sweep is at it")
            self._recorded = to
        if self._is_over():
            raise _Stopped("80 % of the time limit is used")

    def _is_over(self) -> bool:
        return self.sweeper.clock.monotonic() >= self.ends_at
