"""What is used up of rates, on DynamoDB: an item a tenant and rate, for tenants whose rate is limited."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from functions.adapters.clients import is_refused
from functions.domain.instants import EPOCH, from_seconds, to_seconds
from functions.domain.tenants.rate_bookings import Timetable, pack, unpack
from functions.ports.ledger import Applied
from functions.ports.tenants import Ahead, Booked

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

EXECUTION = "rate#execution"
SUBMISSION = "rate#submission"

_MICROSECOND = timedelta(microseconds=1)
_LIFE = timedelta(days=2)
"""After its instant an item says nothing any more: what it held back has long been let go."""

_TRIES = 3


class DynamoDBRateStore:
    """{t: tenant, i: `rate#execution`, n: version, w: width of a cell (s), f: first cell, c: counts, x: ttl (s)}.

    And {t: tenant, i: `rate#submission`, n: theoretical arrival time (µs), x: ttl (s)}.
    """

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def book(self, tenant: str, timetable: Timetable, *, seen: Timetable | None) -> Applied | Booked:
        """One write unit, lost or not."""
        values = {
            ":version": {"N": str(timetable.version)},
            ":width": {"N": str(timetable.width)},
            ":first": {"N": str(timetable.first)},
            ":counts": {"B": pack(timetable.taken)},
            ":ttl": _ttl(from_seconds((timetable.first + len(timetable.taken)) * timetable.width)),
        }
        met = self._write(
            tenant,
            EXECUTION,
            "SET n = :version, w = :width, f = :first, c = :counts, x = :ttl",
            condition="attribute_not_exists(n)" if seen is None else "n = :seen",
            values=values | ({":seen": {"N": str(seen.version)}} if seen is not None else {}),
        )
        return Applied() if met is None else Booked(_timetable(met))

    def spend(
        self, tenant: str, *, cost: timedelta, now: datetime, latest: datetime, most: datetime | None = None
    ) -> Applied | Ahead:
        """One write unit while a tenant submits all the time, two after a while of none or when it finds no room."""
        ttl = _ttl(latest + cost)
        for _ in range(_TRIES):
            met = self._write(
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
            if met is None:
                return Applied()
            next_at = _next_at(met)
            if next_at is not None and latest < next_at <= (most or next_at):
                return Ahead(next_at)
            met = self._write(
                tenant,
                SUBMISSION,
                "SET n = :to, x = :ttl",
                condition="attribute_not_exists(n) OR n < :now" + (" OR n > :most" if most is not None else ""),
                values={":to": _us(now + cost), ":now": _us(now), ":ttl": ttl}
                | ({":most": _us(most)} if most is not None else {}),
            )
            if met is None:
                return Applied()
        return Ahead(None)

    def _write(
        self, tenant: str, item: str, update: str, *, condition: str, values: Mapping[str, Any]
    ) -> Mapping[str, Any] | None:
        """None when it was written; what it met, when its condition was not."""
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
            return error.response.get("Item", {})
        return None


def _timetable(item: Mapping[str, Any]) -> Timetable | None:
    if "n" not in item:
        return None
    return Timetable(int(item["w"]["N"]), int(item["f"]["N"]), unpack(item["c"]["B"]), int(item["n"]["N"]))


def _next_at(item: Mapping[str, Any]) -> datetime | None:
    return EPOCH + int(item["n"]["N"]) * _MICROSECOND if "n" in item else None


def _us(instant: datetime) -> Any:
    return {"N": str((instant - EPOCH) // _MICROSECOND)}


def _ttl(instant: datetime) -> Any:
    return {"N": str(to_seconds(instant + _LIFE))}
