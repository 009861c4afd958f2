"""Dead letters on DynamoDB: by tenant and hour, so that a tenant's recent ones are one query; and which hours have any."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from functions.adapters.clients import is_refused
from functions.domain.dead_letters.dead_letter_id import DEAD_LETTER_LIFE, DeadLetterId
from functions.domain.errors import Undecodable
from functions.domain.far_ring.timer_record import decode_timer, encode_timer
from functions.domain.instants import format_instant, from_ms, parse_instant, to_ms, to_seconds
from functions.ports.dead_letters import DeadLetter

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_HOUR = len("2027-03-01T12")
MARKS = "hours"
"""In the place of an hour, where the marks of a tenant are."""

_MARK_OUTLIVES = timedelta(days=1)
_MOST_KNOWN = 10_000
RAW_LIMIT = 65_536
_ERROR_LIMIT = 2_000


class DynamoDBDeadLetters:
    """The dead letters of a tenant and hour stand together.

    Rows {p: tenant#hour, s: dead at#identity, e: error, c: error class, a: attempt, f: fence, i: job id, j: record,
    w: raw body, r: replayed at, x: ttl}; `r` in ms, the ttl in s. And marks {p: tenant#hours, s: hour, x: ttl}.
    Safe for threads.
    """

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table
        self._known: dict[tuple[str, str], None] = {}
        self._lock = threading.Lock()

    def put(self, letter: DeadLetter) -> None:
        """Repeating it with the same instant changes nothing."""
        self.mark_hour(letter)
        self._client.put_item(**self.put_request(letter))

    def mark_hour(self, letter: DeadLetter) -> None:
        """What comes before `put_request`: a write unit for the first letter of a tenant and hour that a process keeps."""
        hour = format_instant(letter.dead_at)[:_HOUR]
        mark = letter.tenant, hour
        if mark in self._known:
            return
        expires_at = letter.dead_at + DEAD_LETTER_LIFE + _MARK_OUTLIVES
        self._client.put_item(
            TableName=self._table,
            Item={
                "p": {"S": _partition(letter.tenant, MARKS)},
                "s": {"S": hour},
                "x": {"N": str(to_seconds(expires_at))},
            },
        )
        with self._lock:
            self._known[mark] = None
            while len(self._known) > _MOST_KNOWN:
                del self._known[next(iter(self._known))]

    def hours(self, tenant: str, *, since: datetime, until: datetime, limit: int) -> tuple[list[datetime], bool]:
        """One Query: a read unit for some 80 hours."""
        answer = self._client.query(
            TableName=self._table,
            KeyConditionExpression="p = :p AND s BETWEEN :since AND :until",
            ExpressionAttributeValues={
                ":p": {"S": _partition(tenant, MARKS)},
                ":since": {"S": format_instant(since)[:_HOUR]},
                ":until": {"S": format_instant(until)[:_HOUR]},
            },
            ScanIndexForward=False,
            Limit=limit,
            ConsistentRead=True,
        )
        found = [parse_instant(f"{item['s']['S']}:00:00Z") for item in answer["Items"]]
        return found, "LastEvaluatedKey" in answer

    def put_request(self, letter: DeadLetter) -> Any:
        """The dead letter as a part of a transaction; see `mark_hour`."""
        item: dict[str, Any] = {
            **_key(letter.letter_id),
            "e": {"S": letter.error[:_ERROR_LIMIT]},
            "c": {"S": letter.error_class},
            "a": {"N": str(letter.attempt)},
            "x": {"N": str(to_seconds(letter.dead_at + DEAD_LETTER_LIFE))},
        }
        if letter.fence:
            item["f"] = {"N": str(letter.fence)}
        if letter.job_id:
            item["i"] = {"S": letter.job_id}
        if letter.timer is not None:
            item["j"] = {"S": encode_timer(letter.timer)}
        if letter.raw:
            item["w"] = {"S": letter.raw[:RAW_LIMIT]}
        return {"TableName": self._table, "Item": item}

    def get(self, letter_id: DeadLetterId) -> DeadLetter | None:
        """One read unit for each 4 KB."""
        answer = self._client.get_item(TableName=self._table, Key=_key(letter_id), ConsistentRead=True)
        return _read(answer["Item"]) if "Item" in answer else None

    def page(self, hour: datetime, *, before: DeadLetterId, limit: int) -> tuple[list[DeadLetter], bool]:
        """One Query: a read unit for each 4 KB, and one where there is nothing."""
        answer = self._client.query(
            TableName=self._table,
            KeyConditionExpression="p = :p AND s < :before",
            ExpressionAttributeValues={
                ":p": {"S": _partition(before.tenant, format_instant(hour))},
                ":before": _key(before)["s"],
            },
            ScanIndexForward=False,
            Limit=limit,
            # A dead letter that was just replayed must not be read again: not all jobs have a ledger row that would show it.
            ConsistentRead=True,
        )
        return [_read(item) for item in answer["Items"]], "LastEvaluatedKey" in answer

    def mark(self, letter_id: DeadLetterId, *, now: datetime) -> bool:
        """One write unit for each KB. The first mark stays: it shows how long the letter's ledger row has lived."""
        try:
            self._client.update_item(
                TableName=self._table,
                Key=_key(letter_id),
                UpdateExpression="SET r = if_not_exists(r, :now)",
                ConditionExpression="attribute_exists(p)",
                ExpressionAttributeValues={":now": {"N": str(to_ms(now))}},
            )
        except ClientError as error:
            if not is_refused(error):
                raise
            return False
        return True

    def delete(self, letter_id: DeadLetterId) -> None:
        """One write unit for each KB."""
        self._client.delete_item(TableName=self._table, Key=_key(letter_id))


def _key(letter_id: DeadLetterId) -> dict[str, Any]:
    dead_at = format_instant(letter_id.dead_at)
    return {
        "p": {"S": _partition(letter_id.tenant, dead_at)},
        "s": {"S": f"{dead_at}#{letter_id.identity}"},
    }


def _partition(tenant: str, instant: str) -> str:
    return f"{tenant}#{instant[:_HOUR]}"


def _read(item: Mapping[str, Any]) -> DeadLetter:
    text: dict[str, str] = {name: value["S"] for name, value in item.items() if "S" in value}
    tenant = text["p"].rpartition("#")[0]
    dead_at, _, identity = text["s"].partition("#")
    timer, raw = None, text.get("w", "")
    if "j" in text:
        try:
            timer = decode_timer(text["j"], tenant=tenant)
        except Undecodable:
            # Written by a newer version: it can be looked at and purged, and must not hide the others.
            raw = text["j"]
    return DeadLetter(
        tenant=tenant,
        identity=identity,
        dead_at=parse_instant(dead_at),
        error=text["e"],
        error_class=text.get("c", "error"),
        attempt=int(item["a"]["N"]),
        job_id=text.get("i", ""),
        timer=timer,
        raw=raw,
        fence=int(item["f"]["N"]) if "f" in item else 0,
        replayed_at=from_ms(int(item["r"]["N"])) if "r" in item else None,
    )
