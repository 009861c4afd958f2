"""Deletions of tenants on DynamoDB: a row each, for as long as they take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from functions.adapters.clients import is_refused
from functions.domain.instants import from_ms, to_ms
from functions.domain.tenants.deletion import Deletion, decode_deletion, encode_deletion

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

DELETIONS = "~deletions"
"""The partition: no tenant can be called so."""


class DynamoDBDeletionStore:
    """{t: `~deletions`, i: tenant, b: since (ms), g: progress, o: owner, l: lease until (ms)}."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def begin(self, deletion: Deletion) -> Deletion:
        """One write unit, and a read unit where there is one. Raises Undecodable."""
        since = {"N": str(to_ms(deletion.since))}
        item = {**_key(deletion.tenant), "b": since, "g": {"S": encode_deletion(deletion)}}
        try:
            self._client.put_item(
                TableName=self._table,
                Item=item,
                ConditionExpression="attribute_not_exists(t) OR b < :since",
                ExpressionAttributeValues={":since": since},
            )
        except ClientError as error:
            if not is_refused(error):
                raise
            return self.get(deletion.tenant) or deletion
        return deletion

    def get(self, tenant: str) -> Deletion | None:
        """One read unit. Raises Undecodable."""
        item = self._client.get_item(TableName=self._table, Key=_key(tenant), ConsistentRead=True).get("Item")
        return _read(item) if item else None

    def open(self, *, limit: int) -> list[str]:
        """One Query: half a read unit where there is none."""
        answer = self._client.query(
            TableName=self._table,
            KeyConditionExpression="t = :t",
            ExpressionAttributeValues={":t": {"S": DELETIONS}},
            ProjectionExpression="i",
            Limit=limit,
        )
        return [item["i"]["S"] for item in answer["Items"]]

    def take(
        self, tenant: str, *, owner: str, lease_until: datetime, now: datetime, skew: timedelta
    ) -> Deletion | None:
        """One write unit, refused or not. Raises Undecodable."""
        return self._update(
            tenant,
            "SET o = :owner, l = :lease",
            "attribute_exists(t) AND (attribute_not_exists(l) OR l < :over)",
            {":owner": {"S": owner}, ":lease": _ms(lease_until), ":over": _ms(now - skew)},
        )

    def save(self, deletion: Deletion, *, lease_until: datetime | None) -> Deletion | None:
        """One write unit, refused or not. Repeating it changes nothing."""
        values: dict[str, Any] = {":owner": {"S": deletion.owner}, ":progress": {"S": encode_deletion(deletion)}}
        if lease_until is None:
            return self._update(deletion.tenant, "SET g = :progress REMOVE l", "o = :owner", values)
        values |= {":lease": _ms(lease_until)}
        # A lease only grows: an earlier step that lands late is refused.
        return self._update(deletion.tenant, "SET g = :progress, l = :lease", "o = :owner AND l <= :lease", values)

    def forget(self, deletion: Deletion) -> None:
        """One write unit. Nothing happens where another has begun."""
        try:
            self._client.delete_item(
                TableName=self._table,
                Key=_key(deletion.tenant),
                ConditionExpression="attribute_not_exists(t) OR b = :since",
                ExpressionAttributeValues={":since": _ms(deletion.since)},
            )
        except ClientError as error:
            if not is_refused(error):
                raise

    def _update(self, tenant: str, update: str, condition: str, values: Mapping[str, Any]) -> Deletion | None:
        try:
            answer = self._client.update_item(
                TableName=self._table,
                Key=_key(tenant),
                UpdateExpression=update,
                ConditionExpression=condition,
                ExpressionAttributeValues=values,
                ReturnValues="ALL_NEW",
            )
        except ClientError as error:
            if is_refused(error):
                return None
            raise
        return _read(answer["Attributes"])


def _key(tenant: str) -> dict[str, Any]:
    return {"t": {"S": DELETIONS}, "i": {"S": tenant}}


def _read(item: Mapping[str, Any]) -> Deletion:
    return replace(
        decode_deletion(item["g"]["S"], tenant=item["i"]["S"]),
        owner=item["o"]["S"] if "o" in item else "",
        lease_until=from_ms(int(item["l"]["N"])) if "l" in item else None,
    )


def _ms(instant: datetime) -> dict[str, str]:
    return {"N": str(to_ms(instant))}
