"""How far a shard has been scanned: one position per class, never one across classes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from functions.domain.errors import Undecodable
from functions.domain.job import Priority
from functions.domain.timer_key import owner_of


class Position(NamedTuple):
    """Every row of earlier buckets, and every row of this bucket up to this sort key, has been passed."""

    bucket: int
    key: str = ""


class AuditPosition(NamedTuple):
    """Earlier buckets, earlier shards of this bucket, and its rows up to this sort key have been audited."""

    bucket: int
    shard: int = 0
    key: str = ""


class SweepPosition(NamedTuple):
    """The pass over the schedules that began then (s) has seen the rows up to this key; None: all of them."""

    began_at: int
    after: str | None


class OwnCursor(NamedTuple):
    """How far a tenant has come that has a turn of its own.

    deficit: jobs that it may still send in a turn that a budget cut off. is_held: it is paused, so it stays behind
    for as long as that lasts.
    """

    at: Position
    deficit: int = 0
    is_held: bool = False


@dataclass(frozen=True, slots=True)
class ClassCursor:
    """at: the position for everybody. own: of tenants that are behind, which `at` passes over. turn: whose is next."""

    at: Position
    own: Mapping[str, OwnCursor] = field(default_factory=dict)
    turn: str = ""

    @property
    def oldest_bucket(self) -> int:
        """The oldest bucket that may hold a row that should have been passed: of tenants that are not held."""
        return min((self.at.bucket, *(own.at.bucket for own in self.own.values() if not own.is_held)))

    def position_of(self, tenant: str) -> Position:
        """How far the rows of a tenant have been passed."""
        own = self.own.get(tenant)
        return self.at if own is None else own.at


Cursors = dict[Priority, ClassCursor]


@dataclass(frozen=True, slots=True)
class ShardStanding:
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
        )
        for priority, cursor in cursors.items()
    }


def oldest_bucket(cursors: Cursors) -> int:
    """The oldest bucket that any class has yet to finish."""
    return min(cursor.oldest_bucket for cursor in cursors.values())


def has_passed(cursors: Cursors, bucket: int, key: str) -> bool:
    """Whether a row has been passed. One that Tickwheel did not write belongs to the stream of its class, or to none."""
    priority = next((priority for priority in Priority if key.startswith(f"{priority.value}#")), Priority.LOW)
    return Position(bucket, key) <= cursors[priority].position_of(owner_of(key)[0])


def passed_for(cursors: Cursors, tenant: str) -> int:
    """The oldest bucket that any class has yet to finish for a tenant: held or not."""
    return min(cursor.position_of(tenant).bucket for cursor in cursors.values())


def encode_cursors(cursors: Cursors) -> str:
    """The cursors as the shard's row holds them."""
    written = {str(priority.value): _write(cursor) for priority, cursor in cursors.items()}
    return json.dumps(written, separators=(",", ":"))


def decode_cursors(text: str) -> Cursors:
    """The cursors that `encode_cursors` wrote. Raises Undecodable: guessing a position could lose jobs."""
    try:
        written = json.loads(text)
        return {priority: _read(written[str(priority.value)]) for priority in Priority}
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise Undecodable(f"not the cursors of a shard: {error!r}") from error


def _write(cursor: ClassCursor) -> dict[str, Any]:
    own = {tenant: [*own.at, own.deficit, int(own.is_held)] for tenant, own in cursor.own.items()}
    return {"at": cursor.at, "own": own, **({"turn": cursor.turn} if cursor.turn else {})}


def _read(written: dict[str, Any]) -> ClassCursor:
    own = {
        tenant: OwnCursor(Position(bucket, key), deficit, bool(is_held))
        for tenant, (bucket, key, deficit, is_held) in written["own"].items()
    }
    return ClassCursor(Position(*written["at"]), own, written.get("turn", ""))
