"""Breakers on DynamoDB: a row of the tenants table for each that is not closed, and an entry in the index of all of them.

The entry is put before the row is opened and deleted after the row has gone, so that whoever dies in between leaves an
entry without a row, never a row without an entry. Readers look at the row, and its ttl takes what was left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from functions.adapters.clients import is_refused
from functions.domain.errors import Undecodable
from functions.domain.instants import MILLISECOND, from_ms, to_ms, to_seconds
from functions.domain.targets.breaker import Breaker, BreakerState
from functions.ports.ledger import Applied
from functions.ports.targets import Changed

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_ITEM = "breaker#"
INDEX = "~breakers"
_MOST_COUNTED = 1_000
_BATCH = 100
_KEY_BYTES = 1_024


class DynamoDBBreakerStore:
    """{t: tenant, i: `breaker#{destination}`, s: state, o: owner, u: until, f: open for, b: opened at, e: error class, x: ttl}.

    Instants and durations in ms, the ttl in s. And {t: `~breakers`, i: `{tenant}#{destination}`, d: destination, b, x} while
    it is not closed: no tenant can be called so.
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

    def everywhere(self, *, limit: int) -> tuple[list[Breaker], int]:
        """One Query of half a read unit for each 4 KB of entries, some 30, and half a read unit for each one returned.

        Raises Undecodable.
        """
        answer = self._client.query(
            TableName=self._table,
            KeyConditionExpression="t = :t",
            ExpressionAttributeValues={":t": {"S": INDEX}},
            Limit=_MOST_COUNTED,
        )
        entries = [(item["i"]["S"].partition("#")[0], item["d"]["S"]) for item in answer["Items"]]
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
        keys: list[Any] = [_key(*each) for each in wanted]
        found: dict[tuple[str, str], Breaker] = {}
        while keys:
            answer = self._client.batch_get_item(RequestItems={self._table: {"Keys": keys, "ConsistentRead": False}})
            items: Sequence[Mapping[str, Any]] = answer["Responses"].get(self._table, [])
            breakers = [_read(item) for item in items]
            found |= {(breaker.tenant, breaker.destination): breaker for breaker in breakers}
            left: Mapping[str, Any] = answer.get("UnprocessedKeys", {})
            keys = list(left.get(self._table, {}).get("Keys", []))
        return found

    def put(self, breaker: Breaker, *, seen: Breaker | None) -> Applied | Changed:
        """One write unit, refused or not, and one more where it is open afterwards. Repeating it changes nothing."""
        if breaker.state is BreakerState.OPEN:
            # Each time: the entry lives as long as the row.
            self._client.put_item(TableName=self._table, Item=_entry(breaker))
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
        """One write unit where it is refused, otherwise two. Repeating it changes nothing."""
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
        self._forget(_index_key(seen.tenant, seen.destination), opened_at=_ms(seen.opened_at))
        return Applied()

    def reset(self, tenant: str, destination: str) -> bool:
        """One write unit, and one more where there was something to close. Repeating it changes nothing."""
        answer = self._client.delete_item(TableName=self._table, Key=_key(tenant, destination), ReturnValues="ALL_OLD")
        row = answer.get("Attributes")
        if not row:
            return False
        if "b" in row:
            self._forget(_index_key(tenant, destination), opened_at=row["b"])
        return True

    def _forget(self, key: Mapping[str, Any], *, opened_at: Any) -> None:
        try:
            self._client.delete_item(
                TableName=self._table,
                Key=key,
                # Whoever opens it anew meanwhile puts an entry of his own.
                ConditionExpression="b = :opened",
                ExpressionAttributeValues={":opened": opened_at},
            )
        except ClientError as error:
            if not is_refused(error):
                raise


def _changed(error: ClientError) -> Changed:
    if not is_refused(error):
        raise error
    met: Mapping[str, Any] | None = error.response.get("Item")
    return Changed(_read(met) if met else None)


def _key(tenant: str, destination: str) -> dict[str, Any]:
    return {"t": {"S": tenant}, "i": {"S": _ITEM + destination}}


def _index_key(tenant: str, destination: str) -> dict[str, Any]:
    # A destination that is nearly as long as a key may be shares its entry with others of the same beginning.
    entry = f"{tenant}#{destination}".encode()[:_KEY_BYTES].decode(errors="ignore")
    return {"t": {"S": INDEX}, "i": {"S": entry}}


def _entry(breaker: Breaker) -> dict[str, Any]:
    return {
        **_index_key(breaker.tenant, breaker.destination),
        "d": {"S": breaker.destination},
        "b": _ms(breaker.opened_at),
        "x": {"N": str(to_seconds(breaker.expires_at))},
    }


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
