"""What the API answers about a job that was submitted: bodies from what the rules found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from functions.api.http.answers import UNTRACKED
from functions.api.jobs.find import Found
from functions.domain.explanation.facts import Explanation
from functions.domain.instants import format_instant
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job_id import JobId
from functions.domain.lifecycle import State
from functions.services.jobs.rescheduler import Waiting

if TYPE_CHECKING:
    from functions.api.jobs import shapes


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
