"""The part of the API's description that is about dead letters, made from the models that check its requests."""

from __future__ import annotations

from typing import Any

from functions.api.dead_letters.answers import ALREADY_REPLAYED, MOST_SHOWN, PURGED, REPLAYED
from functions.api.dead_letters.replay import MOST_LETTERS
from functions.api.dead_letters.requests import ListQuery, PurgeBody, ReplayBody
from functions.api.http.openapi_parts import INSTANT, REFERENCE, TEXT, object_of, operation, parameter, query_of
from functions.domain.jobs.job import Delivery
from functions.domain.lifecycle import State

MODELS = (ReplayBody, PurgeBody)

_COUNT = {"type": "integer", "minimum": 0}
_ENTRY: dict[str, Any] = {
    "id": TEXT,
    "tenant": TEXT,
    "dead_at": INSTANT,
    "error": TEXT,
    "error_class": {"type": "string", "examples": ["timeout", "worker_died", "undecodable"]},
    "attempt": {**_COUNT, "description": "the last one"},
    "is_replayable": {"type": "boolean"},
    "job_id": TEXT,
    "target": TEXT,
    "schedule_id": TEXT,
    "tags": {"type": "array", "items": TEXT},
}
_ALWAYS = ["id", "tenant", "dead_at", "error", "error_class", "attempt", "is_replayable"]
_ENTRIES = {"type": "array", "items": {"$ref": REFERENCE.format(model="DeadLetterEntry")}}
_POSITION: dict[str, Any] = {
    "examined_until": {**INSTANT, "description": "how far back this answer reaches"},
    "next": {"type": ["string", "null"], "description": "`after` of the next request; null at the end"},
}
_FAILED = {
    "type": "array",
    "description": "whose letters stay, and why",
    "items": object_of({"id": TEXT, "code": TEXT, "detail": TEXT}),
}
_JOB = {
    "type": "object",
    "description": "how the job was asked for, without payload; of its headers only their names",
    "required": ["target", "scheduled_at", "delivery", "retry", "timeout"],
    "properties": {
        "target": TEXT,
        "scheduled_at": INSTANT,
        "delivery": {"enum": [delivery.value for delivery in Delivery]},
    },
}

SCHEMAS: dict[str, Any] = {
    "DeadLetterEntry": object_of(_ENTRY, required=_ALWAYS),
    "DeadLetter": object_of(
        {
            **_ENTRY,
            "payload": {"description": "as its target would be given it"},
            "is_payload_gone": {"const": True},
            "due_at": {**INSTANT, "description": "of the last attempt"},
            "job": _JOB,
            "raw": {"type": "string", "description": "the beginning of a body that Tickwheel did not write"},
        },
        required=_ALWAYS,
    ),
    "DeadLetters": object_of(
        {"dead_letters": _ENTRIES, **_POSITION}, description="newest first; a page may be empty and have a next one"
    ),
    "Replay": object_of(
        {
            "id": TEXT,
            "job_id": TEXT,
            "outcome": {"enum": [REPLAYED, ALREADY_REPLAYED]},
            "attempt": {**_COUNT, "description": "the one that is due"},
            "due_at": INSTANT,
            "state": {"enum": [state.value for state in State], "description": "absent: its ledger row has expired"},
        },
        required=["id", "job_id", "outcome"],
    ),
    "Purge": object_of({"id": TEXT, "outcome": {"const": PURGED}}),
    "Replays": object_of(
        {"matched": _COUNT, "replayed": _COUNT, "already_replayed": _COUNT, "failed": _FAILED, **_POSITION}
    ),
    "Purges": object_of({"matched": _COUNT, "purged": _COUNT, "failed": _FAILED, **_POSITION}),
    "Matches": object_of(
        {"matched": _COUNT, "dead_letters": {**_ENTRIES, "maxItems": MOST_SHOWN}, **_POSITION},
        description="of a dry run: how many are meant, and the newest of them",
    ),
}


def letter_paths() -> dict[str, Any]:
    """The routes of dead letters."""
    letter_id = parameter("path", "id", TEXT, is_required=True)
    return {
        "/v1/dead-letters": {
            "get": operation(
                "listDeadLetters",
                "Tell a tenant's dead letters, newest first, page by page.",
                answers={200: "DeadLetters"},
                parameters=query_of(ListQuery),
            )
        },
        "/v1/dead-letters:replay": {
            "post": operation(
                "replayDeadLetters",
                f"Replay up to {MOST_LETTERS} dead letters that match a filter; or, with dry_run, count them.",
                body="ReplayBody",
                answers={200: "Replays | Matches"},
            )
        },
        "/v1/dead-letters:purge": {
            "post": operation(
                "purgeDeadLetters",
                f"Forget up to {MOST_LETTERS} dead letters that match a filter; or, with dry_run, count them.",
                body="PurgeBody",
                answers={200: "Purges | Matches"},
            )
        },
        "/v1/dead-letters/{id}": {
            "parameters": [letter_id],
            "get": operation("getDeadLetter", "Tell a dead letter with its payload.", answers={200: "DeadLetter"}),
            "delete": operation("purgeDeadLetter", "Forget a dead letter.", answers={200: "Purge"}),
        },
        "/v1/dead-letters/{id}:replay": {
            "parameters": [letter_id],
            "post": operation(
                "replayDeadLetter", "Run a job that has failed for good again.", answers={200: "Replay", 202: "Replay"}
            ),
        },
    }
