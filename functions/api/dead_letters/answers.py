"""What the API answers about dead letters: the shapes of its bodies, and these from what the rules found."""

import json
from typing import Annotated, Any, Literal, NotRequired, cast

from pydantic import Field
from typing_extensions import TypedDict

from functions.api.dead_letters import purge, replay
from functions.api.dead_letters.finder import MOST_SHOWN, DeadLetterPage, Inspected, obstacle_of
from functions.api.http import shapes
from functions.api.http.answers import without_empty
from functions.api.http.problems import problem_of
from functions.domain.dead_letters.dead_letter_id import DeadLetterId
from functions.domain.instants import format_instant
from functions.domain.jobs.description import describe_job
from functions.domain.lifecycle import State
from functions.ports import dead_letters


class DeadLetterEntry(TypedDict):
    """A dead letter in a list."""

    id: shapes.DeadLetterId
    tenant: shapes.TenantId
    dead_at: shapes.Instant
    error: Annotated[str, Field(examples=["no answer within 30 s"])]
    error_class: Annotated[str, Field(examples=["timeout", "worker_died", "undecodable"])]
    attempt: shapes.Count
    """The number of the last attempt."""
    is_replayable: bool
    job_id: NotRequired[str]
    target: NotRequired[str]
    schedule_id: NotRequired[str]
    tags: NotRequired[list[str]]


class DeadLetter(DeadLetterEntry):
    """A dead letter with all its fields."""

    payload: NotRequired[Any]
    """The payload as its target would receive it."""
    is_payload_gone: NotRequired[Literal[True]]
    due_at: NotRequired[shapes.Instant]
    """When the last attempt was due."""
    job: NotRequired[shapes.DescribedJob]
    raw: NotRequired[str]
    """The beginning of a message body that Tickwheel did not write."""


class Position(TypedDict):
    """How far an answer reaches."""

    examined_until: shapes.Instant
    """How far back this response reaches."""
    next: str | None
    """The `after` of the next request, or `null` at the end."""


class DeadLetters(Position):
    """A page of dead letters, newest first. A page may be empty although there is a next one."""

    dead_letters: list[DeadLetterEntry]


class Replay(TypedDict):
    """The result of replaying a dead letter."""

    id: shapes.DeadLetterId
    job_id: shapes.JobId
    outcome: Annotated[str, shapes.one_of([replay.REPLAYED, replay.ALREADY_REPLAYED])]
    attempt: NotRequired[shapes.Count]
    """The number of the next attempt."""
    due_at: NotRequired[shapes.Instant]
    state: NotRequired[Annotated[str, shapes.one_of(State)]]
    """The state of the job. Absent if its ledger row has expired."""


class Purge(TypedDict):
    """A dead letter that does not exist, or no longer exists."""

    id: shapes.DeadLetterId
    outcome: Annotated[str, shapes.one_of([purge.PURGED])]


class DeadLetterFailure(TypedDict):
    """A dead letter that was not changed, and why."""

    id: shapes.DeadLetterId
    code: Annotated[str, Field(examples=["payload_gone"])]
    detail: Annotated[str, Field(examples=["its payload is not kept any more"])]


class Replays(Position):
    """The result of replaying many dead letters."""

    matched: shapes.Count
    replayed: shapes.Count
    already_replayed: shapes.Count
    failed: list[DeadLetterFailure]
    """The dead letters that were not changed, and why."""


class Purges(Position):
    """The result of purging many dead letters."""

    matched: shapes.Count
    purged: shapes.Count
    failed: list[DeadLetterFailure]
    """The dead letters that were not changed, and why."""


class Matches(Position):
    """The result of a dry run: how many dead letters match, and the newest of them."""

    matched: shapes.Count
    dead_letters: Annotated[list[DeadLetterEntry], Field(max_length=MOST_SHOWN)]


def entry_body(letter: dead_letters.DeadLetter) -> DeadLetterEntry:
    """A dead letter in a list. What there is not is left out."""
    job = letter.timer.job if letter.timer is not None else None
    body: DeadLetterEntry = {
        "id": str(letter.letter_id),
        "tenant": letter.tenant,
        "dead_at": format_instant(letter.dead_at),
        "error": letter.error,
        "error_class": letter.error_class,
        "attempt": letter.attempt,
        "is_replayable": not obstacle_of(letter),
        "job_id": letter.job_id,
        "target": job.target if job else "",
        "schedule_id": job.occurrence.schedule_id if job and job.occurrence else "",
        "tags": list(job.tags) if job else [],
    }
    return without_empty(DeadLetterEntry, body)


def page_body(found: DeadLetterPage) -> DeadLetters:
    """A page of a list."""
    return {"dead_letters": [entry_body(letter) for letter in found.letters], **_position(found)}


def inspected_body(inspected: Inspected) -> DeadLetter:
    """A dead letter with all that is kept of it."""
    letter = inspected.letter
    body: DeadLetter = {**entry_body(letter)}
    if letter.timer is None:
        body["raw"] = letter.raw
        return body
    if inspected.payload is not None:
        body["payload"] = json.loads(inspected.payload)
    if inspected.is_payload_gone:
        body["is_payload_gone"] = True
    body["due_at"] = format_instant(letter.timer.due_at)
    body["job"] = cast("shapes.DescribedJob", describe_job(letter.timer.job))
    return body


def replay_body(outcome: replay.Replayed | replay.AlreadyReplayed) -> Replay:
    """What came of the replay of one dead letter."""
    letter_id, job_id = str(outcome.letter_id), outcome.job_id
    if isinstance(outcome, replay.AlreadyReplayed):
        return {"id": letter_id, "job_id": job_id, "outcome": replay.ALREADY_REPLAYED, "state": outcome.state.value}
    due_at = format_instant(outcome.due_at)
    return {"id": letter_id, "job_id": job_id, "outcome": replay.REPLAYED, "attempt": outcome.attempt, "due_at": due_at}


def purge_body(letter_id: DeadLetterId) -> Purge:
    """One dead letter that is not there (any more)."""
    return {"id": str(letter_id), "outcome": purge.PURGED}


def replays_body(replays: replay.Replays) -> Replays:
    """What came of the replay of many."""
    failed = [outcome for outcome in replays.outcomes if isinstance(outcome, replay.NotReplayed)]
    return {
        "matched": len(replays.outcomes),
        "replayed": sum(isinstance(outcome, replay.Replayed) for outcome in replays.outcomes),
        "already_replayed": sum(isinstance(outcome, replay.AlreadyReplayed) for outcome in replays.outcomes),
        "failed": [_not_replayed_body(outcome) for outcome in failed],
        **_position(replays.found),
    }


def purges_body(purges: purge.Purges) -> Purges:
    """What came of the purge of many."""
    return {
        "matched": len(purges.found.letters),
        "purged": len(purges.found.letters) - len(purges.failed),
        "failed": [_not_purged_body(failed) for failed in purges.failed],
        **_position(purges.found),
    }


def dry_run_body(found: DeadLetterPage) -> Matches:
    """What would be replayed or purged: how many dead letters, and the newest of them."""
    shown = [entry_body(letter) for letter in found.letters[:MOST_SHOWN]]
    return {"matched": len(found.letters), "dead_letters": shown, **_position(found)}


def _position(found: DeadLetterPage) -> Position:
    return {
        "examined_until": format_instant(found.examined_until),
        "next": str(found.goes_on) if found.goes_on is not None else None,
    }


def _not_replayed_body(outcome: replay.NotReplayed) -> DeadLetterFailure:
    problem = problem_of(outcome.error)
    return {"id": str(outcome.letter_id), "code": problem["code"], "detail": problem["detail"]}


def _not_purged_body(failed: purge.NotPurged) -> DeadLetterFailure:
    detail = f"a store failed ({failed.fault}): purge it again"
    return {"id": str(failed.letter_id), "code": "unavailable", "detail": detail}
