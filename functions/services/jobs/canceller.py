"""Stop a job that has not run: one path for each kind, and never a promise that cannot be kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from functions.domain.audit import Action, ActionName
from functions.domain.errors import JobNotFound, TooLate
from functions.domain.jobs.claims import ABSENT_IS_OVER, REQUEST_LIMIT, LedgerRow
from functions.domain.jobs.collection import collection_in, due_at_of, parse_collection
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import JobId
from functions.domain.jobs.occurrence import fire_of
from functions.domain.lifecycle import State
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.collections import CollectionStore
from functions.ports.ledger import Applied, Cancelled, Ledger, Refused
from functions.ports.payloads import PayloadStore
from functions.ports.recorder import AuditTrail
from functions.ports.timers import StoredTimer, TimerStore
from functions.services.far_ring.placer import Placer
from functions.services.jobs.ends import Ends
from functions.services.jobs.moves import check_not_over

_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Canceller:
    """Cancels jobs. token: a fresh owner token. caller: who asks, for the audit trail."""

    wheel: Wheel
    clock: Clock
    ledger: Ledger
    timers: TimerStore
    payloads: PayloadStore
    placer: Placer
    ends: Ends
    token: Callable[[], str]
    audit: AuditTrail
    collections: CollectionStore

    def cancel(self, job_id: JobId, *, caller: str = "") -> bool:
        """True when the job will not run. False when it is running: it is asked not to be tried again.

        And False when a release that runs may have given it to its target: then it is cancelled, whatever that makes of it.

        Raises JobNotFound (it is long over), AlreadySettled, Moved, TooLate (an at_least_once job near its time).
        """
        cancelled = self._write_tombstone(job_id) if job_id.is_ledgered else self._delete(job_id)
        state = State.CANCELLED.value if cancelled else "cancel_requested"
        self.audit.note(
            Action(
                action=ActionName.JOB_CANCEL,
                caller=caller,
                tenant=job_id.tenant,
                subject=str(job_id),
                after={"state": state},
            )
        )
        return cancelled is not None

    def _write_tombstone(self, job_id: JobId) -> Cancelled | None:
        """Every message that is on its way will find it in the ledger. None when it is running."""
        owner = self.token()
        for _ in range(_TRIES):
            now = self.clock.now()
            # So long after its time it waits only if its row says so: a pause or its retries keep it. Without one it is over.
            seen = self._row_of_old(job_id) if job_id.due_at + ABSENT_IS_OVER < now else None
            answer = self.ledger.cancel(job_id, owner=owner, now=now, row=seen)
            if isinstance(answer, Cancelled):
                # Housekeeping: the tombstone alone keeps the job from running.
                deleted = self.timers.delete_unless_called_back(job_id)
                was_hastened = self._was_hastened(job_id, answer, deleted, now=now)
                answer = replace(answer, asked_for=now) if was_hastened else answer
                self._end(job_id, answer, deleted)
                return None if self._is_given(job_id, answer) else answer
            row = answer.row
            if row is None:
                continue
            check_not_over(job_id, row)
            if isinstance(self.ledger.request_cancel(job_id, row=row, now=now), Applied):
                return None
        raise TooLate(str(job_id))

    def _is_given(self, job_id: JobId, answer: Cancelled) -> bool:
        """Whether a release may be giving it to its target: it looked for the tombstone, perhaps before that was written."""
        collection = parse_collection(answer.waited_for) or collection_in(job_id.tenant, job_id.identity)
        if collection is None:
            return False
        opened = self.collections.opened(collection)
        place = opened.place_of(job_id.identity) if opened is not None else None
        if opened is None or place is None:
            return False
        # One that has ended has let it wait for another attempt, which is due later; or it was given, and met the tombstone when it wrote how that did.
        # Who finds the tombstone of a cancel before does not know which: what is over by now, that one had to tell.
        waits_on = answer.is_repeated or (answer.retry_at is not None and answer.retry_at > due_at_of(place))
        return not waits_on or self.collections.state(collection).number <= opened.number

    def _was_hastened(self, job_id: JobId, answer: Cancelled, deleted: StoredTimer | None, *, now: datetime) -> bool:
        """Whether somebody had let it run at once: nobody else takes the far row of a job away so long before its time."""
        is_fire = fire_of(job_id.identity) is not None
        was_far = self.wheel.is_surely_far(job_id.due_at, now=now)
        return answer.asked_for is None and deleted is None and was_far and not is_fire

    def _row_of_old(self, job_id: JobId) -> LedgerRow:
        row = self.ledger.get(job_id.key)
        if row is None:
            raise JobNotFound(str(job_id))
        return row

    def _delete(self, job_id: JobId) -> Cancelled:
        """Such a job reads no tombstone: only its row, removed while no message of it can be on its way, is proof."""
        if job_id.due_at + ABSENT_IS_OVER < self.clock.now():
            raise JobNotFound(str(job_id))
        row = self.ledger.get(job_id.key)
        if row is not None and row.state is State.CANCELLED:
            answer = Cancelled(is_repeated=True)
            stored = self.timers.stored(job_id)
            # Whoever wrote the tombstone may have died before it put on_end.
            waits = stored is not None and stored.timer is not None and bool(stored.timer.job.reads_cancel)
            self._end(job_id, answer, stored if waits else None, leaves_row=waits)
            return answer
        now = self.clock.now()
        if not self.wheel.is_surely_far(job_id.due_at, now=now + REQUEST_LIMIT):
            raise TooLate(str(job_id))
        stored = self.timers.stored(job_id)
        if stored is not None and stored.written_at is not None and self._is_fresh(stored.written_at, now=now):
            # A write of it that got no answer may still be on its way, and would put the row again.
            raise TooLate(str(job_id))
        if row is not None:
            self._stop_replays(job_id, row, now=now)
        if stored is not None and stored.timer is not None and any(stored.timer.job.callbacks.of(State.CANCELLED)):
            return self._entomb(job_id, stored, stored.timer)
        deleted = self.timers.delete(job_id)
        if not self.wheel.is_surely_far(job_id.due_at, now=self.clock.now()):
            # The delete stalled: the scanner may have read the row or not. Without a promise to cancel, it must run.
            if deleted is not None and deleted.timer is not None:
                self.placer.place_one(deleted.timer)
            raise TooLate(str(job_id))
        # No row, and no message can be on its way: an earlier cancel removed it.
        if row is not None:
            self.ledger.cancel(job_id, owner=self.token(), now=self.clock.now())
        answer = Cancelled(is_repeated=deleted is None)
        self._end(job_id, answer, deleted)
        return answer

    def _entomb(self, job_id: JobId, stored: StoredTimer, timer: Timer) -> Cancelled:
        """One whose on_end is to be called leaves its row until that is put: from then on its message reads a tombstone.

        A death before the tombstone leaves a job that runs, one behind it a message that finds it and puts on_end.
        """
        reading = replace(timer, job=replace(timer.job, reads_cancel=True))
        if not self.timers.put_over(job_id, reading, written_at=stored.written_at):
            answer = Cancelled(is_repeated=True)  # an earlier cancel has removed it
            self._end(job_id, answer, None)
            return answer
        now = self.clock.now()
        if not self.wheel.is_surely_far(job_id.due_at, now=now):
            raise TooLate(str(job_id))  # the write stalled: the scanner may have read the row as it was, so it must run
        found = self.ledger.cancel(job_id, owner=self.token(), now=now)
        if isinstance(found, Refused):
            raise TooLate(str(job_id))
        answer = Cancelled(is_repeated=found.is_repeated)
        self._end(job_id, answer, stored, leaves_row=True)
        return answer

    def _end(
        self, job_id: JobId, answer: Cancelled, stored: StoredTimer | None, *, leaves_row: bool | None = None
    ) -> None:
        """It is cancelled. stored: its far row. leaves_row: whether that stays until its callbacks are put; as a job with a ledger row."""
        timer = stored.timer if stored is not None else None
        has_callbacks = timer is not None and bool(timer.job.callbacks)
        self.ends.cancelled(job_id, answer, timer=timer if has_callbacks else None)
        if has_callbacks and (job_id.is_ledgered if leaves_row is None else leaves_row):
            self.timers.delete(job_id)
        self._forget(stored)

    def _is_fresh(self, written_at: datetime, *, now: datetime) -> bool:
        """Whether the request that wrote something then may still be under way."""
        return now - written_at < REQUEST_LIMIT + self.wheel.skew

    def _stop_replays(self, job_id: JobId, row: LedgerRow, *, now: datetime) -> None:
        """Keep repeated submissions of its idempotency key from placing it again behind the delete."""
        # A submission that was under way when the row was registered has ended by then.
        is_fresh = row.updated_at is None or self._is_fresh(row.updated_at, now=now)
        if is_fresh and not row.cancel_requested:
            raise TooLate(str(job_id))
        if not isinstance(self.ledger.request_cancel(job_id, row=row, now=now), Applied):
            raise TooLate(str(job_id))

    def _forget(self, stored: StoredTimer | None) -> None:
        if stored is None or stored.timer is None or stored.timer.job.payload.pointer is None:
            return
        # That of an occurrence is its schedule's: every other fire needs it.
        if stored.timer.job.occurrence is None:
            self.payloads.delete(stored.timer.job.payload.pointer)
