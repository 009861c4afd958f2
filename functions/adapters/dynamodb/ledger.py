"""The ledger on DynamoDB: every step of an execution is one named conditional write of one row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import ClientError

from functions.adapters.clients import is_refused, patiently
from functions.adapters.dynamodb.dead_letters import DynamoDBDeadLetters
from functions.adapters.dynamodb.timers import DynamoDBTimerStore
from functions.domain.errors import Busy, JobBusy
from functions.domain.far_ring.timer_record import encode_timer
from functions.domain.instants import from_ms, to_ms, to_seconds
from functions.domain.jobs.claims import MOVED_LIFE, LedgerRow, deaths_of, expires_at, is_own
from functions.domain.jobs.job import Job, Timer
from functions.domain.jobs.job_id import JobId, first_identity, job_id_of
from functions.domain.jobs.retry import MAX_BACKOFF
from functions.domain.lifecycle import Event, State, sources, target
from functions.domain.targets.http_answers import RESULT_LIMIT
from functions.ports.dead_letters import DeadLetter
from functions.ports.ledger import Applied, Cancelled, Claimed, Refused

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Answer = TypeVar("Answer")

_BATCH = 100


class DynamoDBLedger:
    """The conditional-write table. What meets a transaction on its row is made again; JobBusy when it meets another each time.

    Rows {k, s: state, a: attempt, f: fence, o: owner, l: lease until, d: due, r: rescues, c: cancel requested,
    i: job id, h: fingerprint, z: result, e: error, j: record of an attempt whose target goes on by itself, m: moved to,
    w: parked until, p: attempts spent before its replay, q: since when its replay counts age, u: updated, x: ttl};
    instants in ms, the ttl in s.
    """

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
        request: Any = {
            "TableName": self._table,
            "Item": item,
            "ConditionExpression": "attribute_not_exists(k) OR (s = :state AND o = :owner)",
            "ExpressionAttributeValues": {":state": {"S": target(Event.REGISTER)}, ":owner": {"S": owner}},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        try:
            _in_turn(job.key, lambda: self._client.put_item(**request))
        except ClientError as error:
            return _refused(error)
        return Applied()

    def claim(self, timer: Timer, *, owner: str, lease_until: datetime, now: datetime) -> Claimed | Refused:
        """One write unit, refused or not."""
        waits = "(s = :scheduled AND (attribute_not_exists(a) OR a <= :attempt))"
        # A message that is due before the retry is not its message: it looks after an attempt that has ended since.
        is_next = "(s = :retrying AND a < :attempt AND d <= :due)"
        nobody_has_it = f"attribute_not_exists(k) OR {waits} OR {is_next}"
        return self._take(
            timer,
            owner=owner,
            lease_until=lease_until,
            now=now,
            condition=nobody_has_it,
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
        return self._take(
            timer,
            owner=owner,
            lease_until=lease_until,
            now=now,
            condition=lease_is_over,
            assignments="f = :next_fence, r = :rescues",
            removals="j",
            values={
                ":fence": {"N": str(row.fence)},
                ":next_fence": {"N": str(row.fence + 1)},
                ":rescues": {"N": str(deaths_of(row, attempt=timer.attempt))},
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
            scheduled_at=timer.job.scheduled_at,
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
        # Whoever ends an attempt that goes on by itself has a token of its own, and its fence.
        running_under_my_fence = "f = :fence AND s = :running AND (o = :owner OR attribute_exists(j))"
        if event is Event.RETRY:
            running_under_my_fence += " AND attribute_not_exists(c)"
        mine = "f = :fence AND o = :owner AND s = :state"
        return self._write(
            job.key,
            condition=f"({running_under_my_fence}) OR ({mine})",
            assignments="d = :due, z = :result, e = :error",
            removals="j",
            state=target(event),
            owner=owner,
            due_at=due_at,
            scheduled_at=job.scheduled_at,
            now=now,
            values={
                ":fence": {"N": str(fence)},
                ":running": {"S": State.RUNNING},
                ":result": {"S": result[:RESULT_LIMIT]},
                ":error": {"S": error[:RESULT_LIMIT]},
            },
        )

    def hold(self, timer: Timer, *, fence: int, owner: str, lease_until: datetime, now: datetime) -> Applied | Refused:
        """One write unit and one more for each 1,024 bytes of the record, which the API needs for a retry."""
        answer = self._write(
            timer.job.key,
            condition="f = :fence AND o = :owner AND s = :state AND l <= :lease",
            assignments="d = :due, l = :lease, j = :record",
            state=target(Event.HOLD),
            owner=owner,
            due_at=timer.due_at,
            scheduled_at=timer.job.scheduled_at,
            lease_until=lease_until,
            now=now,
            values={
                ":fence": {"N": str(fence)},
                ":lease": _ms(lease_until),
                ":record": {"S": encode_timer(timer)},
            },
        )
        met = answer.row if isinstance(answer, Refused) else None
        if met is None or met.lease_until is None:
            return answer
        if (met.state, met.fence, met.owner) != (State.RUNNING, fence, owner):
            return answer
        # A heartbeat came first, and its target relies on the longer lease that it was told.
        return self.hold(timer, fence=fence, owner=owner, lease_until=met.lease_until, now=now)

    def extend(
        self,
        key: str,
        *,
        fence: int,
        lease_until: datetime,
        now: datetime,
        scheduled_at: datetime | None = None,
        job_id: JobId | None = None,
    ) -> LedgerRow | Refused:
        """One write unit, and one more for each 1,024 bytes of the record. A lease only grows."""
        request = self._conditional(
            key,
            update="SET l = :lease, u = :now, x = :ttl",
            condition="f = :fence AND s = :running AND l <= :lease" + (" AND i = :id" if job_id is not None else ""),
            values={
                **({":id": {"S": str(job_id)}} if job_id is not None else {}),
                ":fence": {"N": str(fence)},
                ":running": {"S": State.RUNNING},
                ":lease": _ms(lease_until),
                ":now": _ms(now),
                ":ttl": _ttl(now=now, due_at=scheduled_at or now, lease_until=lease_until),
            },
        )
        answer = self._send(request, returns="ALL_NEW")
        if not isinstance(answer, Refused):
            return _read(answer)
        row = answer.row
        if row is None or (row.state, row.fence) != (State.RUNNING, fence):
            return answer
        return row if job_id is None or row.job_id == str(job_id) else answer

    def complete(self, job_id: JobId, *, fence: int, result: str, now: datetime) -> Applied | Refused:
        """One write unit. The owner stays, so that its worker knows the row for its own when it comes to note the rest."""
        request = self._conditional(
            job_id.key,
            update="SET s = :state, z = :result, e = :none, u = :now, x = :ttl",
            condition="f = :fence AND s = :running AND attribute_not_exists(j)",
            values={
                ":fence": {"N": str(fence)},
                ":running": {"S": State.RUNNING},
                ":state": {"S": target(Event.SUCCEED)},
                ":result": {"S": result[:RESULT_LIMIT]},
                ":none": {"S": ""},
                ":now": _ms(now),
                ":ttl": _ttl(now=now, due_at=job_id.due_at),
            },
        )
        return _applied(self._send(request))

    def hasten(self, timer: Timer, *, row: LedgerRow, owner: str, now: datetime) -> Applied | Refused:
        """One write unit. A later message of the same attempt still finds its row: it lives as long as for its own time."""
        assert row.due_at is not None  # a retry has an instant
        return self._write(
            timer.job.key,
            condition="s = :state AND ((d = :seen AND a = :before) OR (d = :due AND o = :owner))",
            assignments="d = :due",
            state=State.RETRYING,
            owner=owner,
            due_at=timer.due_at,
            scheduled_at=max(timer.job.scheduled_at, row.due_at),
            now=now,
            values={":seen": _ms(row.due_at), ":before": {"N": str(timer.attempt - 1)}},
        )

    def move(
        self, job_id: JobId, timer: Timer, *, owner: str, now: datetime, first: JobId | None = None
    ) -> Applied | Refused:
        """Four write units: a transaction of two rows. Two more where its first row is pointed to the new id, too.

        Raises NotPlaced when the day of the far row could not be marked.
        """
        assert self._timers is not None  # only where a function has the table
        moved_to = str(job_id_of(timer.job))
        nobody_has_had_it = "(s = :scheduled AND attribute_not_exists(f) AND attribute_not_exists(c))"
        update = self._request(
            job_id.key,
            condition=f"attribute_not_exists(k) OR {nobody_has_had_it} OR (s = :state AND o = :owner)",
            assignments="d = if_not_exists(d, :due), i = if_not_exists(i, :id), m = :moved_to",
            state=target(Event.MOVE),
            owner=owner,
            due_at=job_id.due_at,
            scheduled_at=timer.due_at,
            now=now,
            values={
                ":scheduled": {"S": State.SCHEDULED},
                ":id": {"S": str(job_id)},
                ":moved_to": {"S": moved_to},
                ":ttl": _moved_ttl(job_id, timer, now=now),
            },
        )
        self._timers.mark(timer)
        put = self._timers.put_request(timer)
        writes: list[Any] = [{"Update": update}, {"Put": put}]
        if first is not None:
            renewed = self._conditional(
                first.key,
                update="SET m = :moved_to, u = :now, x = :ttl",
                condition="s = :state",
                values={
                    ":state": {"S": target(Event.MOVE)},
                    ":moved_to": {"S": moved_to},
                    ":now": _ms(now),
                    ":ttl": _moved_ttl(first, timer, now=now),
                },
            )
            writes.append({"Update": renewed})
        return self._transact(job_id.key, *writes)

    def park(self, timer: Timer, *, until: datetime, now: datetime) -> Applied | Refused:
        """One write unit, refused or not."""
        request = self._conditional(
            timer.job.key,
            update=(
                "SET w = :until, u = :now, x = :ttl, s = if_not_exists(s, :scheduled), "
                "d = if_not_exists(d, :due), i = if_not_exists(i, :id)"
            ),
            condition=(
                "attribute_not_exists(k) OR (s = :retrying AND a < :attempt AND d <= :due) OR "
                "(s IN (:scheduled, :running) AND (attribute_not_exists(a) OR a <= :attempt))"
            ),
            values={
                ":until": _ms(until),
                ":now": _ms(now),
                ":ttl": _ttl(now=now, due_at=max(until, timer.job.scheduled_at)),
                ":scheduled": {"S": State.SCHEDULED},
                ":retrying": {"S": State.RETRYING},
                ":running": {"S": State.RUNNING},
                ":attempt": {"N": str(timer.attempt)},
                ":due": _ms(timer.due_at),
                ":id": {"S": str(job_id_of(timer.job))},
            },
        )
        return _applied(self._send(request))

    def renew_first(self, timer: Timer, *, now: datetime) -> None:
        """One write unit, refused or not."""
        job = timer.job
        request = self._conditional(
            f"{job.tenant}#{first_identity(job.identity)}",
            update="SET x = :ttl",
            condition="s = :state AND m = :moved_to AND x < :ttl",
            values={
                ":state": {"S": State.MOVED},
                ":moved_to": {"S": str(job_id_of(job))},
                ":ttl": _moved_ttl(job_id_of(job), timer, now=now),
            },
        )
        self._send(request)

    def replay(
        self, timer: Timer, *, far: Timer, job_id: str, fence: int, owner: str, now: datetime, needs_row: bool = False
    ) -> Applied | Refused:
        """Four write units, and two more for each further 1,024 bytes of the far row: a transaction of two rows.

        Raises NotPlaced when the day of the far row could not be marked.
        """
        assert self._timers is not None  # only where a function has the table
        has_failed = "s = :failed AND (attribute_not_exists(a) OR a <= :before)"
        # Its key may have been used again since its row expired.
        is_its_own = "(attribute_not_exists(i) OR i = :id)"
        # Never to a later instant: a message that another replay has placed would be dropped as due before it.
        is_replayed = "s = :state AND a = :before AND d >= :due"
        update = self._request(
            timer.job.key,
            condition=f"({is_its_own} AND (({has_failed}) OR ({is_replayed})))"
            + ("" if needs_row else " OR attribute_not_exists(k)"),
            # A target that remembers the highest fence would refuse those of a row that begins anew.
            assignments="d = :due, a = :before, i = :id, p = :spent, q = :counted_from"
            + (", f = if_not_exists(f, :fence)" if fence else ""),
            removals="c",
            state=target(Event.REPLAY),
            owner=owner,
            due_at=timer.due_at,
            scheduled_at=timer.job.scheduled_at,
            now=now,
            values={
                ":failed": {"S": State.FAILED},
                ":before": {"N": str(timer.attempt - 1)},
                ":id": {"S": job_id},
                ":spent": {"N": str(timer.spent)},
                ":counted_from": _ms(timer.counted_from or timer.due_at),
                **({":fence": {"N": str(fence)}} if fence else {}),
            },
        )
        self._timers.mark(far)
        return self._transact(timer.job.key, {"Update": update}, {"Put": self._timers.put_request(far)})

    def cancel(self, job_id: JobId, *, owner: str, now: datetime, row: LedgerRow | None = None) -> Cancelled | Refused:
        """The tombstone: it stops a message that is already on its way."""
        if row is not None and row.state not in sources(Event.CANCEL) | {target(Event.CANCEL)}:
            return Refused(row)
        states = sources(Event.CANCEL) - {State.ABSENT} | {target(Event.CANCEL)}
        names = {f":s{number}": {"S": state} for number, state in enumerate(sorted(states))}
        condition, met = f"attribute_not_exists(k) OR s IN ({', '.join(names)})", names
        if row is not None:
            unchanged, met = _unchanged(row)
            condition = f"({unchanged}) OR s = :state"
        answer = self._update(
            job_id.key,
            condition=condition,
            assignments="d = if_not_exists(d, :due), i = if_not_exists(i, :id)",
            returns="ALL_OLD",
            state=target(Event.CANCEL),
            owner=owner,
            due_at=job_id.due_at,
            now=now,
            values={
                **met,
                ":id": {"S": str(job_id)},
                # The next attempt that it may stop is due at most a backoff from now.
                ":ttl": _ttl(now=now + MAX_BACKOFF, due_at=job_id.due_at),
            },
        )
        if isinstance(answer, Refused):
            return answer
        return Cancelled.over(_read(answer) if answer else None, owner=owner)

    def give_up(self, job_id: JobId, *, row: LedgerRow, reason: str, owner: str, now: datetime) -> Cancelled | Refused:
        """One write unit."""
        if row.state not in sources(Event.ABANDON):
            return Refused(row)
        unchanged, seen = _unchanged(row)
        assert row.updated_at is not None  # each write says when it was
        answer = self._update(
            job_id.key,
            # The fence alone does not tell of a heartbeat, nor of a watchdog that was parked.
            condition=f"({unchanged} AND u = :heard) OR (s = :state AND o = :owner)",
            assignments="d = if_not_exists(d, :due), i = if_not_exists(i, :id), e = :reason",
            removals="j",
            returns="ALL_OLD",
            state=target(Event.ABANDON),
            owner=owner,
            due_at=job_id.due_at,
            now=now,
            values={**seen, ":heard": _ms(row.updated_at), ":id": {"S": str(job_id)}, ":reason": {"S": reason}},
        )
        return answer if isinstance(answer, Refused) else Cancelled.over(_read(answer), owner=owner)

    def request_cancel(self, job_id: JobId, *, row: LedgerRow, now: datetime) -> Applied | Refused:
        """One write unit."""
        unchanged, seen = _unchanged(row)
        request = self._conditional(
            job_id.key,
            update="SET c = :yes, u = :now",
            condition=unchanged,
            values={":yes": {"BOOL": True}, ":now": _ms(now), **seen},
        )
        return _applied(self._send(request))

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
        removals: str = "",
    ) -> Claimed | Refused:
        answer = self._update(
            timer.job.key,
            condition=condition,
            assignments=f"d = :due, a = :attempt, l = :lease, i = :id, {assignments}",
            additions=additions,
            removals=removals,
            returns="ALL_NEW",
            state=target(Event.CLAIM),
            owner=owner,
            due_at=timer.due_at,
            scheduled_at=timer.job.scheduled_at,
            lease_until=lease_until,
            now=now,
            values={
                ":attempt": {"N": str(timer.attempt)},
                ":lease": _ms(lease_until),
                ":id": {"S": str(job_id_of(timer.job))},
                **values,
            },
        )
        row = answer.row if isinstance(answer, Refused) else _read(answer)
        if isinstance(answer, Refused) and not is_own(row, attempt=timer.attempt, owner=owner):
            return answer
        assert row is not None
        # Its own row needs no second write: that would move the fence that its target has been told.
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

    def _transact(self, key: str, *writes: Any) -> Applied | Refused:
        try:
            _in_turn(key, lambda: self._client.transact_write_items(TransactItems=list(writes)))
        except ClientError as error:
            return _refused(error)
        return Applied()

    def _write(self, key: str, **request: Any) -> Applied | Refused:
        return _applied(self._update(key, **request))

    def _update(self, key: str, *, returns: Any = "NONE", **request: Any) -> Mapping[str, Any] | Refused:
        return self._send(self._request(key, **request), returns=returns)

    def _send(self, request: Any, *, returns: Any = "NONE") -> Mapping[str, Any] | Refused:
        """The attributes that it returns, or the row that it met."""
        try:
            answer = _in_turn(
                request["Key"]["k"]["S"], lambda: self._client.update_item(**request, ReturnValues=returns)
            )
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
                ":due": _ms(due_at),
                ":now": _ms(now),
                ":ttl": _ttl(now=now, due_at=latest, lease_until=lease_until),
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


def _unchanged(row: LedgerRow | None) -> tuple[str, dict[str, Any]]:
    """The condition that a row is still the one that was seen, and its values."""
    if row is None:
        return "attribute_not_exists(k)", {}
    if not row.fence:
        return "s = :seen AND attribute_not_exists(f)", {":seen": {"S": row.state}}
    return "s = :seen AND f = :fence", {":seen": {"S": row.state}, ":fence": {"N": str(row.fence)}}


def _in_turn(key: str, call: Callable[[], Answer]) -> Answer:
    try:
        return patiently(call)
    except Busy:
        raise JobBusy(key) from None


def _applied(answer: Mapping[str, Any] | Refused) -> Applied | Refused:
    return answer if isinstance(answer, Refused) else Applied()


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
        parked_until=_instant(item, "w"),
        held=_text(item, "j"),
        moved_to=_text(item, "m"),
        spent=_number(item, "p"),
        counted_from=_instant(item, "q"),
    )


def _number(item: Mapping[str, Any], name: str) -> int:
    return int(item[name]["N"]) if name in item else 0


def _text(item: Mapping[str, Any], name: str) -> str:
    return item[name]["S"] if name in item else ""


def _instant(item: Mapping[str, Any], name: str) -> datetime | None:
    return from_ms(int(item[name]["N"])) if name in item else None


def _ms(instant: datetime) -> dict[str, str]:
    return {"N": str(to_ms(instant))}


def _moved_ttl(job_id: JobId, timer: Timer, *, now: datetime) -> dict[str, str]:
    """Of the row of a job that goes on as another. A timer of its own time may be left behind."""
    return {"N": str(to_seconds(max(now, job_id.due_at, timer.due_at) + MOVED_LIFE) + 1)}


def _ttl(*, now: datetime, due_at: datetime, lease_until: datetime | None = None) -> dict[str, str]:
    # A second more: whole seconds are rounded down.
    return {"N": str(to_seconds(expires_at(now=now, due_at=due_at, lease_until=lease_until)) + 1)}
