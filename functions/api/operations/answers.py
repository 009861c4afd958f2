"""What the API answers about operations: bodies from what the rules found."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from functions.api.http.answers import without_empty
from functions.domain.instants import format_duration, format_instant
from functions.domain.operations.operation import Action, Example, JobFilter, Operation, Shift

if TYPE_CHECKING:
    from functions.api.operations import shapes

_MOST_OF_AN_ERROR = 500


def operation_body(operation: Operation, *, parts: Sequence[str] | None = None) -> shapes.Operation:
    """An operation as it stands. parts: where the files of an export are. What there is not is left out."""
    progress = operation.progress
    body: shapes.Operation = {
        "id": operation.operation_id,
        "tenant": operation.tenant,
        "action": operation.action.value,
        "dry_run": operation.dry_run,
        "state": operation.state.value,
        "stop_requested": operation.stop_requested,
        "caller": operation.caller,
        "created_at": format_instant(operation.created_at),
        "filter": filter_body(operation.wanted),
        **shift_body(operation.shift),
        "share": round(progress.share, 4),
        "examined": progress.examined,
        "matched": progress.matched,
        "done": progress.done,
        "refused": dict(progress.refused),
        "examples": [_example_body(example) for example in progress.examples],
        "ended_at": format_instant(operation.ended_at) if operation.ended_at else "",
        "error": progress.error[:_MOST_OF_AN_ERROR],
    }
    if operation.action is Action.RUN_NOW:
        body["rate"] = operation.rate
    if parts is not None:
        body["parts"] = list(parts)
    return without_empty(body, "ended_at", "error")


def operations_body(operations: Sequence[Operation], *, after: str | None) -> shapes.Operations:
    """A page of a list."""
    return {"operations": [operation_body(operation) for operation in operations], "next": after}


def filter_body(wanted: JobFilter) -> shapes.Filter:
    """Which jobs are meant, as JSON values; what is not said is left out."""
    said: shapes.Filter = {
        "due_from": format_instant(wanted.due_from),
        "due_until": format_instant(wanted.due_until) if wanted.due_until else "",
        "target": wanted.target,
        "schedule": wanted.schedule_id,
        "tag": wanted.tag,
    }
    return without_empty(said, "due_until", "target", "schedule", "tag")


def shift_body(shift: Shift | None) -> shapes.Shift:
    """When jobs are to run instead, as JSON values."""
    if shift is None:
        return {}
    if shift.by is not None:
        return {"by": f"{'-' if shift.by < timedelta(0) else ''}{format_duration(abs(shift.by))}"}
    assert shift.to is not None  # checked at birth
    return {"to": format_instant(shift.to), "spread": format_duration(shift.spread)}


def _example_body(example: Example) -> shapes.Example:
    body: shapes.Example = {"job_id": example.job_id, "code": example.code, "detail": example.detail}
    return without_empty(body, "code", "detail")
