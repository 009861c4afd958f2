"""The alarm clock of a schedule: the one row of the far ring by which its next fire is remembered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from functions.domain.jobs.job import Priority
from functions.domain.schedules.state import Link

ALARM_LIFE = timedelta(days=3)
"""How long an alarm row lives after it was due. It may go before any scanner has read it, as a row of a job never may: the state of
its schedule, which has no ttl, still names the fire, and the sweep continues the chain once the cursors have passed the alarm."""


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
