"""Theoretical arrival times on DynamoDB: an item a tenant and rate, for tenants whose rate is limited."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from functions.adapters.clients import is_refused
from functions.domain.instants import EPOCH, to_seconds
from functions.ports import Ahead, Applied

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

EXECUTION = "rate#execution"
SUBMISSION = "rate#submission"

_MICROSECOND = timedelta(microseconds=1)
_LIFE = timedelta(days=2)
"""After its instant an item says nothing any more: what it held back has long been let go."""

_TRIES = 3


class DynamoDBRateStore:
    """{t: tenant, i: `rate#execution` | `rate#submission`, n: theoretical arrival time (µs), x: ttl (s)}."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def advance(self, tenant: str, *, seen: datetime | None, to: datetime) -> Applied | Ahead:
        """One write unit, lost or not."""
        return self._write(
            tenant,
            EXECUTION,
            "SET n = :to, x = :ttl",
            condition="attribute_not_exists(n)" if seen is None else "n = :seen",
            values={":to": _us(to), ":ttl": _ttl(to)} | ({":seen": _us(seen)} if seen is not None else {}),
        )

    def spend(self, tenant: str, *, cost: timedelta, now: datetime, latest: datetime) -> Applied | Ahead:
        """One write unit while a tenant submits all the time, two after a while of none or when it finds no room."""
        ttl = _ttl(latest + cost)
        answer: Applied | Ahead = Ahead(None)
        for _ in range(_TRIES):
            answer = self._write(
                tenant,
                SUBMISSION,
                "SET n = n + :cost, x = :ttl",
                condition="n BETWEEN :now AND :latest",
                values={
                    ":cost": {"N": str(cost // _MICROSECOND)},
                    ":now": _us(now),
                    ":latest": _us(latest),
                    ":ttl": ttl,
                },
            )
            if isinstance(answer, Applied) or (answer.next_at is not None and answer.next_at > latest):
                return answer
            answer = self._write(
                tenant,
                SUBMISSION,
                "SET n = :to, x = :ttl",
                condition="attribute_not_exists(n) OR n < :now",
                values={":to": _us(now + cost), ":now": _us(now), ":ttl": ttl},
            )
            if isinstance(answer, Applied):
                return answer
        return answer

    def _write(
        self, tenant: str, item: str, update: str, *, condition: str, values: Mapping[str, Any]
    ) -> Applied | Ahead:
        try:
            self._client.update_item(
                TableName=self._table,
                Key={"t": {"S": tenant}, "i": {"S": item}},
                UpdateExpression=update,
                ConditionExpression=condition,
                ExpressionAttributeValues=values,
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            if not is_refused(error):
                raise
            met: Mapping[str, Any] = error.response.get("Item", {})
            return Ahead(EPOCH + int(met["n"]["N"]) * _MICROSECOND if "n" in met else None)
        return Applied()


def _us(instant: datetime) -> Any:
    return {"N": str((instant - EPOCH) // _MICROSECOND)}


def _ttl(instant: datetime) -> Any:
    return {"N": str(to_seconds(instant + _LIFE))}
