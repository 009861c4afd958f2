"""The audit: buckets that have ended are read once more, to prove that the scanner lost nothing.

A ledgered row whose attempt could still be claimed was not promoted, or its message was lost: it is sent again and
counted as a straggler. There should never be one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import xxhash

from functions.domain.claims import LEDGER_LIFE, may_claim
from functions.domain.cursor import oldest_bucket
from functions.domain.errors import NotPlaced
from functions.domain.job import Timer
from functions.domain.job_id import job_id_of
from functions.domain.wheel import Wheel
from functions.placing import Placer
from functions.ports import Clock, Journal, Ledger, ShardStore, TimerStore

SETTLING = timedelta(minutes=5)
"""How long after its end a bucket is audited: its messages have been claimed by then."""

PAGE = 500
_BUCKETS_A_SWEEP = 60
_OLDEST = LEDGER_LIFE - timedelta(days=1)
_CERTAIN = 2**32


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What one sweep did. waits_for: the shards whose scanner is still behind the next bucket to audit."""

    audited: int
    stragglers: int
    waits_for: Sequence[int] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweeper:
    """Audits. sample: the share of a bucket's shards that is read, from 0 to 1; the choice is stable."""

    wheel: Wheel
    clock: Clock
    shards: ShardStore
    timers: TimerStore
    ledger: Ledger
    placer: Placer
    journal: Journal
    sample: float

    def sweep(self, *, time_limit: timedelta) -> SweepReport:
        """Audit the buckets that are ripe, oldest first, for at most 80 % of the time limit."""
        ends_at = self.clock.monotonic() + 0.8 * time_limit.total_seconds()
        now = self.clock.now()
        ripe_until = self.wheel.bucket_of(now - SETTLING)
        recorded = self.shards.audited()
        # Rows older than the ledger's memory cannot be told from settled ones.
        bucket = max(recorded if recorded is not None else ripe_until, self.wheel.bucket_of(now - _OLDEST))
        cursors = self.shards.cursors(range(self.wheel.scan_shards))
        audited = stragglers = 0
        waits_for: list[int] = []
        for _ in range(_BUCKETS_A_SWEEP):
            if bucket >= ripe_until or self.clock.monotonic() >= ends_at:
                break
            sampled = [shard for shard in range(self.wheel.scan_shards) if self._is_sampled(bucket, shard)]
            # What a scanner has not passed is late, not lost.
            waits_for = [shard for shard in sampled if shard not in cursors or oldest_bucket(cursors[shard]) <= bucket]
            if waits_for:
                break
            for shard in sampled:
                read, lost = self._audit(bucket, shard)
                audited += read
                stragglers += lost
            following = self.wheel.next_bucket(bucket)
            if not self.shards.advance_audit(before=recorded, to=following):
                break  # another sweep is at it
            recorded = bucket = following
        if recorded is None:
            self.shards.advance_audit(before=None, to=bucket)
        self.journal.count("audited", audited)
        self.journal.count("stragglers", stragglers)
        self.journal.event("swept", audited=audited, stragglers=stragglers, bucket=bucket, waits_for=waits_for)
        return SweepReport(audited, stragglers, waits_for)

    def _audit(self, bucket: int, shard: int) -> tuple[int, int]:
        read = lost = 0
        after = ""
        while True:
            page = self.timers.read(bucket, shard, after=after, limit=PAGE)
            ledgered = [row.timer for row in page.rows if row.timer is not None and row.timer.job.is_ledgered]
            rows = self.ledger.get_many([timer.job.key for timer in ledgered])
            stragglers = [
                timer for timer in ledgered if may_claim(rows.get(timer.job.key), attempt=timer.attempt, owner="")
            ]
            read += len(ledgered)
            lost += len(stragglers)
            self._send_again(stragglers)
            if page.is_last:
                return read, lost
            after = page.rows[-1].key

    def _send_again(self, stragglers: Sequence[Timer]) -> None:
        for timer, placement in zip(stragglers, self.placer.place(stragglers), strict=True):
            self.journal.event("straggler", job_id=str(job_id_of(timer.job)), attempt=timer.attempt)
            if placement.ring is None:
                raise NotPlaced([placement.fault])

    def _is_sampled(self, bucket: int, shard: int) -> bool:
        return xxhash.xxh3_64_intdigest(f"{bucket}#{shard}".encode()) % _CERTAIN < self.sample * _CERTAIN
