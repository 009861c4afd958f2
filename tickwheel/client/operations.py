"""The filters and values of operations on many jobs. Instants are aware datetimes."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from tickwheel.client.answers import Answer, Wire
from tickwheel.client.fields import flag_problems, instant_problems, said, text_problems
from tickwheel.client.words import Action, OperationState
from tickwheel.errors import FieldProblem, InvalidRequest

_OVER = ("done", "stopped", "failed")


@dataclass(frozen=True, kw_only=True)
class JobFilter:
    """Selects jobs of a tenant: all waiting jobs that match every filter that is set.

    due_from: an hour ago, where it is not said; at most 14 days back. due_until: jobs due before; None for all that come.
    target: of the job, or its destination such as `https://example.com`. schedule: whose fires are selected. all: needed
    where no other filter is set. Raises InvalidRequest.
    """

    tenant: str
    due_from: datetime | None = None
    due_until: datetime | None = None
    target: str | None = None
    schedule: str | None = None
    tag: str | None = None
    all: bool = False

    def __post_init__(self) -> None:
        problems = [
            *text_problems("tenant", self.tenant),
            *instant_problems("due_from", self.due_from),
            *instant_problems("due_until", self.due_until),
            *flag_problems("all", self.all),
        ]
        said = (self.due_from, self.due_until, self.target, self.schedule, self.tag)
        if not self.all and not any(value is not None for value in said):
            message = "must be true to mean all jobs of the tenant; or say which: by due time, target, schedule or tag"
            problems.append(FieldProblem("all", message))
        if problems:
            raise InvalidRequest(problems)

    def as_json(self) -> dict[str, Any]:
        """The filter as the API takes it."""
        return said({**vars(self), "all": self.all or None})


@dataclass(frozen=True, kw_only=True)
class Example(Answer):
    """A job of an operation: a match of a dry run; or a refused job, with the reason."""

    job_id: str
    code: str | None = None
    detail: str | None = None


@dataclass(frozen=True, kw_only=True)
class Operation(Answer):
    """An operation and its progress.

    share: progress, from 0 to 1. examined: rows that were read. matched: jobs that are selected, and
    waited; done: those that it was done to; refused: how many of the others, by why. examples: the first refused jobs, or of
    a dry run those that match. error: of its last turn. parts: where the files of an export that is done may be
    downloaded, returned for a single operation for 15 minutes, not in a list.
    """

    id: str
    tenant: str
    action: Action
    dry_run: bool
    state: OperationState
    stop_requested: bool
    caller: str
    created_at: datetime
    ended_at: datetime | None
    share: float
    examined: int
    matched: int
    done: int
    refused: Mapping[str, int]
    examples: tuple[Example, ...]
    error: str | None
    parts: tuple[str, ...] | None
    body: Annotated[Mapping[str, Any], Wire("")]
    """The JSON of the scheduler's response."""

    @property
    def is_over(self) -> bool:
        """Whether the operation has ended."""
        return self.state in _OVER

    @property
    def refused_count(self) -> int:
        """The number of selected jobs that were refused."""
        return sum(self.refused.values())
