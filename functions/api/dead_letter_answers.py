"""What the API answers about dead letters: bodies from what the rules found."""

from __future__ import annotations

import json
from typing import Any

from functions.api.dead_letters import Found, Inspected, obstacle_of
from functions.api.problems import problem_of
from functions.api.purge import NotPurged, Purges
from functions.api.replay import AlreadyReplayed, NotReplayed, Replayed, Replays
from functions.domain.instants import format_duration, format_instant
from functions.domain.job import Job, Precision
from functions.domain.letter_id import LetterId
from functions.domain.occurrence import Occurrence
from functions.domain.retry import RetryPolicy
from functions.domain.target_options import USUAL, TargetOptions
from functions.ports import DeadLetter

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
    return {**told, "due_at": format_instant(letter.timer.due_at), "job": _job_body(letter.timer.job)}


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


def _job_body(job: Job) -> dict[str, Any]:
    """How the job was asked for. What has its usual value is left out."""
    usual = {
        "priority": (job.priority.name.lower(), "normal"),
        "precision": (job.precision.value, Precision.DEFAULT.value),
        "expires_at": (format_instant(job.expires_at) if job.expires_at else None, None),
        "http": (_http_body(job.options), {}),
        "asynchronous": (job.options.is_async, False),
        "tags": (list(job.tags), []),
        "occurrence": (_occurrence_body(job.occurrence) if job.occurrence else None, None),
    }
    return {
        "target": job.target,
        "scheduled_at": format_instant(job.scheduled_at),
        "delivery": job.delivery.value,
        "retry": _retry_body(job.retry),
        "timeout": format_duration(job.timeout),
        **{name: value for name, (value, unsaid) in usual.items() if value != unsaid},
    }


def _retry_body(retry: RetryPolicy) -> dict[str, Any]:
    return {
        "strategy": retry.strategy.value,
        "attempts": retry.attempts,
        "base": format_duration(retry.base),
        "cap": format_duration(retry.cap),
        **({"max_age": format_duration(retry.max_age)} if retry.max_age is not None else {}),
    }


def _http_body(options: TargetOptions) -> dict[str, Any]:
    told = {
        "method": options.method.value if options.method is not USUAL.method else "",
        # Values of headers may be secrets.
        "headers": [name for name, _ in options.headers],
        "success": list(options.success_codes),
        "retry_on": list(options.retry_codes),
    }
    return {name: value for name, value in told.items() if value}


def _occurrence_body(fire: Occurrence) -> dict[str, Any]:
    return {
        "schedule_id": fire.schedule_id,
        "fire_at": format_instant(fire.fire_at),
        "nominal_at": format_instant(fire.nominal_at),
        "index": fire.index,
    }
