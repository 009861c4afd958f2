"""Who scans a shard, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from functions.domain.errors import WheelChanged
from functions.domain.far_ring import cursor
from functions.domain.far_ring.written_shards import WrittenShards
from functions.domain.stage.conditions import Conditions, decode_conditions, encode_conditions
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.shards import ShardLease
from testkit.fakes.kept import kept


class InMemoryShardStore:
    def __init__(self) -> None:
        self.rows: dict[int, dict[str, Any]] = {}
        self.audit: cursor.BucketAuditPosition | None = None
        self.sweep: cursor.SweepPosition | None = None
        self.wheel: tuple[timedelta, WrittenShards] | None = None
        self.published = ""

    def acquire(
        self, shard: int, *, owner: str, now: datetime, lease_until: datetime, skew: timedelta
    ) -> ShardLease | None:
        row = self.rows.setdefault(shard, {"epoch": 0, "lease_until": None, "owner": "", "cursors": None})
        is_taken = row["lease_until"] is not None and row["lease_until"] >= now - skew and row["owner"] != owner
        if is_taken:
            return None
        has_died = row["lease_until"] is not None and row["owner"] != owner
        row |= {"epoch": row["epoch"] + 1, "lease_until": lease_until, "owner": owner, "sequence": 0}
        cursors = cursor.decode_cursors(row["cursors"]) if row["cursors"] else None
        return ShardLease(
            shard=shard,
            owner=owner,
            epoch=row["epoch"],
            cursors=cursors,
            taken_at=now,
            has_died=has_died,
            died_at=row.get("ringing") if has_died else None,
        )

    def checkpoint(
        self,
        lease: ShardLease,
        cursors: cursor.Cursors,
        *,
        lease_until: datetime | None,
        next_alarm: cursor.Position | None = None,
    ) -> bool:
        row = self.rows[lease.shard]
        if row["epoch"] != lease.epoch or row.get("sequence", 0) > lease.sequence:
            return False
        row |= {"cursors": cursor.encode_cursors(cursors), "lease_until": lease_until, "sequence": lease.sequence}
        row |= {"scanned_at": kept(lease.taken_at), "ringing": next_alarm}
        return True

    def cursors(self, shards: Sequence[int]) -> dict[int, cursor.Cursors]:
        return {shard: standing.cursors for shard, standing in self.progress(shards).items()}

    def progress(self, shards: Sequence[int]) -> dict[int, cursor.ShardProgress]:
        rows = {shard: self.rows[shard] for shard in shards if shard in self.rows and self.rows[shard]["cursors"]}
        return {
            shard: cursor.ShardProgress(cursor.decode_cursors(row["cursors"]), row.get("scanned_at"))
            for shard, row in rows.items()
        }

    def conditions(self) -> Conditions | None:
        return decode_conditions(self.published) if self.published else None

    def publish(self, conditions: Conditions) -> None:
        self.published = encode_conditions(conditions)

    def unpublish(self) -> None:
        self.published = ""

    def audited(self) -> cursor.BucketAuditPosition | None:
        return self.audit

    def advance_audit(self, *, before: cursor.BucketAuditPosition | None, to: cursor.BucketAuditPosition) -> bool:
        if self.audit not in (before, to):
            return False
        self.audit = to
        return True

    def swept(self) -> cursor.SweepPosition | None:
        return self.sweep

    def advance_sweep(self, *, before: cursor.SweepPosition | None, to: cursor.SweepPosition) -> bool:
        if _place_of(self.sweep) not in (_place_of(before), _place_of(to)):
            return False
        self.sweep = to
        return True

    def confirm(self, wheel: Wheel, *, clock: Clock) -> None:
        now = kept(clock.now() - clock.offset())
        bucket, written = self.wheel or (wheel.bucket, WrittenShards(0))
        if bucket != wheel.bucket:
            raise WheelChanged(f"BUCKET was {bucket}")
        if wheel.scan_shards < written.count:
            raise WheelChanged(f"{written.count} shards have been written")
        if wheel.write_shards > written.count:
            written = WrittenShards(wheel.write_shards, before=written.count, grown_at=now)
        self.wheel = (bucket, written)

    def written(self) -> WrittenShards | None:
        return self.wheel and self.wheel[1]


def _place_of(sweep: cursor.SweepPosition | None) -> object:
    """Whatever is being revived there."""
    return sweep and (sweep.began_at, sweep.after)
