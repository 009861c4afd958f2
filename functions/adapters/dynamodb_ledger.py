"""The ledger on DynamoDB: every step of an execution is one named conditional write of one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from functions.adapters.clients import is_refused
from functions.adapters.dynamodb_dead_letters import DynamoDBDeadLetters
from functions.domain.claims import LedgerRow, expires_at
from functions.domain.instants import from_ms, to_ms, to_seconds
from functions.domain.job import Job, Timer
from functions.domain.job_id import JobId, job_id_of
from functions.domain.lifecycle import Event, State, sources, target
from functions.domain.retry import MAX_BACKOFF
from functions.ports import Applied, Claimed, DeadLetter, Refused

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_BATCH = 100
_TEXT_LIMIT = 400
"""Characters of a result or an error that a row keeps: a row stays within one write unit."""


class DynamoDBLedger:
    """The conditional-write table.

    Rows {k, s: state, a: attempt, f: fence, o: owner, l: lease until, d: due, r: rescues, c: cancel requested,
    i: job id, h: fingerprint, z: result, e: error, u: updated, x: ttl}; instants in ms, the ttl in s.
    """

    def __init__(
        self, client: DynamoDBClient, table: str, *, skew: timedelta, dead_letters: DynamoDBDeadLetters | None = None
    ) -> None:
        self._client = client
        self._table = table
        self._skew = skew
        self._dead_letters = dead_letters

    def register(self, job: Job, *, job_id: str, fingerprint: str, owner: str, now: datetime) -> Applied | Refused:
        """One write unit, refused or not."""
        item = {
            "k": {"S": job.key},
            "s": {"S": target(Event.REGISTER)},
            "o": {"S": owner},
            "d": _ms(job.scheduled_at),
            "i": {"S": job_id},
            "h": {"S": fingerprint},
            "u": _ms(now),
            "x": _ttl(now=now, due_at=job.scheduled_at),
        }
        try:
            self._client.put_item(
                TableName=self._table,
                Item=item,
                ConditionExpression="attribute_not_exists(k) OR (s = :state AND o = :owner)",
                ExpressionAttributeValues={":state": {"S": target(Event.REGISTER)}, ":owner": {"S": owner}},
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            return _refused(error)
        return Applied()

    def claim(self, timer: Timer, *, owner: str, lease_until: datetime, now: datetime) -> Claimed | Refused:
        """One write unit, refused or not."""
        waits = "(s = :scheduled AND (attribute_not_exists(a) OR a <= :attempt))"
        nobody_has_it = f"attribute_not_exists(k) OR {waits} OR (s = :retrying AND a < :attempt)"
        mine = "(s = :state AND o = :owner AND a = :attempt)"
        return self._take(
            timer,
            owner=owner,
            lease_until=lease_until,
            now=now,
            condition=f"{nobody_has_it} OR {mine}",
            assignments="r = :none",
            additions="f :one",
            values={
                ":scheduled": {"S": State.SCHEDULED},
                ":retrying": {"S": State.RETRYING},
                ":none": {"N": "0"},
                ":one": {"N": "1"},
            },
        )

    def rescue(
        self, timer: Timer, *, row: LedgerRow, owner: str, lease_until: datetime, now: datetime
    ) -> Claimed | Refused:
        """A second write after a refused claim, for a worker that died."""
        lease_is_over = "(s = :state AND f = :fence AND l < :over AND a <= :attempt)"
        mine = "(s = :state AND o = :owner AND a = :attempt)"
        return self._take(
            timer,
            owner=owner,
            lease_until=lease_until,
            now=now,
            condition=f"{lease_is_over} OR {mine}",
            # Set, not added: a repeat after a lost answer counts one death once.
            assignments="f = :next_fence, r = :rescues",
            values={
                ":fence": {"N": str(row.fence)},
                ":next_fence": {"N": str(row.fence + 1)},
                ":rescues": {"N": str(row.rescue_count + 1)},
                ":over": _ms(now - self._skew),
            },
        )

    def attempt(self, timer: Timer, event: Event, *, owner: str, now: datetime) -> Applied | Refused:
        """One write unit, and the only one of an at_most_once job."""
        never_started = "attribute_not_exists(k) OR s = :scheduled"
        return self._write(
            timer.job.key,
            condition=f"{never_started} OR (s = :state AND o = :owner)",
            assignments="d = :due, a = :attempt, i = :id",
            state=target(event),
            owner=owner,
            due_at=timer.due_at,
            now=now,
            values={
                ":scheduled": {"S": State.SCHEDULED},
                ":attempt": {"N": str(timer.attempt)},
                ":id": {"S": str(job_id_of(timer.job))},
            },
        )

    def settle(
        self,
        job: Job,
        event: Event,
        *,
        fence: int,
        owner: str,
        due_at: datetime,
        now: datetime,
        result: str = "",
        error: str = "",
    ) -> Applied | Refused:
        """One write unit. A zombie, whose attempt was rescued, is refused by the fence."""
        running_under_my_fence = "f = :fence AND o = :owner AND s = :running"
        if event is Event.RETRY:
            running_under_my_fence += " AND attribute_not_exists(c)"
        mine = "f = :fence AND o = :owner AND s = :state"
        return self._write(
            job.key,
            condition=f"({running_under_my_fence}) OR ({mine})",
            assignments="d = :due, z = :result, e = :error",
            state=target(event),
            owner=owner,
            due_at=due_at,
            now=now,
            values={
                ":fence": {"N": str(fence)},
                ":running": {"S": State.RUNNING},
                ":result": {"S": result[:_TEXT_LIMIT]},
                ":error": {"S": error[:_TEXT_LIMIT]},
            },
        )

    def cancel(self, job_id: JobId, *, owner: str, now: datetime) -> Applied | Refused:
        """The tombstone: it stops a message that is already on its way."""
        states = sources(Event.CANCEL) - {State.ABSENT} | {target(Event.CANCEL)}
        names = {f":s{number}": {"S": state} for number, state in enumerate(sorted(states))}
        return self._write(
            job_id.key,
            condition=f"attribute_not_exists(k) OR s IN ({', '.join(names)})",
            assignments="d = if_not_exists(d, :due), i = if_not_exists(i, :id)",
            state=target(Event.CANCEL),
            owner=owner,
            due_at=job_id.due_at,
            now=now,
            values={
                **names,
                ":id": {"S": str(job_id)},
                # The next attempt that it may stop is due at most a backoff from now.
                ":ttl": _ttl(now=now + MAX_BACKOFF, due_at=job_id.due_at),
            },
        )

    def request_cancel(self, job_id: JobId, *, row: LedgerRow, now: datetime) -> Applied | Refused:
        """One write unit."""
        unchanged, seen = _unchanged(row)
        try:
            self._client.update_item(
                TableName=self._table,
                Key={"k": {"S": job_id.key}},
                UpdateExpression="SET c = :yes, u = :now",
                ConditionExpression=unchanged,
                ExpressionAttributeValues={":yes": {"BOOL": True}, ":now": _ms(now), **seen},
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            return _refused(error)
        return Applied()

    def skip(self, timer: Timer, *, reason: str, owner: str, now: datetime) -> Applied | Refused:
        """One write unit, refused or not."""
        return self._write(
            timer.job.key,
            condition="attribute_not_exists(k) OR s = :scheduled OR (s = :state AND o = :owner)",
            assignments="d = :due, i = :id, e = :reason",
            state=target(Event.SKIP),
            owner=owner,
            due_at=timer.due_at,
            now=now,
            values={
                ":scheduled": {"S": State.SCHEDULED},
                ":id": {"S": str(job_id_of(timer.job))},
                ":reason": {"S": reason[:_TEXT_LIMIT]},
            },
        )

    def fail(self, letter: DeadLetter, job: Job, *, fence: int, owner: str, now: datetime) -> Applied | Refused:
        """Four write units, for what fails for good."""
        return self._end_with_letter(
            letter,
            job,
            condition="f = :fence AND s = :running",
            event=Event.FAIL,
            owner=owner,
            now=now,
            values={":fence": {"N": str(fence)}, ":running": {"S": State.RUNNING}},
        )

    def bury(
        self, letter: DeadLetter, job: Job, *, row: LedgerRow | None, owner: str, now: datetime
    ) -> Applied | Refused:
        """Four write units; refused when a worker has touched the row since it was seen."""
        if row is not None and row.state not in sources(Event.BURY):
            return Refused(row)
        unchanged, seen = _unchanged(row)
        return self._end_with_letter(
            letter, job, condition=unchanged, event=Event.BURY, owner=owner, now=now, values=seen
        )

    def get(self, key: str) -> LedgerRow | None:
        """One read unit."""
        item = self._client.get_item(TableName=self._table, Key={"k": {"S": key}}, ConsistentRead=True).get("Item")
        return _read(item) if item else None

    def get_many(self, keys: Sequence[str]) -> dict[str, LedgerRow]:
        """Half a read unit a row."""
        rows: dict[str, LedgerRow] = {}
        wanted = [{"k": {"S": key}} for key in dict.fromkeys(keys)]
        while wanted:
            answer = self._client.batch_get_item(RequestItems={self._table: {"Keys": wanted[:_BATCH]}})
            found: Sequence[Mapping[str, Any]] = answer["Responses"].get(self._table, [])
            rows |= {item["k"]["S"]: _read(item) for item in found}
            unprocessed: Any = answer.get("UnprocessedKeys", {}).get(self._table, {})
            wanted = [*unprocessed.get("Keys", []), *wanted[_BATCH:]]
        return rows

    def _take(
        self,
        timer: Timer,
        *,
        owner: str,
        lease_until: datetime,
        now: datetime,
        condition: str,
        assignments: str,
        values: Mapping[str, Any],
        additions: str = "",
    ) -> Claimed | Refused:
        answer = self._update(
            timer.job.key,
            condition=condition,
            assignments=f"d = :due, a = :attempt, l = :lease, i = :id, {assignments}",
            additions=additions,
            returns="ALL_NEW",
            state=target(Event.CLAIM),
            owner=owner,
            due_at=timer.due_at,
            lease_until=lease_until,
            now=now,
            values={
                ":attempt": {"N": str(timer.attempt)},
                ":lease": _ms(lease_until),
                ":id": {"S": str(job_id_of(timer.job))},
                **values,
            },
        )
        if isinstance(answer, Refused):
            return answer
        row = _read(answer)
        return Claimed(row.fence, row.rescue_count, row.cancel_requested)

    def _end_with_letter(
        self,
        letter: DeadLetter,
        job: Job,
        *,
        condition: str,
        event: Event,
        owner: str,
        now: datetime,
        values: Mapping[str, Any],
    ) -> Applied | Refused:
        """In one transaction: a letter of a job that went on, or a job that failed without one, would be a lie."""
        assert self._dead_letters is not None  # only where a function has the table
        update = self._request(
            job.key,
            condition=f"({condition}) OR (s = :state AND o = :owner)",
            assignments="d = if_not_exists(d, :due), e = :error, i = if_not_exists(i, :id)",
            state=target(event),
            owner=owner,
            due_at=letter.timer.due_at if letter.timer else job.scheduled_at,
            now=now,
            values={**values, ":error": {"S": letter.error[:_TEXT_LIMIT]}, ":id": {"S": str(job_id_of(job))}},
        )
        put = self._dead_letters.put_request(letter)
        try:
            self._client.transact_write_items(TransactItems=[{"Update": update}, {"Put": put}])
        except ClientError as error:
            return _refused(error)
        return Applied()

    def _write(self, key: str, **request: Any) -> Applied | Refused:
        answer = self._update(key, **request)
        return answer if isinstance(answer, Refused) else Applied()

    def _update(self, key: str, *, returns: Any = "NONE", **request: Any) -> Mapping[str, Any] | Refused:
        try:
            answer = self._client.update_item(**self._request(key, **request), ReturnValues=returns)
        except ClientError as error:
            return _refused(error)
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
        lease_until: datetime | None = None,
    ) -> Any:
        return {
            "TableName": self._table,
            "Key": {"k": {"S": key}},
            "UpdateExpression": f"SET s = :state, o = :owner, u = :now, x = :ttl, {assignments}"
            + (f" ADD {additions}" if additions else ""),
            "ConditionExpression": condition,
            "ExpressionAttributeValues": {
                ":state": {"S": state},
                ":owner": {"S": owner},
                ":due": _ms(due_at),
                ":now": _ms(now),
                ":ttl": _ttl(now=now, due_at=due_at, lease_until=lease_until),
                **values,
            },
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }


def _unchanged(row: LedgerRow | None) -> tuple[str, dict[str, Any]]:
    """The condition that a row is still the one that was seen, and its values."""
    if row is None:
        return "attribute_not_exists(k)", {}
    if not row.fence:
        return "s = :seen AND attribute_not_exists(f)", {":seen": {"S": row.state}}
    return "s = :seen AND f = :fence", {":seen": {"S": row.state}, ":fence": {"N": str(row.fence)}}


def _refused(error: ClientError) -> Refused:
    """The row that a refused write met; any other error is raised again."""
    if not is_refused(error):
        raise error
    answer: Any = error.response
    items = [answer.get("Item"), *(reason.get("Item") for reason in answer.get("CancellationReasons", []))]
    met = next((item for item in items if item), None)
    return Refused(_read(met) if met else None)


def _read(item: Mapping[str, Any]) -> LedgerRow:
    return LedgerRow(
        state=State(item["s"]["S"]),
        attempt=_number(item, "a"),
        fence=_number(item, "f"),
        owner=_text(item, "o"),
        due_at=_instant(item, "d"),
        lease_until=_instant(item, "l"),
        rescue_count=_number(item, "r"),
        cancel_requested=bool(item.get("c", {}).get("BOOL")),
        job_id=_text(item, "i"),
        fingerprint=_text(item, "h"),
        result=_text(item, "z"),
        error=_text(item, "e"),
        updated_at=_instant(item, "u"),
    )


def _number(item: Mapping[str, Any], name: str) -> int:
    return int(item[name]["N"]) if name in item else 0


def _text(item: Mapping[str, Any], name: str) -> str:
    return item[name]["S"] if name in item else ""


def _instant(item: Mapping[str, Any], name: str) -> datetime | None:
    return from_ms(int(item[name]["N"])) if name in item else None


def _ms(instant: datetime) -> dict[str, str]:
    return {"N": str(to_ms(instant))}


def _ttl(*, now: datetime, due_at: datetime, lease_until: datetime | None = None) -> dict[str, str]:
    # A second more: whole seconds are rounded down.
    return {"N": str(to_seconds(expires_at(now=now, due_at=due_at, lease_until=lease_until)) + 1)}
