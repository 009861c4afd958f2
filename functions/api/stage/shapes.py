"""What is answered about the stage, as types."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from functions.api.http.shapes import Count, Instant, TenantId, one_of
from functions.api.stage.health import MOST_BREAKERS, MOST_TENANTS
from functions.api.stage.pulse import MOST_WORST
from functions.api.targets.shapes import Breaker
from functions.domain.jobs.job import Priority
from functions.domain.stage.health import MOST_NAMES, HealthStatus
from functions.domain.stage.health import MOST_WORST as MOST_SHARDS
from functions.domain.stage.pulse import LAG_WINDOW, WINDOW
from functions.domain.tenants.plan import TenantStatus

PriorityName = Annotated[str, one_of(priority.name.lower() for priority in Priority)]
Milliseconds = Annotated[float, Field(ge=0)]


class Lag(TypedDict):
    """How late attempts began; null is the lag of no attempt."""

    attempts: Count
    """that began"""
    p50_ms: Milliseconds | None
    p95_ms: Milliseconds | None
    p99_ms: Milliseconds | None
    p999_ms: Milliseconds | None


class ClassLag(Lag):
    """The lag of a class."""

    priority: PriorityName


class Minute(TypedDict):
    """What was counted in a minute."""

    at: Instant
    seconds: Annotated[float, Field(ge=0, le=60)]
    """that are over"""
    submitted: Count
    refused: Count
    promoted: Count
    started: Count
    succeeded: Count
    retried: Count
    failed: Count
    lag: Lag


class TenantCount(TypedDict):
    """How much a tenant has of what is compared."""

    tenant: TenantId
    count: Count


TenantCounts = Annotated[list[TenantCount], Field(max_length=MOST_WORST)]


class PulseTenants(TypedDict):
    """those with the most in the last minute and the one that runs; at least so many."""

    executions: TenantCounts
    failures: TenantCounts
    refusals: TenantCounts


class Pulse(TypedDict):
    """what processes have written by now."""

    minutes: Annotated[list[Minute], Field(min_length=WINDOW + 1, max_length=WINDOW + 1)]
    """oldest first; the last one runs"""
    lag: Annotated[
        list[ClassLag],
        Field(max_length=len(Priority), description=f"of the last {LAG_WINDOW} minutes and the one that runs"),
    ]
    tenants: PulseTenants


class ClassHealth(TypedDict):
    """How a class does."""

    priority: PriorityName
    depth: Count | None
    """messages in its ready queue: visible, delayed and in flight"""
    waiting: Count | None
    """those that wait for a worker"""
    budget: Count | None
    """jobs that a tick of one shard may promote"""
    lag_seconds: Count | None
    """when the sweeper published last"""
    is_shed: bool | None
    """its submissions are refused"""
    oldest_bucket_at: Instant | None
    """the start of the oldest bucket that is not drained"""
    age_seconds: Count
    """since when that bucket has been due"""


class Names(TypedDict):
    """How many there are, and the first of them."""

    count: Count
    first: Annotated[list[TenantId], Field(max_length=MOST_NAMES)]


class ShardHealth(TypedDict):
    """How a shard does."""

    shard: Count
    scanned_at: Instant | None
    oldest_bucket_at: Instant
    age_seconds: Count
    behind: Names
    """cursors of tenants' own; the furthest behind first"""
    held: Names
    """those of tenants that are paused or over their cap"""


class Unscanned(TypedDict):
    """Shards that were never scanned."""

    count: Count
    first: Annotated[list[Count], Field(max_length=MOST_NAMES)]


class Shards(TypedDict):
    """How the shards do."""

    count: Count
    unscanned: Unscanned
    cursors_behind: Count
    cursors_held: Count
    worst: Annotated[list[ShardHealth], Field(max_length=MOST_SHARDS)]


class Sweeper(TypedDict):
    """How the sweeper does."""

    published_at: Instant | None
    is_fresh: bool
    audited_to: Instant | None
    audit_age_seconds: int | None


class OpenBreakers(TypedDict):
    """The breakers of all tenants."""

    count: Count
    """that are not closed, about; no more than 1,000 are counted"""
    first: Annotated[list[Breaker], Field(max_length=MOST_BREAKERS)]


class Pause(TypedDict):
    """Whether the stage is paused."""

    is_paused: bool
    note: str
    since: Instant | None


class UnservedTenant(TypedDict):
    """A tenant that is paused, draining or being deleted."""

    tenant: TenantId
    status: Annotated[str, one_of([TenantStatus.PAUSED, TenantStatus.DRAINING, TenantStatus.DELETING])]
    note: str
    since: Instant | None


class UnservedTenants(TypedDict):
    """those that are paused, draining or being deleted."""

    count: Count
    first: Annotated[list[UnservedTenant], Field(max_length=MOST_TENANTS)]


class Health(TypedDict):
    """what is null is not known."""

    status: Annotated[str, one_of(HealthStatus)]
    reasons: list[str]
    """sentences; none where it is ok"""
    at: Instant
    classes: Annotated[list[ClassHealth], Field(max_length=len(Priority))]
    shards: Shards
    sweeper: Sweeper
    breakers: OpenBreakers
    pause: Pause
    tenants: UnservedTenants
    pulse: Pulse
