"""Payloads that are too large for a message."""

from __future__ import annotations

from typing import Protocol

from functions.domain.jobs.job import Job


class PayloadStore(Protocol):
    """Payloads that are too large for a row."""

    def put(self, job: Job, text: str) -> str:
        """Keep a payload; the pointer to it."""
        ...

    def put_for_schedule(self, key: str, text: str) -> str:
        """Keep the payload of a schedule; the pointer to it, which depends on the text."""
        ...

    def get(self, pointer: str) -> str | None:
        """The payload; None when it is gone."""
        ...

    def delete(self, pointer: str) -> None:
        """Forget a payload; nothing happens when it is gone."""
        ...
