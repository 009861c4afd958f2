"""What the API answers about the health of the stage: the body from what was read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from functions.api.stage.health import MOST_TENANTS, Standing
from functions.api.stage.pulse_answers import pulse_body
from functions.api.targets.answers import breaker_body
from functions.domain.instants import format_instant, from_seconds
from functions.domain.jobs.job import Priority
from functions.domain.stage.conditions import Conditions
from functions.domain.stage.health import MOST_NAMES, ClassHealth, Names, ShardHealth
from functions.domain.tenants.plan import TenantPlan

if TYPE_CHECKING:
    from functions.api.stage import shapes


def health_body(standing: Standing) -> shapes.Health:
    """The health of the stage; null is what is not known."""
    health, conditions = standing.health, standing.conditions
    audited_to = from_seconds(standing.audited.bucket) if standing.audited is not None else None
    return {
        "status": health.status.value,
        "reasons": list(health.reasons),
        "at": format_instant(health.at),
        "classes": [_class_body(each, conditions) for each in health.classes],
        "shards": {
            "count": health.shards,
            "unscanned": {"count": len(health.unscanned), "first": list(health.unscanned[:MOST_NAMES])},
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
            "count": standing.breaker_count,
            "first": [breaker_body(breaker) for breaker in standing.breakers],
        },
        "pause": _pause_body(standing.everybody),
        "tenants": _tenants_body(standing.unserved),
        "pulse": pulse_body(standing.pulse),
    }


def _class_body(each: ClassHealth, conditions: Conditions | None) -> shapes.ClassHealth:
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


def _shard_body(shard: ShardHealth) -> shapes.ShardHealth:
    return {
        "shard": shard.shard,
        "scanned_at": _instant(shard.scanned_at),
        "oldest_bucket_at": format_instant(shard.oldest_bucket_at),
        "age_seconds": _seconds(shard.age),
        "behind": _names_body(shard.behind),
        "held": _names_body(shard.held),
    }


def _names_body(names: Names) -> shapes.Names:
    return {"count": names.count, "first": list(names.first)}


def _pause_body(everybody: TenantPlan) -> shapes.Pause:
    is_paused = everybody.is_stage_paused
    return {
        "is_paused": is_paused,
        "note": everybody.note if is_paused else "",
        "since": _instant(everybody.changed_at) if is_paused else None,
    }


def _tenants_body(unserved: Mapping[str, TenantPlan]) -> shapes.UnservedTenants:
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
