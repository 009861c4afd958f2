"""What is answered about operations, as types."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict

from functions.api.http.shapes import Caller, Count, Duration, Instant, JobId, OperationId, TenantId, one_of
from functions.domain.operations.operation import MAX_EXAMPLES, Action, OperationState

Uri = Annotated[str, WithJsonSchema({"type": "string", "format": "uri"})]


class Filter(TypedDict):
    """Which jobs are selected."""

    due_from: Instant
    due_until: NotRequired[Instant]
    target: NotRequired[str]
    schedule: NotRequired[str]
    tag: NotRequired[str]


class Shift(TypedDict):
    """When jobs are to run instead."""

    by: NotRequired[str]
    """an ISO 8601 duration, perhaps with a minus"""
    to: NotRequired[Instant]
    spread: NotRequired[Duration]


class Example(TypedDict):
    """A job of an operation; why it is refused, if it is."""

    job_id: JobId
    code: NotRequired[str]
    detail: NotRequired[str]


class Operation(Shift):
    """An operation as it stands."""

    id: OperationId
    tenant: TenantId
    action: Annotated[str, one_of(Action)]
    dry_run: bool
    state: Annotated[str, one_of(OperationState)]
    stop_requested: bool
    caller: Caller
    """the ARN of who asked"""
    created_at: Instant
    filter: Filter
    share: Annotated[float, Field(ge=0, le=1)]
    """of the way that lies behind it"""
    examined: Count
    """rows of the tenant that were read"""
    matched: Count
    """jobs that are meant, and waited"""
    done: Count
    """those that it was done to"""
    refused: dict[str, Count]
    """how many of the others, by the code of why"""
    examples: Annotated[list[Example], Field(max_length=MAX_EXAMPLES)]
    """refused jobs, and why; of a dry run, jobs that are meant"""
    ended_at: NotRequired[Instant]
    rate: NotRequired[float]
    error: NotRequired[str]
    """of its last turn"""
    parts: NotRequired[list[Uri]]
    """of an export that is done: where its files may be downloaded for 15 minutes"""


class Operations(TypedDict):
    """A page of operations."""

    operations: list[Operation]
    next: str | None
    """`after` of the next request; null at the end"""
