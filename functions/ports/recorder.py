"""Everything that events are reported to: log, metrics, counters, audit trail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from functions.domain.audit import AuditLine, Record
from functions.domain.jobs.job import Job
from functions.domain.jobs.job_id import JobId
from functions.domain.stage.pulse import Figure, Pulse
from functions.domain.tenants.usage import Usage


class UsageCounter(Protocol):
    """Counts what tenants use."""

    def add(self, tenant: str, used: Usage) -> None:
        """Count it for a tenant, on the day that it is."""
        ...


class PendingCounter(Protocol):
    """Counts jobs that wait no more, of tenants that have a limit."""

    def leave(self, job_id: JobId, *, asked_for: datetime | None = None) -> None:
        """It waits no more. asked_for: when it was due, where somebody has asked for another time than its own."""
        ...

    def hasten(self, job_id: JobId, *, to: datetime) -> None:
        """It waits for another time than its own from now on."""
        ...

    def move(self, job: Job, *, to: Job) -> None:
        """It waits as another job from now on."""
        ...


class PulseCounter(Protocol):
    """Counts what happens in the stage."""

    def count(self, figure: Figure, tenant: str = "", *, amount: int = 1) -> None:
        """Count it now. tenant: whose it is, where it is somebody's."""
        ...

    def began(self, job: Job, lag: timedelta) -> None:
        """An attempt has begun, so late."""
        ...


class PulseStore(Protocol):
    """What happened in the stage, by the minute. It is kept for an hour."""

    def add(self, minute: datetime, pulse: Pulse) -> None:
        """Add to what is known of a minute."""
        ...

    def name(self, minute: datetime, tenant: str, counts: Mapping[Figure, int]) -> None:
        """Add to what is known of a tenant that stands out in a minute."""
        ...

    def pulses(self, first: datetime, last: datetime) -> dict[datetime, Pulse]:
        """The minutes in which anything happened, in order, both ends included, as of some moment before."""
        ...

    def named(self, minute: datetime) -> dict[str, Mapping[Figure, int]]:
        """The tenants that stood out in a minute, as of some moment before: at least so much was theirs."""
        ...


class Journal(Protocol):
    """What happened, for people and for metrics: fixed event names with keys."""

    def event(self, name: str, /, **keys: object) -> None:
        """One line of the log."""
        ...

    def count(self, metric: str, amount: int = 1) -> None:
        """Add to a counter."""
        ...

    def observe(self, metric: str, value: float, /, **dimensions: str) -> None:
        """One value of a distribution. dimensions: those that the metric has, each with what it is for this value."""
        ...


class AuditTrail(Protocol):
    """How executions ended and what was done by hand, kept for long: each at least once."""

    def note(self, line: AuditLine) -> None:
        """Keep it with the others of this invocation."""
        ...

    def flush(self) -> None:
        """Send the collected lines, before anything that they record is acknowledged. Never raises."""
        ...


@dataclass(frozen=True, slots=True)
class Untaken:
    """Records that are not known to be taken, and why."""

    records: Sequence[Record]
    reason: str = ""


class AuditStream(Protocol):
    """Where lines of the audit trail go."""

    def put(self, records: Sequence[Record]) -> Untaken:
        """Send records. It gives up early: whoever sends them waits."""
        ...
