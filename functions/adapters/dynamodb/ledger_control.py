"""What is asked about a job from outside: cancel, run now, move, replay."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from functions.adapters.dynamodb.ledger_row import moved_ttl_of, read_row, ttl_of, unchanged_since
from functions.adapters.dynamodb.ledger_writes import LedgerWrites
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import JobId, first_identity, job_id_of
from functions.domain.jobs.retry import MAX_BACKOFF
from functions.domain.lifecycle import Event, State, sources, target
from functions.ports.ledger import Applied, Cancelled, Refused


@dataclass
class LedgerControl(LedgerWrites):
    """What callers and operations write."""

    def hasten(self, timer: Timer, *, row: LedgerRow, owner: str, now: datetime) -> Applied | Refused:
        """One write unit. A later message of the same attempt still finds its row: it lives as long as for its own time."""
        assert row.due_at is not None  # a retry has an instant
        return self._write(
            timer,
            condition="s = :state AND ((d = :seen AND a = :before) OR (d = :due AND o = :owner))",
            assignments="d = :due",
            state=State.RETRYING,
            owner=owner,
            scheduled_at=max(timer.job.scheduled_at, row.due_at),
            now=now,
            seen=row.due_at,
            before=timer.attempt - 1,
        )

    def move(
        self, job_id: JobId, timer: Timer, *, owner: str, now: datetime, first: JobId | None = None
    ) -> Applied | Refused:
        """Four write units: a transaction of two rows. Two more where its first row is pointed to the new id, too.

        Raises NotPlaced when the day of the far row could not be marked.
        """
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
            scheduled=State.SCHEDULED,
            id=str(job_id),
            moved_to=moved_to,
            ttl=moved_ttl_of(job_id, timer, now=now),
        )
        self.timers.mark(timer)
        writes: list[Any] = [{"Update": update}, {"Put": self.timers.put_request(timer)}]
        if first is not None:
            renewed = self.table.update_request(
                {"k": first.key},
                update="SET m = :moved_to, u = :now, x = :ttl",
                condition="s = :state",
                state=target(Event.MOVE),
                moved_to=moved_to,
                now=now,
                ttl=moved_ttl_of(first, timer, now=now),
            )
            writes.append({"Update": renewed})
        return self._transact(job_id.key, *writes)

    def renew_first(self, timer: Timer, *, now: datetime) -> None:
        """One write unit, refused or not."""
        job = timer.job
        self._apply(
            f"{job.tenant}#{first_identity(job.identity)}",
            update="SET x = :ttl",
            condition="s = :state AND m = :moved_to AND x < :ttl",
            state=State.MOVED,
            moved_to=str(job_id_of(job)),
            ttl=moved_ttl_of(job_id_of(job), timer, now=now),
        )

    def replay(
        self, timer: Timer, *, far: Timer, job_id: str, fence: int, owner: str, now: datetime, needs_row: bool = False
    ) -> Applied | Refused:
        """Four write units, and two more for each further 1,024 bytes of the far row: a transaction of two rows.

        Raises NotPlaced when the day of the far row could not be marked.
        """
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
            failed=State.FAILED,
            before=timer.attempt - 1,
            id=job_id,
            spent=timer.spent,
            counted_from=timer.counted_from or timer.due_at,
            **({"fence": fence} if fence else {}),
        )
        self.timers.mark(far)
        return self._transact(timer.job.key, {"Update": update}, {"Put": self.timers.put_request(far)})

    def cancel(self, job_id: JobId, *, owner: str, now: datetime, row: LedgerRow | None = None) -> Cancelled | Refused:
        """The tombstone: it stops a message that is already on its way."""
        if row is not None and row.state not in sources(Event.CANCEL) | {target(Event.CANCEL)}:
            return Refused(row)
        states = sources(Event.CANCEL) - {State.ABSENT} | {target(Event.CANCEL)}
        names = {f"s{number}": state for number, state in enumerate(sorted(states))}
        condition, values = f"attribute_not_exists(k) OR s IN ({', '.join(f':{name}' for name in names)})", names
        if row is not None:
            unchanged, values = unchanged_since(row)
            condition = f"({unchanged}) OR s = :state"
        # The next attempt that it may stop is due at most a backoff from now.
        ttl = ttl_of(now=now + MAX_BACKOFF, due_at=job_id.due_at)
        return self._entomb(job_id, Event.CANCEL, condition=condition, owner=owner, now=now, ttl=ttl, **values)

    def give_up(self, job_id: JobId, *, row: LedgerRow, reason: str, owner: str, now: datetime) -> Cancelled | Refused:
        """One write unit."""
        if row.state not in sources(Event.ABANDON):
            return Refused(row)
        unchanged, seen = unchanged_since(row)
        assert row.updated_at is not None  # each write says when it was
        return self._entomb(
            job_id,
            Event.ABANDON,
            # The fence alone does not show a heartbeat, nor a watchdog that was parked.
            condition=f"({unchanged} AND u = :updated) OR (s = :state AND o = :owner)",
            note=", e = :reason",
            removals="j",
            owner=owner,
            now=now,
            updated=row.updated_at,
            reason=reason,
            **seen,
        )

    def request_cancel(self, job_id: JobId, *, row: LedgerRow, now: datetime) -> Applied | Refused:
        """One write unit."""
        unchanged, seen = unchanged_since(row)
        return self._apply(job_id.key, update="SET c = :yes, u = :now", condition=unchanged, yes=True, now=now, **seen)

    def _entomb(self, job_id: JobId, event: Event, *, owner: str, note: str = "", **asked: Any) -> Cancelled | Refused:
        """Write a tombstone, under the job's own id and time where its row has none."""
        answer = self._update(
            job_id.key,
            assignments=f"d = if_not_exists(d, :due), i = if_not_exists(i, :id){note}",
            returns="ALL_OLD",
            state=target(event),
            owner=owner,
            due_at=job_id.due_at,
            id=str(job_id),
            **asked,
        )
        if isinstance(answer, Refused):
            return answer
        return Cancelled.over(read_row(answer) if answer else None, owner=owner)
