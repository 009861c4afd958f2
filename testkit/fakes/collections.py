"""Collections in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from functions.domain.far_ring.timer_record import decode_timer, encode_timer
from functions.domain.jobs.collection import (
    CollectedRow,
    CollectionId,
    CollectionState,
    OpenRelease,
    in_rows,
    place_of,
    waiting,
)
from functions.domain.jobs.job import Timer
from testkit.fakes.kept import kept

ROW_BYTES = 65_536


class InMemoryCollectionStore:
    """reads, writes: calls. rows_read: by releases that choose."""

    def __init__(self) -> None:
        self.states: dict[CollectionId, CollectionState] = {}
        self.kept: defaultdict[CollectionId, dict[str, list[str]]] = defaultdict(dict)
        self.releases: dict[CollectionId, OpenRelease] = {}
        self.reads = 0
        self.writes = 0
        self.rows_read = 0

    def put(self, collection: CollectionId, timers: Sequence[Timer]) -> list[Timer]:
        timers = [waiting(timer) for timer in timers]
        sizes = [len(encode_timer(timer).encode()) for timer in timers]
        for row in in_rows(timers, sizes=sizes, most_bytes=ROW_BYTES):
            self.writes += 1
            self.kept[collection][place_of(row)] = [encode_timer(timer) for timer in row]
        return []

    def state(self, collection: CollectionId) -> CollectionState:
        self.reads += 1
        return self._state(collection)

    def note_opening(self, collection: CollectionId, opens_at: datetime, *, number: int) -> None:
        self.writes += 1
        state = self._state(collection)
        if state.number == number:
            self.states[collection] = replace(state, opens_at=kept(opens_at))

    def note_full(self, collection: CollectionId, number: int) -> bool:
        self.writes += 1
        state = self._state(collection)
        if state.number != number or state.full >= number:
            return False
        self.states[collection] = replace(state, full=number)
        return True

    def places(self, collection: CollectionId, *, after: str = "", limit: int) -> list[str]:
        self.reads += 1
        return sorted(place for place in self.kept[collection] if place > after)[:limit]

    def waiting(self, collection: CollectionId, *, after: str = "", upto: str, limit: int) -> list[CollectedRow]:
        self.reads += 1
        between = [place for place in sorted(self.kept[collection]) if after < place <= upto]
        self.rows_read += len(between[:limit])
        return self._rows(collection, between[:limit])

    def open(self, collection: CollectionId, release: OpenRelease, *, now: datetime) -> OpenRelease:
        self.writes += 1
        stands = self.releases.get(collection)
        if stands is None or stands.number < release.number:
            self.releases[collection] = release
        return self.releases[collection]

    def opened(self, collection: CollectionId) -> OpenRelease | None:
        self.reads += 1
        return self.releases.get(collection)

    def rows(self, collection: CollectionId, places: Sequence[str]) -> list[CollectedRow]:
        self.reads += 1
        return self._rows(collection, sorted(place for place in places if place in self.kept[collection]))

    def remove(self, collection: CollectionId, places: Sequence[str]) -> None:
        self.writes += len(places)
        for place in places:
            self.kept[collection].pop(place, None)

    def advance(self, collection: CollectionId, *, number: int) -> bool:
        self.writes += 1
        state = self._state(collection)
        if state.number > number:
            return False
        self.states[collection] = replace(state, number=number + 1, opens_at=None)
        return True

    def waited_for(self, *, after: str, limit: int) -> tuple[set[CollectionId], str]:
        self.reads += 1
        rows = sorted((f"{each} {place}", each) for each, places in self.kept.items() for place in places)
        page = [row for row in rows if row[0] > after][:limit]
        return {each for _, each in page}, page[-1][0] if len(page) == limit else ""

    def forget(self, collection: CollectionId) -> bool:
        self.writes += 1
        for rows in (self.kept, self.states, self.releases):
            rows.pop(collection, None)
        return False

    def _state(self, collection: CollectionId) -> CollectionState:
        return self.states.get(collection, CollectionState())

    def _rows(self, collection: CollectionId, places: Sequence[str]) -> list[CollectedRow]:
        return [
            CollectedRow(
                place=place,
                timers=tuple(decode_timer(each, tenant=collection.tenant) for each in self.kept[collection][place]),
            )
            for place in places
        ]
