"""The part of the API's description that is about jobs that were submitted."""

from __future__ import annotations

from typing import Any

from functions.api.http.openapi_parts import TEXT, operation, parameter


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
