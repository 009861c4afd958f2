"""The part of the API's description that is about operations, made from the models that check its requests."""

from __future__ import annotations

from typing import Any

from functions.api.http.openapi_parts import (
    KEY,
    TEXT,
    operation,
    parameter,
    query_of,
)
from functions.api.operations.requests import OperationsQuery


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
