"""How a stage does: one word with its reasons, from what is known of its shards, its queues and its sweeper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from functions.domain.far_ring.cursor import BucketAuditPosition, OwnCursor, ShardProgress, oldest_bucket
from functions.domain.instants import format_instant, from_seconds
from functions.domain.jobs.job import Priority
from functions.domain.stage.conditions import Conditions
from functions.domain.tenants.plan import TenantPlan


class HealthStatus(StrEnum):
    """How it does, in a word; where several hold, the last of them."""

    OK = "ok"
    BEHIND = "behind"
    PAUSED = "paused"
    UNKNOWN = "unknown"


BEHIND_AFTER = timedelta(minutes=2)
"""A bucket opens before it begins: one that began so long ago and is not drained is late, whatever the ticks' jitter."""

UNSCANNED_AFTER = timedelta(minutes=3)
"""A shard has a tick each minute."""

AUDIT_BEHIND_AFTER = timedelta(minutes=30)
"""The bucket audit is six minutes behind by design, and waits for slow queues."""

MOST_WORST = 5
"""Shards that are listed one by one."""

MOST_NAMES = 10
"""Tenants, or numbers of shards, in a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassHealth:
    """A class. oldest_bucket_at: the start of its oldest bucket that is not drained, None where no shard was scanned.

    age: since when that bucket has been due; 0 where it is still to come.
    """

    priority: Priority
    oldest_bucket_at: datetime | None
    age: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """How many there are, and the first of them."""

    count: int
    first: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardHealth:
    """A shard. behind: tenants with a cursor of their own that are not held back; held: those that are."""

    shard: int
    scanned_at: datetime | None
    oldest_bucket_at: datetime
    age: timedelta
    behind: Names
    held: Names


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How a stage does. reasons: sentences; none where it is ok.

    shards: how many there are. unscanned: those that nobody has scanned for a while. behind, held: cursors of tenants'
    own, over all shards and classes. worst: the shards with the oldest buckets, those that have anything undone alone.
    """

    status: HealthStatus
    reasons: tuple[str, ...]
    at: datetime
    classes: tuple[ClassHealth, ...]
    shards: int
    unscanned: tuple[int, ...]
    behind: int
    held: int
    worst: tuple[ShardHealth, ...]


def health_of(
    by_shard: Mapping[int, ShardProgress],
    *,
    now: datetime,
    shards: int,
    conditions: Conditions | None,
    audited: BucketAuditPosition | None,
    everybody: TenantPlan,
) -> Health:
    """by_shard: of the shards that have ever been scanned. conditions, audited: None where there were none yet.

    everybody: the plan that says whether all tenants are paused. What waits meanwhile is not behind.
    """
    classes = tuple(_class_health(priority, by_shard, now=now) for priority in Priority)
    unscanned = tuple(shard for shard in range(shards) if not _is_scanned(by_shard.get(shard), now=now))
    each = [_shard_health(shard, progress, now=now) for shard, progress in by_shard.items()]
    is_paused = everybody.is_stage_paused
    found = {
        HealthStatus.UNKNOWN: _why_unknown(conditions, now=now),
        HealthStatus.PAUSED: _why_paused(everybody) if is_paused else [],
        HealthStatus.BEHIND: [
            *([] if is_paused else [*_why_late(classes), *_why_audit(audited, now=now)]),
            *_why_refused(conditions),
            *_why_unscanned(unscanned, shards=shards),
        ],
    }
    status = next((status for status, reasons in found.items() if reasons), HealthStatus.OK)
    return Health(
        status=status,
        reasons=tuple(reason for reasons in found.values() for reason in reasons),
        at=now,
        classes=classes,
        shards=shards,
        unscanned=unscanned,
        behind=sum(shard.behind.count for shard in each),
        held=sum(shard.held.count for shard in each),
        worst=_worst(each),
    )


def _class_health(priority: Priority, by_shard: Mapping[int, ShardProgress], *, now: datetime) -> ClassHealth:
    buckets = [progress.cursors[priority].oldest_bucket for progress in by_shard.values()]
    oldest_at = from_seconds(min(buckets)) if buckets else None
    return ClassHealth(priority=priority, oldest_bucket_at=oldest_at, age=_age(oldest_at, now=now))


def _shard_health(shard: int, progress: ShardProgress, *, now: datetime) -> ShardHealth:
    oldest_at = from_seconds(oldest_bucket(progress.cursors))
    own = [(name, cursor) for of_class in progress.cursors.values() for name, cursor in of_class.own.items()]
    return ShardHealth(
        shard=shard,
        scanned_at=progress.scanned_at,
        oldest_bucket_at=oldest_at,
        age=_age(oldest_at, now=now),
        behind=_names([(name, cursor) for name, cursor in own if not cursor.is_held_back]),
        held=_names([(name, cursor) for name, cursor in own if cursor.is_held_back]),
    )


def _names(own: Sequence[tuple[str, OwnCursor]]) -> Names:
    """A cursor a class; the tenants that are furthest behind first, each once."""
    by_age = sorted(own, key=lambda each: (each[1].at.bucket, each[0]))
    return Names(count=len(own), first=tuple(dict.fromkeys(name for name, _ in by_age))[:MOST_NAMES])


def _worst(each: Sequence[ShardHealth]) -> tuple[ShardHealth, ...]:
    undone = [shard for shard in each if shard.age or shard.behind.count or shard.held.count]
    return tuple(sorted(undone, key=lambda shard: (-shard.age, -shard.behind.count, shard.shard))[:MOST_WORST])


def _is_scanned(progress: ShardProgress | None, *, now: datetime) -> bool:
    if progress is None or progress.scanned_at is None:
        return False
    return now - progress.scanned_at <= UNSCANNED_AFTER


def _age(oldest_at: datetime | None, *, now: datetime) -> timedelta:
    return max(timedelta(0), now - oldest_at) if oldest_at is not None else timedelta(0)


def _why_unknown(conditions: Conditions | None, *, now: datetime) -> list[str]:
    if conditions is None:
        return ["the sweeper has never published the conditions of the stage"]
    if conditions.is_fresh(now):
        return []
    return [f"the sweeper has published nothing for {_spoken(now - conditions.published_at)}"]


def _why_paused(everybody: TenantPlan) -> list[str]:
    since = f" since {format_instant(everybody.changed_at)}" if everybody.changed_at else ""
    return [f"all tenants are paused{since}{f': {everybody.note}' if everybody.note else ''}"]


def _why_late(classes: Sequence[ClassHealth]) -> list[str]:
    return [f"{_name(each.priority)} is {_spoken(each.age)} behind" for each in classes if each.age > BEHIND_AFTER]


def _why_refused(conditions: Conditions | None) -> list[str]:
    if conditions is None:
        return []
    full = [f"the ready queue of {_name(priority)} is full" for priority in sorted(conditions.full)]
    return [*full, *(f"submissions of {_name(priority)} are refused" for priority in sorted(conditions.shed))]


def _why_unscanned(unscanned: Sequence[int], *, shards: int) -> list[str]:
    if not unscanned:
        return []
    listed = ", ".join(str(shard) for shard in unscanned[:MOST_NAMES])
    more = ", ..." if len(unscanned) > MOST_NAMES else ""
    return [
        f"nobody has scanned {len(unscanned)} of {shards} shards for {_spoken(UNSCANNED_AFTER)}: {listed}{more}",
    ]


def _why_audit(audited: BucketAuditPosition | None, *, now: datetime) -> list[str]:
    age = now - from_seconds(audited.bucket) if audited is not None else timedelta(0)
    return [f"the audit is {_spoken(age)} behind"] if age > AUDIT_BEHIND_AFTER else []


def _name(priority: Priority) -> str:
    return priority.name.lower()


def _spoken(duration: timedelta) -> str:
    """In one unit, rounded down: `90 seconds`, `12 minutes`, `5 hours`, `3 days`."""
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if duration.total_seconds() >= 2 * length:
            return f"{int(duration.total_seconds() // length)} {unit}"
    return f"{int(duration.total_seconds())} seconds"
