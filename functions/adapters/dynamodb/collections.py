"""Collections on DynamoDB: in the tenants table, a partition for each that is in use."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from functions.adapters.dynamodb.table import Item, Table, instant_of
from functions.domain.errors import Undecodable
from functions.domain.far_ring.timer_record import decode_timer, encode_timer
from functions.domain.instants import to_seconds
from functions.domain.jobs.collection import (
    CollectedRow,
    CollectionId,
    CollectionState,
    OpenRelease,
    in_rows,
    parse_collection,
    place_of,
    waiting,
)
from functions.domain.jobs.job import Timer

_STATE = "collect"
_OPEN = "opened"
_ROW = "row#"
OF_TENANT = "collect#"
"""In the partition of a tenant, before the digest of a collection that it has."""
_LIFE = timedelta(days=60)
"""A state says nothing any more long before: it is written anew whenever something waits and its release is due."""

_ROW_BYTES = 65_536
"""Of the records in a row, unless one alone has more: a row may have 400 KB
(https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html)."""

_BATCH = 25
"""Rows of one request that writes, by the same page."""

_READ = 100
_TRIES = 3


@dataclass
class DynamoDBCollectionStore:
    """A partition {t: `{tenant}#+{digest}`} for each collection that is in use.

    {i: `collect`, n: number of the next release, q: when it is due (ms), c: the last that was sent ahead, x: ttl (s)};
    {i: `opened`, n: number of the last release that has begun, p: the places of its rows, as JSON, x: ttl (s)};
    {i: `row#{due}#{identity,…}`, j: timer records, a JSON list as zlib packs it}: these never expire, each is all that is left of its jobs.
    And in its tenant's partition {t: tenant, i: `collect#{digest}`, x: ttl (s)}, by which a deletion finds it.
    """

    table: Table

    def put(self, collection: CollectionId, timers: Sequence[Timer]) -> list[Timer]:
        """A write unit for each KB of a row, in which jobs that are due in the same moment stand together."""
        timers = [waiting(timer) for timer in timers]
        records = {id(timer): encode_timer(timer) for timer in timers}
        sizes = [len(records[id(timer)].encode()) for timer in timers]
        rows = {place_of(row): row for row in in_rows(timers, sizes=sizes, most_bytes=_ROW_BYTES)}
        left: list[Item] = [
            # What jobs of a collection have in common, and payloads that are alike, take little room beside each other.
            {
                **_row_key(collection, place),
                "j": zlib.compress(f"[{','.join(records[id(timer)] for timer in row)}]".encode()),
            }
            for place, row in rows.items()
        ]
        for _ in range(_TRIES * len(left)):
            if not left:
                break
            left = [*self.table.put_many(left[:_BATCH]), *left[_BATCH:]]
        return [timer for item in left for timer in rows[_place(item)]]

    def state(self, collection: CollectionId) -> CollectionState:
        """One read unit."""
        item = self.table.get(_key(collection))
        return CollectionState(number=item.get("n", 1), opens_at=instant_of(item, "q"), full=item.get("c", 0))

    def note_opening(self, collection: CollectionId, opens_at: datetime, *, number: int) -> None:
        """Two write units."""
        ttl = _ttl(opens_at)
        self.table.update({"t": collection.tenant, "i": OF_TENANT + collection.digest}, update="SET x = :ttl", ttl=ttl)
        self.table.update(
            _key(collection),
            update="SET q = :at, x = :ttl",
            condition="attribute_not_exists(n) OR n = :number",
            at=opens_at,
            ttl=ttl,
            number=number,
        )

    def note_full(self, collection: CollectionId, number: int) -> bool:
        """One write unit."""
        is_next = "n = :number" if number > 1 else "(attribute_not_exists(n) OR n = :number)"
        return self.table.update(
            _key(collection),
            update="SET c = :number",
            condition=f"{is_next} AND (attribute_not_exists(c) OR c < :number)",
            number=number,
        ).is_done

    def places(self, collection: CollectionId, *, after: str = "", limit: int) -> list[str]:
        """One Query: half a read unit for each 4 KB of the rows, and at most a megabyte of them."""
        found = self.table.query(_WAITING, limit=limit, only="i", **_between(collection, "~", after=after))
        return [_place(item) for item in found.items]

    def waiting(self, collection: CollectionId, *, after: str = "", upto: str, limit: int) -> list[CollectedRow]:
        """One Query: a read unit for each 4 KB, and at most a megabyte."""
        asked = _between(collection, upto, after=after)
        found = self.table.query(_WAITING, limit=limit, is_consistent=True, **asked)
        return [_read(collection, item) for item in found.items]

    def open(self, collection: CollectionId, release: OpenRelease, *, now: datetime) -> OpenRelease:
        """A write unit for each KB of its places."""
        item = {
            "t": str(collection),
            "i": _OPEN,
            "n": release.number,
            "p": json.dumps(release.places, separators=(",", ":")),
            "x": _ttl(now),
        }
        write = self.table.put(item, condition="attribute_not_exists(t) OR n < :number", number=release.number)
        return release if write.is_done else _release(write.item)

    def opened(self, collection: CollectionId) -> OpenRelease | None:
        """A read unit for each 4 KB of its places."""
        item = self.table.get({"t": str(collection), "i": _OPEN})
        return _release(item) if item else None

    def rows(self, collection: CollectionId, places: Sequence[str]) -> list[CollectedRow]:
        """A read unit for each 4 KB of a row."""
        keys = [_row_key(collection, place) for place in places]
        found = self.table.get_many(keys, is_consistent=True)
        return sorted((_read(collection, item) for item in found), key=lambda row: row.place)

    def remove(self, collection: CollectionId, places: Sequence[str]) -> None:
        """A write unit for each KB of a row."""
        self._delete([_row_key(collection, place) for place in places])

    def advance(self, collection: CollectionId, *, number: int) -> bool:
        """One write unit."""
        return self.table.update(
            _key(collection),
            update="SET n = :next REMOVE q",
            condition="attribute_not_exists(n) OR n <= :number",
            number=number,
            next=number + 1,
        ).is_done

    def waited_for(self, *, after: str, limit: int) -> tuple[set[CollectionId], str]:
        """One Scan: half a read unit for each 4 KB of the rows, and at most a megabyte."""
        partition, _, sort = after.partition(" ")
        found = self.table.scan(
            limit=limit,
            after={"t": partition, "i": sort or _STATE} if after else None,
            only="t, i",
            condition="begins_with(i, :row)",
            row=_ROW,
        )
        collections = {parse_collection(item["t"]) for item in found.items}
        return {each for each in collections if each is not None}, (
            f"{found.last['t']} {found.last['i']}" if found.last else ""
        )

    def forget(self, collection: CollectionId) -> bool:
        """A write unit for each KB of a row."""
        found = self.table.query("t = :t", limit=_READ, only="t, i", is_consistent=True, t=str(collection))
        self._delete([{"t": item["t"], "i": item["i"]} for item in found.items])
        return bool(found.last)

    def _delete(self, keys: Sequence[Item]) -> None:
        left = list(keys)
        for _ in range(_TRIES * len(left)):
            if not left:
                return
            # What is not deleted is found again: its jobs have ended, which the ledger shows to the next release.
            left = [*self.table.delete_many(left[:_BATCH]), *left[_BATCH:]]


_WAITING = "t = :t AND i BETWEEN :first AND :last"


def _between(collection: CollectionId, upto: str, *, after: str = "") -> dict[str, Any]:
    return {"t": str(collection), "first": f"{_ROW}{after}\0" if after else _ROW, "last": _ROW + upto}


def _key(collection: CollectionId) -> Item:
    return {"t": str(collection), "i": _STATE}


def _row_key(collection: CollectionId, place: str) -> Item:
    return {"t": str(collection), "i": _ROW + place}


def _place(item: Item) -> str:
    return item["i"].removeprefix(_ROW)


def _read(collection: CollectionId, item: Item) -> CollectedRow:
    try:
        # Bounded by what this store puts into a row, or by one record.
        records = json.loads(zlib.decompressobj().decompress(item["j"], 8 * _ROW_BYTES))
        timers = tuple(decode_timer(json.dumps(record), tenant=collection.tenant) for record in records)
    except (Undecodable, ValueError, zlib.error, TypeError):
        return CollectedRow(place=_place(item), timers=None)
    return CollectedRow(place=_place(item), timers=timers)


def _release(item: Item) -> OpenRelease:
    return OpenRelease(number=item["n"], places=tuple(json.loads(item["p"])))


def _ttl(instant: datetime) -> int:
    return to_seconds(instant + _LIFE)
