"""Deletions of tenants on DynamoDB: a row each, for as long as they take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from functions.adapters.dynamodb.table import Item, Table, Write, instant_of
from functions.domain.tenants.deletion import Deletion, decode_deletion, encode_deletion

DELETIONS = "~deletions"
"""The partition: no tenant can be called so."""


@dataclass
class DynamoDBDeletionStore:
    """{t: `~deletions`, i: tenant, b: since (ms), g: progress, o: owner, l: lease until (ms)}."""

    table: Table

    def begin(self, deletion: Deletion) -> Deletion:
        """One write unit, and a read unit where there is one. Raises Undecodable."""
        put = self.table.put(
            {**_key(deletion.tenant), "b": deletion.since, "g": encode_deletion(deletion)},
            condition="attribute_not_exists(t) OR b < :since",
            since=deletion.since,
        )
        return deletion if put.is_done else self.get(deletion.tenant) or deletion

    def get(self, tenant: str) -> Deletion | None:
        """One read unit. Raises Undecodable."""
        item = self.table.get(_key(tenant))
        return _read(item) if item else None

    def open(self, *, limit: int) -> list[str]:
        """One Query: half a read unit where there is none."""
        return [item["i"] for item in self.table.query("t = :t", limit=limit, only="i", t=DELETIONS).items]

    def take(
        self, tenant: str, *, owner: str, lease_until: datetime, now: datetime, skew: timedelta
    ) -> Deletion | None:
        """One write unit, refused or not. Raises Undecodable."""
        taken = self.table.update(
            _key(tenant),
            update="SET o = :owner, l = :lease",
            condition="attribute_exists(t) AND (attribute_not_exists(l) OR l < :over)",
            returns="ALL_NEW",
            owner=owner,
            lease=lease_until,
            over=now - skew,
        )
        return _answer(taken)

    def save(self, deletion: Deletion, *, lease_until: datetime | None) -> Deletion | None:
        """One write unit, refused or not. Repeating it changes nothing."""
        values: Item = {}
        update, condition = "SET g = :progress REMOVE l", "o = :owner"
        if lease_until is not None:
            # A lease only grows: an earlier step that lands late is refused.
            update, condition = "SET g = :progress, l = :lease", "o = :owner AND l <= :lease"
            values = {"lease": lease_until}
        saved = self.table.update(
            _key(deletion.tenant),
            update=update,
            condition=condition,
            returns="ALL_NEW",
            owner=deletion.owner,
            progress=encode_deletion(deletion),
            **values,
        )
        return _answer(saved)

    def forget(self, deletion: Deletion) -> None:
        """One write unit. Nothing happens where another has begun."""
        is_the_same = "attribute_not_exists(t) OR b = :since"
        self.table.delete(_key(deletion.tenant), condition=is_the_same, since=deletion.since)


def _key(tenant: str) -> Item:
    return {"t": DELETIONS, "i": tenant}


def _answer(write: Write) -> Deletion | None:
    return _read(write.item) if write.is_done else None


def _read(item: Item) -> Deletion:
    return replace(
        decode_deletion(item["g"], tenant=item["i"]),
        owner=item.get("o", ""),
        lease_until=instant_of(item, "l"),
    )
