"""The ledger on DynamoDB: every step of an execution is one named conditional write of one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from functions.adapters.dynamodb.ledger_attempts import LedgerAttempts
from functions.adapters.dynamodb.ledger_control import LedgerControl
from functions.adapters.dynamodb.ledger_row import ms_of, read_row, ttl_of, unchanged_since
from functions.adapters.dynamodb.ledger_writes import in_turn, refused
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job import Job, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.lifecycle import Event, State, sources, target
from functions.domain.targets.http_answers import RESULT_LIMIT
from functions.ports.dead_letters import DeadLetter
from functions.ports.ledger import Applied, Refused

_BATCH = 100


class DynamoDBLedger(LedgerAttempts, LedgerControl):
    """The conditional-write table. What meets a transaction on its row is made again; JobBusy when it meets another each time.

    Rows {k, s: state, a: attempt, f: fence, o: owner, l: lease until, d: due, r: rescues, c: cancel requested,
    i: job id, h: fingerprint, z: result, e: error, j: record of an attempt whose target goes on by itself, m: moved to,
    w: parked until, p: attempts spent before its replay, q: since when its replay counts age, u: updated, x: ttl};
    instants in ms, the ttl in s.
    """

    def register(self, job: Job, *, job_id: str, fingerprint: str, owner: str, now: datetime) -> Applied | Refused:
        """One write unit, refused or not."""
        item = {
            "k": {"S": job.key},
            "s": {"S": target(Event.REGISTER)},
            "o": {"S": owner},
            "d": ms_of(job.scheduled_at),
            "i": {"S": job_id},
            "h": {"S": fingerprint},
            "u": ms_of(now),
            "x": ttl_of(now=now, due_at=job.scheduled_at),
        }
        request: Any = {
            "TableName": self._table,
            "Item": item,
            "ConditionExpression": "attribute_not_exists(k) OR (s = :state AND o = :owner)",
            "ExpressionAttributeValues": {":state": {"S": target(Event.REGISTER)}, ":owner": {"S": owner}},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        try:
            in_turn(job.key, lambda: self._client.put_item(**request))
        except ClientError as error:
            return refused(error)
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
            scheduled_at=timer.job.scheduled_at,
            now=now,
            values={
                ":scheduled": {"S": State.SCHEDULED},
                ":id": {"S": str(job_id_of(timer.job))},
                ":reason": {"S": reason[:RESULT_LIMIT]},
            },
        )

    def fail(self, letter: DeadLetter, job: Job, *, fence: int, owner: str, now: datetime) -> Applied | Refused:
        """Four write units, for what fails for good."""
        return self._end_with_dead_letter(
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
        unchanged, seen = unchanged_since(row)
        return self._end_with_dead_letter(
            letter, job, condition=unchanged, event=Event.BURY, owner=owner, now=now, values=seen
        )

    def get(self, key: str) -> LedgerRow | None:
        """One read unit."""
        item = self._client.get_item(TableName=self._table, Key={"k": {"S": key}}, ConsistentRead=True).get("Item")
        return read_row(item) if item else None

    def get_many(self, keys: Sequence[str]) -> dict[str, LedgerRow]:
        """Half a read unit a row."""
        rows: dict[str, LedgerRow] = {}
        wanted = [{"k": {"S": key}} for key in dict.fromkeys(keys)]
        while wanted:
            answer = self._client.batch_get_item(RequestItems={self._table: {"Keys": wanted[:_BATCH]}})
            found: Sequence[Mapping[str, Any]] = answer["Responses"].get(self._table, [])
            rows |= {item["k"]["S"]: read_row(item) for item in found}
            unprocessed: Any = answer.get("UnprocessedKeys", {}).get(self._table, {})
            wanted = [*unprocessed.get("Keys", []), *wanted[_BATCH:]]
        return rows

    def _end_with_dead_letter(
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
            # Under the id that its letter has: by both a replay knows that they belong together.
            assignments="d = if_not_exists(d, :due), a = :attempt, e = :error, i = :id",
            removals="j",
            state=target(event),
            owner=owner,
            due_at=letter.timer.due_at if letter.timer else job.scheduled_at,
            scheduled_at=job.scheduled_at,
            now=now,
            values={
                **values,
                # Of one that was never claimed too: its end is told with this number, and told again from the row.
                ":attempt": {"N": str(letter.attempt)},
                ":error": {"S": letter.error[:RESULT_LIMIT]},
                ":id": {"S": letter.job_id or str(job_id_of(job))},
            },
        )
        self._dead_letters.mark_hour(letter)
        put = self._dead_letters.put_request(letter)
        return self._transact(job.key, {"Update": update}, {"Put": put})
