"""The conditional-write table in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from functions.domain.far_ring.asked_record import encode_asked, room_for_attempts
from functions.domain.far_ring.timer_record import encode_timer
from functions.domain.jobs.claims import (
    MOVED_LIFE,
    LedgerRow,
    deaths_of,
    expires_at,
    is_of,
    is_own,
    is_unchanged,
    may_claim,
    taken_over,
)
from functions.domain.jobs.job import Job, Timer
from functions.domain.jobs.job_id import JobId, first_identity, job_id_of
from functions.domain.jobs.past_attempts import with_attempt
from functions.domain.lifecycle import Event, State, sources, target
from functions.ports.dead_letters import DeadLetter
from functions.ports.ledger import Applied, Cancelled, Claimed, Refused
from testkit.fakes.dead_letters import InMemoryDeadLetters
from testkit.fakes.kept import kept


class InMemoryLedger:
    """The rules of `functions.domain.jobs.claims` and the lifecycle table, applied to a dictionary."""

    def __init__(self, *, skew: timedelta, dead_letters: InMemoryDeadLetters | None = None) -> None:
        self._skew = skew
        self._dead_letters = dead_letters or InMemoryDeadLetters()
        self.rows: dict[str, LedgerRow] = {}
        self.expiry: dict[str, datetime] = {}
        self.starts: Counter[tuple[str, int]] = Counter()
        self.requeues: Counter[tuple[str, int]] = Counter()
        self.put_far: Callable[[Timer], object] = _no_far_ring

    def register(self, job: Job, *, job_id: str, fingerprint: str, owner: str, now: datetime) -> Applied | Refused:
        row = self.rows.get(job.key)
        if row is not None and not (row.state is target(Event.REGISTER) and row.owner == owner):
            return Refused(row)
        row = LedgerRow(state=target(Event.REGISTER), owner=owner, due_at=kept(job.scheduled_at), job_id=job_id)
        return self._write(job.key, replace(row, fingerprint=fingerprint), now=now)

    def register_callback(self, job: Job, *, job_id: str, owner: str, now: datetime) -> Applied | Refused:
        return self.register(job, job_id=job_id, fingerprint="", owner=owner, now=now)

    def claim(self, timer: Timer, *, owner: str, lease_until: datetime, now: datetime) -> Claimed | Refused:
        row = self.rows.get(timer.job.key)
        if row is not None and is_own(row, attempt=timer.attempt, owner=owner):
            return Claimed(row.fence, row.rescue_count, row.cancel_requested, tried=row.tried)
        if not may_claim(row, attempt=timer.attempt, due_at=timer.due_at, owner=owner):
            return Refused(row)
        return self._take(timer, row, owner=owner, lease_until=lease_until, now=now, rescue_count=0)

    def rescue(
        self, timer: Timer, *, row: LedgerRow, owner: str, lease_until: datetime, now: datetime
    ) -> Claimed | Refused:
        met = self.rows.get(timer.job.key)
        if met is None or met.state is not State.RUNNING or met.lease_until is None:
            return Refused(met)
        if is_own(met, attempt=timer.attempt, owner=owner):
            return Claimed(met.fence, met.rescue_count, met.cancel_requested, tried=met.tried)
        is_over = met.fence == row.fence and met.lease_until < now - self._skew and met.attempt <= timer.attempt
        if not is_over:
            return Refused(met)
        return self._take(
            timer,
            row,
            owner=owner,
            lease_until=lease_until,
            now=now,
            rescue_count=deaths_of(row, attempt=timer.attempt),
            met=replace(
                met, tried=with_attempt(row.tried, taken_over(row, now=now), room=room_for_attempts(timer.job))
            ),
        )

    def note_start(self, timer: Timer, *, now: datetime, is_taken_back: bool = False) -> None:
        self.starts[timer.job.key, timer.attempt] += -1 if is_taken_back else 1

    def starts_of(self, timer: Timer) -> int:
        return self.starts[timer.job.key, timer.attempt]

    def note_requeue(self, timer: Timer, *, now: datetime) -> int:
        self.requeues[timer.job.key, timer.attempt] += 1
        return self.requeues[timer.job.key, timer.attempt]

    def attempt(self, timer: Timer, event: Event, *, owner: str, now: datetime) -> Applied | Refused:
        row = self.rows.get(timer.job.key)
        is_mine = row is not None and row.state is target(event) and row.owner == owner
        if _state(row) not in sources(event) and not is_mine:
            return Refused(row)
        row = replace(row or LedgerRow(state=State.ABSENT), state=target(event), owner=owner)
        row = replace(row, attempt=timer.attempt, due_at=kept(timer.due_at), job_id=str(job_id_of(timer.job)))
        row = replace(row, asked=encode_asked(timer.job))
        return self._write(timer.job.key, row, now=now, scheduled_at=timer.job.scheduled_at)

    def settle(
        self,
        timer: Timer,
        event: Event,
        *,
        fence: int,
        owner: str,
        now: datetime,
        result: str = "",
        whole: str = "",
        error: str = "",
        tried: str = "",
    ) -> Applied | Refused:
        row = self.rows.get(timer.job.key)
        is_withdrawn = event is Event.RETRY and row is not None and row.cancel_requested
        if row is None or row.fence != fence:
            return Refused(row)
        may_end = row.state is State.RUNNING and (row.owner == owner or row.held) and not is_withdrawn
        if not may_end and (row.state, row.owner) != (target(event), owner):
            return Refused(row)
        row = replace(row, state=target(event), owner=owner, result=_cut(result), error=_cut(error), held="")
        row = replace(row, due_at=kept(timer.due_at), tried=tried or row.tried, whole=whole or row.whole)
        return self._write(timer.job.key, row, now=now, scheduled_at=timer.job.scheduled_at)

    def end_collected(
        self,
        timer: Timer,
        event: Event,
        *,
        owner: str,
        now: datetime,
        following: Timer | None = None,
        result: str = "",
        error: str = "",
        tried: str = "",
    ) -> Applied | Refused:
        row = self.rows.get(timer.job.key)
        is_mine = row is not None and (row.state, row.owner, row.attempt) == (target(event), owner, timer.attempt)
        is_free = may_claim(row, attempt=timer.attempt, due_at=timer.due_at, owner="")
        if not is_mine and not (is_free and _state(row) in sources(event)):
            return Refused(row)
        row = replace(row or LedgerRow(state=State.ABSENT), state=target(event), owner=owner, attempt=timer.attempt)
        row = replace(row, due_at=kept((following or timer).due_at), job_id=str(job_id_of(timer.job)))
        row = replace(row, result=_cut(result), error=_cut(error), tried=tried or row.tried)
        row = replace(row, asked=encode_asked(timer.job))
        return self._write(timer.job.key, row, now=now, scheduled_at=timer.job.scheduled_at)

    def hold(self, timer: Timer, *, fence: int, owner: str, lease_until: datetime, now: datetime) -> Applied | Refused:
        row = self.rows.get(timer.job.key)
        if row is None or (row.fence, row.owner, row.state) != (fence, owner, State.RUNNING):
            return Refused(row)
        lease_until = max(kept(lease_until), row.lease_until or lease_until)
        row = replace(row, due_at=kept(timer.due_at), lease_until=lease_until, held=encode_timer(timer))
        return self._write(timer.job.key, row, now=now, scheduled_at=timer.job.scheduled_at)

    def extend(
        self, job_id: JobId, *, fence: int, lease_until: datetime, now: datetime, needs_id: bool = True
    ) -> LedgerRow | Refused:
        row = self.rows.get(job_id.key)
        if row is None or (row.fence, row.state) != (fence, State.RUNNING) or row.lease_until is None:
            return Refused(row)
        if needs_id and row.job_id != str(job_id):
            return Refused(row)
        if row.lease_until <= lease_until:
            row = replace(row, lease_until=kept(lease_until))
            self._write(job_id.key, row, now=now, scheduled_at=job_id.due_at)
        return self.rows[job_id.key]

    def complete(self, job_id: JobId, *, fence: int, result: str, now: datetime, whole: str = "") -> Applied | Refused:
        row = self.rows.get(job_id.key)
        if row is None or (row.fence, row.state, row.held) != (fence, State.RUNNING, ""):
            return Refused(row)
        row = replace(row, state=target(Event.SUCCEED), result=_cut(result), whole=whole or row.whole, error="")
        return self._write(job_id.key, row, now=now, scheduled_at=job_id.due_at)

    def hasten(self, timer: Timer, *, row: LedgerRow, owner: str, now: datetime) -> Applied | Refused:
        met = self.rows.get(timer.job.key)
        if met is None or met.state is not State.RETRYING or row.due_at is None:
            return Refused(met)
        is_seen = met.due_at == row.due_at and met.attempt == timer.attempt - 1
        if not is_seen and (met.due_at, met.owner) != (kept(timer.due_at), owner):
            return Refused(met)
        hastened = replace(met, due_at=kept(timer.due_at), owner=owner)
        latest = max(timer.job.scheduled_at, row.due_at)
        return self._write(timer.job.key, hastened, now=now, scheduled_at=latest)

    def move(
        self, job_id: JobId, timer: Timer, *, owner: str, now: datetime, first: JobId | None = None
    ) -> Applied | Refused:
        row = self.rows.get(job_id.key)
        waits = _state(row) in sources(Event.MOVE) and (row is None or not (row.fence or row.cancel_requested))
        is_mine = row is not None and row.state is target(Event.MOVE) and row.owner == owner
        if not waits and not is_mine:
            return Refused(row)
        first_row = self.rows.get(first.key) if first is not None else None
        if first is not None and _state(first_row) is not target(Event.MOVE):
            return Refused(first_row)
        row = row or LedgerRow(state=State.ABSENT, due_at=job_id.due_at, job_id=str(job_id))
        row = replace(row, state=target(Event.MOVE), owner=owner, moved_to=str(job_id_of(timer.job)))
        self.put_far(timer)
        self._write(job_id.key, row, now=now)
        self.expiry[job_id.key] = max(now, job_id.due_at, timer.due_at) + MOVED_LIFE
        if first is not None and first_row is not None:
            self._write(first.key, replace(first_row, moved_to=row.moved_to), now=now)
            self.expiry[first.key] = max(now, first.due_at, timer.due_at) + MOVED_LIFE
        return Applied()

    def park(self, timer: Timer, *, until: datetime, now: datetime, flow: str = "") -> Applied | Refused:
        row = self.rows.get(timer.job.key)
        is_mine = row is not None and row.state in (State.SCHEDULED, State.RUNNING) and row.attempt <= timer.attempt
        is_next = may_claim(row, attempt=timer.attempt, due_at=timer.due_at, owner="")
        if row is not None and not is_mine and not (row.state is State.RETRYING and is_next):
            return Refused(row)
        due_at, job_id = kept(timer.due_at), str(job_id_of(timer.job))
        row = row or LedgerRow(state=State.SCHEDULED, due_at=due_at, job_id=job_id)
        self._write(timer.job.key, replace(row, parked_until=kept(until), waits_for=flow), now=now)
        self.expiry[timer.job.key] = expires_at(now=now, due_at=max(until, timer.job.scheduled_at), lease_until=None)
        return Applied()

    def renew_first(self, timer: Timer, *, now: datetime) -> None:
        key = f"{timer.job.tenant}#{first_identity(timer.job.identity)}"
        row = self.rows.get(key)
        if row is not None and (row.state, row.moved_to) == (State.MOVED, str(job_id_of(timer.job))):
            self.expiry[key] = max(self.expiry[key], max(now, timer.due_at) + MOVED_LIFE)

    def replay(
        self, timer: Timer, *, far: Timer, job_id: str, fence: int, owner: str, now: datetime, needs_row: bool = False
    ) -> Applied | Refused:
        row, before = self.rows.get(timer.job.key), timer.attempt - 1
        if row is not None and not is_of(row, job_id):
            return Refused(row)
        has_failed = row is not None and row.state is State.FAILED and row.attempt <= before
        is_replayed = row is not None and row.state is target(Event.REPLAY) and row.attempt == before
        if is_replayed and row is not None and row.due_at is not None:
            is_replayed = row.due_at >= kept(timer.due_at)
        if (row is not None or needs_row) and not has_failed and not is_replayed:
            return Refused(row)
        row = replace(row or LedgerRow(state=State.ABSENT), state=target(Event.REPLAY), owner=owner, attempt=before)
        counted_from = kept(timer.counted_from or timer.due_at)
        row = replace(row, fence=row.fence or fence, spent=timer.spent, counted_from=counted_from)
        row = replace(row, due_at=kept(timer.due_at), job_id=job_id, cancel_requested=False)
        self.put_far(far)
        return self._write(timer.job.key, row, now=now, scheduled_at=timer.job.scheduled_at)

    def cancel(self, job_id: JobId, *, owner: str, now: datetime, row: LedgerRow | None = None) -> Cancelled | Refused:
        seen, row = row, self.rows.get(job_id.key)
        if _state(row) not in sources(Event.CANCEL) | {target(Event.CANCEL)}:
            return Refused(row)
        if seen is not None and not is_unchanged(row, seen) and _state(row) is not target(Event.CANCEL):
            return Refused(row)
        before, row = row, row or LedgerRow(state=State.ABSENT, due_at=job_id.due_at, job_id=str(job_id))
        self._write(job_id.key, replace(row, state=target(Event.CANCEL), owner=owner), now=now)
        return Cancelled.over(before, owner=owner)

    def give_up(self, job_id: JobId, *, row: LedgerRow, reason: str, owner: str, now: datetime) -> Cancelled | Refused:
        if row.state not in sources(Event.ABANDON):
            return Refused(row)
        met = self.rows.get(job_id.key)
        is_mine = met is not None and (met.state, met.owner) == (target(Event.ABANDON), owner)
        is_untouched = met is not None and is_unchanged(met, row) and met.updated_at == row.updated_at
        if met is None or not (is_mine or is_untouched):
            return Refused(met)
        ended = replace(
            met, state=target(Event.ABANDON), owner=owner, held="", error=reason, job_id=met.job_id or str(job_id)
        )
        self._write(job_id.key, replace(ended, due_at=met.due_at or job_id.due_at), now=now)
        return Cancelled.over(met, owner=owner)

    def request_cancel(self, job_id: JobId, *, row: LedgerRow, now: datetime) -> Applied | Refused:
        met = self.rows.get(job_id.key)
        if met is None or not is_unchanged(met, row):
            return Refused(met)
        self.rows[job_id.key] = replace(met, cancel_requested=True, updated_at=kept(now))
        return Applied()

    def skip(self, timer: Timer, *, reason: str, owner: str, now: datetime) -> Applied | Refused:
        row = self.rows.get(timer.job.key)
        is_mine = row is not None and row.state is target(Event.SKIP) and row.owner == owner
        if _state(row) not in sources(Event.SKIP) and not is_mine:
            return Refused(row)
        row = replace(row or LedgerRow(state=State.ABSENT), state=target(Event.SKIP), owner=owner, error=_cut(reason))
        row = replace(row, due_at=kept(timer.due_at), job_id=str(job_id_of(timer.job)))
        return self._write(timer.job.key, row, now=now, scheduled_at=timer.job.scheduled_at)

    def fail(
        self, letter: DeadLetter, job: Job, *, fence: int, owner: str, now: datetime, tried: str = ""
    ) -> Applied | Refused:
        met = self.rows.get(job.key)
        is_running = met is not None and met.fence == fence and met.state is State.RUNNING
        return self._end_with_dead_letter(
            letter, job, Event.FAIL, met, may_end=is_running, owner=owner, now=now, tried=tried
        )

    def bury(
        self, letter: DeadLetter, job: Job, *, row: LedgerRow | None, owner: str, now: datetime, tried: str = ""
    ) -> Applied | Refused:
        met = self.rows.get(job.key)
        if row is not None and row.state not in sources(Event.BURY):
            return Refused(row)
        return self._end_with_dead_letter(
            letter, job, Event.BURY, met, may_end=is_unchanged(met, row), owner=owner, now=now, tried=tried
        )

    def get(self, key: str) -> LedgerRow | None:
        return self.rows.get(key)

    def get_many(self, keys: Sequence[str]) -> dict[str, LedgerRow]:
        return {key: self.rows[key] for key in keys if key in self.rows}

    def expire(self, now: datetime) -> None:
        """What the table's ttl does, in the end."""
        for key in [key for key, instant in self.expiry.items() if instant <= now]:
            del self.rows[key], self.expiry[key]

    def _end_with_dead_letter(
        self,
        letter: DeadLetter,
        job: Job,
        event: Event,
        met: LedgerRow | None,
        *,
        may_end: bool,
        owner: str,
        now: datetime,
        tried: str = "",
    ) -> Applied | Refused:
        is_mine = met is not None and met.state is target(event) and met.owner == owner
        if not may_end and not is_mine:
            return Refused(met)
        due_at = letter.timer.due_at if letter.timer else job.scheduled_at
        met = met or LedgerRow(state=State.ABSENT, due_at=kept(due_at))
        self._dead_letters.put(letter)
        row = replace(met, state=target(event), owner=owner, error=_cut(letter.error), held="")
        row = replace(
            row, attempt=letter.attempt, job_id=letter.job_id or str(job_id_of(job)), tried=tried or row.tried
        )
        self._write(job.key, row, now=now)
        self.expiry[job.key] = expires_at(now=now, due_at=max(due_at, job.scheduled_at), lease_until=None)
        return Applied()

    def _take(
        self,
        timer: Timer,
        row: LedgerRow | None,
        *,
        owner: str,
        lease_until: datetime,
        now: datetime,
        rescue_count: int,
        met: LedgerRow | None = None,
    ) -> Claimed:
        taken = replace(
            met or row or LedgerRow(state=State.ABSENT),
            state=target(Event.CLAIM),
            attempt=timer.attempt,
            fence=(row.fence if row else 0) + 1,
            owner=owner,
            due_at=kept(timer.due_at),
            lease_until=kept(lease_until),
            rescue_count=rescue_count,
            job_id=str(job_id_of(timer.job)),
            held="",
            asked=encode_asked(timer.job),
        )
        self._write(timer.job.key, taken, now=now, scheduled_at=timer.job.scheduled_at)
        return Claimed(taken.fence, taken.rescue_count, taken.cancel_requested, tried=taken.tried)

    def _write(self, key: str, row: LedgerRow, *, now: datetime, scheduled_at: datetime | None = None) -> Applied:
        self.rows[key] = replace(row, updated_at=kept(now))
        lease_until = row.lease_until if row.state is State.RUNNING else None
        due_at = max((instant for instant in (row.due_at, scheduled_at) if instant), default=None)
        self.expiry[key] = expires_at(now=now, due_at=due_at, lease_until=lease_until)
        return Applied()


def _no_far_ring(_: Timer) -> None:
    """What is moved or replayed without a timer store is not kept."""


def _state(row: LedgerRow | None) -> State:
    return row.state if row else State.ABSENT


def _cut(text: str) -> str:
    """As a row keeps it: within one write unit."""
    return text[:400]
