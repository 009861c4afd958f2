"""Conditional writes of ledger rows, and of rows of other tables in one transaction with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import ClientError

from functions.adapters.clients import is_refused, patiently
from functions.adapters.dynamodb.dead_letters import DynamoDBDeadLetters
from functions.adapters.dynamodb.ledger_row import ms_of, read_row, ttl_of
from functions.adapters.dynamodb.timers import DynamoDBTimerStore
from functions.domain.errors import Busy, JobBusy
from functions.domain.lifecycle import State
from functions.ports.ledger import Applied, Refused

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


Answer = TypeVar("Answer")


class LedgerWrites:
    """One table of rows, each of which changes only while it is what somebody has seen."""

    def __init__(
        self,
        client: DynamoDBClient,
        table: str,
        *,
        skew: timedelta,
        dead_letters: DynamoDBDeadLetters | None = None,
        timers: DynamoDBTimerStore | None = None,
    ) -> None:
        self._client = client
        self._table = table
        self._skew = skew
        self._dead_letters = dead_letters
        self._timers = timers

    def _transact(self, key: str, *writes: Any) -> Applied | Refused:
        try:
            in_turn(key, lambda: self._client.transact_write_items(TransactItems=list(writes)))
        except ClientError as error:
            return refused(error)
        return Applied()

    def _write(self, key: str, **request: Any) -> Applied | Refused:
        return applied(self._update(key, **request))

    def _update(self, key: str, *, returns: Any = "NONE", **request: Any) -> Mapping[str, Any] | Refused:
        return self._send(self._request(key, **request), returns=returns)

    def _send(self, request: Any, *, returns: Any = "NONE") -> Mapping[str, Any] | Refused:
        """The attributes that it returns, or the row that it met."""
        try:
            answer = in_turn(
                request["Key"]["k"]["S"], lambda: self._client.update_item(**request, ReturnValues=returns)
            )
        except ClientError as error:
            return refused(error)
        return answer.get("Attributes", {})

    def _request(
        self,
        key: str,
        *,
        condition: str,
        assignments: str,
        state: State,
        owner: str,
        due_at: datetime,
        now: datetime,
        values: Mapping[str, Any],
        additions: str = "",
        removals: str = "",
        scheduled_at: datetime | None = None,
        lease_until: datetime | None = None,
    ) -> Any:
        # A job that runs before its time may have left a timer of that time behind: its row outlives that one too.
        latest = max(due_at, scheduled_at or due_at)
        return self._conditional(
            key,
            update=f"SET s = :state, o = :owner, u = :now, x = :ttl, {assignments}"
            + (f" REMOVE {removals}" if removals else "")
            + (f" ADD {additions}" if additions else ""),
            condition=condition,
            values={
                ":state": {"S": state},
                ":owner": {"S": owner},
                ":due": ms_of(due_at),
                ":now": ms_of(now),
                ":ttl": ttl_of(now=now, due_at=latest, lease_until=lease_until),
                **values,
            },
        )

    def _conditional(self, key: str, *, update: str, condition: str, values: Mapping[str, Any]) -> Any:
        return {
            "TableName": self._table,
            "Key": {"k": {"S": key}},
            "UpdateExpression": update,
            "ConditionExpression": condition,
            "ExpressionAttributeValues": values,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }


def in_turn(key: str, call: Callable[[], Answer]) -> Answer:
    """Makes a call again that meets a transaction on its row; raises JobBusy when it meets another each time."""
    try:
        return patiently(call)
    except Busy:
        raise JobBusy(key) from None


def applied(answer: Mapping[str, Any] | Refused) -> Applied | Refused:
    """Without the attributes that it returned."""
    return answer if isinstance(answer, Refused) else Applied()


def refused(error: ClientError) -> Refused:
    """The row that a refused write met; any other error is raised again."""
    if not is_refused(error):
        raise error
    answer: Any = error.response
    items = [answer.get("Item"), *(reason.get("Item") for reason in answer.get("CancellationReasons", []))]
    met = next((item for item in items if item), None)
    return Refused(read_row(met) if met else None)
