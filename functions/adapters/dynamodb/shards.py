"""Leases, cursors and recorded constants on DynamoDB: one small row a shard."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from functions.adapters.dynamodb.table import Item, Table, instant_of
from functions.domain.errors import WheelChanged
from functions.domain.far_ring.cursor import (
    BucketAuditPosition,
    Cursors,
    Position,
    ShardProgress,
    SweepPosition,
    decode_cursors,
    encode_cursors,
)
from functions.domain.far_ring.written_shards import WrittenShards
from functions.domain.instants import SECOND
from functions.domain.stage.conditions import Conditions, decode_conditions, encode_conditions
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.shards import ShardLease

_AUDIT = "audit"
_SWEEP = "schedules"
_WHEEL = "wheel"
_CONDITIONS = "conditions"


@dataclass
class DynamoDBShardStore:
    """A row a shard, and four of their own.

    {k: shard, o: owner, e: epoch, n: sequence of its checkpoint, l: lease until (ms), c: cursors, t: when the tick began that
    recorded them (ms), r: position of the alarm that is handled next, after a tick that died}, {k: audit | schedules, b: position,
    r, rs: the schedule that is being carried on, since (s)},
    {k: wheel, b: BUCKET (s), w: shards ever written, f, g, t: they have grown from f to g then (ms)}, {k: conditions, b: record}.
    """

    table: Table

    def acquire(
        self, shard: int, *, owner: str, now: datetime, lease_until: datetime, skew: timedelta
    ) -> ShardLease | None:
        """One write unit. A lease that was not given back is broken only when it is over by more than SKEW."""
        answer = self.table.update(
            {"k": f"{shard:04d}"},
            update="SET o = :owner, l = :lease REMOVE n ADD e :one",
            condition="attribute_not_exists(l) OR l < :over OR o = :owner",
            # How it was left: a lease in it was not given back. What it is now follows from that.
            returns="ALL_OLD",
            owner=owner,
            lease=lease_until,
            over=now - skew,
            one=1,
        )
        if not answer.is_done:
            return None
        row = answer.item
        # A lease of one's own is that of an earlier try of this very call.
        has_died = "l" in row and row["o"] != owner
        return ShardLease(
            shard=shard,
            owner=owner,
            epoch=row["e"] + 1 if "e" in row else 1,
            cursors=decode_cursors(row["c"]) if "c" in row else None,
            taken_at=now,
            has_died=has_died,
            died_at=Position(*json.loads(row["r"])) if has_died and "r" in row else None,
        )

    def checkpoint(
        self, lease: ShardLease, cursors: Cursors, *, lease_until: datetime | None, next_alarm: Position | None = None
    ) -> bool:
        """One write unit. Repeating it changes nothing."""
        changes = {"l": lease_until, "r": next_alarm and json.dumps(next_alarm, separators=(",", ":"))}
        kept = {name: value for name, value in changes.items() if value}
        gone = ", ".join(name for name in changes if name not in kept)
        assignments = ", ".join(f"{name} = :{name}" for name in ("c", "n", "t", *kept))
        return self._write(
            f"{lease.shard:04d}",
            update=f"SET {assignments}" + (f" REMOVE {gone}" if gone else ""),
            condition="e = :epoch AND (attribute_not_exists(n) OR n <= :n)",
            epoch=lease.epoch,
            c=encode_cursors(cursors),
            n=lease.sequence,
            t=lease.taken_at,
            **kept,
        )

    def cursors(self, shards: Sequence[int]) -> dict[int, Cursors]:
        """Half a read unit a shard."""
        return {shard: progress.cursors for shard, progress in self.progress(shards).items()}

    def progress(self, shards: Sequence[int]) -> dict[int, ShardProgress]:
        """Half a read unit a shard."""
        rows = self.table.get_many({"k": f"{shard:04d}"} for shard in shards)
        return {int(row["k"]): _progress_of(row) for row in rows if "c" in row}

    def conditions(self) -> Conditions | None:
        """Half a read unit. Raises Undecodable."""
        row = self.table.get({"k": _CONDITIONS}, is_consistent=False)
        return decode_conditions(row["b"]) if row else None

    def publish(self, conditions: Conditions) -> None:
        """One write unit."""
        self.table.put({"k": _CONDITIONS, "b": encode_conditions(conditions)})

    def audited(self) -> BucketAuditPosition | None:
        """One read unit."""
        row = self.table.get({"k": _AUDIT})
        return BucketAuditPosition(*json.loads(row["b"])) if row else None

    def swept(self) -> SweepPosition | None:
        """One read unit."""
        row = self.table.get({"k": _SWEEP})
        if not row:
            return None
        position = SweepPosition(*json.loads(row["b"]))
        return position._replace(reviving=row["r"], since=row["rs"]) if "r" in row else position

    def advance_sweep(self, *, before: SweepPosition | None, to: SweepPosition) -> bool:
        """One write unit. Repeating it changes nothing."""
        # Apart from the position, which a release before this one reads, too.
        reviving = {"reviving": to.reviving, "since": to.since} if to.reviving else {}
        return self._advance(
            _SWEEP,
            before=before and (before.began_at, before.after),
            to=(to.began_at, to.after),
            update=", r = :reviving, rs = :since" if reviving else " REMOVE r, rs",
            **reviving,
        )

    def advance_audit(self, *, before: BucketAuditPosition | None, to: BucketAuditPosition) -> bool:
        """One write unit. Repeating it changes nothing."""
        return self._advance(_AUDIT, before=before, to=to)

    def confirm(self, wheel: Wheel, *, clock: Clock) -> None:
        """One read unit, and a write only when the stage is new or has grown."""
        row = self.table.get({"k": _WHEEL})
        while not self._is_confirmed(row, wheel):
            self._write(
                _WHEEL,
                update="SET b = :bucket, w = :shards, f = :before, g = :shards, t = :now",
                condition="attribute_not_exists(k) OR (b = :bucket AND w = :before)",
                bucket=wheel.bucket // SECOND,
                shards=wheel.write_shards,
                before=row["w"] if row else 0,
                # The answer to the read has shown how wrong this clock is.
                now=clock.now() - clock.offset(),
            )
            row = self.table.get({"k": _WHEEL})

    def written(self) -> WrittenShards | None:
        """One read unit."""
        row = self.table.get({"k": _WHEEL})
        if not row:
            return None
        if row.get("g") != row["w"]:
            # A release that does not record when has made the stage, or has let it grow.
            return WrittenShards(row["w"])
        return WrittenShards(row["w"], before=row["f"], grown_at=instant_of(row, "t"))

    def _is_confirmed(self, row: Item, wheel: Wheel) -> bool:
        if not row:
            return False
        bucket, most_written = row["b"], row["w"]
        if bucket != wheel.bucket // SECOND:
            raise WheelChanged(
                f"BUCKET is {wheel.bucket // SECOND} s, but this stage was first deployed with {bucket} s: "
                "every waiting row would be stranded. Set it back, or deploy a new stage."
            )
        if wheel.scan_shards < most_written:
            raise WheelChanged(
                f"scan_shards is {wheel.scan_shards}, but {most_written} shards have been written: "
                f"rows of the others would be lost. Set scan_shards to {most_written} or more."
            )
        return wheel.write_shards <= most_written

    def _advance(
        self, key: str, *, before: tuple[Any, ...] | None, to: tuple[Any, ...], update: str = "", **further: Any
    ) -> bool:
        condition = "attribute_not_exists(k) OR b = :to"
        if before is not None:
            condition = "b IN (:before, :to)"
            further["before"] = json.dumps(before)
        return self._write(key, update=f"SET b = :to{update}", condition=condition, to=json.dumps(to), **further)

    def _write(self, key: str, **asked: Any) -> bool:
        return self.table.update({"k": key}, **asked).is_done


def _progress_of(row: Item) -> ShardProgress:
    return ShardProgress(decode_cursors(row["c"]), instant_of(row, "t"))
