"""Change a job that waits: let it run now, at another time, or with another content.

A job that runs now keeps its id: the same timer is placed once more, and the ledger drops whichever message comes second.
At another time, or with another content, it continues under a new id: in one transaction the row of the old one says so,
which settles it for every message of it, and the far row of the new one is put. However often it is moved, the row of the
job that was submitted points to the newest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from functions.domain.audit import Action, ActionName, described
from functions.domain.errors import (
    InvalidJob,
    JobBusy,
    JobNotFound,
    NotChangeable,
    TooLate,
)
from functions.domain.far_ring.timer_record import INLINE_LIMIT, unpack, written_size
from functions.domain.instants import format_instant
from functions.domain.jobs.claims import ABSENT_IS_OVER, REQUEST_LIMIT, LedgerRow
from functions.domain.jobs.job import Job, Payload, Timer
from functions.domain.jobs.job_id import JobId, attempt_id, first_identity, job_id_of, moved_identity, parse_job_id
from functions.domain.jobs.occurrence import fire_of
from functions.domain.jobs.submission import Submission, job_of
from functions.domain.lifecycle import State
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.ledger import Ledger, Refused
from functions.ports.payloads import PayloadStore
from functions.ports.recorder import AuditTrail, Journal, PendingCounter
from functions.ports.tenants import TenantPlans
from functions.ports.timers import TimerStore
from functions.services.far_ring.placer import Placer
from functions.services.jobs.moves import check_not_over, last_of

_TRIES = 3


Edit = Callable[[Job, str | None], Submission]
"""The submission that a job, and the JSON text of its payload, are to become. May raise to refuse."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job that waits, under the id that it has now. state: scheduled or retrying."""

    job_id: JobId
    due_at: datetime
    state: State = State.SCHEDULED


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescheduler:
    """Changes jobs. identity: a fresh random identity; token: a fresh owner token; id_secret: of the stage.

    caller: who asks, for the audit line.

    Raises NotChangeable (a fire of a schedule, an at_least_once job), AlreadySettled, TooLate, JobNotFound, JobBusy, NotPlaced.
    """

    wheel: Wheel
    clock: Clock
    ledger: Ledger
    timers: TimerStore
    payloads: PayloadStore
    placer: Placer
    plans: TenantPlans
    journal: Journal
    identity: Callable[[], str]
    id_secret: Callable[[], bytes]
    token: Callable[[], str]
    pending: PendingCounter
    audit: AuditTrail

    def run_now(
        self, job_id: JobId, *, at: datetime | None = None, row_at: datetime | None = None, caller: str = ""
    ) -> Waiting:
        """Run a job that waits in the far ring, or the next attempt of one that is retried, at once.

        at: or in a moment, not as far ahead as the far ring. row_at: when its far row is due; else when its ledger row
        says, which a hastening that died on the way has changed already.
        """
        job_id, row = last_of(self.ledger, job_id)
        _check_kind(job_id, instead="run it with POST /v1/schedules/{schedule}:trigger")
        _check_waits(job_id, row)
        due_at = row_at or (row.due_at if row is not None and row.state is State.RETRYING else job_id.due_at)
        assert due_at is not None  # a retry has an instant
        now = self.clock.now()
        runs_at = max(now, at or now)
        if row is None and due_at + ABSENT_IS_OVER < now:
            raise JobNotFound(str(job_id))
        if due_at <= runs_at:
            raise TooLate(str(job_id), f"it is due at {format_instant(due_at)}, and comes as soon as a worker is free")
        place = attempt_id(job_id, due_at, wheel=self.wheel)
        timer = self._far_timer(job_id, place, now=now)
        hastened = timer.hastened(to=runs_at)
        if row is not None and row.state is State.RETRYING:
            self._hasten(job_id, hastened, row, now=now)
        self.placer.place_one(hastened)
        # Housekeeping: the ledger alone keeps the job from running twice.
        self.timers.delete(place)
        if timer.attempt == 1:
            self.pending.hasten(job_id, to=runs_at)
        self.journal.event("job_hastened", job_id=str(job_id), attempt=timer.attempt, caller=caller)
        self._note(
            ActionName.JOB_RUN_NOW,
            job_id,
            caller=caller,
            before={"due_at": format_instant(due_at)},
            after={"due_at": format_instant(runs_at), "attempt": timer.attempt},
        )
        return Waiting(job_id, runs_at, State.RETRYING if timer.attempt > 1 else State.SCHEDULED)

    def change(self, job_id: JobId, edit: Edit, *, caller: str = "") -> Waiting:
        """Change what `edit` changes. What changes nothing leaves the job its id.

        Raises InvalidJob when the new time is too near, and what `edit` raises.
        """
        asked = job_id
        for _ in range(_TRIES):
            job_id, row = last_of(self.ledger, asked)
            _check_kind(job_id, instead="change it with PATCH /v1/schedules/{schedule}")
            _check_waits(job_id, row)
            now = self.clock.now()
            if row is not None and (row.fence or row.state is State.RETRYING):
                # Its target knows it by its idempotency key, which a new identity would change.
                raise TooLate(str(job_id), f"attempt {row.attempt} of it has begun before: run it now, or cancel it")
            if row is None and job_id.due_at + ABSENT_IS_OVER < now:
                raise JobNotFound(str(job_id))
            if not self.wheel.is_surely_far(job_id.due_at, now=now + REQUEST_LIMIT):
                raise TooLate(
                    str(job_id),
                    f"it is due at {format_instant(job_id.due_at)}, and can be changed until {_seconds(self._reach)} s "
                    "before that",
                )
            timer = self._far_timer(job_id, job_id, now=now)
            if (waiting := self._move(job_id, timer.job, edit, caller=caller, now=now)) is not None:
                return waiting
        raise JobBusy(str(job_id))

    def _move(self, job_id: JobId, job: Job, edit: Edit, *, caller: str, now: datetime) -> Waiting | None:
        """None when somebody else was faster: it is looked at again."""
        text = self._text_of(job_id, job.payload)
        wanted = edit(job, text)
        moved = job_of(
            replace(wanted, trace=job.trace, asked_at=job.submitted_at),
            identity=moved_identity(job.identity, unique=self.identity()),
            wheel=self.wheel,
            subshards=self.plans.of(wanted.tenant).subshards,
            id_secret=self.id_secret(),
        )
        if (
            wanted.payload == text
            and replace(moved, identity=job.identity, shard=job.shard, payload=job.payload) == job
        ):
            self._note(ActionName.JOB_CHANGE, job_id, caller=caller, before=described(job), after=described(job))
            return Waiting(job_id, job.scheduled_at)
        if not self.wheel.is_surely_far(moved.scheduled_at, now=now + REQUEST_LIMIT):
            raise InvalidJob(
                f"must be at least {_seconds(self._reach)} s ahead, it is now {format_instant(now)}: for an earlier time, "
                "run it now, or cancel it and submit it again",
                field="run_at",
                value=format_instant(moved.scheduled_at),
            )
        self.placer.check_clock()
        # An object of its own: that of the old id goes with what is left of it.
        moved = replace(moved, payload=self._stored(moved, wanted.payload))
        timer = Timer.first_of(moved)
        self.placer.line_up(timer)
        first = self._first_of(job_id)
        if isinstance(self.ledger.move(job_id, timer, owner=self.token(), now=now, first=first), Refused):
            self._forget(moved.payload)
            self.placer.withdraw(timer)
            return None
        self._settle_move(job_id, job, timer, caller=caller)
        return Waiting(job_id_of(moved), moved.scheduled_at)

    def _first_of(self, job_id: JobId) -> JobId | None:
        """The job that was submitted, if this is another and its row still says what it has become.

        That id, and the idempotency key, lead to the job for as long as that row is kept: each move renews it.
        """
        key = f"{job_id.tenant}#{first_identity(job_id.identity)}"
        row = self.ledger.get(key) if key != job_id.key else None
        return parse_job_id(row.job_id) if row is not None and row.state is State.MOVED else None

    def _settle_move(self, job_id: JobId, job: Job, timer: Timer, *, caller: str) -> None:
        self.placer.confirm(timer)
        # Housekeeping: its ledger row alone keeps the old job from running.
        self.timers.delete(job_id)
        self._forget(job.payload)
        self.pending.move(job, to=timer.job)
        self.journal.event("job_moved", job_id=str(job_id), moved_to=str(job_id_of(timer.job)), caller=caller)
        self._note(ActionName.JOB_CHANGE, job_id, caller=caller, before=described(job), after=described(timer.job))

    def _note(
        self, action: ActionName, job_id: JobId, *, caller: str, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> None:
        self.audit.note(
            Action(action=action, caller=caller, tenant=job_id.tenant, subject=str(job_id), before=before, after=after)
        )

    def _hasten(self, job_id: JobId, timer: Timer, row: LedgerRow, *, now: datetime) -> None:
        """From here on a message that is due now may be claimed; without it, it would be dropped."""
        answer = self.ledger.hasten(timer, row=row, owner=self.token(), now=now)
        if isinstance(answer, Refused):
            _check_waits(job_id, answer.row)
            raise TooLate(str(job_id), "its next attempt has been changed by somebody else: look at it again")

    def _far_timer(self, job_id: JobId, place: JobId, *, now: datetime) -> Timer:
        timer = self.timers.get(place)
        if timer is not None:
            return timer
        due_at = format_instant(place.due_at)
        if self.wheel.is_surely_far(place.due_at, now=now):
            raise TooLate(str(job_id), f"it was due at {due_at}, and somebody has let it run now")
        raise TooLate(str(job_id), f"it is due at {due_at}, and is in the ready queue")

    def _text_of(self, job_id: JobId, payload: Payload) -> str | None:
        if payload.pointer is None:
            return unpack(payload)
        text = self.payloads.get(payload.pointer)
        if text is None:
            # It goes with the end of its job, or with a move of it.
            raise TooLate(str(job_id), "it is being changed by somebody else, or has come to its end: look at it again")
        return text

    def _stored(self, job: Job, text: str | None) -> Payload:
        if text is None or written_size(text) <= INLINE_LIMIT:
            return Payload(text=text)
        return Payload(pointer=self.payloads.put(job, text))

    def _forget(self, payload: Payload) -> None:
        if payload.pointer is not None:
            self.payloads.delete(payload.pointer)

    @property
    def _reach(self) -> timedelta:
        """How far away both the old and the new time must be."""
        return self.wheel.guard + self.wheel.skew + REQUEST_LIMIT


def _check_kind(job_id: JobId, *, instead: str) -> None:
    """instead: what to do with a `{schedule}`."""
    if (fire := fire_of(job_id.identity)) is not None:
        raise NotChangeable(str(job_id), f"is a fire of schedule {fire[0]}: {instead.format(schedule=fire[0])}")
    if not job_id.is_ledgered:
        raise NotChangeable(
            str(job_id), f"is {job_id.delivery}, so nothing would stop its old timer: cancel it and submit it again"
        )


def _check_waits(job_id: JobId, row: LedgerRow | None) -> None:
    """Raises when no attempt of the job waits for its time."""
    if row is None:
        return
    check_not_over(job_id, row)
    if row.state is State.RUNNING:
        raise TooLate(str(job_id), f"attempt {row.attempt} of it is running")
    if row.cancel_requested:
        raise TooLate(str(job_id), "its cancel was requested")


def _seconds(duration: timedelta) -> str:
    return f"{duration.total_seconds():g}"
