"""The part of the API's description that is about operations, made from the models that check its requests."""

from __future__ import annotations

from typing import Any

from functions.api.http.openapi_parts import (
    INSTANT,
    KEY,
    REFERENCE,
    TEXT,
    object_of,
    operation,
    parameter,
    query_of,
)
from functions.api.operations.requests import OperationBody, OperationsQuery
from functions.domain.operations.operation import MAX_EXAMPLES, Action, OperationState

MODELS = (OperationBody,)

_COUNT = {"type": "integer", "minimum": 0}
_FILTER = object_of(
    {"due_from": INSTANT, "due_until": INSTANT, "target": TEXT, "schedule": TEXT, "tag": TEXT}, required=["due_from"]
)
_ALWAYS: dict[str, Any] = {
    "id": TEXT,
    "tenant": TEXT,
    "action": {"enum": [action.value for action in Action]},
    "dry_run": {"type": "boolean"},
    "state": {"enum": [state.value for state in OperationState]},
    "stop_requested": {"type": "boolean"},
    "caller": {"type": "string", "description": "the ARN of who asked"},
    "created_at": INSTANT,
    "filter": _FILTER,
    "share": {"type": "number", "minimum": 0, "maximum": 1, "description": "of the way that lies behind it"},
    "examined": {**_COUNT, "description": "rows of the tenant that were read"},
    "matched": {**_COUNT, "description": "jobs that are meant, and waited"},
    "done": {**_COUNT, "description": "those that it was done to"},
    "refused": {
        "type": "object",
        "description": "how many of the others, by the code of why",
        "additionalProperties": _COUNT,
    },
    "examples": {
        "type": "array",
        "maxItems": MAX_EXAMPLES,
        "description": "refused jobs, and why; of a dry run, jobs that are meant",
        "items": object_of({"job_id": TEXT, "code": TEXT, "detail": TEXT}, required=["job_id"]),
    },
}
_SOMETIMES: dict[str, Any] = {
    "ended_at": INSTANT,
    "by": {"type": "string", "description": "an ISO 8601 duration, perhaps with a minus"},
    "to": INSTANT,
    "spread": {"type": "string", "format": "duration"},
    "rate": {"type": "number"},
    "error": {"type": "string", "description": "of its last turn"},
    "parts": {
        "type": "array",
        "description": "of an export that is done: where its files may be downloaded for 15 minutes",
        "items": {"type": "string", "format": "uri"},
    },
}

SCHEMAS: dict[str, Any] = {
    "Operation": object_of({**_ALWAYS, **_SOMETIMES}, required=list(_ALWAYS)),
    "Operations": object_of(
        {
            "operations": {"type": "array", "items": {"$ref": REFERENCE.format(model="Operation")}},
            "next": {"type": ["string", "null"], "description": "`after` of the next request; null at the end"},
        }
    ),
}


def operation_paths() -> dict[str, Any]:
    """The routes of operations."""
    names = [parameter("path", name, TEXT, is_required=True) for name in ("tenant", "id")]
    return {
        "/v1/operations": {
            "get": operation(
                "listOperations",
                "Tell a tenant's operations, page by page.",
                answers={200: "Operations"},
                parameters=query_of(OperationsQuery),
            ),
            "post": operation(
                "acceptOperation",
                "Cancel, reschedule, run or export all jobs that match a filter, one step after the other.",
                body="OperationBody",
                answers={202: "Operation"},
                parameters=[KEY],
            ),
        },
        "/v1/operations/{tenant}/{id}": {
            "parameters": names,
            "get": operation("getOperation", "Tell an operation as it stands.", answers={200: "Operation"}),
        },
        "/v1/operations/{tenant}/{id}:stop": {
            "parameters": names,
            "post": operation(
                "stopOperation",
                "Let an operation end at its next step; what it has done stays done.",
                answers={200: "Operation", 202: "Operation"},
            ),
        },
    }
