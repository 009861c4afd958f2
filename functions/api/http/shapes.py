"""What members of answers are made of: the description of the API is made of these types.

Where bodies have shapes, annotations are not postponed: which members may be left out is read from them as it runs.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, NotRequired

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict

from functions.api.http.problem_table import TABLE
from functions.domain.jobs.job import Delivery, Priority
from functions.domain.lifecycle import UNTRACKED, State


def one_of(values: Iterable[str]) -> WithJsonSchema:
    """A text that is one of these."""
    return WithJsonSchema({"type": "string", "enum": [str(value) for value in values]})


def _such_as(example: str) -> Any:
    return Field(examples=[example])


TenantId = Annotated[str, _such_as("acme")]
JobId = Annotated[str, _such_as("j1~acme~2e~ttzw00~1~n0p8ww00~job-27982a10bbd5ca798")]
DeadLetterId = Annotated[str, _such_as("acme~1s6b3pc00~n-0f3a9c2e7d1b")]
ScheduleId = Annotated[str, _such_as("nightly")]
OperationId = Annotated[str, _such_as("op-4f1c0a9be27d35864c01d92ab")]
Target = Annotated[str, _such_as("https://example.com/hook")]
Destination = Annotated[str, _such_as("https://example.com")]
Caller = Annotated[str, _such_as("arn:aws:sts::123456789012:assumed-role/orders/session")]

Instant = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
Day = Annotated[str, WithJsonSchema({"type": "string", "format": "date", "description": "A day in UTC."})]
Duration = Annotated[str, WithJsonSchema({"type": "string", "format": "duration"})]
Count = Annotated[int, Field(ge=0)]
PriorityName = Annotated[str, one_of(priority.name.lower() for priority in Priority)]
JobState = Annotated[str, one_of([*(state for state in State if state is not State.ABSENT), UNTRACKED])]

OTHER_CODES = {"no_such_route", "unavailable", "out_of_time", "answer_too_large"}
"""The codes of problems that no error is answered as."""


class DescribedJob(TypedDict):
    """The job as it was submitted, without its payload and the values of its headers."""

    target: str
    scheduled_at: Instant
    delivery: Annotated[str, one_of(Delivery)]
    retry: dict[str, Any]
    timeout: Duration
    priority: NotRequired[str]
    precision: NotRequired[str]
    expires_at: NotRequired[Instant]
    http: NotRequired[dict[str, Any]]
    asynchronous: NotRequired[bool]
    tags: NotRequired[list[str]]
    flow: NotRequired[list[dict[str, Any]]]
    on_success: NotRequired[str]
    on_failure: NotRequired[str]
    on_end: NotRequired[str]
    submitted_at: NotRequired[Instant]
    """When the API accepted the job. Absent for runs of schedules."""
    occurrence: NotRequired[dict[str, Any]]


class FieldProblem(TypedDict):
    """Why a field was rejected."""

    field: str
    message: str
    value: NotRequired[Any]
    instead: NotRequired[list[Mapping[str, Any]]]
    """Parts of a schedule definition. Use one of them instead of the rejected value."""


class ProblemMembers(TypedDict, total=False):
    """Members of a problem that depend on its code."""

    detail: str
    id: str
    """The id of the job or operation that was first created with the idempotency key, or the current id of a moved job."""
    state: JobState
    version: int
    """The current version of the schedule that was to be new, or to have another version."""
    retry_after: int
    """The number of seconds after which to repeat the request."""
    count: int
    """The current number of what is limited."""
    limit: float
    fires_per_minute: float
    """The fires per minute of the existing schedules."""
    added: float
    """The fires per minute that the rejected schedule would add."""
    errors: list[FieldProblem]


class Problem(ProblemMembers):
    """A problem document as defined by RFC 9457."""

    type: Annotated[str, _such_as("urn:tickwheel:problem:unavailable")]
    title: Annotated[str, _such_as("Something failed; submit or ask again")]
    status: Annotated[int, Field(examples=[503])]
    code: Annotated[str, one_of(sorted({code for _, code, _ in TABLE.values()} | OTHER_CODES)), _such_as("unavailable")]
