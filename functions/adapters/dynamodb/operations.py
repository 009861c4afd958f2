"""Operations on DynamoDB: a row of the tenants table each, and one more for as long as it is open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from functions.adapters.clients import is_refused, patiently
from functions.domain.errors import Undecodable
from functions.domain.instants import from_ms, to_ms, to_seconds
from functions.domain.operations.operation import OPERATION_LIFE, Operation, OperationState
from functions.domain.operations.record import OperationRecord, decode_operation, encode_operation

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

OPEN_LIFE = timedelta(days=60)
"""How long an open operation is kept after its last turn."""

_ITEM = "operation#"
OPEN = "~operations"
"""The partition of the open ones: no tenant can be called so."""

_IS_OPEN = "s IN (:waiting, :running)"
_OPEN_STATES: Mapping[str, Any] = {
    ":waiting": {"S": OperationState.WAITING},
    ":running": {"S": OperationState.RUNNING},
}


class DynamoDBOperationStore:
    """{t: tenant, i: `operation#{id}`, s: state, j: asked, g: progress, o: owner, l: lease until, c: stop requested, x: ttl}.

    The lease in ms, the ttl in s. And while it is open {t: `~operations`, i: `{created_ms:013d}#{tenant}#{id}`}: no tenant
    can be called so. That row is written with the operation, and removed with what ends it.
    """

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def create(self, operation: Operation) -> Operation | None:
        """A transaction: two write units for each KB of what is asked, and two."""
        record = encode_operation(operation)
        row = {
            **_key(operation.tenant, operation.operation_id),
            "s": {"S": operation.state},
            "j": {"S": record.asked},
            "g": {"S": record.progress},
            "x": {"N": str(to_seconds(operation.created_at + OPEN_LIFE))},
        }
        is_new = {"ConditionExpression": "attribute_not_exists(t)", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        items: Any = [
            {"Put": {"TableName": self._table, "Item": row, **is_new}},
            {"Put": {"TableName": self._table, "Item": _open_key(operation)}},
        ]
        try:
            patiently(lambda: self._client.transact_write_items(TransactItems=items))
        except ClientError as error:
            return _read(_met(error))
        return None

    def get(self, tenant: str, operation_id: str) -> Operation | None:
        """A read unit for each 4 KB. Raises Undecodable."""
        key = _key(tenant, operation_id)
        answer = self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True)
        return _read(answer["Item"]) if "Item" in answer else None

    def page(self, tenant: str, *, after: str, limit: int) -> tuple[list[Operation], bool]:
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

    def open(self, *, limit: int) -> list[tuple[str, str]]:
        """One Query."""
        answer = self._client.query(
            TableName=self._table,
            KeyConditionExpression="t = :open",
            ExpressionAttributeValues={":open": {"S": OPEN}},
            Limit=limit,
            ConsistentRead=True,
        )
        parts = (item["i"]["S"].split("#") for item in answer["Items"])
        return [(tenant, operation_id) for _, tenant, operation_id in parts]

    def take(
        self, tenant: str, operation_id: str, *, owner: str, lease_until: datetime, now: datetime, skew: timedelta
    ) -> Operation | None:
        """One write unit for each KB of the row, refused or not. Repeating it changes nothing. Raises Undecodable."""
        return self._update(
            _key(tenant, operation_id),
            update="SET s = :running, o = :owner, l = :lease, x = :ttl",
            condition=f"{_IS_OPEN} AND (attribute_not_exists(l) OR l < :over OR o = :owner)",
            values={
                ":owner": {"S": owner},
                ":lease": _ms(lease_until),
                ":over": _ms(now - skew),
                ":ttl": {"N": str(to_seconds(now + OPEN_LIFE))},
            },
        )

    def save(self, operation: Operation, *, lease_until: datetime | None) -> Operation | None:
        """One write unit for each KB of the row, refused or not. Repeating it changes nothing, however late."""
        values = {
            ":owner": {"S": operation.owner},
            ":state": {"S": operation.state},
            ":progress": {"S": encode_operation(operation).progress},
        }
        if lease_until is None:
            return self._update(
                _key(operation.tenant, operation.operation_id),
                update="SET s = :state, g = :progress REMOVE l",
                condition=f"{_IS_OPEN} AND o = :owner",
                values=values,
            )
        return self._update(
            _key(operation.tenant, operation.operation_id),
            update="SET s = :state, g = :progress, l = :lease",
            # A lease only grows until it is given back: an earlier step that lands late is refused.
            condition=f"{_IS_OPEN} AND o = :owner AND l <= :lease",
            values={**values, ":lease": _ms(lease_until)},
        )

    def finish(self, operation: Operation) -> bool:
        """A transaction: two write units for each KB of the row, and two. Repeating it changes nothing."""
        assert operation.ended_at is not None  # it is over
        update = self._request(
            _key(operation.tenant, operation.operation_id),
            update="SET s = :state, g = :progress, x = :ttl REMOVE l",
            condition=f"({_IS_OPEN} OR s = :state) AND o = :owner",
            values={
                ":owner": {"S": operation.owner},
                ":state": {"S": operation.state},
                ":progress": {"S": encode_operation(operation).progress},
                ":ttl": {"N": str(to_seconds(operation.ended_at + OPERATION_LIFE))},
            },
        )
        items: Any = [{"Update": update}, {"Delete": {"TableName": self._table, "Key": _open_key(operation)}}]
        try:
            patiently(lambda: self._client.transact_write_items(TransactItems=items))
        except ClientError as error:
            if is_refused(error):
                return False
            raise
        return True

    def stop(self, tenant: str, operation_id: str) -> Operation | None:
        """One write unit for each KB of the row, refused or not. Repeating it changes nothing. Raises Undecodable."""
        request = self._request(
            _key(tenant, operation_id), update="SET c = :yes", condition=_IS_OPEN, values={":yes": {"BOOL": True}}
        )
        try:
            answer = patiently(lambda: self._client.update_item(**request, ReturnValues="ALL_NEW"))
        except ClientError as error:
            met = _met(error)
            return _read(met) if met else None
        return _read(answer["Attributes"])

    def _update(self, key: Any, *, update: str, condition: str, values: Mapping[str, Any]) -> Operation | None:
        """The row as it is then; None when it may not be changed."""
        request = self._request(key, update=update, condition=condition, values=values)
        try:
            answer = patiently(lambda: self._client.update_item(**request, ReturnValues="ALL_NEW"))
        except ClientError as error:
            if is_refused(error):
                return None
            raise
        return _read(answer["Attributes"])

    def _request(self, key: Any, *, update: str, condition: str, values: Mapping[str, Any]) -> Any:
        return {
            "TableName": self._table,
            "Key": key,
            "UpdateExpression": update,
            "ConditionExpression": condition,
            "ExpressionAttributeValues": {**_OPEN_STATES, **values},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }


def _met(error: ClientError) -> Mapping[str, Any]:
    """The row that a refused write met, empty where there is none; any other error is raised again."""
    if not is_refused(error):
        raise error
    answer: Any = error.response
    items = [answer.get("Item"), *(reason.get("Item") for reason in answer.get("CancellationReasons", []))]
    return next((item for item in items if item), {})


def _key(tenant: str, operation_id: str) -> dict[str, Any]:
    return {"t": {"S": tenant}, "i": {"S": _ITEM + operation_id}}


def _open_key(operation: Operation) -> dict[str, Any]:
    created_ms = to_ms(operation.created_at)
    return {"t": {"S": OPEN}, "i": {"S": f"{created_ms:013d}#{operation.tenant}#{operation.operation_id}"}}


def _read(item: Mapping[str, Any]) -> Operation:
    try:
        tenant, operation_id = item["t"]["S"], item["i"]["S"].removeprefix(_ITEM)
        record = OperationRecord(asked=item["j"]["S"], progress=item["g"]["S"])
        state, owner = OperationState(item["s"]["S"]), item["o"]["S"] if "o" in item else ""
    except (KeyError, ValueError) as error:
        raise Undecodable(f"not an operation: {error!r}") from error
    return replace(
        decode_operation(record, tenant=tenant, operation_id=operation_id),
        state=state,
        owner=owner,
        lease_until=from_ms(int(item["l"]["N"])) if "l" in item else None,
        stop_requested="c" in item,
    )


def _ms(instant: datetime) -> dict[str, str]:
    return {"N": str(to_ms(instant))}
