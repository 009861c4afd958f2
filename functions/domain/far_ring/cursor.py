"""How far a shard has been scanned: one position per class, never one across classes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from functions.domain.errors import Undecodable
from functions.domain.far_ring.timer_key import owned_prefix, owner_of
from functions.domain.jobs.job import Priority

MOST_PLAIN = 380_000
"""Bytes of cursors that are written as the release before reads them: about what it could record itself.

An item of DynamoDB holds 409,600 (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html).
"""


class Position(NamedTuple):
    """Every row of earlier buckets, and every row of this bucket up to this sort key, has been passed."""

    bucket: int
    key: str = ""


class BucketAuditPosition(NamedTuple):
    """Earlier buckets, earlier shards of this bucket, and its rows up to this sort key have been audited."""

    bucket: int
    shard: int = 0
    key: str = ""


class SweepPosition(NamedTuple):
    """The pass over the schedules that began then (s) has seen the rows up to this key; None: all of them.

    reviving: the one behind it that is carried on right now, since then (s); none where it is empty.
    """

    began_at: int
    after: str | None
    reviving: str = ""
    since: int = 0


class OwnCursor(NamedTuple):
    """How far a tenant has come that has a turn of its own.

    deficit: jobs that it may still send in a turn that a budget cut off. is_held_back: it is paused, or over its cap, so it
    stays behind for as long as that lasts.
    """

    at: Position
    deficit: int = 0
    is_held_back: bool = False


@dataclass(frozen=True, slots=True)
class ClassCursor:
    """at: the position for everybody. own: of tenants that are behind, which `at` passes over. turn: whose is next.

    unhandled: alarms behind this position that have been passed may not have been handled yet; None: all of them have.
    """

    at: Position
    own: Mapping[str, OwnCursor] = field(default_factory=dict)
    turn: str = ""
    unhandled: Position | None = None

    @property
    def oldest_bucket(self) -> int:
        """The oldest bucket that may hold a row that is late: a job of a tenant that is not held back, or an alarm."""
        behind = [own.at.bucket for own in self.own.values() if not own.is_held_back]
        return min((self.at.bucket, *behind, *self._unhandled_buckets))

    @property
    def _unhandled_buckets(self) -> tuple[int, ...]:
        return () if self.unhandled is None else (self.unhandled.bucket,)

    def handled_for(self, tenant: str) -> int:
        """The first bucket of which alarms of a tenant may be to come."""
        return min((self.position_of(tenant).bucket, *self._unhandled_buckets))

    @property
    def earliest_bucket(self) -> int:
        """The oldest bucket that may hold a row that has not been passed, also of tenants that are held back."""
        return min((self.at.bucket, *(own.at.bucket for own in self.own.values())))

    def position_of(self, tenant: str) -> Position:
        """How far the rows of a tenant have been passed."""
        own = self.own.get(tenant)
        return self.at if own is None else own.at


Cursors = dict[Priority, ClassCursor]


@dataclass(frozen=True, slots=True)
class ShardProgress:
    """How a shard stands. cursors: as recorded last; scanned_at: when the tick began that did, None where it is not known."""

    cursors: Cursors
    scanned_at: datetime | None


def first_cursors(bucket: int) -> Cursors:
    """The cursors of a shard that has never been scanned."""
    return {priority: ClassCursor(Position(bucket)) for priority in Priority}


def set_back(cursors: Cursors, bucket: int) -> Cursors:
    """The cursors as they were before any of them passed a row of this bucket; those that have not stay where they are."""
    to = Position(bucket)
    return {
        priority: ClassCursor(
            min(cursor.at, to),
            {tenant: own._replace(at=min(own.at, to)) for tenant, own in cursor.own.items()},
            cursor.turn,
            cursor.unhandled and min(cursor.unhandled, to),
        )
        for priority, cursor in cursors.items()
    }


def furthest(cursor: ClassCursor) -> Position:
    """Behind this position no row of the class has been passed."""
    return max((cursor.at, *(own.at for own in cursor.own.values())))


def oldest_bucket(cursors: Cursors) -> int:
    """The oldest bucket that any class has yet to finish."""
    return min(cursor.oldest_bucket for cursor in cursors.values())


def has_passed(cursors: Cursors, bucket: int, key: str) -> bool:
    """Whether a row has been passed. One that Tickwheel did not write belongs to the stream of its class, or to none."""
    priority = next((priority for priority in Priority if key.startswith(f"{priority.value}#")), Priority.LOW)
    return Position(bucket, key) <= cursors[priority].position_of(owner_of(key)[0])


def handled_for(cursors: Cursors, tenant: str) -> int:
    """The first bucket of which alarms of a tenant may be to come in any class: held back or not."""
    return min(cursor.handled_for(tenant) for cursor in cursors.values())


def encode_cursors(cursors: Cursors) -> str:
    """The cursors as the shard's row holds them: as the release before reads them, where a row has room for that.

    With at most MAX_OWN tenants a class either fits into a row, whatever the tenants and their jobs are called.
    """
    written = {str(priority.value): _write(cursor) for priority, cursor in cursors.items()}
    text = json.dumps(written, separators=(",", ":"))
    if len(text) <= MOST_PLAIN:
        return text
    closely = {str(priority.value): _write_closely(cursor, priority) for priority, cursor in cursors.items()}
    return json.dumps(closely, separators=(",", ":"))


def decode_cursors(text: str) -> Cursors:
    """The cursors that `encode_cursors` wrote. Raises Undecodable: guessing a position could lose jobs."""
    try:
        written = json.loads(text)
        return {priority: _read(written[str(priority.value)], priority) for priority in Priority}
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise Undecodable(f"not the cursors of a shard: {error!r}") from error


def _write(cursor: ClassCursor) -> dict[str, Any]:
    own = {tenant: [*own.at, own.deficit, int(own.is_held_back)] for tenant, own in cursor.own.items()}
    return {"at": cursor.at, "own": own, **_write_rest(cursor)}


def _write_closely(cursor: ClassCursor, priority: Priority) -> dict[str, Any]:
    """Without what the keys of a class and tenant begin with. Not as `own`: it must not be read as what it is not."""
    near = {
        tenant: [at.bucket - cursor.at.bucket, _cut(at.key, priority, tenant), deficit, int(is_held_back)]
        for tenant, (at, deficit, is_held_back) in cursor.own.items()
    }
    return {"at": cursor.at, "near": near, **_write_rest(cursor)}


def _write_rest(cursor: ClassCursor) -> dict[str, Any]:
    unhandled = {} if cursor.unhandled is None else {"unrung": cursor.unhandled}
    return {**({"turn": cursor.turn} if cursor.turn else {}), **unhandled}


def _read(written: dict[str, Any], priority: Priority) -> ClassCursor:
    at = Position(*written["at"])
    if "near" in written:
        own = {
            tenant: OwnCursor(Position(at.bucket + bucket, _whole(key, priority, tenant)), deficit, bool(is_held_back))
            for tenant, (bucket, key, deficit, is_held_back) in written["near"].items()
        }
    else:
        own = {
            tenant: OwnCursor(Position(bucket, key), deficit, bool(is_held_back))
            for tenant, (bucket, key, deficit, is_held_back) in written["own"].items()
        }
    unhandled = Position(*written["unrung"]) if "unrung" in written else None
    return ClassCursor(at, own, written.get("turn", ""), unhandled)


def _cut(key: str, priority: Priority, tenant: str) -> str:
    start = owned_prefix(priority, tenant)
    return f"#{key[len(start) :]}" if key.startswith(start) else f"={key}"


def _whole(key: str, priority: Priority, tenant: str) -> str:
    return f"{owned_prefix(priority, tenant)}{key[1:]}" if key.startswith("#") else key.removeprefix("=")
