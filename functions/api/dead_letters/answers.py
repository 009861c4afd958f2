"""What the API answers about dead letters: bodies from what the rules found."""

from __future__ import annotations

import json
from typing import Any

from functions.api.dead_letters.finder import Found, Inspected, obstacle_of
from functions.api.dead_letters.purge import NotPurged, Purges
from functions.api.dead_letters.replay import AlreadyReplayed, NotReplayed, Replayed, Replays
from functions.api.http.problems import problem_of
from functions.domain.dead_letters.letter_id import LetterId
from functions.domain.instants import format_instant
from functions.domain.jobs.description import describe_job
from functions.ports.dead_letters import DeadLetter

REPLAYED = "replayed"
ALREADY_REPLAYED = "already_replayed"
PURGED = "purged"

MOST_SHOWN = 10
"""Letters that a dry run tells."""


def entry_body(letter: DeadLetter) -> dict[str, Any]:
    """A dead letter in a list. What there is not is left out."""
    job = letter.timer.job if letter.timer is not None else None
    known = {
        "job_id": letter.job_id,
        "target": job.target if job else "",
        "schedule_id": job.occurrence.schedule_id if job and job.occurrence else "",
        "tags": list(job.tags) if job else [],
    }
    return {
        "id": str(letter.letter_id),
        "tenant": letter.tenant,
        "dead_at": format_instant(letter.dead_at),
        "error": letter.error,
        "error_class": letter.error_class,
        "attempt": letter.attempt,
        "is_replayable": not obstacle_of(letter),
        **{name: value for name, value in known.items() if value},
    }


def page_body(found: Found) -> dict[str, Any]:
    """A page of a list."""
    return {"dead_letters": [entry_body(letter) for letter in found.letters], **_position(found)}


def inspected_body(inspected: Inspected) -> dict[str, Any]:
    """A dead letter with all that is kept of it."""
    letter = inspected.letter
    told = entry_body(letter)
    if letter.timer is None:
        return {**told, "raw": letter.raw}
    if inspected.payload is not None:
        told["payload"] = json.loads(inspected.payload)
    if inspected.is_payload_gone:
        told["is_payload_gone"] = True
    return {**told, "due_at": format_instant(letter.timer.due_at), "job": describe_job(letter.timer.job)}


def replay_body(outcome: Replayed | AlreadyReplayed) -> dict[str, Any]:
    """What came of the replay of one letter."""
    told = {"id": str(outcome.letter_id), "job_id": outcome.job_id}
    if isinstance(outcome, AlreadyReplayed):
        return {**told, "outcome": ALREADY_REPLAYED, "state": outcome.state.value}
    return {**told, "outcome": REPLAYED, "attempt": outcome.attempt, "due_at": format_instant(outcome.due_at)}


def purge_body(letter_id: LetterId) -> dict[str, Any]:
    """One letter that is not there (any more)."""
    return {"id": str(letter_id), "outcome": PURGED}


def replays_body(replays: Replays) -> dict[str, Any]:
    """What came of the replay of many."""
    failed = [outcome for outcome in replays.outcomes if isinstance(outcome, NotReplayed)]
    return {
        "matched": len(replays.outcomes),
        "replayed": sum(isinstance(outcome, Replayed) for outcome in replays.outcomes),
        "already_replayed": sum(isinstance(outcome, AlreadyReplayed) for outcome in replays.outcomes),
        "failed": [_not_replayed_body(outcome) for outcome in failed],
        **_position(replays.found),
    }


def purges_body(purges: Purges) -> dict[str, Any]:
    """What came of the purge of many."""
    return {
        "matched": len(purges.found.letters),
        "purged": len(purges.found.letters) - len(purges.failed),
        "failed": [_not_purged_body(failed) for failed in purges.failed],
        **_position(purges.found),
    }


def dry_run_body(found: Found) -> dict[str, Any]:
    """What would be replayed or purged: how many letters, and the newest of them."""
    shown = [entry_body(letter) for letter in found.letters[:MOST_SHOWN]]
    return {"matched": len(found.letters), "dead_letters": shown, **_position(found)}


def _position(found: Found) -> dict[str, Any]:
    return {
        "examined_until": format_instant(found.examined_until),
        "next": str(found.goes_on) if found.goes_on is not None else None,
    }


def _not_replayed_body(outcome: NotReplayed) -> dict[str, Any]:
    problem = problem_of(outcome.error)
    return {"id": str(outcome.letter_id), "code": problem["code"], "detail": problem["detail"]}


def _not_purged_body(failed: NotPurged) -> dict[str, Any]:
    detail = f"a store failed ({failed.fault}): purge it again"
    return {"id": str(failed.letter_id), "code": "unavailable", "detail": detail}
