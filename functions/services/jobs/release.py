"""What a release sends to its target, and what the target's answer says of each of its jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from functions.domain.instants import format_instant
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import job_id_of
from functions.ports.targets import Failed

RELEASE_BYTES = 240_000
"""Of a call: EventBridge takes 262,144 with what stands around it
(https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html), as much as SNS does with its attributes."""

_OF_AWS = ("batchItemFailures", "itemIdentifier")
"""As a Lambda function names the messages of an SQS batch that have failed
(https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html)."""

_NO_REASON = "the target named it among those that failed"
_ERROR_LENGTH = 400


def entry_of(timer: Timer, payload: str | None) -> str:
    """A job as its release sends it, as JSON. payload: JSON."""
    said = {
        "id": str(job_id_of(timer.job)),
        "key": timer.job.key,
        "attempt": timer.attempt,
        "scheduled_at": format_instant(timer.job.scheduled_at),
    }
    # The payload's own text: read and written again, its numbers might change.
    return f'{json.dumps(said)[:-1]}, "payload": {payload if payload is not None else "null"}}}'


def text_of(entries: Sequence[str]) -> str:
    """What a release sends, as JSON."""
    return f"[{', '.join(entries)}]"


def failures_in(answer: str, timers: Sequence[Timer]) -> dict[str, Failed]:
    """What a target that has taken a release says of the jobs that it has not, by their identities.

    It names them by id or key: `{"failed": [{"id": …, "error": …, "retry": false}]}`, or as a Lambda function does for SQS.
    """
    named = _failed(_read(answer))
    by_name = {name: timer.job.identity for timer in timers for name in (str(job_id_of(timer.job)), timer.job.key)}
    return {by_name[name]: failure for name, failure in named.items() if name in by_name}


def _failed(said: Any) -> Mapping[str, Failed]:
    found: dict[str, Failed] = {}
    if not isinstance(said, dict):
        return found
    entries, identifier = _OF_AWS
    for each in _list(said.get("failed")):
        if isinstance(each, str):
            found[each] = Failed(_NO_REASON, "member_failed")
        elif isinstance(each, dict):
            error, name = each.get("error"), each.get("id", each.get("key"))
            text = error[:_ERROR_LENGTH] if isinstance(error, str) and error else _NO_REASON
            if isinstance(name, str):
                found[name] = Failed(text, "member_failed", is_permanent=each.get("retry") is False)
    for each in _list(said.get(entries)):
        if isinstance(each, dict) and isinstance(each.get(identifier), str):
            found[each[identifier]] = Failed(_NO_REASON, "member_failed")
    return found


def _read(answer: str) -> Any:
    try:
        return json.loads(answer)
    except (ValueError, RecursionError):
        return None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
