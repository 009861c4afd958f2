"""The health of a stage, as the API returns it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Self

from tickwheel.client.breakers import Breaker
from tickwheel.client.instants import parse_instant
from tickwheel.client.pulse import Pulse
from tickwheel.client.tenants import TenantStatus

HealthStatus = Literal["ok", "behind", "paused", "unknown"]


@dataclass(frozen=True, kw_only=True)
class ClassHealth:
    """A priority. What the sweeper publishes each minute is None where it has not yet.

    depth: messages in its ready queue; waiting: those that wait for a worker. budget: jobs that a tick of one shard may
    promote. lag: when that was published. age: since when its oldest bucket that is not drained has been due, now.
    """

    priority: str
    depth: int | None
    waiting: int | None
    budget: int | None
    lag: timedelta | None
    is_shed: bool | None
    oldest_bucket_at: datetime | None
    age: timedelta

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Reads the scheduler's answer."""
        return cls(
            priority=body["priority"],
            depth=body["depth"],
            waiting=body["waiting"],
            budget=body["budget"],
            lag=_duration(body["lag_seconds"]),
            is_shed=body["is_shed"],
            oldest_bucket_at=_instant(body["oldest_bucket_at"]),
            age=timedelta(seconds=body["age_seconds"]),
        )


@dataclass(frozen=True, kw_only=True)
class Listed:
    """How many there are, and the first of them."""

    count: int
    first: tuple[str, ...]

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Reads the scheduler's answer."""
        return cls(count=body["count"], first=tuple(body["first"]))


@dataclass(frozen=True, kw_only=True)
class ShardHealth:
    """A shard. behind: tenants that have a cursor of their own there; held: those of them that are paused or over their cap."""

    shard: int
    scanned_at: datetime | None
    oldest_bucket_at: datetime
    age: timedelta
    behind: Listed
    held: Listed

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Reads the scheduler's answer."""
        return cls(
            shard=body["shard"],
            scanned_at=_instant(body["scanned_at"]),
            oldest_bucket_at=parse_instant(body["oldest_bucket_at"]),
            age=timedelta(seconds=body["age_seconds"]),
            behind=Listed.from_json(body["behind"]),
            held=Listed.from_json(body["held"]),
        )


@dataclass(frozen=True, kw_only=True)
class ShardsHealth:
    """All shards. unscanned: the first of those that nobody has scanned for three minutes; unscanned_count: all of them.

    worst: the few that are furthest behind.
    """

    count: int
    unscanned: tuple[int, ...]
    unscanned_count: int
    cursors_behind: int
    cursors_held: int
    worst: tuple[ShardHealth, ...]

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Reads the scheduler's answer."""
        return cls(
            count=body["count"],
            unscanned=tuple(body["unscanned"]["first"]),
            unscanned_count=body["unscanned"]["count"],
            cursors_behind=body["cursors_behind"],
            cursors_held=body["cursors_held"],
            worst=tuple(ShardHealth.from_json(shard) for shard in body["worst"]),
        )


@dataclass(frozen=True, kw_only=True)
class SweeperHealth:
    """The sweeper. is_fresh: what it published is not older than five minutes. audited_to, audit_age: of the audit."""

    published_at: datetime | None
    is_fresh: bool
    audited_to: datetime | None
    audit_age: timedelta | None

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Reads the scheduler's answer."""
        return cls(
            published_at=_instant(body["published_at"]),
            is_fresh=body["is_fresh"],
            audited_to=_instant(body["audited_to"]),
            audit_age=_duration(body["audit_age_seconds"]),
        )


@dataclass(frozen=True, kw_only=True)
class UnservedTenant:
    """A tenant that is paused, draining or being deleted. note: why."""

    tenant: str
    status: TenantStatus
    note: str
    since: datetime | None

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Reads the scheduler's answer."""
        return cls(tenant=body["tenant"], status=body["status"], note=body["note"], since=_instant(body["since"]))


@dataclass(frozen=True, kw_only=True)
class Health:
    """How the stage does.

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
    breakers: tuple[Breaker, ...]
    breaker_count: int
    is_paused: bool
    paused_since: datetime | None
    note: str
    tenants: tuple[UnservedTenant, ...]
    tenant_count: int
    pulse: Pulse

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Reads the scheduler's answer."""
        breakers, pause, tenants = body["breakers"], body["pause"], body["tenants"]
        return cls(
            status=body["status"],
            reasons=tuple(body["reasons"]),
            at=parse_instant(body["at"]),
            classes=tuple(ClassHealth.from_json(each) for each in body["classes"]),
            shards=ShardsHealth.from_json(body["shards"]),
            sweeper=SweeperHealth.from_json(body["sweeper"]),
            breakers=tuple(Breaker.from_json(breaker) for breaker in breakers["first"]),
            breaker_count=breakers["count"],
            is_paused=pause["is_paused"],
            paused_since=_instant(pause["since"]),
            note=pause["note"],
            pulse=Pulse.from_json(body["pulse"]),
            tenants=tuple(UnservedTenant.from_json(tenant) for tenant in tenants["first"]),
            tenant_count=tenants["count"],
        )


def _instant(value: Any) -> datetime | None:
    return parse_instant(value) if value is not None else None


def _duration(seconds: Any) -> timedelta | None:
    return timedelta(seconds=seconds) if seconds is not None else None
