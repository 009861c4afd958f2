"""What the API answers: bodies from what the rules found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import Response

from functions.api.http.problems import CONTENT_TYPE, RETRY_AFTER
from functions.api.jobs.find import Found
from functions.api.jobs.submit import Accepted
from functions.domain.instants import format_instant
from functions.domain.targets.webhooks import WebhookKey

UNTRACKED = "untracked"
"""Told of a job that has no row to tell its state from: an at_least_once job that has left the far ring, and, under its
idempotency key, a job that was moved and has ended long ago."""


def answer(status: HTTPStatus, body: dict[str, Any]) -> Response[str]:
    """A JSON answer."""
    return Response(status_code=status, content_type="application/json", body=json.dumps(body))


def problem_answer(problem: dict[str, Any]) -> Response[str]:
    """A problem+json answer; its status stands in it."""
    headers = {"Retry-After": str(problem[RETRY_AFTER])} if RETRY_AFTER in problem else {}
    return Response(
        status_code=problem["status"], content_type=CONTENT_TYPE, body=json.dumps(problem), headers={**headers}
    )


def accepted_body(accepted: Accepted) -> dict[str, Any]:
    """A job that is durably in the wheel; replayed: its idempotency key had been used, and this is the first job."""
    return {
        "id": accepted.job_id,
        "tenant": accepted.tenant,
        "state": accepted.state or UNTRACKED,
        "due_at": format_instant(accepted.due_at),
        "ring": accepted.ring,
        "replayed": accepted.is_replay,
    }


def found_body(found: Found) -> dict[str, Any]:
    """What is known of a job. What is not known is left out."""
    row = found.row
    known = {
        "attempt": row.attempt,
        "fence": row.fence,
        "rescues": row.rescue_count,
        "cancel_requested": row.cancel_requested,
        "error": row.error,
        "moved_to": row.moved_to,
        "updated_at": format_instant(row.updated_at) if row.updated_at else None,
    }
    # Told apart from the others: a handler may well answer 0 or false.
    result = {"result": json.loads(row.result) if _is_whole(row.result) else row.result} if row.result else {}
    return {
        "id": str(found.job_id),
        "tenant": found.job_id.tenant,
        "state": found.state or UNTRACKED,
        "due_at": format_instant(found.due_at),
        "priority": found.job_id.priority.name.lower(),
        "delivery": found.job_id.delivery,
        **{name: value for name, value in known.items() if value not in ("", 0, None, False)},
        **result,
    }


def webhook_keys_body(keys: Sequence[WebhookKey]) -> dict[str, Any]:
    """A tenant's keys, the current one first."""
    return {"keys": [{"id": key.id, "secret": key.shown} for key in keys]}


def _is_whole(result: str) -> bool:
    """Whether a kept result is the JSON it was; a long one was cut, and is told as text."""
    try:
        json.loads(result)
    except ValueError:
        return False
    return True
