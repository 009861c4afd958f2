"""The job that a callback is: one identity for each end of its job, so that putting it twice is one job."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from functions.domain.instants import format_instant, from_ms, to_ms
from functions.domain.jobs.callbacks import PREFIX, CallbackName
from functions.domain.jobs.claims import ABANDONED, LedgerRow
from functions.domain.jobs.job import Delivery, Job, Payload, Precision
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.results import NO_RESULT, KeptResult
from functions.domain.jobs.retry import RetryPolicy
from functions.domain.lifecycle import State
from functions.domain.targets.http_answers import RESULT_LIMIT
from functions.domain.wheel import Wheel


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a job has ended. attempts: how many have begun. spent: those of before its last replay."""

    state: State
    attempts: int
    ended_at: datetime
    spent: int = 0
    result: KeptResult = NO_RESULT
    error: str = ""

    @property
    def is_abandoned(self) -> bool:
        """Whether its schedule has given it up."""
        return is_abandoned(self.state, self.error)


def is_abandoned(state: State, error: str) -> bool:
    """Whether a run that has ended so, with this error in its row, was given up by its schedule."""
    return state is State.CANCELLED and error == ABANDONED


def outcome_in(row: LedgerRow, *, now: datetime) -> Outcome | None:
    """The outcome that a row tells; None for one that has not ended."""
    if not row.is_settled:
        return None
    return Outcome(
        state=row.state,
        attempts=row.attempt,
        ended_at=row.updated_at or now,
        spent=row.spent,
        result=KeptResult(row.result, row.whole),
        error=row.error,
    )


def callback_identity(job: Job, name: CallbackName, *, state: State | None, spent: int) -> str:
    """The same for the same end, whoever reports it.

    A job fails for good once more after a replay, which `spent` tells apart; every other end is its last. What keeps no
    row may end in several ways at once, and calls each of its callbacks once: there the state says nothing.
    """
    end = ""
    if job.is_ledgered and state is not None:
        end = f"{state.value}:{spent}" if state is State.FAILED else state.value
    else:
        end = str(spent)
    told = f"{job.key}#{name.value}#{end}"
    return PREFIX + hashlib.blake2b(told.encode(), digest_size=16).hexdigest()


def callback_job(job: Job, name: CallbackName, target: str, outcome: Outcome, *, now: datetime, wheel: Wheel) -> Job:
    """The job of a callback, due now: with the priority, the timeout and the shard of its job, and retries of its own."""
    due_at = from_ms(to_ms(now))
    return Job(
        tenant=job.tenant,
        identity=callback_identity(job, name, state=outcome.state, spent=outcome.spent),
        bucket=wheel.bucket_of(due_at),
        shard=job.shard,
        target=target,
        payload=Payload(text=json.dumps(_body(job, name, outcome), separators=(",", ":"), ensure_ascii=False)),
        scheduled_at=due_at,
        priority=job.priority,
        delivery=Delivery.EXACTLY_ONCE,
        precision=Precision.DEFAULT,
        retry=RetryPolicy(),
        timeout=job.timeout,
        trace=job.trace,
    )


def _body(job: Job, name: CallbackName, outcome: Outcome) -> dict[str, Any]:
    told: dict[str, Any] = {
        "id": str(job_id_of(job)),
        "tenant": job.tenant,
        "state": outcome.state.value,
        "attempts": outcome.attempts,
        "scheduled_at": format_instant(job.scheduled_at),
        "ended_at": format_instant(outcome.ended_at),
    }
    if job.occurrence is not None:
        told["schedule_id"] = job.occurrence.schedule_id
    if job.tags:
        told["tags"] = list(job.tags)
    if outcome.result.text:
        told["result"] = _result(outcome.result.text[:RESULT_LIMIT])
    if outcome.result.size:
        told["result_size"] = outcome.result.size
    if outcome.error:
        told["error"] = outcome.error[:RESULT_LIMIT]
    return {"callback": name.value, "job": told}


def _result(text: str) -> Any:
    """The JSON that it is; one that was cut is a text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
