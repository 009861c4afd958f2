"""Take jobs in: register those with an idempotency key, keep large payloads, place them all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from functions.api.moves import last_of
from functions.domain.claims import LedgerRow
from functions.domain.envelope import INLINE_LIMIT, written_size
from functions.domain.errors import InvalidJob, KeyReused, NotPlaced, TickwheelError
from functions.domain.instants import MILLISECOND, format_instant, from_ms, to_ms
from functions.domain.job import Delivery, Job, Payload, Precision, Priority, Timer
from functions.domain.job_id import JobId, job_id_of, parse_job_id
from functions.domain.lifecycle import State
from functions.domain.retry import RetryPolicy
from functions.domain.target_options import USUAL, TargetOptions
from functions.domain.wheel import Ring, Wheel
from functions.placing import Placer
from functions.ports import Applied, Clock, Journal, Ledger, PayloadStore, TimerStore

KEYED = "k"
"""The first letter of an identity that was made from an idempotency key."""


PAST_GRACE = timedelta(minutes=1)
"""How far in the past a job may be due: clocks differ, and a request takes time. It runs at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A job as its tenant asked for it: checked, not yet placed. payload: compact JSON, None for none."""

    tenant: str
    target: str
    payload: str | None
    due_at: datetime
    idempotency_key: str | None
    priority: Priority
    delivery: Delivery
    precision: Precision
    retry: RetryPolicy
    timeout: timedelta
    expires_after: timedelta | None
    options: TargetOptions = USUAL
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What a submission is answered. is_replay: the idempotency key had been used, and this is its first job."""

    job_id: str
    tenant: str
    due_at: datetime
    state: State
    ring: Ring | None
    is_replay: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitter:
    """Takes jobs in. identity: a fresh random identity; token: a fresh owner token.

    side_by_side: maps a function over items at the same time, answers in order.
    """

    wheel: Wheel
    clock: Clock
    ledger: Ledger
    timers: TimerStore
    payloads: PayloadStore
    placer: Placer
    journal: Journal
    identity: Callable[[], str]
    token: Callable[[], str]
    side_by_side: Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]

    def submit(self, submissions: Sequence[Submission]) -> list[Accepted | TickwheelError]:
        """Take jobs in; an answer each, in order. A job is accepted only once it is durably in the wheel."""
        answers: dict[int, Accepted | TickwheelError] = {}
        to_place: dict[int, _Prepared] = {}
        for index, outcome in enumerate(self.side_by_side(self._prepare_safely, submissions)):
            if isinstance(outcome, _Prepared):
                to_place[index] = outcome
            else:
                answers[index] = outcome
        timers = [Timer(job=prepared.job, due_at=prepared.job.scheduled_at) for prepared in to_place.values()]
        for (index, prepared), placement in zip(to_place.items(), self.placer.place(timers), strict=True):
            answers[index] = (
                NotPlaced([placement.fault])
                if placement.ring is None
                else _accepted(prepared.job, ring=placement.ring, is_replay=prepared.is_replay)
            )
        accepted = [answer for answer in answers.values() if isinstance(answer, Accepted) and not answer.is_replay]
        self.journal.count("jobs_submitted", len(accepted))
        return [answers[index] for index in range(len(submissions))]

    def _prepare_safely(self, submission: Submission) -> Accepted | TickwheelError | _Prepared:
        """One job's fault must not refuse the others of its batch."""
        try:
            return self._prepare(submission)
        except TickwheelError as error:
            return error
        except Exception as error:  # noqa: BLE001  told to the one that it belongs to
            self.journal.event("submission_failed", tenant=submission.tenant, error=f"{type(error).__name__}: {error}")
            return NotPlaced([f"a store failed: {type(error).__name__}"])

    def _prepare(self, submission: Submission) -> Accepted | _Prepared:
        """The job to place; or the answer, when there is nothing to place."""
        if submission.idempotency_key is None:
            return _Prepared(self._with_stored_payload(self._job(submission), submission))
        job = self._job(submission)
        now = self.clock.now()
        if submission.due_at < now - PAST_GRACE and self.ledger.get(job.key) is None:
            raise InvalidJob(
                f"is in the past by more than {PAST_GRACE.total_seconds():g} s: it is now {format_instant(now)}",
                field="run_at",
                value=format_instant(submission.due_at),
            )
        # Its row comes first: from here on the key answers with this id, even if this call dies.
        fingerprint = _fingerprint(submission)
        answer = self.ledger.register(
            job, job_id=str(job_id_of(job)), fingerprint=fingerprint, owner=self.token(), now=now
        )
        if isinstance(answer, Applied):
            return _Prepared(self._with_stored_payload(job, submission))
        assert answer.row is not None  # only an existing row refuses
        return self._replay(job, submission, answer.row, fingerprint=fingerprint)

    def _replay(self, job: Job, submission: Submission, row: LedgerRow, *, fingerprint: str) -> Accepted | _Prepared:
        """A used key answers with its first job, whatever time it asks for now."""
        if row.fingerprint and row.fingerprint != fingerprint:
            # Placing it would overwrite the first job's payload; accepting it without would lose it.
            raise KeyReused(row.job_id)
        first = parse_job_id(row.job_id)
        if row.state is State.MOVED:
            return self._tell_moved(first)
        job = replace(
            job,
            bucket=first.bucket,
            shard=first.shard,
            scheduled_at=first.due_at,
            expires_at=first.due_at + submission.expires_after if submission.expires_after else None,
        )
        if row.state is not State.SCHEDULED or row.cancel_requested:
            # A cancel that is under way may still be refused: until it is written, the job counts as scheduled.
            return _accepted(job, state=row.state, is_replay=True)
        # The first submission may have died between its two writes. Placing it again, as the first asked for it,
        # overwrites its row or is dropped by the ledger.
        job = self._with_stored_payload(job, submission)
        if job.is_ledgered or self.wheel.place(job.scheduled_at, now=self.clock.now()) is Ring.NEAR:
            return _Prepared(job, is_replay=True)
        # Without the ledger nothing would stop a row that is written behind a cancel.
        written = self.timers.put_registered(Timer(job=job, due_at=job.scheduled_at))
        if written is None:
            raise NotPlaced(["the timer store did not confirm the write"])
        if not written:
            now_row = self.ledger.get(job.key)
            return _accepted(job, state=now_row.state if now_row else State.CANCELLED, is_replay=True)
        is_skewed = abs(self.clock.offset()) > self.wheel.skew / 2
        if is_skewed or self.clock.now() > self.wheel.closes_at(job.scheduled_at):
            # It may lie behind the scanner: it is placed once more, and not accepted if that is refused.
            return _Prepared(job, is_replay=True)
        return _accepted(job, ring=Ring.FAR, is_replay=True)

    def _tell_moved(self, first: JobId) -> Accepted:
        """It was rescheduled or edited since: it goes on under its last id."""
        last, row = last_of(self.ledger, first)
        return Accepted(
            job_id=str(last),
            tenant=last.tenant,
            due_at=last.due_at,
            state=row.state if row else State.SCHEDULED,
            ring=None,
            is_replay=True,
        )

    def _with_stored_payload(self, job: Job, submission: Submission) -> Job:
        if submission.payload is None or written_size(submission.payload) <= INLINE_LIMIT:
            return job
        return replace(job, payload=Payload(pointer=self.payloads.put(job, submission.payload)))

    def _job(self, submission: Submission) -> Job:
        identity = self.identity()
        if submission.idempotency_key is not None:
            identity = keyed_identity(submission.tenant, submission.idempotency_key)
        return job_of(submission, identity=identity, wheel=self.wheel)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A job that is to be placed. is_replay: its key had been used, by the same job."""

    job: Job
    is_replay: bool = False


def job_of(submission: Submission, *, identity: str, wheel: Wheel) -> Job:
    """The job that is submitted, under an identity."""
    due_at = from_ms(to_ms(submission.due_at))
    return Job(
        tenant=submission.tenant,
        identity=identity,
        bucket=wheel.bucket_of(due_at),
        shard=wheel.shard_of(submission.tenant, identity),
        target=submission.target,
        payload=Payload(text=submission.payload),
        scheduled_at=due_at,
        priority=submission.priority,
        delivery=submission.delivery,
        precision=submission.precision,
        retry=submission.retry,
        timeout=submission.timeout,
        expires_at=due_at + submission.expires_after if submission.expires_after else None,
        options=submission.options,
        tags=submission.tags,
    )


def _accepted(
    job: Job, *, state: State = State.SCHEDULED, ring: Ring | None = None, is_replay: bool = False
) -> Accepted:
    return Accepted(
        job_id=str(job_id_of(job)),
        tenant=job.tenant,
        due_at=job.scheduled_at,
        state=state,
        ring=ring,
        is_replay=is_replay,
    )


def keyed_identity(tenant: str, key: str) -> str:
    """The identity that an idempotency key stands for: 128 bits, so that two keys of a tenant do not meet."""
    return KEYED + hashlib.blake2b(f"{tenant}#{key}".encode(), digest_size=16).hexdigest()


def _fingerprint(submission: Submission) -> str:
    """What makes two submissions the same job, but for the time they ask for."""
    parts = [
        submission.target,
        submission.payload,
        submission.priority,
        submission.delivery,
        submission.precision,
        submission.retry.strategy,
        submission.retry.attempts,
        submission.retry.base // MILLISECOND,
        submission.retry.cap // MILLISECOND,
        submission.timeout // MILLISECOND,
        submission.expires_after // MILLISECOND if submission.expires_after else None,
        *_unusual_parts(submission),
    ]
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=8).hexdigest()


def _unusual_parts(submission: Submission) -> list[object]:
    """What came after the first fingerprints were stored: a job that says nothing of it has the one that it always had."""
    options, max_age = submission.options, submission.retry.max_age
    parts = {
        "max_age": max_age and max_age // MILLISECOND,
        "method": options.method if options.method is not USUAL.method else None,
        "headers": options.headers,
        "success": options.success_codes,
        "retry_on": options.retry_codes,
        "asynchronous": options.is_async,
        "tags": submission.tags,
    }
    said = {name: value for name, value in parts.items() if value}
    return [said] if said else []
