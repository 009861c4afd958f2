"""The hierarchical timing wheel: its constants, where an instant belongs, and when a bucket is closed.

A hashed hierarchical timing wheel (Varghese and Lauck, 1987) made of managed services: the minute ring is a table of
buckets, the second ring a delay queue, the millisecond ring a worker that holds a message. `Wheel.place` is the only
way into it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

import xxhash

from functions.domain.errors import InvalidWheel
from functions.domain.instants import SECOND, from_seconds, to_seconds

MAX_DELAY = timedelta(seconds=900)
"""The longest DelaySeconds that SQS takes: the reach of the near ring."""

MIN_LOOKAHEAD = timedelta(seconds=90)
"""A tick of one minute and its jitter: with less, a row could come due before its bucket was opened."""

FAR_MARGIN = timedelta(seconds=10)
"""Beyond GUARD, for what is to be put into the far ring although it is due: the write itself takes a moment."""

MAX_WAIT = timedelta(seconds=2)
"""How long a worker waits for the instant of a message that came early."""

FIRST_TICK_REACH = timedelta(hours=24)
"""How far back the first tick of a shard starts at most: rows may have been written before its rule existed."""


class Ring(StrEnum):
    """Where a timer waits."""

    NEAR = "near"
    FAR = "far"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """The constants of a stage, valid from birth.

    bucket: the width of a far bucket, whole seconds. lookahead: how long before its start a bucket is opened.
    skew: how far two clocks may differ. guard: from how far ahead a timer goes to the far ring.
    write_shards: shards that are written; scan_shards: shards that are scanned, at least as many.

    Raises InvalidWheel, which names every rule that is broken.
    """

    bucket: timedelta
    lookahead: timedelta
    skew: timedelta
    guard: timedelta
    write_shards: int
    scan_shards: int

    def __post_init__(self) -> None:
        broken = list(self._broken_rules())
        if broken:
            raise InvalidWheel("; ".join(broken))

    def _broken_rules(self) -> Iterator[str]:
        if self.bucket < SECOND or self.bucket % SECOND:
            yield f"BUCKET is {self.bucket.total_seconds():g} s, but must be a whole number of seconds above 0"
        if self.skew < timedelta(0):
            yield f"SKEW is {self.skew.total_seconds():g} s, but must not be negative"
        if self.lookahead < MIN_LOOKAHEAD:
            yield (
                f"LOOKAHEAD is {self.lookahead.total_seconds():g} s, but must be at least "
                f"{MIN_LOOKAHEAD.total_seconds():g} s: a tick of a minute and its jitter"
            )
        needed = self.lookahead + self.bucket + self.skew
        if self.guard < needed:
            yield (
                f"GUARD is {self.guard.total_seconds():g} s, but must be at least LOOKAHEAD + BUCKET + SKEW = "
                f"{needed.total_seconds():g} s: with less, a job can be written behind the scanner and lost"
            )
        if self.guard > MAX_DELAY:
            yield (
                f"GUARD is {self.guard.total_seconds():g} s, but must be at most {MAX_DELAY.total_seconds():g} s: "
                "SQS delays a message no longer"
            )
        if not 1 <= self.write_shards <= 9_999:  # noqa: PLR2004  four digits in the key
            yield f"write_shards is {self.write_shards}, but must be from 1 to 9999"
        if self.scan_shards < self.write_shards:
            yield (
                f"scan_shards is {self.scan_shards}, but must be at least write_shards ({self.write_shards}): "
                "the rows of a shard that nobody scans are lost"
            )

    def place(self, due_at: datetime, *, now: datetime) -> Ring:
        """The ring that a timer written now belongs to. Every attempt of a write asks again."""
        return Ring.NEAR if due_at - now < self.guard else Ring.FAR

    def bucket_of(self, instant: datetime) -> int:
        """The bucket that an instant lies in, named by its start in seconds since the epoch."""
        width = self.bucket // SECOND
        return to_seconds(instant) // width * width

    def next_bucket(self, bucket: int) -> int:
        """The bucket after this one."""
        return bucket + self.bucket // SECOND

    def ends_at(self, bucket: int) -> datetime:
        """The first instant after a bucket."""
        return from_seconds(self.next_bucket(bucket))

    def horizon(self, *, now: datetime) -> int:
        """The last bucket that is open for scanning: it starts at now + LOOKAHEAD or before."""
        return self.bucket_of(now + self.lookahead)

    def first_bucket(self, *, now: datetime, written_since: datetime | None) -> int:
        """Where the first tick of a shard starts. written_since: no row of it was written earlier; None: not known.

        A row that was written then comes due GUARD later, by its writer's clock: more than two clocks differ.
        """
        earliest = now - FIRST_TICK_REACH
        return self.bucket_of(max(earliest, written_since or earliest))

    def closes_at(self, due_at: datetime) -> datetime:
        """The last instant, by the writer's clock, at which a far write for `due_at` may finish.

        A scanner whose clock is SKEW ahead opens the bucket right then. A write that finished later is followed by a
        near send; the ledger removes the duplicate.
        """
        return due_at - self.lookahead - self.bucket - self.skew

    def is_surely_far(self, due_at: datetime, *, now: datetime) -> bool:
        """Whether no message of a timer that was placed before now can be on its way, whoever's clock counts."""
        return due_at >= self.surely_far_at(now=now)

    def surely_far_at(self, *, now: datetime) -> datetime:
        """The first instant that is surely far."""
        return now + self.guard + self.skew

    def shard_of(self, tenant: str, identity: str, *, subshards: int = 1) -> int:
        """The shard of a job: by tenant, so that fairness is local; only a whale has more than one subshard."""
        spread = xxhash.xxh3_64_intdigest(identity.encode()) % subshards
        return (xxhash.xxh3_64_intdigest(tenant.encode()) + spread) % self.write_shards
