"""Permits on DynamoDB: a row of the tenants table for each that somebody has, or had until his lease was over."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from functions.adapters.dynamodb.table import Item, Table
from functions.domain.instants import from_ms, to_seconds
from functions.domain.targets.concurrency import Permit

_ITEM = "seat#"


@dataclass
class DynamoDBPermitStore:
    """{t: tenant, i: `seat#{number:04d}`, o: owner, l: lease until (ms), x: ttl (s)}."""

    table: Table

    def take(self, permit: Permit, *, now: datetime, skew: timedelta) -> bool:
        """One write unit, taken or not. Repeating it changes nothing."""
        put = self.table.put(
            {
                **_key(permit),
                "o": permit.owner,
                "l": permit.lease_until,
                "x": to_seconds(permit.expires_at),
            },
            condition="attribute_not_exists(t) OR l < :over OR o = :mine",
            over=now - skew,
            mine=permit.owner,
        )
        return put.is_done

    def leases(self, tenant: str, *, limit: int) -> dict[int, datetime]:
        """One Query: half a read unit for each 4 KB, about 50 permits."""
        found = self.table.query(
            "t = :t AND i BETWEEN :first AND :last", only="i, l", t=tenant, first=_item(0), last=_item(limit - 1)
        )
        return {int(item["i"].removeprefix(_ITEM)): from_ms(item["l"]) for item in found.items}

    def give_back(self, permit: Permit) -> None:
        """One write unit, whoever has it. Repeating it changes nothing."""
        self.table.delete(_key(permit), condition="attribute_not_exists(t) OR o = :mine", mine=permit.owner)


def _key(permit: Permit) -> Item:
    return {"t": permit.tenant, "i": _item(permit.number)}


def _item(number: int) -> str:
    return f"{_ITEM}{number:04d}"
