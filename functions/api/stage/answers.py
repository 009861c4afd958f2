"""What the API answers about the health of the stage: the shapes of its body, and this from what was read."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from functions.api.http import shapes
from functions.api.http.breaker_answers import Breaker, breaker_body
from functions.api.stage.health import MOST_BREAKERS, MOST_TENANTS, StageSnapshot
from functions.api.stage.pulse_answers import Pulse, pulse_body
from functions.domain.instants import format_instant, from_seconds
from functions.domain.jobs.job import Priority
from functions.domain.stage import health as rules
from functions.domain.stage.conditions import Conditions
from functions.domain.tenants.plan import TenantPlan, TenantStatus


class ClassHealth(TypedDict):
    """The health of a priority."""

    priority: shapes.PriorityName
    depth: shapes.Count | None
    """The number of messages in the ready queue: visible, delayed and in flight."""
    waiting: shapes.Count | None
    """The number of messages that wait for a worker."""
    budget: shapes.Count | None
    """The number of jobs that one tick of one shard may promote."""
    lag_seconds: shapes.Count | None
    """The lag when the sweeper last published it."""
    is_shed: bool | None
    """Whether submissions of this priority are refused."""
    oldest_bucket_at: shapes.Instant | None
    """The start of the oldest bucket that is not drained."""
    age_seconds: shapes.Count
    """The number of seconds since that bucket became due."""


class Names(TypedDict):
    """A number of tenants, and the first of them."""

    count: shapes.Count
    first: Annotated[list[shapes.TenantId], Field(max_length=rules.MOST_NAMES)]


class ShardHealth(TypedDict):
    """The health of a shard."""

    shard: shapes.Count
    scanned_at: shapes.Instant | None
    oldest_bucket_at: shapes.Instant
    age_seconds: shapes.Count
    behind: Names
    """Tenants that are behind and have a cursor of their own, the furthest behind first."""
    held: Names
    """Tenants with cursors of their own that are paused or over their cap."""


class Unscanned(TypedDict):
    """Shards that have not been scanned for three minutes."""

    count: shapes.Count
    first: Annotated[list[shapes.Count], Field(max_length=rules.MOST_NAMES)]


class Shards(TypedDict):
    """The health of the shards."""

    count: shapes.Count
    unscanned: Unscanned
    cursors_behind: shapes.Count
    cursors_held: shapes.Count
    worst: Annotated[list[ShardHealth], Field(max_length=rules.MOST_WORST)]


class Sweeper(TypedDict):
    """The health of the sweeper."""

    published_at: shapes.Instant | None
    is_fresh: bool
    audited_to: shapes.Instant | None
    audit_age_seconds: int | None


class OpenBreakers(TypedDict):
    """The breakers of all tenants."""

    count: shapes.Count
    """The approximate number of breakers that are not closed. At most 1,000 are counted."""
    first: Annotated[list[Breaker], Field(max_length=MOST_BREAKERS)]


class Pause(TypedDict):
    """Whether the stage is paused."""

    is_paused: bool
    note: str
    since: shapes.Instant | None


class UnservedTenant(TypedDict):
    """A tenant that is paused, draining or being deleted."""

    tenant: shapes.TenantId
    status: Annotated[str, shapes.one_of([TenantStatus.PAUSED, TenantStatus.DRAINING, TenantStatus.DELETING])]
    note: str
    since: shapes.Instant | None


class UnservedTenants(TypedDict):
    """The tenants that are paused, draining or being deleted."""

    count: shapes.Count
    first: Annotated[list[UnservedTenant], Field(max_length=MOST_TENANTS)]


class Health(TypedDict):
    """The health of the stage. `null` means unknown."""

    stage: str
    """The name of the stage."""
    status: Annotated[str, shapes.one_of(rules.HealthStatus)]
    reasons: list[str]
    """The reasons for the status, as sentences. Empty if the status is `ok`."""
    at: shapes.Instant
    classes: Annotated[list[ClassHealth], Field(max_length=len(Priority))]
    shards: Shards
    sweeper: Sweeper
    breakers: OpenBreakers
    pause: Pause
    tenants: UnservedTenants
    pulse: Pulse


def health_body(snapshot: StageSnapshot) -> Health:
    """The health of the stage; null is what is not known."""
    health, conditions = snapshot.health, snapshot.conditions
    audited_to = from_seconds(snapshot.audited.bucket) if snapshot.audited is not None else None
    return {
        "stage": snapshot.stage,
        "status": health.status.value,
        "reasons": list(health.reasons),
        "at": format_instant(health.at),
        "classes": [_class_body(each, conditions) for each in health.classes],
        "shards": {
            "count": health.shards,
            "unscanned": {"count": len(health.unscanned), "first": list(health.unscanned[: rules.MOST_NAMES])},
            "cursors_behind": health.behind,
            "cursors_held": health.held,
            "worst": [_shard_body(shard) for shard in health.worst],
        },
        "sweeper": {
            "published_at": _instant(conditions.published_at if conditions is not None else None),
            "is_fresh": conditions is not None and conditions.is_fresh(health.at),
            "audited_to": _instant(audited_to),
            "audit_age_seconds": _seconds(health.at - audited_to) if audited_to is not None else None,
        },
        "breakers": {
            "count": snapshot.breaker_count,
            "first": [breaker_body(breaker) for breaker in snapshot.breakers],
        },
        "pause": _pause_body(snapshot.everybody),
        "tenants": _tenants_body(snapshot.unserved),
        "pulse": pulse_body(snapshot.pulse),
    }


def _class_body(each: rules.ClassHealth, conditions: Conditions | None) -> ClassHealth:
    def published(counts: Mapping[Priority, int] | None) -> int | None:
        return counts.get(each.priority) if counts is not None else None

    return {
        "priority": each.priority.name.lower(),
        "depth": published(conditions and conditions.depths),
        "waiting": published(conditions and conditions.waiting),
        "budget": published(conditions and conditions.budgets),
        "lag_seconds": published(conditions and conditions.lags),
        "is_shed": each.priority in conditions.shed if conditions is not None else None,
        "oldest_bucket_at": _instant(each.oldest_bucket_at),
        "age_seconds": _seconds(each.age),
    }


def _shard_body(shard: rules.ShardHealth) -> ShardHealth:
    return {
        "shard": shard.shard,
        "scanned_at": _instant(shard.scanned_at),
        "oldest_bucket_at": format_instant(shard.oldest_bucket_at),
        "age_seconds": _seconds(shard.age),
        "behind": _names_body(shard.behind),
        "held": _names_body(shard.held),
    }


def _names_body(names: rules.Names) -> Names:
    return {"count": names.count, "first": list(names.first)}


def _pause_body(everybody: TenantPlan) -> Pause:
    is_paused = everybody.is_stage_paused
    return {
        "is_paused": is_paused,
        "note": everybody.note if is_paused else "",
        "since": _instant(everybody.changed_at) if is_paused else None,
    }


def _tenants_body(unserved: Mapping[str, TenantPlan]) -> UnservedTenants:
    return {
        "count": len(unserved),
        "first": [
            {"tenant": name, "status": plan.status.value, "note": plan.note, "since": _instant(plan.changed_at)}
            for name, plan in list(unserved.items())[:MOST_TENANTS]
        ],
    }


def _seconds(duration: timedelta) -> int:
    return int(duration.total_seconds())


def _instant(instant: datetime | None) -> str | None:
    return format_instant(instant) if instant is not None else None
