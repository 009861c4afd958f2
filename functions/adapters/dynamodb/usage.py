"""The usage of tenants on DynamoDB: an item a tenant and day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from functions.adapters.dynamodb.table import Item, Table
from functions.domain.instants import to_seconds
from functions.domain.tenants.usage import FIGURES, USAGE_LIFE, Days, Usage

_ITEM = "usage#"
_DAY = "%Y%m%d"


@dataclass
class DynamoDBUsageStore:
    """{t: tenant, i: `usage#{yyyymmdd}`, submitted, executed, succeeded, failed, units, bytes, x: ttl (s)}."""

    table: Table

    def add(self, tenant: str, day: date, used: Usage) -> None:
        """One write unit. Repeating it counts again."""
        counts = {name: getattr(used, name) for name in FIGURES if getattr(used, name)}
        if not counts:
            return
        self.table.update(
            {"t": tenant, "i": _item(day)},
            update=f"SET x = :ttl ADD {', '.join(f'#{name} :{name}' for name in counts)}",
            names={f"#{name}": name for name in counts},
            ttl=to_seconds(_end_of(day) + USAGE_LIFE),
            **counts,
        )

    def days(self, tenant: str, days: Days) -> dict[date, Usage]:
        """One Query: half a read unit for each 4 KB, about 40 days."""
        found = self.table.query(
            "t = :t AND i BETWEEN :first AND :last", t=tenant, first=_item(days.first), last=_item(days.last)
        )
        return {_day_of(item): _usage_of(item) for item in found.items}


def _item(day: date) -> str:
    return f"{_ITEM}{day:{_DAY}}"


def _end_of(day: date) -> datetime:
    return datetime.combine(day + timedelta(days=1), time(), tzinfo=UTC)


def _day_of(item: Item) -> date:
    return datetime.strptime(item["i"].removeprefix(_ITEM), _DAY).replace(tzinfo=UTC).date()


def _usage_of(item: Item) -> Usage:
    return Usage(**{name: item[name] for name in FIGURES if name in item})
