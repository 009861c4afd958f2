"""The part of the API's description that is about jobs that were submitted."""

from __future__ import annotations

from typing import Any

from functions.api.http.answers import UNTRACKED
from functions.api.http.openapi_parts import INSTANT, TEXT, object_of, operation, parameter
from functions.api.http.requests import JobBody
from functions.api.jobs.requests import CHANGEABLE, CompleteBody, FailBody, HeartbeatBody
from functions.domain.explanation.facts import Reason
from functions.domain.lifecycle import State

MODELS = (HeartbeatBody, CompleteBody, FailBody)

_STATES = [*(state.value for state in State if state is not State.ABSENT), UNTRACKED]

_PATCH = {
    "type": "object",
    "description": f"RFC 7396: fields of a {JobBody.__name__}, null to give one its usual value",
    "propertyNames": {"enum": list(CHANGEABLE)},
}
_WAITING = object_of(
    {
        "id": {"type": "string", "description": "under which the job goes on"},
        "tenant": TEXT,
        "state": {"enum": [State.SCHEDULED.value, State.RETRYING.value]},
        "due_at": INSTANT,
        "moved_from": {"type": "string", "description": "the id that it was asked for by; it goes on answering"},
    },
    required=["id", "tenant", "state", "due_at"],
)

SCHEMAS: dict[str, Any] = {
    "JobPatch": _PATCH,
    "Waiting": _WAITING,
    "Heartbeat": object_of(
        {
            "id": TEXT,
            "state": {"enum": [State.RUNNING.value]},
            "lease_until": {**INSTANT, "description": "send the next heartbeat before this"},
            "cancelled": {"type": "boolean", "description": "stop, and then complete or fail the job"},
        }
    ),
    "Ended": object_of({"id": TEXT, "state": {"enum": _STATES}}),
    "Explanation": object_of(
        {
            "id": TEXT,
            "state": {"enum": _STATES},
            "reason": {"enum": [reason.value for reason in Reason]},
            "at": {"type": ["string", "null"], "format": "date-time"},
            "detail": {"type": "string", "description": "for people"},
            "remedy": {"type": "string", "description": "what would let the job run, for people"},
            "would_change_it": {"type": "string", "description": "the same as remedy", "deprecated": True},
        }
    ),
}


def change_operation() -> dict[str, Any]:
    """Of the path of a job."""
    return operation(
        "changeJob",
        "Give a job that waits another time or another content; it goes on under a new id.",
        body="JobPatch",
        body_type="application/merge-patch+json",
        answers={200: "Waiting"},
    )


JOB_ID: dict[str, Any] = {
    **parameter("path", "id", TEXT, is_required=True),
    "description": "An id that was answered, as it is. Any other is 404: job_not_found, or not_a_job_id where it cannot be one.",
}
"""Of a job, in a path."""


def job_paths() -> dict[str, Any]:
    """The routes below the path of a job; a verb belongs to the path itself: `/v1/jobs/j1~acme~…:run-now`."""
    items = {
        "/v1/jobs/{id}:run-now": {
            "post": operation("runJobNow", "Run a job that waits, or its next attempt, now.", answers={202: "Waiting"})
        },
        "/v1/jobs/{id}/explain": {
            "get": operation(
                "explainJob", "Tell why a job has not run yet, or what became of it.", answers={200: "Explanation"}
            )
        },
        "/v1/jobs/{id}/heartbeat": {
            "post": operation(
                "heartbeatJob",
                "Tell that the target of an attempt goes on by itself.",
                body="HeartbeatBody",
                answers={200: "Heartbeat"},
            )
        },
        "/v1/jobs/{id}/complete": {
            "post": operation(
                "completeJob",
                "Tell that the target of an attempt has taken the job.",
                body="CompleteBody",
                answers={200: "Ended"},
            )
        },
        "/v1/jobs/{id}/fail": {
            "post": operation(
                "failJob", "Tell that the target of an attempt has failed.", body="FailBody", answers={200: "Ended"}
            )
        },
    }
    return {path: {"parameters": [JOB_ID], **item} for path, item in items.items()}
