"""Results that are too large for a row."""

from __future__ import annotations

from typing import Protocol

from functions.domain.jobs.job_id import JobId


class ResultStore(Protocol):
    """Whole results, of which a ledger row has the pointer. A pointer alone finds nothing: the id says whose it is."""

    def put(self, job_id: JobId, pointer: str, text: str) -> None:
        """Keep a result. The same one is the same object."""
        ...

    def get(self, job_id: JobId, pointer: str) -> str | None:
        """A result; None when it is gone."""
        ...
