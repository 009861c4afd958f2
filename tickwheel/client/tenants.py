"""Tenants and the whole stage, as the API returns them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date, datetime
from typing import Any, Literal, Self

from tickwheel.client.instants import parse_instant

TenantStatus = Literal["active", "paused", "draining", "deleting", "deleted"]
Unlimited = Literal["unlimited"]
LIMITS = (
    *("weight", "submission_rate", "submission_burst", "max_pending", "execution_rate", "max_concurrency", "subshards"),
    *("read_rate", "max_schedules", "max_fires_per_minute"),
    "top_priority",
)
"""The names of all limits."""


@dataclass(frozen=True, kw_only=True)
class StageStatus:
    """Whether jobs run. note: why. version: grows with every change.

    in_effect_by: from then on everything acts by the last change; None where there was none.
    """

    status: TenantStatus
    note: str
    version: int
    status_since: datetime | None
    changed_at: datetime | None
    in_effect_by: datetime | None

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Reads the scheduler's answer."""
        return cls(**_status_of(body))


@dataclass(frozen=True, kw_only=True)
class Deletion:
    """How far a tenant has been deleted. part: what is being deleted. deleted: rows and objects so far, by parts.

    ledger: "scan", or "ttl" where its rows of the ledger are left to expire.
    """

    part: str | None
    deleted: Mapping[str, int]
    ledger: str

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Reads the scheduler's answer."""
        return cls(part=body["part"], deleted=dict(body["deleted"]), ledger=body["ledger"])


@dataclass(frozen=True, kw_only=True)
class ScheduleLoad:
    """What the schedules of a tenant come to, and what they may.

    count: that there are. fires_per_minute: of all that go on, each in an hour in which it fires most, about.
    """

    count: int
    max_schedules: float | Unlimited
    fires_per_minute: float
    max_fires_per_minute: float | Unlimited

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Reads the scheduler's answer."""
        return cls(**{field.name: body[field.name] for field in fields(cls)})


@dataclass(frozen=True, kw_only=True)
class Cap:
    """What waits for a tenant's `execution_rate`, about: None where that cannot be known just now.

    waiting_days: how long it takes to serve them. is_exceeded_by_schedules: they fire more than it serves.
    """

    execution_rate: float
    waiting: int | None
    waiting_days: float | None
    is_exceeded_by_schedules: bool

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Reads the scheduler's answer."""
        return cls(**{field.name: body[field.name] for field in fields(cls)})


@dataclass(frozen=True, kw_only=True)
class Tenant(StageStatus):
    """A tenant as it stands.

    limits: in effect, by their names: numbers, rates a second, "unlimited", and the name of a priority. own_limits: which
    of them are not its plan's. principals: patterns of the ARNs that may act for it. deletion: while it is being deleted. schedules:
    what they come to, where one tenant was asked for.
    """

    tenant: str
    plan: str
    limits: Mapping[str, float | str]
    own_limits: tuple[str, ...]
    principals: tuple[str, ...]
    deletion: Deletion | None = None
    schedules: ScheduleLoad | None = None

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Reads the scheduler's answer."""
        return cls(
            tenant=body["tenant"],
            plan=body["plan"],
            limits=dict(body["limits"]),
            own_limits=tuple(body["own_limits"]),
            principals=tuple(body["principals"]),
            deletion=Deletion.from_json(body["deletion"]) if "deletion" in body else None,
            schedules=_load_of(body),
            **_status_of(body),
        )


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What a tenant has used, about.

    executed: attempts that were called. failed: for good. units: write units of the tables. bytes: of payloads.
    """

    submitted: int
    executed: int
    succeeded: int
    failed: int
    units: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What a tenant has used by UTC days, from first until last. days: those on which there was anything, in order.

    schedules: their load now; None where the stage is of a version that does not report it. cap: what waits for its
    `execution_rate`; None where it has none.
    """

    tenant: str
    first: date
    last: date
    days: Mapping[date, Figures]
    total: Figures
    schedules: ScheduleLoad | None = None
    cap: Cap | None = None

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Reads the scheduler's answer."""
        return cls(
            tenant=body["tenant"],
            first=date.fromisoformat(body["from"]),
            last=date.fromisoformat(body["until"]),
            days={date.fromisoformat(day["day"]): _figures_of(day) for day in body["days"]},
            total=_figures_of(body["total"]),
            schedules=_load_of(body),
            cap=Cap.from_json(body["cap"]) if "cap" in body else None,
        )


def _load_of(body: Mapping[str, Any]) -> ScheduleLoad | None:
    return ScheduleLoad.from_json(body["schedules"]) if "schedules" in body else None


def _figures_of(body: Mapping[str, Any]) -> Figures:
    return Figures(**{field.name: int(body[field.name]) for field in fields(Figures)})


def _status_of(body: Mapping[str, Any]) -> dict[str, Any]:
    instants = ("status_since", "changed_at", "in_effect_by")
    return {
        "status": body["status"],
        "note": body["note"],
        "version": int(body["version"]),
        **{name: parse_instant(body[name]) if name in body else None for name in instants},
    }
