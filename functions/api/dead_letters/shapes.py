"""What is answered about dead letters, as types."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from functions.api.dead_letters.finder import MOST_SHOWN
from functions.api.dead_letters.purge import PURGED
from functions.api.dead_letters.replay import ALREADY_REPLAYED, REPLAYED
from functions.api.http.shapes import Count, DeadLetterId, Duration, Instant, JobId, TenantId, one_of
from functions.domain.jobs.job import Delivery
from functions.domain.lifecycle import State


class DeadLetterEntry(TypedDict):
    """A dead letter in a list."""

    id: DeadLetterId
    tenant: TenantId
    dead_at: Instant
    error: Annotated[str, Field(examples=["no answer within 30 s"])]
    error_class: Annotated[str, Field(examples=["timeout", "worker_died", "undecodable"])]
    attempt: Count
    """the last one"""
    is_replayable: bool
    job_id: NotRequired[str]
    target: NotRequired[str]
    schedule_id: NotRequired[str]
    tags: NotRequired[list[str]]


class DescribedJob(TypedDict):
    """how the job was asked for, without payload; of its headers only their names."""

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
    occurrence: NotRequired[dict[str, Any]]


class DeadLetter(DeadLetterEntry):
    """A dead letter with all that is kept of it."""

    payload: NotRequired[Any]
    """as its target would be given it"""
    is_payload_gone: NotRequired[Literal[True]]
    due_at: NotRequired[Instant]
    """of the last attempt"""
    job: NotRequired[DescribedJob]
    raw: NotRequired[str]
    """the beginning of a body that Tickwheel did not write"""


class Position(TypedDict):
    """How far an answer reaches."""

    examined_until: Instant
    """how far back this answer reaches"""
    next: str | None
    """`after` of the next request; null at the end"""


class DeadLetters(Position):
    """newest first; a page may be empty and have a next one."""

    dead_letters: list[DeadLetterEntry]


class Replay(TypedDict):
    """What came of the replay of one dead letter."""

    id: DeadLetterId
    job_id: JobId
    outcome: Annotated[str, one_of([REPLAYED, ALREADY_REPLAYED])]
    attempt: NotRequired[Count]
    """the one that is due"""
    due_at: NotRequired[Instant]
    state: NotRequired[Annotated[str, one_of(State)]]
    """absent: its ledger row has expired"""


class Purge(TypedDict):
    """A dead letter that is not there (any more)."""

    id: DeadLetterId
    outcome: Annotated[str, one_of([PURGED])]


class DeadLetterFailure(TypedDict):
    """A dead letter that stays, and why."""

    id: DeadLetterId
    code: Annotated[str, Field(examples=["payload_gone"])]
    detail: Annotated[str, Field(examples=["its payload is not kept any more"])]


class Replays(Position):
    """What came of the replay of many."""

    matched: Count
    replayed: Count
    already_replayed: Count
    failed: list[DeadLetterFailure]
    """whose dead letters stay, and why"""


class Purges(Position):
    """What came of the purge of many."""

    matched: Count
    purged: Count
    failed: list[DeadLetterFailure]
    """whose dead letters stay, and why"""


class Matches(Position):
    """of a dry run: how many are meant, and the newest of them."""

    matched: Count
    dead_letters: Annotated[list[DeadLetterEntry], Field(max_length=MOST_SHOWN)]
