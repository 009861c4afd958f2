"""The health of a stage, as the API returns it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from tickwheel.client.answers import Answer, Wire
from tickwheel.client.breakers import Breaker
from tickwheel.client.pulse import Pulse
from tickwheel.client.words import HealthStatus, Priority, TenantStatus


@dataclass(frozen=True, kw_only=True)
class ClassHealth(Answer):
    """The health of a priority. Values that the sweeper publishes each minute are None if it has not done so yet.

    depth: messages in its ready queue; waiting: those that wait for a worker. budget: jobs that a tick of one shard may
    promote. lag: when that was published. age: since when its oldest bucket that is not drained has been due, now.
    """

    priority: Priority
    depth: int | None
    waiting: int | None
    budget: int | None
    lag: Annotated[timedelta | None, Wire("lag_seconds")]
    is_shed: bool | None
    oldest_bucket_at: datetime | None
    age: Annotated[timedelta, Wire("age_seconds")]


@dataclass(frozen=True, kw_only=True)
class Listed(Answer):
    """A number of tenants, and the first of them."""

    count: int
    first: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ShardHealth(Answer):
    """A shard. behind: tenants that have a cursor of their own there; held: those of them that are paused or over their cap."""

    shard: int
    scanned_at: datetime | None
    oldest_bucket_at: datetime
    age: Annotated[timedelta, Wire("age_seconds")]
    behind: Listed
    held: Listed


@dataclass(frozen=True, kw_only=True)
class ShardsHealth(Answer):
    """All shards. unscanned: the first of those that nobody has scanned for three minutes; unscanned_count: all of them.

    worst: the few that are furthest behind.
    """

    count: int
    unscanned: Annotated[tuple[int, ...], Wire("unscanned.first")]
    unscanned_count: Annotated[int, Wire("unscanned.count")]
    cursors_behind: int
    cursors_held: int
    worst: tuple[ShardHealth, ...]


@dataclass(frozen=True, kw_only=True)
class SweeperHealth(Answer):
    """The sweeper. is_fresh: what it published is not older than five minutes. audited_to, audit_age: of the audit."""

    published_at: datetime | None
    is_fresh: bool
    audited_to: datetime | None
    audit_age: Annotated[timedelta | None, Wire("audit_age_seconds")]


@dataclass(frozen=True, kw_only=True)
class UnservedTenant(Answer):
    """A tenant that is paused, draining or being deleted. note: why."""

    tenant: str
    status: TenantStatus
    note: str
    since: datetime | None


@dataclass(frozen=True, kw_only=True)
class Health(Answer):
    """The health of a stage. stage: its name; None: a release that does not say it.

    status: `ok`; `behind`; `paused`, all tenants are; `unknown`, the sweeper has stopped. reasons: sentences.
    breakers: the first of those that are not closed, of all tenants; breaker_count: all of them, about. paused_since,
    note: of a pause of all tenants. tenants: the first that are not served; tenant_count: all of them.
    """

    status: HealthStatus
    reasons: tuple[str, ...]
    at: datetime
    classes: tuple[ClassHealth, ...]
    shards: ShardsHealth
    sweeper: SweeperHealth
    breakers: Annotated[tuple[Breaker, ...], Wire("breakers.first")]
    breaker_count: Annotated[int, Wire("breakers.count")]
    is_paused: Annotated[bool, Wire("pause.is_paused")]
    paused_since: Annotated[datetime | None, Wire("pause.since")]
    note: Annotated[str, Wire("pause.note")]
    tenants: Annotated[tuple[UnservedTenant, ...], Wire("tenants.first")]
    tenant_count: Annotated[int, Wire("tenants.count")]
    pulse: Pulse
    stage: str | None = None
