"""The part of the API's description that is about dead letters, made from the models that check its requests."""

from __future__ import annotations

from typing import Any

from functions.api.dead_letters.replay import MOST_LETTERS
from functions.api.dead_letters.requests import ListQuery
from functions.api.http.openapi_parts import TEXT, operation, parameter, query_of


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
