"""The usage of tenants on DynamoDB: an item a tenant and day."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from functions.domain.instants import to_seconds
from functions.domain.tenants.usage import FIGURES, USAGE_LIFE, Days, Usage

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_ITEM = "usage#"
_DAY = "%Y%m%d"


class DynamoDBUsageStore:
    """{t: tenant, i: `usage#{yyyymmdd}`, submitted, executed, succeeded, failed, units, bytes, x: ttl (s)}."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def add(self, tenant: str, day: date, used: Usage) -> None:
        """One write unit. Repeating it counts again."""
        counts = {name: getattr(used, name) for name in FIGURES if getattr(used, name)}
        if not counts:
            return
        self._client.update_item(
            TableName=self._table,
            Key={"t": {"S": tenant}, "i": {"S": _item(day)}},
            UpdateExpression=f"SET x = :ttl ADD {', '.join(f'#{name} :{name}' for name in counts)}",
            ExpressionAttributeNames={f"#{name}": name for name in counts},
            ExpressionAttributeValues={
                ":ttl": {"N": str(to_seconds(_end_of(day) + USAGE_LIFE))},
                **{f":{name}": {"N": str(count)} for name, count in counts.items()},
            },
        )

    def days(self, tenant: str, days: Days) -> dict[date, Usage]:
        """One Query: half a read unit for each 4 KB, about 40 days."""
        answer = self._client.query(
            TableName=self._table,
            KeyConditionExpression="t = :t AND i BETWEEN :first AND :last",
            ExpressionAttributeValues={
                ":t": {"S": tenant},
                ":first": {"S": _item(days.first)},
                ":last": {"S": _item(days.last)},
            },
        )
        return {_day_of(item): _usage_of(item) for item in answer["Items"]}


def _item(day: date) -> str:
    return f"{_ITEM}{day:{_DAY}}"


def _end_of(day: date) -> datetime:
    return datetime.combine(day + timedelta(days=1), time(), tzinfo=UTC)


def _day_of(item: Any) -> date:
    return datetime.strptime(item["i"]["S"].removeprefix(_ITEM), _DAY).replace(tzinfo=UTC).date()


def _usage_of(item: Any) -> Usage:
    return Usage(**{name: int(item[name]["N"]) for name in FIGURES if name in item})
