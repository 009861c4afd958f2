"""Breakers on DynamoDB: a row of the tenants table for each that is not closed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from functions.adapters.clients import is_refused
from functions.domain.breaker import Breaker, BreakerState
from functions.domain.errors import Undecodable
from functions.domain.instants import MILLISECOND, from_ms, to_ms, to_seconds
from functions.ports import Applied, Changed

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_ITEM = "breaker#"


class DynamoDBBreakerStore:
    """{t: tenant, i: `breaker#{destination}`, s: state, o: owner, u: until, f: open for, b: opened at, e: error class, x: ttl}.

    Instants and durations in ms, the ttl in s.
    """

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def get(self, tenant: str, destination: str) -> Breaker | None:
        """Half a read unit. Raises Undecodable."""
        answer = self._client.get_item(TableName=self._table, Key=_key(tenant, destination))
        return _read(answer["Item"]) if "Item" in answer else None

    def page(self, tenant: str, *, after: str, limit: int) -> tuple[list[Breaker], bool]:
        """One Query. Raises Undecodable."""
        start: Any = {"ExclusiveStartKey": _key(tenant, after)} if after else {}
        answer = self._client.query(
            TableName=self._table,
            KeyConditionExpression="t = :t AND begins_with(i, :item)",
            ExpressionAttributeValues={":t": {"S": tenant}, ":item": {"S": _ITEM}},
            # One more: that a page is full does not say whether there is another.
            Limit=limit + 1,
            ConsistentRead=True,
            **start,
        )
        items = answer["Items"]
        return [_read(item) for item in items[:limit]], len(items) > limit or "LastEvaluatedKey" in answer

    def put(self, breaker: Breaker, *, seen: Breaker | None) -> Applied | Changed:
        """One write unit, refused or not. Repeating it changes nothing."""
        condition, values = "attribute_not_exists(t) OR o = :mine", {":mine": {"S": breaker.owner}}
        if seen is not None:
            condition, values = "o IN (:seen, :mine)", values | {":seen": {"S": seen.owner}}
        try:
            self._client.put_item(
                TableName=self._table,
                Item=_write(breaker),
                ConditionExpression=condition,
                ExpressionAttributeValues=values,
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            return _changed(error)
        return Applied()

    def close(self, seen: Breaker) -> Applied | Changed:
        """One write unit, refused or not. Repeating it changes nothing."""
        try:
            self._client.delete_item(
                TableName=self._table,
                Key=_key(seen.tenant, seen.destination),
                ConditionExpression="attribute_not_exists(t) OR o = :seen",
                ExpressionAttributeValues={":seen": {"S": seen.owner}},
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            return _changed(error)
        return Applied()

    def reset(self, tenant: str, destination: str) -> bool:
        """One write unit. Repeating it changes nothing."""
        answer = self._client.delete_item(TableName=self._table, Key=_key(tenant, destination), ReturnValues="ALL_OLD")
        return bool(answer.get("Attributes"))


def _changed(error: ClientError) -> Changed:
    if not is_refused(error):
        raise error
    met: Mapping[str, Any] | None = error.response.get("Item")
    return Changed(_read(met) if met else None)


def _key(tenant: str, destination: str) -> dict[str, Any]:
    return {"t": {"S": tenant}, "i": {"S": _ITEM + destination}}


def _write(breaker: Breaker) -> dict[str, Any]:
    return {
        **_key(breaker.tenant, breaker.destination),
        "s": {"S": breaker.state},
        "o": {"S": breaker.owner},
        "u": _ms(breaker.until),
        "f": {"N": str(breaker.open_for // MILLISECOND)},
        "b": _ms(breaker.opened_at),
        "e": {"S": breaker.error_class},
        "x": {"N": str(to_seconds(breaker.expires_at))},
    }


def _read(item: Mapping[str, Any]) -> Breaker:
    try:
        return Breaker(
            tenant=item["t"]["S"],
            destination=item["i"]["S"].removeprefix(_ITEM),
            state=BreakerState(item["s"]["S"]),
            owner=item["o"]["S"],
            until=_instant(item["u"]),
            open_for=int(item["f"]["N"]) * MILLISECOND,
            opened_at=_instant(item["b"]),
            error_class=item["e"]["S"],
        )
    except (KeyError, ValueError, TypeError) as error:
        raise Undecodable(f"not a breaker: {error!r}") from error


def _ms(instant: datetime) -> Any:
    return {"N": str(to_ms(instant))}


def _instant(value: Any) -> datetime:
    return from_ms(int(value["N"]))
