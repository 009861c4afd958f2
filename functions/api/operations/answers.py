"""What the API answers about operations: the shapes of its bodies, and these from what the rules found."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, NotRequired

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict

from functions.api.http import shapes
from functions.api.http.answers import without_empty
from functions.domain.instants import format_duration, format_instant
from functions.domain.operations import operation as rules

Uri = Annotated[str, WithJsonSchema({"type": "string", "format": "uri"})]


class Filter(TypedDict):
    """The conditions that jobs must match."""

    due_from: shapes.Instant
    due_until: NotRequired[shapes.Instant]
    target: NotRequired[str]
    schedule: NotRequired[str]
    tag: NotRequired[str]


class Shift(TypedDict):
    """The new time of jobs."""

    by: NotRequired[str]
    """An ISO 8601 duration. It may be negative."""
    to: NotRequired[shapes.Instant]
    spread: NotRequired[shapes.Duration]


class Example(TypedDict):
    """A job of an operation, and why it was refused, if it was."""

    job_id: shapes.JobId
    code: NotRequired[str]
    detail: NotRequired[str]


class Operation(Shift):
    """An operation and its progress."""

    id: shapes.OperationId
    tenant: shapes.TenantId
    action: Annotated[str, shapes.one_of(rules.OperationKind)]
    dry_run: bool
    state: Annotated[str, shapes.one_of(rules.OperationState)]
    stop_requested: bool
    caller: shapes.Caller
    """The ARN of the caller that started the operation."""
    created_at: shapes.Instant
    filter: Filter
    share: Annotated[float, Field(ge=0, le=1)]
    """The fraction that is done, from 0 to 1."""
    examined: shapes.Count
    """The number of rows of the tenant that were read."""
    matched: shapes.Count
    """The number of waiting jobs that match the filter."""
    done: shapes.Count
    """The number of jobs that the action was applied to."""
    refused: dict[str, shapes.Count]
    """The number of jobs that were refused, by the code of the reason."""
    examples: Annotated[list[Example], Field(max_length=rules.MAX_EXAMPLES)]
    """Refused jobs and the reasons. For a dry run, jobs that match the filter."""
    ended_at: NotRequired[shapes.Instant]
    rate: NotRequired[float]
    error: NotRequired[str]
    """The error of the last turn."""
    parts: NotRequired[list[Uri]]
    """For a finished export: the URLs of its files, valid for 15 minutes."""


class Operations(TypedDict):
    """A page of operations."""

    operations: list[Operation]
    next: str | None
    """The `after` of the next request, or `null` at the end."""


_MOST_OF_AN_ERROR = 500


def operation_body(operation: rules.Operation, *, parts: Sequence[str] | None = None) -> Operation:
    """An operation as it stands. parts: where the files of an export are. What there is not is left out."""
    progress = operation.progress
    body: Operation = {
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
    body = without_empty(Operation, body)
    if operation.action is rules.OperationKind.RUN_NOW:
        body["rate"] = operation.rate
    if parts is not None:
        body["parts"] = list(parts)
    return body


def operations_body(operations: Sequence[rules.Operation], *, after: str | None) -> Operations:
    """A page of a list."""
    return {"operations": [operation_body(operation) for operation in operations], "next": after}


def filter_body(wanted: rules.JobFilter) -> Filter:
    """Which jobs are selected, as JSON values; a condition that is not given is left out."""
    given: Filter = {
        "due_from": format_instant(wanted.due_from),
        "due_until": format_instant(wanted.due_until) if wanted.due_until else "",
        "target": wanted.target,
        "schedule": wanted.schedule_id,
        "tag": wanted.tag,
    }
    return without_empty(Filter, given)


def shift_body(shift: rules.Shift | None) -> Shift:
    """When jobs are to run instead, as JSON values."""
    if shift is None:
        return {}
    if shift.by is not None:
        return {"by": f"{'-' if shift.by < timedelta(0) else ''}{format_duration(abs(shift.by))}"}
    assert shift.to is not None  # checked at birth
    return {"to": format_instant(shift.to), "spread": format_duration(shift.spread)}


def _example_body(example: rules.Example) -> Example:
    body: Example = {"job_id": example.job_id, "code": example.code, "detail": example.detail}
    return without_empty(Example, body)
