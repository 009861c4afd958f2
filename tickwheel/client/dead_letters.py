"""The filters and values of dead letters. Instants are aware datetimes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from tickwheel.client.answers import Answer, Wire
from tickwheel.client.fields import instant_problems, said, text_problems
from tickwheel.client.words import JobState, ReplayOutcome
from tickwheel.errors import InvalidRequest


@dataclass(frozen=True, kw_only=True)
class DeadLetterFilter:
    """Selects dead letters of a tenant: all that match every filter that is set.

    tenant: or `?` for what Tickwheel did not write. since: 24 hours before until, where it is not said; at most 90 days
    back. until: letters before; None for now. target: of the job, or its destination such as `https://example.com`.
    Raises InvalidRequest.
    """

    tenant: str
    since: datetime | None = None
    until: datetime | None = None
    target: str | None = None
    error_class: str | None = None
    schedule: str | None = None
    tag: str | None = None

    def __post_init__(self) -> None:
        problems = [
            *text_problems("tenant", self.tenant),
            *instant_problems("since", self.since),
            *instant_problems("until", self.until),
        ]
        if problems:
            raise InvalidRequest(problems)

    def as_json(self) -> dict[str, Any]:
        """The filter as the API takes it."""
        return said(vars(self))


LetterFilter = DeadLetterFilter
"""The former name of `DeadLetterFilter`, kept until 1.0."""


@dataclass(frozen=True, kw_only=True)
class DeadLetter(Answer):
    """A dead letter: a job or message that failed for good.

    payload, job and due_at, of its last attempt, are returned for a single dead letter, not in a list; job is what was
    submitted, of its headers only the names.
    raw is the beginning of a body that Tickwheel did not write, which has no job.
    """

    id: str
    tenant: str
    dead_at: datetime
    error: str
    error_class: str
    attempt: int
    is_replayable: bool
    job_id: str | None = None
    target: str | None = None
    schedule_id: str | None = None
    tags: tuple[str, ...] = ()
    payload: Any = None
    is_payload_gone: bool = False
    due_at: datetime | None = None
    job: Mapping[str, Any] | None = None
    raw: str | None = None
    body: Annotated[Mapping[str, Any], Wire("")]
    """The JSON of the scheduler's response."""


@dataclass(frozen=True, kw_only=True)
class Replay(Answer):
    """The result of replaying a dead letter.

    outcome: `replayed`, with the next attempt and when it is due; or `already_replayed`, with the job's state by now.
    """

    id: str
    job_id: str
    outcome: ReplayOutcome
    attempt: int | None = None
    due_at: datetime | None = None
    state: JobState | None = None


@dataclass(frozen=True, kw_only=True)
class NotDone(Answer):
    """A dead letter that was not changed, and why."""

    id: str
    code: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class Part(Answer):
    """The result of one request, or of all requests together, for the dead letters of a filter.

    done: how many were replayed, or purged. already_replayed: whose jobs had gone on before; 0 for a purge.
    examined_until: how far back it reaches. next: where the next request begins; None at the end.
    """

    matched: int
    done: Annotated[int, Wire("replayed", or_else="purged")]
    already_replayed: int = 0
    failed: tuple[NotDone, ...]
    examined_until: datetime
    next: str | None

    @classmethod
    def together(cls, parts: Sequence["Part"]) -> "Part":
        """All parts of an operation, of which there is at least one, as one."""
        return cls(
            matched=sum(part.matched for part in parts),
            done=sum(part.done for part in parts),
            already_replayed=sum(part.already_replayed for part in parts),
            failed=tuple(failed for part in parts for failed in part.failed),
            examined_until=parts[-1].examined_until,
            next=parts[-1].next,
        )


@dataclass(frozen=True, kw_only=True)
class Matches:
    """The number of dead letters that match a filter, and the newest of them."""

    matched: int
    newest: tuple[DeadLetter, ...]
