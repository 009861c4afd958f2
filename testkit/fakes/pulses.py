"""The pulse of a stage in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from functions.domain.jobs.job import Job
from functions.domain.stage.pulse import Figure, Pulse, sum_of


@dataclass
class RecordingPulse:
    """What was counted since the process began, by figure and tenant."""

    counts: Counter[tuple[Figure, str]] = field(default_factory=Counter[tuple[Figure, str]])

    def count(self, figure: Figure, tenant: str = "", *, amount: int = 1) -> None:
        self.counts[figure, tenant] += amount

    def began(self, job: Job, lag: timedelta) -> None:
        self.count(Figure.STARTED, job.tenant)


class InMemoryPulseStore:
    def __init__(self) -> None:
        self.rows: dict[datetime, Pulse] = {}
        self.names: dict[tuple[datetime, str], Counter[Figure]] = {}
        self.writes = 0

    def add(self, minute: datetime, pulse: Pulse) -> None:
        self.writes += 1
        self.rows[minute] = sum_of([self.rows.get(minute, Pulse()), pulse])

    def name(self, minute: datetime, tenant: str, counts: Mapping[Figure, int]) -> None:
        self.writes += 1
        self.names.setdefault((minute, tenant), Counter()).update(counts)

    def pulses(self, first: datetime, last: datetime) -> dict[datetime, Pulse]:
        return {minute: pulse for minute, pulse in sorted(self.rows.items()) if first <= minute <= last}

    def named(self, minute: datetime) -> dict[str, Mapping[Figure, int]]:
        return {tenant: dict(counts) for (at, tenant), counts in sorted(self.names.items()) if at == minute}
