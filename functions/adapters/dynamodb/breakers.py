"""Breakers on DynamoDB: a row of the tenants table for each that is not closed, and an entry in the index of all of them.

The entry is put before the row is opened and deleted after the row has gone, so that whoever dies in between leaves an
entry without a row, never a row without an entry. Readers look at the row, and its ttl takes what was left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from functions.adapters.dynamodb.table import Item, Table, Write
from functions.domain.errors import Undecodable
from functions.domain.instants import MILLISECOND, from_ms, to_seconds
from functions.domain.targets.breaker import Breaker, BreakerState
from functions.ports.ledger import Applied
from functions.ports.targets import Changed

_ITEM = "breaker#"
INDEX = "~breakers"
_MOST_COUNTED = 1_000
_BATCH = 100
_KEY_BYTES = 1_024


@dataclass
class DynamoDBBreakerStore:
    """{t: tenant, i: `breaker#{destination}`, s: state, o: owner, u: until, f: open for, b: opened at, e: error class, x: ttl}.

    Instants and durations in ms, the ttl in s. And {t: `~breakers`, i: `{tenant}#{destination}`, d: destination, b, x} while
    it is not closed: no tenant can be called so.
    """

    table: Table

    def get(self, tenant: str, destination: str) -> Breaker | None:
        """Half a read unit. Raises Undecodable."""
        item = self.table.get(_key(tenant, destination), is_consistent=False)
        return _read(item) if item else None

    def page(self, tenant: str, *, after: str, limit: int) -> tuple[list[Breaker], bool]:
        """One Query. Raises Undecodable."""
        start = _key(tenant, after) if after else None
        items, has_more = self.table.page(
            "t = :t AND begins_with(i, :item)", limit=limit, after=start, t=tenant, item=_ITEM
        )
        return [_read(item) for item in items], has_more

    def everywhere(self, *, limit: int) -> tuple[list[Breaker], int]:
        """One Query of half a read unit for each 4 KB of entries, some 30, and half a read unit for each one returned.

        Raises Undecodable.
        """
        items = self.table.query("t = :t", limit=_MOST_COUNTED, t=INDEX).items
        entries = [(item["i"].partition("#")[0], item["d"]) for item in items]
        found: list[Breaker] = []
        gone, looked_at = 0, 0
        while len(found) < limit and looked_at < len(entries):
            wanted = entries[looked_at : looked_at + min(limit - len(found), _BATCH)]
            rows = self._rows(wanted)
            found += [rows[each] for each in wanted if each in rows]
            gone += len(wanted) - len(rows)
            looked_at += len(wanted)
        return found, len(entries) - gone

    def _rows(self, wanted: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Breaker]:
        breakers = map(_read, self.table.get_many(_key(*each) for each in wanted))
        return {(breaker.tenant, breaker.destination): breaker for breaker in breakers}

    def put(self, breaker: Breaker, *, seen: Breaker | None) -> Applied | Changed:
        """One write unit, refused or not, and one more where it is open afterwards. Repeating it changes nothing."""
        if breaker.state is BreakerState.OPEN:
            # Each time: the entry lives as long as the row.
            self.table.put(_entry(breaker))
        condition = "attribute_not_exists(t) OR o = :mine"
        values: dict[str, Any] = {"mine": breaker.owner}
        if seen is not None:
            condition, values = "o IN (:seen, :mine)", values | {"seen": seen.owner}
        return _answer(self.table.put(_write(breaker), condition=condition, **values))

    def close(self, seen: Breaker) -> Applied | Changed:
        """One write unit where it is refused, otherwise two. Repeating it changes nothing."""
        is_seen = "attribute_not_exists(t) OR o = :seen"
        deleted = self.table.delete(_key(seen.tenant, seen.destination), condition=is_seen, seen=seen.owner)
        if deleted.is_done:
            self._drop_entry(_index_key(seen.tenant, seen.destination), opened_at=seen.opened_at)
        return _answer(deleted)

    def reset(self, tenant: str, destination: str) -> bool:
        """One write unit, and one more where there was something to close. Repeating it changes nothing."""
        row = self.table.delete(_key(tenant, destination), returns="ALL_OLD").item
        if "b" in row:
            self._drop_entry(_index_key(tenant, destination), opened_at=from_ms(row["b"]))
        return bool(row)

    def _drop_entry(self, key: Item, *, opened_at: datetime) -> None:
        # Whoever opens it anew meanwhile puts an entry of his own.
        self.table.delete(key, condition="b = :opened", opened=opened_at)


def _answer(write: Write) -> Applied | Changed:
    if write.is_done:
        return Applied()
    return Changed(_read(write.item) if write.item else None)


def _key(tenant: str, destination: str) -> dict[str, Any]:
    return {"t": tenant, "i": _ITEM + destination}


def _index_key(tenant: str, destination: str) -> dict[str, Any]:
    # A destination that is nearly as long as a key may be shares its entry with others of the same beginning.
    return {"t": INDEX, "i": f"{tenant}#{destination}".encode()[:_KEY_BYTES].decode(errors="ignore")}


def _entry(breaker: Breaker) -> Item:
    return {
        **_index_key(breaker.tenant, breaker.destination),
        "d": breaker.destination,
        "b": breaker.opened_at,
        "x": to_seconds(breaker.expires_at),
    }


def _write(breaker: Breaker) -> Item:
    return {
        **_key(breaker.tenant, breaker.destination),
        "s": breaker.state,
        "o": breaker.owner,
        "u": breaker.until,
        "f": breaker.open_for // MILLISECOND,
        "b": breaker.opened_at,
        "e": breaker.error_class,
        "x": to_seconds(breaker.expires_at),
    }


def _read(item: Item) -> Breaker:
    try:
        return Breaker(
            tenant=item["t"],
            destination=item["i"].removeprefix(_ITEM),
            state=BreakerState(item["s"]),
            owner=item["o"],
            until=from_ms(item["u"]),
            open_for=item["f"] * MILLISECOND,
            opened_at=from_ms(item["b"]),
            error_class=item["e"],
        )
    except (KeyError, ValueError, TypeError) as error:
        raise Undecodable(f"not a breaker: {error!r}") from error
