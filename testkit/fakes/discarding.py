"""Counters and an audit trail for worlds in which nobody asks what tenants use, how much waits, or what has happened."""

from __future__ import annotations

from datetime import datetime, timedelta

from functions.domain.audit import AuditLine
from functions.domain.jobs.job import Job
from functions.domain.jobs.job_id import JobId
from functions.domain.stage.pulse import Figure
from functions.domain.tenants.usage import Usage


class DiscardingCounter:
    """A counter of use, of what waits, and of the pulse: in the memory of a long run each count would be kept."""

    def add(self, tenant: str, used: Usage) -> None:
        """Forgotten."""

    def leave(self, job_id: JobId, *, asked_for: datetime | None = None) -> None:
        """Forgotten."""

    def hasten(self, job_id: JobId, *, to: datetime) -> None:
        """Forgotten."""

    def move(self, job: Job, *, to: Job) -> None:
        """Forgotten."""

    def count(self, figure: Figure, tenant: str = "", *, amount: int = 1) -> None:
        """Forgotten."""

    def began(self, job: Job, lag: timedelta) -> None:
        """Forgotten."""


class DiscardingAudit:
    """An audit trail without lines."""

    def note(self, line: AuditLine) -> None:
        """Forgotten."""

    def flush(self) -> None:
        """Nothing to send."""
