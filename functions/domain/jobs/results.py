"""What is kept of the result of a job: a short one in its ledger row; of a longer one the beginning there, and all of it as an object.

The object has the name of its content. So putting it twice is one object, and two who report different results of one attempt
put two, of which the row names one.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from functions.domain.targets.http_answers import RESULT_LIMIT, compact

WHOLE_LIMIT = 262_144
"""Bytes of a result, as JSON, that are kept: as many as of a payload."""

LIFE = timedelta(days=45)
"""How long the object of a result is kept: longer than a row of a job that has run at its time, whose ttl DynamoDB sees to late."""

_DIGEST_BYTES = 12
_OF_AN_ANSWER = frozenset({"status", "body", "truncated"})
_MOST_READ = 8 * WHOLE_LIMIT
"""Characters of a result in which an answer of a target is looked for: one of which each byte became an escape has six times as many."""


@dataclass(frozen=True, slots=True)
class KeptResult:
    """text: JSON, at most RESULT_LIMIT bytes, for the row. pointer: of the whole result, where this is only its beginning."""

    text: str = ""
    pointer: str = ""

    @property
    def size(self) -> int:
        """Bytes of the whole result; 0 where the text is all that is kept."""
        return int(self.pointer.rpartition(".")[2]) if self.pointer else 0


NO_RESULT = KeptResult()


def within_limit(text: str) -> str:
    """A result, or its beginning where it has more than WHOLE_LIMIT bytes."""
    return text if len(text.encode()) <= WHOLE_LIMIT else beginning(text, size=WHOLE_LIMIT)


def is_short(text: str) -> bool:
    """Whether a result fits into the row of its job."""
    return len(text.encode()) <= RESULT_LIMIT


def beginning_of(whole: str) -> KeptResult:
    """What the row has of a longer result: together within RESULT_LIMIT bytes."""
    digest = hashlib.blake2b(whole.encode(), digest_size=_DIGEST_BYTES).hexdigest()
    pointer = f"{digest}.{len(whole.encode())}"
    return KeptResult(beginning(whole, size=RESULT_LIMIT - len(pointer) - 1), pointer)


def beginning(text: str, *, size: int) -> str:
    """The beginning of a result as JSON of at most so many bytes: `{"status":…,"body":"…","truncated":true}`.

    What is no answer of a target over HTTP or of a function has no status, and its own JSON as the body.
    """
    head, body = _read(text)
    fitting = bisect_left(
        range(min(len(body), size)),
        x=True,
        key=lambda count: len(_cut(head, body[: count + 1]).encode()) > size,
    )
    return _cut(head, body[:fitting])


def _cut(head: dict[str, Any], body: str) -> str:
    return compact({**head, **({"body": body} if body else {}), "truncated": True})


def _read(text: str) -> tuple[dict[str, Any], str]:
    """What is said of an answer before its body, and its body as a text."""
    try:
        value = json.loads(text) if len(text) <= _MOST_READ else None
        if isinstance(value, dict) and value.keys() <= _OF_AN_ANSWER and isinstance(value.get("status"), int):
            body = value.get("body", "")
            return {"status": value["status"]}, body if isinstance(body, str) else compact(body)
    except (ValueError, RecursionError):
        pass
    return {}, text
