"""What the API answers about dead letters: bodies from what the rules found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from functions.api.dead_letters.finder import MOST_SHOWN, DeadLetterPage, Inspected, obstacle_of
from functions.api.dead_letters.purge import PURGED, NotPurged, Purges
from functions.api.dead_letters.replay import (
    ALREADY_REPLAYED,
    REPLAYED,
    AlreadyReplayed,
    NotReplayed,
    Replayed,
    Replays,
)
from functions.api.http.answers import without_empty
from functions.api.http.problems import problem_of
from functions.domain.dead_letters.dead_letter_id import DeadLetterId
from functions.domain.instants import format_instant
from functions.domain.jobs.description import describe_job
from functions.ports.dead_letters import DeadLetter

if TYPE_CHECKING:
    from functions.api.dead_letters import shapes


def entry_body(letter: DeadLetter) -> shapes.DeadLetterEntry:
    """A dead letter in a list. What there is not is left out."""
    job = letter.timer.job if letter.timer is not None else None
    body: shapes.DeadLetterEntry = {
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
    return without_empty(body, "job_id", "target", "schedule_id", "tags")


def page_body(found: DeadLetterPage) -> shapes.DeadLetters:
    """A page of a list."""
    return {"dead_letters": [entry_body(letter) for letter in found.letters], **_position(found)}


def inspected_body(inspected: Inspected) -> shapes.DeadLetter:
    """A dead letter with all that is kept of it."""
    letter = inspected.letter
    body: shapes.DeadLetter = {**entry_body(letter)}
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


def replay_body(outcome: Replayed | AlreadyReplayed) -> shapes.Replay:
    """What came of the replay of one dead letter."""
    letter_id, job_id = str(outcome.letter_id), outcome.job_id
    if isinstance(outcome, AlreadyReplayed):
        return {"id": letter_id, "job_id": job_id, "outcome": ALREADY_REPLAYED, "state": outcome.state.value}
    due_at = format_instant(outcome.due_at)
    return {"id": letter_id, "job_id": job_id, "outcome": REPLAYED, "attempt": outcome.attempt, "due_at": due_at}


def purge_body(letter_id: DeadLetterId) -> shapes.Purge:
    """One dead letter that is not there (any more)."""
    return {"id": str(letter_id), "outcome": PURGED}


def replays_body(replays: Replays) -> shapes.Replays:
    """What came of the replay of many."""
    failed = [outcome for outcome in replays.outcomes if isinstance(outcome, NotReplayed)]
    return {
        "matched": len(replays.outcomes),
        "replayed": sum(isinstance(outcome, Replayed) for outcome in replays.outcomes),
        "already_replayed": sum(isinstance(outcome, AlreadyReplayed) for outcome in replays.outcomes),
        "failed": [_not_replayed_body(outcome) for outcome in failed],
        **_position(replays.found),
    }


def purges_body(purges: Purges) -> shapes.Purges:
    """What came of the purge of many."""
    return {
        "matched": len(purges.found.letters),
        "purged": len(purges.found.letters) - len(purges.failed),
        "failed": [_not_purged_body(failed) for failed in purges.failed],
        **_position(purges.found),
    }


def dry_run_body(found: DeadLetterPage) -> shapes.Matches:
    """What would be replayed or purged: how many dead letters, and the newest of them."""
    shown = [entry_body(letter) for letter in found.letters[:MOST_SHOWN]]
    return {"matched": len(found.letters), "dead_letters": shown, **_position(found)}


def _position(found: DeadLetterPage) -> shapes.Position:
    return {
        "examined_until": format_instant(found.examined_until),
        "next": str(found.goes_on) if found.goes_on is not None else None,
    }


def _not_replayed_body(outcome: NotReplayed) -> shapes.DeadLetterFailure:
    problem = problem_of(outcome.error)
    return {"id": str(outcome.letter_id), "code": problem["code"], "detail": problem["detail"]}


def _not_purged_body(failed: NotPurged) -> shapes.DeadLetterFailure:
    detail = f"a store failed ({failed.fault}): purge it again"
    return {"id": str(failed.letter_id), "code": "unavailable", "detail": detail}
