"""What the API answers: bodies from what the rules found."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar, cast

from aws_lambda_powertools.event_handler import Response

from functions.api.http.problems import CONTENT_TYPE, RETRY_AFTER
from functions.api.jobs.find import Found
from functions.api.jobs.submit import Accepted
from functions.domain.instants import format_instant
from functions.domain.targets.webhooks import WebhookKey

if TYPE_CHECKING:
    from functions.api.http import shapes
    from functions.api.jobs import shapes as jobs
    from functions.api.tenants import shapes as tenants

UNTRACKED = "untracked"
"""Told of a job that has no row to tell its state from: an at_least_once job that has left the far ring, and, under its
idempotency key, a job that was moved and has ended long ago."""


Body = TypeVar("Body", bound=Mapping[str, Any])

_MAY_BE_UNKNOWN = ("attempt", "fence", "rescues", "cancel_requested", "error", "moved_to", "updated_at")
"""Of a job."""


def answer(status: HTTPStatus, body: Mapping[str, Any]) -> Response[str]:
    """A JSON answer."""
    return Response(status_code=status, content_type="application/json", body=json.dumps(body))


def problem_answer(problem: shapes.Problem) -> Response[str]:
    """A problem+json answer; its status stands in it."""
    headers = {"Retry-After": str(problem[RETRY_AFTER])} if RETRY_AFTER in problem else {}
    return Response(
        status_code=problem["status"], content_type=CONTENT_TYPE, body=json.dumps(problem), headers={**headers}
    )


def without_empty(body: Body, *names: str) -> Body:
    """An answer without those of these members that are an empty text or list, 0 or false: they may be left out."""
    return cast("Body", {name: value for name, value in body.items() if value or name not in names})


def accepted_body(accepted: Accepted) -> jobs.Accepted:
    """A job that is durably in the wheel; replayed: its idempotency key had been used, and this is the first job."""
    return {
        "id": accepted.job_id,
        "tenant": accepted.tenant,
        "state": accepted.state or UNTRACKED,
        "due_at": format_instant(accepted.due_at),
        "ring": accepted.ring,
        "replayed": accepted.is_replay,
    }


def found_body(found: Found) -> jobs.Job:
    """What is known of a job. What is not known is left out."""
    row = found.row
    body: jobs.Job = {
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


def webhook_keys_body(keys: Sequence[WebhookKey]) -> tenants.WebhookKeys:
    """A tenant's keys, the current one first."""
    return {"keys": [{"id": key.id, "secret": key.shown} for key in keys]}


def _is_whole(result: str) -> bool:
    """Whether a kept result is the JSON it was; a long one was cut, and is told as text."""
    try:
        json.loads(result)
    except ValueError:
        return False
    return True
