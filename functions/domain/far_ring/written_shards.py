"""Which shards were ever written, and since when: before that there is nothing that a first tick could find."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class WrittenShards:
    """count: shards from this number on were never written. before: how many there were until grown_at; None: not known.

    Whoever is about to write more shards than anybody before records that first.
    """

    count: int
    before: int = 0
    grown_at: datetime | None = None

    def written_since(self, shard: int, *, now: datetime) -> datetime | None:
        """No row of a shard was written earlier; None where that is not known. now: by the clock of the stores."""
        if shard >= self.count:
            return now
        return self.grown_at if shard >= self.before else None
