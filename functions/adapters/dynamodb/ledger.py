"""The ledger on DynamoDB: every step of an execution is one named conditional write of one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from functions.adapters.dynamodb.ledger_attempts import LedgerAttempts
from functions.adapters.dynamodb.ledger_control import LedgerControl
from functions.adapters.dynamodb.ledger_row import read_row, ttl_of, unchanged_since
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job import Job
from functions.domain.jobs.job_id import job_id_of
from functions.domain.lifecycle import Event, State, sources, target
from functions.domain.targets.http_answers import RESULT_LIMIT
from functions.ports.dead_letters import DeadLetter
from functions.ports.ledger import Applied, Refused


@dataclass
class DynamoDBLedger(LedgerAttempts, LedgerControl):
    """The conditional-write table.

    A write that collides with a transaction on its row is made again. Raises JobBusy when it collides each time.

    Rows {k, s: state, a: attempt, f: fence, o: owner, l: lease until, d: due, r: rescues, c: cancel requested,
    i: job id, h: fingerprint, z: result, y: pointer of the whole result, e: error, j: record of a held attempt, m: moved to,
    w: parked until, b: the flow that it waits for, p: attempts spent before its replay, q: since when its replay counts age,
    g: what was asked for, t: failed attempts, u: updated, x: ttl};
    instants in ms, the ttl in s. And {k, n, q, x} of an attempt without such a row: how often
    it was started anew, and got a fresh message.
    """

    def register(self, job: Job, *, job_id: str, fingerprint: str, owner: str, now: datetime) -> Applied | Refused:
        """One write unit, refused or not."""
        item = {
            "k": job.key,
            "s": target(Event.REGISTER),
            "o": owner,
            "d": job.scheduled_at,
            "i": job_id,
            "h": fingerprint,
            "u": now,
            "x": ttl_of(now=now, due_at=job.scheduled_at),
        }
        is_new_or_mine = "attribute_not_exists(k) OR (s = :state AND o = :owner)"
        return self._put(item, condition=is_new_or_mine, state=target(Event.REGISTER), owner=owner)

    def register_callback(self, job: Job, *, job_id: str, owner: str, now: datetime) -> Applied | Refused:
        """One write unit, refused or not. By an update, which every function that ends jobs may make."""
        return self._apply(
            job.key,
            update="SET s = :state, o = :owner, d = :due, i = :id, u = :now, x = :ttl",
            condition="attribute_not_exists(k) OR (s = :state AND o = :owner)",
            state=target(Event.REGISTER),
            owner=owner,
            due=job.scheduled_at,
            id=job_id,
            now=now,
            ttl=ttl_of(now=now, due_at=job.scheduled_at),
        )

    def fail(
        self, letter: DeadLetter, job: Job, *, fence: int, owner: str, now: datetime, tried: str = ""
    ) -> Applied | Refused:
        """Four write units, for what fails for good."""
        return self._end_with_dead_letter(
            letter,
            job,
            condition="f = :fence AND s = :running",
            state=target(Event.FAIL),
            owner=owner,
            now=now,
            tried=tried,
            fence=fence,
            running=State.RUNNING,
        )

    def bury(
        self, letter: DeadLetter, job: Job, *, row: LedgerRow | None, owner: str, now: datetime, tried: str = ""
    ) -> Applied | Refused:
        """Four write units; refused when a worker has touched the row since it was seen."""
        if row is not None and row.state not in sources(Event.BURY):
            return Refused(row)
        unchanged, seen = unchanged_since(row)
        return self._end_with_dead_letter(
            letter, job, condition=unchanged, state=target(Event.BURY), owner=owner, now=now, tried=tried, **seen
        )

    def get(self, key: str) -> LedgerRow | None:
        """One read unit."""
        item = self.table.get({"k": key})
        return read_row(item) if item else None

    def get_many(self, keys: Sequence[str]) -> dict[str, LedgerRow]:
        """Half a read unit a row."""
        items = self.table.get_many({"k": key} for key in dict.fromkeys(keys))
        return {item["k"]: read_row(item) for item in items}

    def _end_with_dead_letter(
        self, letter: DeadLetter, job: Job, *, condition: str, tried: str = "", **asked: Any
    ) -> Applied | Refused:
        """In one transaction: a letter of a job that continued, or a job that failed without one, would be a lie."""
        update = self._request(
            job.key,
            condition=f"({condition}) OR (s = :state AND o = :owner)",
            # Under the id that its dead letter has: by both a replay knows that they belong together.
            assignments="d = if_not_exists(d, :due), a = :attempt, e = :error, i = :id"
            + (", t = :tried" if tried else ""),
            removals="j",
            due_at=letter.timer.due_at if letter.timer else job.scheduled_at,
            scheduled_at=job.scheduled_at,
            # Of one that was never claimed too: its end is reported with this number, and again from the row.
            attempt=letter.attempt,
            error=letter.error[:RESULT_LIMIT],
            id=letter.job_id or str(job_id_of(job)),
            **({"tried": tried} if tried else {}),
            **asked,
        )
        self.dead_letters.mark_hour(letter)
        return self._transact(job.key, {"Update": update}, {"Put": self.dead_letters.put_request(letter)})
