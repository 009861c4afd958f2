"""Collections behind the network: what each call of their store costs by the bytes of its rows, and how hot a collection becomes."""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil

from functions.domain.instants import parse_instant
from functions.domain.jobs.collection import CollectedRow, CollectionId, CollectionState, OpenRelease, members_of
from functions.domain.jobs.job import Timer
from functions.ports.targets import Invocation
from simulation.network import Line
from simulation.partitions import SpreadTable
from simulation.virtual_time import seconds_of
from testkit.fakes import InMemoryCollectionStore

WRITE_BYTES = 1_024
READ_BYTES = 4_096
"""Of a unit: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html"""

_KEY_BYTES = 64
"""Of a row, beside its place and its records: the partition key, and the names of its attributes."""

_ROWS_OF_A_WRITE = 25
_RELEASE = "#b-"


class CollectionRows(InMemoryCollectionStore):
    """What waits, whoever reads it. write_peak: write units of the hottest collection in one second."""

    def __init__(self) -> None:
        super().__init__()
        self.write_peak = 0.0
        self._sizes: dict[str, int] = {}
        self._heat: defaultdict[tuple[CollectionId, int], float] = defaultdict(float)

    def size_of(self, collection: CollectionId, place: str) -> int:
        """Bytes of a row, as the adapter packs it."""
        records = self.kept[collection][place]
        size = self._sizes.get(place)
        if size is None:
            packed = zlib.compress(f"[{','.join(records)}]".encode())
            size = self._sizes[place] = len(packed) + len(place) + _KEY_BYTES
        return size

    def warm(self, collection: CollectionId, second: int, units: float, *, most: float) -> bool:
        """Whether the partition of a collection takes so many units in that second."""
        if self._heat[collection, second] + units > most:
            return False
        self._heat[collection, second] += units
        self.write_peak = max(self.write_peak, self._heat[collection, second])
        return True


@dataclass(slots=True)
class SimulatedCollections:
    """Over the network of one environment. table: in which they stand."""

    rows_of_all: CollectionRows
    line: Line
    table: SpreadTable

    def put(self, collection: CollectionId, timers: Sequence[Timer]) -> list[Timer]:
        """A write unit for each KB of a row."""
        left = self.rows_of_all.put(collection, timers)
        keys = {timer.job.identity for timer in timers}
        places = [place for place in self.rows_of_all.kept[collection] if keys.intersection(members_of(place))]
        self._write_rows(collection, places)
        return left

    def state(self, collection: CollectionId) -> CollectionState:
        """One read unit."""
        self._read([0])
        return self.rows_of_all.state(collection)

    def note_opening(self, collection: CollectionId, opens_at: datetime, *, number: int) -> None:
        """Two write units, one of them in the partition of the tenant."""
        self._write(collection, 1)
        self._write(None, 1)
        self.rows_of_all.note_opening(collection, opens_at, number=number)

    def note_full(self, collection: CollectionId, number: int) -> bool:
        """One write unit."""
        self._write(collection, 1)
        return self.rows_of_all.note_full(collection, number)

    def places(self, collection: CollectionId, *, after: str = "", limit: int) -> list[str]:
        """Half a read unit for each 4 KB of all the rows."""
        found = self.rows_of_all.places(collection, after=after, limit=limit)
        size = sum(self.rows_of_all.size_of(collection, place) for place in found)
        self._read([size], share=0.5)
        return found

    def waiting(self, collection: CollectionId, *, after: str = "", upto: str, limit: int) -> list[CollectedRow]:
        """A read unit for each 4 KB of all the rows."""
        found = self.rows_of_all.waiting(collection, after=after, upto=upto, limit=limit)
        self._read([sum(self.rows_of_all.size_of(collection, row.place) for row in found)], rows=len(found))
        return found

    def open(self, collection: CollectionId, release: OpenRelease, *, now: datetime) -> OpenRelease:
        """A write unit for each KB of its places."""
        self._write(collection, ceil(len(json.dumps(release.places)) / WRITE_BYTES))
        return self.rows_of_all.open(collection, release, now=now)

    def opened(self, collection: CollectionId) -> OpenRelease | None:
        """A read unit for each 4 KB of its places."""
        found = self.rows_of_all.opened(collection)
        self._read([len(json.dumps(found.places)) if found is not None else 0])
        return found

    def rows(self, collection: CollectionId, places: Sequence[str]) -> list[CollectedRow]:
        """A read unit for each 4 KB of a row."""
        found = self.rows_of_all.rows(collection, places)
        self._read([self.rows_of_all.size_of(collection, row.place) for row in found], rows=len(found))
        return found

    def remove(self, collection: CollectionId, places: Sequence[str]) -> None:
        """A write unit for each KB of a row."""
        self._write_rows(collection, [place for place in places if place in self.rows_of_all.kept[collection]])
        self.rows_of_all.remove(collection, places)

    def advance(self, collection: CollectionId, *, number: int) -> bool:
        """One write unit."""
        self._write(collection, 1)
        return self.rows_of_all.advance(collection, number=number)

    def _write_rows(self, collection: CollectionId, places: Sequence[str]) -> None:
        for start in range(0, len(places), _ROWS_OF_A_WRITE):
            batch = places[start : start + _ROWS_OF_A_WRITE]
            sizes = [self.rows_of_all.size_of(collection, place) for place in batch]
            self._write(collection, sum(ceil(size / WRITE_BYTES) for size in sizes))

    def _write(self, collection: CollectionId | None, units: float) -> None:
        most, line = self.line.limits.partition_write_units, self.line

        def take() -> bool:
            second = int(line.clock.at)
            is_cool = collection is None or self.rows_of_all.warm(collection, second, units, most=most)
            return is_cool and self.table.take(at=line.clock.at, units=units, is_read=False)

        line.insist(take)

    def _read(self, sizes: Iterable[int], *, share: float = 1.0, rows: int = 0) -> None:
        units = share * sum(max(1, ceil(size / READ_BYTES)) for size in sizes)
        self.line.insist(lambda: self.table.take(at=self.line.clock.at, units=units, is_read=True), rows=rows)


@dataclass(frozen=True, slots=True)
class Given:
    """A call that gave jobs together. due: when each of them was, in seconds."""

    host: str
    at: float
    due: Sequence[float]


def given_by(
    invocation: Invocation, payload: str | None, *, host: str, at: float
) -> tuple[Given, Sequence[str]] | None:
    """What a call gives, and the keys of its jobs; None of a single job."""
    if _RELEASE not in invocation.idempotency_key:
        return None
    entries = json.loads(payload or "[]")
    due = [seconds_of(parse_instant(entry["scheduled_at"])) for entry in entries]
    return Given(host, at, due), [entry["key"] for entry in entries]
