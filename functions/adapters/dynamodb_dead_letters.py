"""Dead letters on DynamoDB: by tenant and hour, so that a tenant's recent ones are one query."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from functions.domain.envelope import encode_timer
from functions.domain.instants import format_instant, to_seconds
from functions.ports import DeadLetter

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

LIFE = timedelta(days=90)
_RAW_LIMIT = 65_536
_ERROR_LIMIT = 2_000


class DynamoDBDeadLetters:
    """Rows {p: tenant#hour, s: dead at#identity, e: error, a: attempt, i: job id, j: record, w: raw body, x: ttl}."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def put(self, letter: DeadLetter) -> None:
        """Repeating it with the same instant changes nothing."""
        self._client.put_item(**self.put_request(letter))

    def put_request(self, letter: DeadLetter) -> Any:
        """The same as a part of a transaction."""
        dead_at = format_instant(letter.dead_at)
        item: dict[str, Any] = {
            "p": {"S": f"{letter.tenant}#{dead_at[:13]}"},
            "s": {"S": f"{dead_at}#{letter.identity}"},
            "e": {"S": letter.error[:_ERROR_LIMIT]},
            "a": {"N": str(letter.attempt)},
            "x": {"N": str(to_seconds(letter.dead_at + LIFE))},
        }
        if letter.job_id:
            item["i"] = {"S": letter.job_id}
        if letter.timer is not None:
            item["j"] = {"S": encode_timer(letter.timer)}
        if letter.raw:
            item["w"] = {"S": letter.raw[:_RAW_LIMIT]}
        return {"TableName": self._table, "Item": item}
