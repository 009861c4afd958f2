"""What the API answers about a job that was submitted: bodies from what the rules found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from functions.api.http.answers import without_empty
from functions.api.jobs.find import Found
from functions.api.jobs.submit import Accepted
from functions.domain.explanation.facts import Explanation
from functions.domain.instants import format_instant
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job_id import JobId
from functions.domain.lifecycle import UNTRACKED, State
from functions.services.jobs.rescheduler import Waiting

if TYPE_CHECKING:
    from functions.api.jobs import shapes

_MAY_BE_UNKNOWN = ("attempt", "fence", "rescues", "cancel_requested", "error", "moved_to", "updated_at")
"""Of a job."""


def heartbeat_body(job_id: JobId, row: LedgerRow) -> shapes.Heartbeat:
    """An attempt that goes on. cancelled: a cancel was requested, so it should stop, and say how it ended."""
    return {
        "id": str(job_id),
        "state": row.state,
        "lease_until": format_instant(row.lease_until) if row.lease_until else None,
        "cancelled": row.cancel_requested,
    }


def ended_body(job_id: JobId, state: State) -> shapes.Ended:
    """An attempt that has ended, and what that made of its job."""
    return {"id": str(job_id), "state": state}


def waiting_body(waiting: Waiting, *, asked: JobId) -> shapes.Waiting:
    """A job that waits; moved_from: the id that it was asked for by, where that is another one."""
    body: shapes.Waiting = {
        "id": str(waiting.job_id),
        "tenant": waiting.job_id.tenant,
        "state": waiting.state,
        "due_at": format_instant(waiting.due_at),
    }
    return body if waiting.job_id == asked else {**body, "moved_from": str(asked)}


def explanation_body(found: Found, explanation: Explanation) -> shapes.Explanation:
    """Why a job has not run yet, or what became of it."""
    return {
        "id": str(found.job_id),
        "state": found.state or UNTRACKED,
        "reason": explanation.reason,
        "at": format_instant(explanation.at) if explanation.at else None,
        "detail": explanation.detail,
        "remedy": explanation.remedy,
        "would_change_it": explanation.remedy,  # deprecated: answered until 1.0
    }


def accepted_body(accepted: Accepted) -> shapes.Accepted:
    """A job that is durably in the wheel; replayed: its idempotency key had been used, and this is the first job."""
    return {
        "id": accepted.job_id,
        "tenant": accepted.tenant,
        "state": accepted.state or UNTRACKED,
        "due_at": format_instant(accepted.due_at),
        "ring": accepted.ring,
        "replayed": accepted.is_replay,
    }


def found_body(found: Found) -> shapes.Job:
    """What is known of a job. What is not known is left out."""
    row = found.row
    body: shapes.Job = {
        "id": str(found.job_id),
        "tenant": found.job_id.tenant,
        "state": found.state or UNTRACKED,
        "due_at": format_instant(found.due_at),
        "priority": found.job_id.priority.name.lower(),
        "delivery": found.job_id.delivery,
        "attempt": row.attempt,
        "fence": row.fence,
        "rescues": row.rescue_count,
        "cancel_requested": row.cancel_requested,
        "error": row.error,
        "moved_to": row.moved_to,
        "updated_at": format_instant(row.updated_at) if row.updated_at else "",
    }
    body = without_empty(body, *_MAY_BE_UNKNOWN)
    # A handler may well answer 0 or false.
    if row.result:
        body["result"] = json.loads(row.result) if _is_whole(row.result) else row.result
    return body


def _is_whole(result: str) -> bool:
    """Whether a kept result is the JSON it was; a long one was cut, and is told as text."""
    try:
        json.loads(result)
    except ValueError:
        return False
    return True
