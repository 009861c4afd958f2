"""Tenants and the whole stage, as the API returns them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any, Literal

from tickwheel.client.answers import Answer, Wire
from tickwheel.client.words import DeletionPart, LedgerDeletion, TenantStatus

Unlimited = Literal["unlimited"]
LIMITS = (
    *("weight", "submission_rate", "submission_burst", "max_pending", "execution_rate", "max_concurrency", "subshards"),
    *("read_rate", "max_schedules", "max_fires_per_minute"),
    *("top_priority", "spread"),
)
"""The names of all limits."""


@dataclass(frozen=True, kw_only=True)
class StageStatus(Answer):
    """The status of a tenant or of the stage. note: the reason. version: increases with every change.

    in_effect_by: from then on everything acts by the last change; None where there was none.
    """

    status: TenantStatus
    note: str
    version: int
    status_since: datetime | None
    changed_at: datetime | None
    in_effect_by: datetime | None


@dataclass(frozen=True, kw_only=True)
class Deletion(Answer):
    """The progress of a tenant's deletion. part: its current stage. deleted: rows and objects so far, by stage.

    ledger: "scan", or "ttl" where its rows of the ledger are left to expire.
    """

    part: DeletionPart | None
    deleted: Mapping[str, int]
    ledger: LedgerDeletion


@dataclass(frozen=True, kw_only=True)
class ScheduleLoad(Answer):
    """The load of a tenant's schedules, and its limits.

    count: that there are. fires_per_minute: of all that go on, each in an hour in which it fires most, about.
    """

    count: int
    max_schedules: float | Unlimited
    fires_per_minute: float
    max_fires_per_minute: float | Unlimited


@dataclass(frozen=True, kw_only=True)
class Cap(Answer):
    """The approximate backlog of a tenant's `execution_rate`: None if it is currently unknown.

    waiting_days: how long it takes to serve them. is_exceeded_by_schedules: they fire more than it serves.
    """

    execution_rate: float
    waiting: int | None
    waiting_days: float | None
    is_exceeded_by_schedules: bool


@dataclass(frozen=True, kw_only=True)
class Tenant(StageStatus):
    """A tenant with its status and limits.

    limits: in effect, by their names: numbers, rates a second, "unlimited", the name of a priority, and as an ISO 8601 duration
    the `spread` of schedules that say none. own_limits: which of them are not its plan's. principals: patterns of the ARNs that
    may act for it. deletion: while it is being deleted. schedules: what they come to, where one tenant was asked for.
    """

    tenant: str
    plan: str
    limits: Mapping[str, float | str]
    own_limits: tuple[str, ...]
    principals: tuple[str, ...]
    deletion: Deletion | None = None
    schedules: ScheduleLoad | None = None


@dataclass(frozen=True, kw_only=True)
class Figures(Answer):
    """Approximate usage figures of a tenant.

    executed: attempts that were called. failed: for good. units: write units of the tables. bytes: of payloads.
    """

    submitted: int
    executed: int
    succeeded: int
    failed: int
    units: int
    bytes: int


def _by_day(days: Sequence[Mapping[str, Any]]) -> Mapping[date, Figures]:
    return {date.fromisoformat(each["day"]): Figures.from_json(each) for each in days}


@dataclass(frozen=True, kw_only=True)
class Usage(Answer):
    """The usage of a tenant by UTC day, from first to last. days: those with any usage, in order.

    schedules: their load now; None where the stage is of a version that does not report it. cap: what waits for its
    `execution_rate`; None where it has none.
    """

    tenant: str
    first: Annotated[date, Wire("from")]
    last: Annotated[date, Wire("until")]
    days: Annotated[Mapping[date, Figures], Wire(read=_by_day)]
    total: Figures
    schedules: ScheduleLoad | None = None
    cap: Cap | None = None
