"""Take jobs in: register those with an idempotency key, keep large payloads, place them all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from functions.domain.envelope import INLINE_LIMIT, written_size
from functions.domain.errors import NotPlaced
from functions.domain.instants import MILLISECOND, from_ms, to_ms
from functions.domain.job import Delivery, Job, Payload, Precision, Priority, Timer
from functions.domain.job_id import job_id_of, parse_job_id
from functions.domain.lifecycle import State
from functions.domain.retry import RetryPolicy
from functions.domain.wheel import Ring, Wheel
from functions.placing import Placer
from functions.ports import Applied, Clock, Journal, Ledger, PayloadStore

KEYED = "k"
"""The first letter of an identity that was made from an idempotency key."""


REPLAY_WINDOW = timedelta(minutes=15)
"""How long after its time a submission of an at_least_once job may be repeated, and still place what it did not."""


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
    payloads: PayloadStore
    placer: Placer
    journal: Journal
    identity: Callable[[], str]
    token: Callable[[], str]
    side_by_side: Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]

    def submit(self, submissions: Sequence[Submission]) -> list[Accepted | NotPlaced]:
        """Take jobs in; an answer each, in order. A job is accepted only once it is durably in the wheel."""
        answers: dict[int, Accepted | NotPlaced] = {}
        to_place: dict[int, tuple[Job, bool]] = {}
        prepared = self.side_by_side(self._prepare, submissions)
        for index, outcome in enumerate(prepared):
            if isinstance(outcome, Accepted):
                answers[index] = outcome
            else:
                to_place[index] = outcome
        placements = self.placer.place([Timer(job=job, due_at=job.scheduled_at) for job, _ in to_place.values()])
        for (index, (job, is_replay)), placement in zip(to_place.items(), placements, strict=True):
            if placement.ring is None:
                answers[index] = NotPlaced([placement.fault])
                continue
            answers[index] = Accepted(
                job_id=str(job_id_of(job)),
                tenant=job.tenant,
                due_at=job.scheduled_at,
                state=State.SCHEDULED,
                ring=placement.ring,
                is_replay=is_replay,
            )
        self.journal.count("jobs_submitted", len(to_place))
        return [answers[index] for index in range(len(submissions))]

    def _prepare(self, submission: Submission) -> Accepted | tuple[Job, bool]:
        """The job to place, and whether its key had been used; or the answer, when there is nothing to place."""
        job = self._job(submission)
        is_replay = False
        if submission.idempotency_key is not None:
            # Its row comes first: from here on the key answers with this id, even if this call dies.
            fingerprint = _fingerprint(submission)
            now = self.clock.now()
            answer = self.ledger.register(
                job, job_id=str(job_id_of(job)), fingerprint=fingerprint, owner=self.token(), now=now
            )
            if not isinstance(answer, Applied):
                row = answer.row
                assert row is not None  # only an existing row refuses
                first = parse_job_id(row.job_id)
                # An at_least_once job never touches its row: long after it was due, it has surely been placed.
                is_over = not job.is_ledgered and now > first.due_at + REPLAY_WINDOW
                if row.state is not State.SCHEDULED or row.fingerprint != fingerprint or is_over:
                    # Settled, under way, or another job under a used key: nothing is placed for it.
                    return Accepted(
                        job_id=row.job_id,
                        tenant=first.tenant,
                        due_at=first.due_at,
                        state=row.state,
                        ring=None,
                        is_replay=True,
                    )
                # The first submission may have died between its two writes. Placing it again, as the first asked for
                # it, overwrites its row or is dropped by the ledger.
                is_replay = True
                job = replace(
                    job,
                    bucket=first.bucket,
                    shard=first.shard,
                    scheduled_at=first.due_at,
                    expires_at=first.due_at + submission.expires_after if submission.expires_after else None,
                )
        if submission.payload is not None and written_size(submission.payload) > INLINE_LIMIT:
            job = replace(job, payload=Payload(pointer=self.payloads.put(job, submission.payload)))
        return job, is_replay

    def _job(self, submission: Submission) -> Job:
        identity = self.identity()
        if submission.idempotency_key is not None:
            identity = keyed_identity(submission.tenant, submission.idempotency_key)
        due_at = from_ms(to_ms(submission.due_at))
        return Job(
            tenant=submission.tenant,
            identity=identity,
            bucket=self.wheel.bucket_of(due_at),
            shard=self.wheel.shard_of(submission.tenant, identity),
            target=submission.target,
            payload=Payload(text=submission.payload),
            scheduled_at=due_at,
            priority=submission.priority,
            delivery=submission.delivery,
            precision=submission.precision,
            retry=submission.retry,
            timeout=submission.timeout,
            expires_at=due_at + submission.expires_after if submission.expires_after else None,
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
    ]
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=8).hexdigest()
