"""What the API answers about operations: bodies from what the rules found."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from functions.domain.instants import format_duration, format_instant
from functions.domain.operations.operation import Action, Example, JobFilter, Operation, Shift

_MOST_OF_AN_ERROR = 500


def operation_body(operation: Operation, *, parts: Sequence[str] | None = None) -> dict[str, Any]:
    """An operation as it stands. parts: where the files of an export are. What there is not is left out."""
    progress = operation.progress
    known = {
        "ended_at": format_instant(operation.ended_at) if operation.ended_at else None,
        "rate": operation.rate if operation.action is Action.RUN_NOW else None,
        "error": progress.error[:_MOST_OF_AN_ERROR] or None,
        "parts": list(parts) if parts is not None else None,
    }
    return {
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
        **{name: value for name, value in known.items() if value is not None},
    }


def operations_body(operations: Sequence[Operation], *, after: str | None) -> dict[str, Any]:
    """A page of a list."""
    return {"operations": [operation_body(operation) for operation in operations], "next": after}


def filter_body(wanted: JobFilter) -> dict[str, Any]:
    """Which jobs are meant, as JSON values; what is not said is left out."""
    said = {
        "due_from": format_instant(wanted.due_from),
        "due_until": format_instant(wanted.due_until) if wanted.due_until else "",
        "target": wanted.target,
        "schedule": wanted.schedule_id,
        "tag": wanted.tag,
    }
    return {name: value for name, value in said.items() if value}


def shift_body(shift: Shift | None) -> dict[str, Any]:
    """When jobs are to run instead, as JSON values."""
    if shift is None:
        return {}
    if shift.by is not None:
        return {"by": f"{'-' if shift.by < timedelta(0) else ''}{format_duration(abs(shift.by))}"}
    assert shift.to is not None  # checked at birth
    return {"to": format_instant(shift.to), "spread": format_duration(shift.spread)}


def _example_body(example: Example) -> dict[str, str]:
    told = {"job_id": example.job_id, "code": example.code, "detail": example.detail}
    return {name: value for name, value in told.items() if value}
