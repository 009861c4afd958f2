"""How many jobs wait, on DynamoDB: an item a tenant and due day, for tenants whose number is limited."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from functions.adapters.dynamodb.table import Table
from functions.domain.instants import to_seconds
from functions.domain.tenants.backlog import OVERDUE_DAYS

_ITEM = "pending#"
_LIFE = timedelta(days=OVERDUE_DAYS + 2)
"""So long after its day an item is not asked for any more."""


@dataclass
class DynamoDBPendingStore:
    """{t: tenant, i: `pending#{yyyymmdd}`, n: jobs, x: ttl (s)}."""

    table: Table

    def add(self, tenant: str, day: date, count: int) -> None:
        """One write unit. Repeating it counts again."""
        ttl = to_seconds(datetime.combine(day, time(), tzinfo=UTC) + _LIFE)
        self.table.update({"t": tenant, "i": _item(day)}, update="SET x = :ttl ADD n :count", count=count, ttl=ttl)

    def counts(self, tenant: str, *, since: date) -> dict[date, int]:
        """One Query: half a read unit for each 4 KB, about 80 days on which something is due."""
        found = self.table.query(
            "t = :t AND i BETWEEN :since AND :last", only="i, n", t=tenant, since=_item(since), last=f"{_ITEM}~"
        )
        return {_day(item["i"]): max(0, item["n"]) for item in found.items}


def _item(day: date) -> str:
    return f"{_ITEM}{day:%Y%m%d}"


def _day(item: str) -> date:
    return date.fromisoformat(item.removeprefix(_ITEM))
