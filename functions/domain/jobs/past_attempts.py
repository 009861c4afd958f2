"""The failed attempts of a job that its ledger row keeps: the last ones, as many as its free bytes take.

Written as JSON: `[[attempt, ended at (ms), took (ms) or -1, class of the error, error], …]`, the oldest first.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from functions.domain.instants import MILLISECOND, from_ms, to_ms
from functions.domain.key_lengths import cut

_ERROR = 60
"""Bytes of an error that are kept of an attempt; of the last one the row has more."""

_CLASS = 40
_UNKNOWN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PastAttempt:
    """An attempt that has failed. took: how long its target was called, where that is known."""

    attempt: int
    ended_at: datetime
    error_class: str
    error: str
    took: timedelta | None = None


def with_attempt(kept: str, past: PastAttempt, *, room: int) -> str:
    """What is kept when one more has failed, in so many bytes at most: the oldest make way."""
    attempts = [*read_attempts(kept), replace(past, error=cut(past.error, _ERROR))]
    while attempts and len(_written(attempts)) > room:
        del attempts[0]
    return _written(attempts) if attempts else ""


def read_attempts(kept: str) -> list[PastAttempt]:
    """The attempts that a row keeps, the oldest first; none of what another release may have written."""
    try:
        return [_read(*values) for values in json.loads(kept or "[]")]
    except (ValueError, TypeError, OverflowError):
        return []


def _read(attempt: int, ended_ms: int, took_ms: int, error_class: str, error: str, *_: Any) -> PastAttempt:
    took = None if took_ms == _UNKNOWN else took_ms * MILLISECOND
    return PastAttempt(
        attempt=attempt, ended_at=from_ms(ended_ms), took=took, error_class=str(error_class), error=str(error)
    )


def _written(attempts: Sequence[PastAttempt]) -> str:
    """ASCII: as many bytes as characters."""
    values = [
        [
            past.attempt,
            to_ms(past.ended_at),
            _UNKNOWN if past.took is None else past.took // MILLISECOND,
            cut(past.error_class, _CLASS),
            past.error,
        ]
        for past in attempts
    ]
    return json.dumps(values, separators=(",", ":"))
