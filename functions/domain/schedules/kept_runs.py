"""The last runs of a schedule that succeeded, and the last that failed: kept for as long as it asks, whatever ran since.

Written as JSON: `[[job id, 1 where it succeeded, attempt, ended at (ms), class of the error], …]`, the oldest first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from functions.domain.instants import from_ms, to_ms
from functions.domain.jobs.job_id import JobId, parse_job_id
from functions.domain.jobs.occurrence import Keeps, fire_of
from functions.domain.key_lengths import cut
from functions.domain.lifecycle import State

KEPT_OF = {State.SUCCEEDED: State.SUCCEEDED, State.FAILED: State.FAILED, State.EXPIRED: State.FAILED}
"""As what each end is kept. A run that was skipped or cancelled is neither a success nor a failure."""

_CLASS = 40
"""Bytes of the class of an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRun:
    """A run that has ended. error: the class of what it failed of, empty where it succeeded."""

    job_id: JobId
    has_succeeded: bool
    attempt: int
    ended_at: datetime
    error: str = ""

    @property
    def fire_at(self) -> datetime:
        """Of its fire; of one that was triggered, which has none, when it was due."""
        fire = fire_of(self.job_id.identity)
        return self.job_id.due_at if fire is None or fire[1] is None else fire[1]


def with_run(kept: Iterable[KeptRun], run: KeptRun, *, keeps: Keeps) -> tuple[KeptRun, ...]:
    """What is kept when one more has ended. One that is there, as a failure that was replayed is, is there once, as it ended last."""
    others = [each for each in kept if each.job_id.identity != run.job_id.identity]
    return trimmed([*others, run], keeps=keeps)


def trimmed(kept: Iterable[KeptRun], *, keeps: Keeps | None) -> tuple[KeptRun, ...]:
    """The last of each kind, the oldest first."""
    keeps = keeps or Keeps()
    left, found = {True: keeps.successes, False: keeps.failures}, list[KeptRun]()
    for run in sorted(kept, key=lambda each: each.ended_at, reverse=True):
        if left[run.has_succeeded] > 0:
            left[run.has_succeeded] -= 1
            found.append(run)
    return tuple(reversed(found))


def write_kept(kept: Iterable[KeptRun]) -> str:
    """Runs as an attribute; empty for none."""
    values = [
        [str(run.job_id), int(run.has_succeeded), run.attempt, to_ms(run.ended_at), cut(run.error, _CLASS)]
        for run in kept
    ]
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False) if values else ""


def read_kept(text: str) -> tuple[KeptRun, ...]:
    """What `write_kept` wrote; none of what another release may have written."""
    try:
        return tuple(_read(*values) for values in json.loads(text or "[]"))
    except (ValueError, TypeError, OverflowError):
        return ()


def _read(job_id: str, has_succeeded: int, attempt: int, ended_ms: int, error: str, *_: Any) -> KeptRun:
    return KeptRun(
        job_id=parse_job_id(job_id),
        has_succeeded=bool(has_succeeded),
        attempt=attempt,
        ended_at=from_ms(ended_ms),
        error=str(error),
    )
