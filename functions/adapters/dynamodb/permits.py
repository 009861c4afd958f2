"""Permits on DynamoDB: a row of the tenants table for each that somebody has, or had until his lease was over."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from functions.adapters.clients import is_refused
from functions.domain.instants import from_ms, to_ms, to_seconds
from functions.domain.targets.concurrency import Permit

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_ITEM = "seat#"


class DynamoDBPermitStore:
    """{t: tenant, i: `seat#{number:04d}`, o: owner, l: lease until (ms), x: ttl (s)}."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def take(self, permit: Permit, *, now: datetime, skew: timedelta) -> bool:
        """One write unit, taken or not. Repeating it changes nothing."""
        try:
            self._client.put_item(
                TableName=self._table,
                Item={
                    **_key(permit.tenant, permit.number),
                    "o": {"S": permit.owner},
                    "l": {"N": str(to_ms(permit.lease_until))},
                    "x": {"N": str(to_seconds(permit.expires_at))},
                },
                ConditionExpression="attribute_not_exists(t) OR l < :over OR o = :mine",
                ExpressionAttributeValues={":over": {"N": str(to_ms(now - skew))}, ":mine": {"S": permit.owner}},
            )
        except ClientError as error:
            if is_refused(error):
                return False
            raise
        return True

    def leases(self, tenant: str, *, limit: int) -> dict[int, datetime]:
        """One Query: half a read unit for each 4 KB, about 50 permits."""
        answer = self._client.query(
            TableName=self._table,
            KeyConditionExpression="t = :t AND i BETWEEN :first AND :last",
            ProjectionExpression="i, l",
            ExpressionAttributeValues={
                ":t": {"S": tenant},
                ":first": {"S": _item(0)},
                ":last": {"S": _item(limit - 1)},
            },
        )
        return {int(item["i"]["S"].removeprefix(_ITEM)): from_ms(int(item["l"]["N"])) for item in answer["Items"]}

    def give_back(self, permit: Permit) -> None:
        """One write unit, whoever has it. Repeating it changes nothing."""
        try:
            self._client.delete_item(
                TableName=self._table,
                Key=_key(permit.tenant, permit.number),
                ConditionExpression="attribute_not_exists(t) OR o = :mine",
                ExpressionAttributeValues={":mine": {"S": permit.owner}},
            )
        except ClientError as error:
            if not is_refused(error):
                raise


def _key(tenant: str, number: int) -> dict[str, Any]:
    return {"t": {"S": tenant}, "i": {"S": _item(number)}}


def _item(number: int) -> str:
    return f"{_ITEM}{number:04d}"
