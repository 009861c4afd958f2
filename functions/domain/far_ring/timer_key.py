"""The sort key of a far row: class, tenant, due time, identity, so that a bucket is read in the order of its classes."""

from __future__ import annotations

from datetime import datetime

from functions.domain.far_ring.schedule_alarm import ScheduleAlarm
from functions.domain.instants import to_ms
from functions.domain.jobs.job import Job, Priority

NO_TENANT = "?"
"""Whose something is that Tickwheel did not write: no tenant can be called so."""

VERSION_MARK = "@"
"""Between a schedule's name and its version: stale versions die out, because none overwrites another's row."""

_PARTS = 4


def timer_key(job: Job, *, due_at: datetime) -> str:
    """The key of a timer of a job."""
    return key_of(job.priority, job.tenant, due_at, job.identity)


def key_of(priority: Priority, tenant: str, due_at: datetime, identity: str) -> str:
    """The key, from its parts."""
    return f"{priority.value}#{tenant}#{to_ms(due_at):013d}#{identity}"


def owned_prefix(priority: Priority, tenant: str) -> str:
    """How the keys of a tenant's rows of a class begin."""
    return f"{priority.value}#{tenant}#"


def alarm_key(alarm: ScheduleAlarm) -> str:
    """The key of an alarm row: that of a timer whose identity is the schedule's version."""
    return key_of(alarm.priority, alarm.tenant, alarm.alarm_at, f"{alarm.schedule_id}{VERSION_MARK}{alarm.version}")


def is_alarm_key(key: str) -> bool:
    """Whether a row is an alarm row: no identity holds the mark."""
    return VERSION_MARK in key


def alarm_of(key: str) -> tuple[str, str, int] | None:
    """Tenant, schedule id and version of an alarm row; None for any other key."""
    tenant, identity = owner_of(key)
    schedule_id, mark, version = identity.rpartition(VERSION_MARK)
    return (tenant, schedule_id, int(version)) if mark and version.isdecimal() else None


def class_bounds(priority: Priority) -> tuple[str, str]:
    """The keys of a class lie between these two."""
    return f"{priority.value}#", f"{priority.value + 1}#"


def owner_of(key: str) -> tuple[str, str]:
    """Tenant and identity; of a key that Tickwheel did not write, no tenant and the whole key."""
    parts = key.split("#")
    return (parts[1], parts[3]) if len(parts) == _PARTS else (NO_TENANT, key)


def owner_bounds(priority: Priority, tenant: str) -> tuple[str, str]:
    """The keys of a tenant's rows of a class lie between these two."""
    start = owned_prefix(priority, tenant)
    return start, f"{start}~"
