"""Fires of schedules, as the scheduler answers: those to come, those that became runs, and their number by the minute."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

from tickwheel.client.answers import Answer, Wire
from tickwheel.client.words import JobState, MarkKind, RunOrigin, ScheduleChange
from tickwheel.errors import ApiProblem


@dataclass(frozen=True, kw_only=True)
class Mark(Answer):
    """A difference between a fire and its rule: gap, fold, window, calendar, spread or jitter, and why."""

    by: MarkKind
    reason: str


@dataclass(frozen=True, kw_only=True)
class Fire(Answer):
    """A future fire. `local` is the same instant, with the offset of the schedule's zone at that time."""

    at: datetime
    local: Annotated[datetime, Wire(read=datetime.fromisoformat)]
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Difference(Answer):
    """What a change would do: the next fires before and after it. The change was not made.

    change: `unchanged` if the definition is the one that the schedule has; None from a scheduler that does not say.
    """

    change: ScheduleChange | None = None
    before: tuple[Fire, ...]
    after: tuple[Fire, ...]


@dataclass(frozen=True, kw_only=True)
class Run(Answer):
    """A fire that became a job; `state` is the job's, `untracked` if nothing is known of it, or no longer.

    `origin` is `scheduled`, `triggered` or `backfilled`.
    """

    fire_at: datetime
    job_id: str
    state: JobState
    attempt: int
    error: str | None = None
    settled_at: datetime | None = None
    origin: RunOrigin = RunOrigin.SCHEDULED


def _problem_of(body: Mapping[str, Any]) -> ApiProblem:
    return ApiProblem.from_json(body, status=int(body["status"]))


@dataclass(frozen=True, kw_only=True)
class FireCount(Answer):
    """The number of fires of a schedule in each minute, counted from the start; or why they were not counted."""

    tenant: str = ""
    id: str = ""
    minutes: Mapping[int, int] = field(default_factory=dict[int, int])
    problem: Annotated[ApiProblem | None, Wire(read=_problem_of)] = None


@dataclass(frozen=True, kw_only=True)
class Backfill(Answer):
    """The runs of a backfill: how many, their first and last fire, and when the last run is due.

    `jobs` is empty for a dry run; the instants are None for an empty range. `next` is where to go on, as `after`, where the
    tenant's rate or quota left some of the range for later; else None.
    """

    id: Annotated[str, Wire("backfill")]
    count: int
    first: datetime | None
    last: datetime | None
    ends_at: datetime | None
    jobs: tuple[str, ...] = ()
    next: str | None = None
