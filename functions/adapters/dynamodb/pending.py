"""How many jobs wait, on DynamoDB: an item a tenant and due day, for tenants whose number is limited."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from functions.domain.instants import to_seconds
from functions.domain.tenants.backlog import OVERDUE_DAYS

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_ITEM = "pending#"
_LIFE = timedelta(days=OVERDUE_DAYS + 2)
"""So long after its day an item is not asked for any more."""


class DynamoDBPendingStore:
    """{t: tenant, i: `pending#{yyyymmdd}`, n: jobs, x: ttl (s)}."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def add(self, tenant: str, day: date, count: int) -> None:
        """One write unit. Repeating it counts again."""
        self._client.update_item(
            TableName=self._table,
            Key={"t": {"S": tenant}, "i": {"S": _item(day)}},
            UpdateExpression="SET x = :ttl ADD n :count",
            ExpressionAttributeValues={
                ":count": {"N": str(count)},
                ":ttl": {"N": str(to_seconds(datetime.combine(day, time(), tzinfo=UTC) + _LIFE))},
            },
        )

    def counts(self, tenant: str, *, since: date) -> dict[date, int]:
        """One Query: half a read unit for each 4 KB, about 80 days on which something is due."""
        answer = self._client.query(
            TableName=self._table,
            KeyConditionExpression="t = :t AND i BETWEEN :since AND :last",
            ExpressionAttributeValues={
                ":t": {"S": tenant},
                ":since": {"S": _item(since)},
                ":last": {"S": f"{_ITEM}~"},
            },
            ProjectionExpression="i, n",
        )
        items: list[Any] = answer["Items"]
        return {_day(item["i"]["S"]): max(0, int(item["n"]["N"])) for item in items}


def _item(day: date) -> str:
    return f"{_ITEM}{day:%Y%m%d}"


def _day(item: str) -> date:
    return date.fromisoformat(item.removeprefix(_ITEM))
