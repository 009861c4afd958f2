"""The alarm clock of a schedule: the one row of the far ring by which its next fire is remembered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from functions.domain.jobs.job import Priority
from functions.domain.schedules.state import Link


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleAlarm:
    """Rings for one version of a schedule; link: what to continue with then.

    alarm_at: when its fire is due, or later, when that was too near for the far ring.
    """

    tenant: str
    schedule_id: str
    version: int
    shard: int
    priority: Priority
    alarm_at: datetime
    link: Link

    @property
    def wakes_at(self) -> datetime:
        """When the wheel lets go of it."""
        return self.alarm_at
