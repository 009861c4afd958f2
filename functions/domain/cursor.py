"""How far a shard has been scanned: one position per class, never one across classes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import NamedTuple

from functions.domain.errors import Undecodable
from functions.domain.job import Priority


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


@dataclass(frozen=True, slots=True)
class ClassCursor:
    """at: the position for everybody. own: positions of tenants that are behind, which `at` passes over."""

    at: Position
    own: dict[str, Position] = field(default_factory=dict)

    @property
    def oldest_bucket(self) -> int:
        """The oldest bucket that may hold a row that has not been passed."""
        return min((self.at.bucket, *(position.bucket for position in self.own.values())))


Cursors = dict[Priority, ClassCursor]


def first_cursors(bucket: int) -> Cursors:
    """The cursors of a shard that has never been scanned."""
    return {priority: ClassCursor(Position(bucket)) for priority in Priority}


def oldest_bucket(cursors: Cursors) -> int:
    """The oldest bucket that any class has yet to finish."""
    return min(cursor.oldest_bucket for cursor in cursors.values())


def encode_cursors(cursors: Cursors) -> str:
    """The cursors as the shard's row holds them."""
    written = {str(priority.value): {"at": cursor.at, "own": cursor.own} for priority, cursor in cursors.items()}
    return json.dumps(written, separators=(",", ":"))


def decode_cursors(text: str) -> Cursors:
    """The cursors that `encode_cursors` wrote. Raises Undecodable: guessing a position could lose jobs."""
    try:
        written = json.loads(text)
        return {
            priority: ClassCursor(
                Position(*written[str(priority.value)]["at"]),
                {tenant: Position(*at) for tenant, at in written[str(priority.value)]["own"].items()},
            )
            for priority in Priority
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Undecodable(f"not the cursors of a shard: {error!r}") from error
