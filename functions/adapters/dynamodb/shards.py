"""Leases, cursors and recorded constants on DynamoDB: one small row a shard."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from functions.adapters.clients import is_refused
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
from functions.domain.instants import SECOND, from_ms, to_ms
from functions.domain.stage.conditions import Conditions, decode_conditions, encode_conditions
from functions.domain.wheel import Wheel
from functions.ports.shards import ShardLease

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_AUDIT = "audit"
_SWEEP = "schedules"
_WHEEL = "wheel"
_CONDITIONS = "conditions"
_BATCH = 100


_IS_NEWEST = "e = :epoch AND (attribute_not_exists(n) OR n <= :sequence)"


class DynamoDBShardStore:
    """A row a shard, and four of their own.

    {k: shard, o: owner, e: epoch, n: sequence of its checkpoint, l: lease until (ms), c: cursors, t: when the tick began that
    recorded them (ms), r: position of the alarm that rings next, after a tick that died}, {k: audit | schedules, b: position,
    r, rs: the schedule that is being carried on, since (s)}, {k: wheel, b, w},
    {k: conditions, b: record}.
    """

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def acquire(
        self, shard: int, *, owner: str, now: datetime, lease_until: datetime, skew: timedelta
    ) -> ShardLease | None:
        """One write unit. A lease that was not given back is broken only when it is over by more than SKEW."""
        try:
            answer = self._client.update_item(
                TableName=self._table,
                Key={"k": {"S": f"{shard:04d}"}},
                UpdateExpression="SET o = :owner, l = :lease REMOVE n ADD e :one",
                ConditionExpression="attribute_not_exists(l) OR l < :over OR o = :owner",
                ExpressionAttributeValues={
                    ":owner": {"S": owner},
                    ":lease": {"N": str(to_ms(lease_until))},
                    ":over": {"N": str(to_ms(now - skew))},
                    ":one": {"N": "1"},
                },
                # How it was left: a lease in it was not given back. What it is now follows from that.
                ReturnValues="ALL_OLD",
            )
        except ClientError as error:
            if is_refused(error):
                return None
            raise
        row: Mapping[str, Any] = answer.get("Attributes", {})
        # A lease of one's own is that of an earlier try of this very call.
        has_died = "l" in row and row["o"]["S"] != owner
        return ShardLease(
            shard=shard,
            owner=owner,
            epoch=int(row["e"]["N"]) + 1 if "e" in row else 1,
            cursors=decode_cursors(row["c"]["S"]) if "c" in row else None,
            taken_at=now,
            has_died=has_died,
            died_at=Position(*json.loads(row["r"]["S"])) if has_died and "r" in row else None,
        )

    def checkpoint(
        self, lease: ShardLease, cursors: Cursors, *, lease_until: datetime | None, next_alarm: Position | None = None
    ) -> bool:
        """One write unit. Repeating it changes nothing."""
        values: dict[str, Any] = {
            ":cursors": {"S": encode_cursors(cursors)},
            ":epoch": {"N": str(lease.epoch)},
            ":sequence": {"N": str(lease.sequence)},
            ":taken": {"N": str(to_ms(lease.taken_at))},
        }
        kept = {"l": ("lease", lease_until and {"N": str(to_ms(lease_until))})}
        kept["r"] = ("ringing", next_alarm and {"S": json.dumps(next_alarm, separators=(",", ":"))})
        written = {name: f"{name} = :{value}" for name, (value, given) in kept.items() if given}
        values |= {f":{kept[name][0]}": kept[name][1] for name in written}
        gone = [name for name in kept if name not in written]
        update = f"SET {', '.join(['c = :cursors', 'n = :sequence', 't = :taken', *written.values()])}"
        if gone:
            update += f" REMOVE {', '.join(gone)}"
        return self._write(f"{lease.shard:04d}", update, condition=_IS_NEWEST, values=values)

    def cursors(self, shards: Sequence[int]) -> dict[int, Cursors]:
        """Half a read unit a shard."""
        return {shard: standing.cursors for shard, standing in self.standings(shards).items()}

    def standings(self, shards: Sequence[int]) -> dict[int, ShardProgress]:
        """Half a read unit a shard."""
        found: dict[int, ShardProgress] = {}
        wanted: list[Any] = [{"k": {"S": f"{shard:04d}"}} for shard in shards]
        while wanted:
            answer = self._client.batch_get_item(RequestItems={self._table: {"Keys": wanted[:_BATCH]}})
            rows: Sequence[Mapping[str, Any]] = answer["Responses"].get(self._table, [])
            found |= {int(row["k"]["S"]): _standing_of(row) for row in rows if "c" in row}
            tables: Mapping[str, Any] = answer.get("UnprocessedKeys", {})
            wanted = [*tables.get(self._table, {}).get("Keys", []), *wanted[_BATCH:]]
        return found

    def conditions(self) -> Conditions | None:
        """Half a read unit. Raises Undecodable."""
        row = self._client.get_item(TableName=self._table, Key={"k": {"S": _CONDITIONS}}).get("Item")
        return decode_conditions(row["b"]["S"]) if row else None

    def publish(self, conditions: Conditions) -> None:
        """One write unit."""
        item = {"k": {"S": _CONDITIONS}, "b": {"S": encode_conditions(conditions)}}
        self._client.put_item(TableName=self._table, Item=item)

    def audited(self) -> BucketAuditPosition | None:
        """One read unit."""
        row = self._get(_AUDIT)
        return BucketAuditPosition(*json.loads(row["b"]["S"])) if row else None

    def swept(self) -> SweepPosition | None:
        """One read unit."""
        row = self._get(_SWEEP)
        if row is None:
            return None
        position = SweepPosition(*json.loads(row["b"]["S"]))
        return position._replace(reviving=row["r"]["S"], since=int(row["rs"]["N"])) if "r" in row else position

    def advance_sweep(self, *, before: SweepPosition | None, to: SweepPosition) -> bool:
        """One write unit. Repeating it changes nothing."""
        # Apart from the position, which a release before this one reads, too.
        reviving = {":reviving": {"S": to.reviving}, ":since": {"N": str(to.since)}} if to.reviving else {}
        return self._advance(
            _SWEEP,
            before=before and (before.began_at, before.after),
            to=(to.began_at, to.after),
            update=", r = :reviving, rs = :since" if reviving else " REMOVE r, rs",
            further=reviving,
        )

    def advance_audit(self, *, before: BucketAuditPosition | None, to: BucketAuditPosition) -> bool:
        """One write unit. Repeating it changes nothing."""
        return self._advance(_AUDIT, before=before, to=to)

    def confirm(self, wheel: Wheel) -> None:
        """One read unit, and a write only when the stage is new or has grown."""
        row = self._get(_WHEEL)
        while not self._is_confirmed(row, wheel):
            values = {":bucket": {"N": str(wheel.bucket // SECOND)}, ":shards": {"N": str(wheel.write_shards)}}
            self._write(
                _WHEEL,
                "SET b = :bucket, w = :shards",
                condition="attribute_not_exists(k) OR (b = :bucket AND w < :shards)",
                values=values,
            )
            row = self._get(_WHEEL)

    def _is_confirmed(self, row: Mapping[str, Any] | None, wheel: Wheel) -> bool:
        if row is None:
            return False
        bucket, most_written = int(row["b"]["N"]), int(row["w"]["N"])
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
        self,
        key: str,
        *,
        before: tuple[Any, ...] | None,
        to: tuple[Any, ...],
        update: str = "",
        further: Mapping[str, Any] | None = None,
    ) -> bool:
        values = {":to": {"S": json.dumps(to)}, **(further or {})}
        condition = "attribute_not_exists(k) OR b = :to"
        if before is not None:
            condition = "b IN (:before, :to)"
            values[":before"] = {"S": json.dumps(before)}
        return self._write(key, f"SET b = :to{update}", condition=condition, values=values)

    def _get(self, key: str) -> Mapping[str, Any] | None:
        return self._client.get_item(TableName=self._table, Key={"k": {"S": key}}, ConsistentRead=True).get("Item")

    def _write(self, key: str, update: str, *, condition: str, values: Mapping[str, Any]) -> bool:
        try:
            self._client.update_item(
                TableName=self._table,
                Key={"k": {"S": key}},
                UpdateExpression=update,
                ConditionExpression=condition,
                ExpressionAttributeValues=values,
            )
        except ClientError as error:
            if is_refused(error):
                return False
            raise
        return True


def _standing_of(row: Mapping[str, Any]) -> ShardProgress:
    return ShardProgress(decode_cursors(row["c"]["S"]), from_ms(int(row["t"]["N"])) if "t" in row else None)
