"""What the API answers about tenants: the shapes of its bodies, and these from what the rules found."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Any, NotRequired, cast

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict

from functions.api.http import shapes
from functions.api.http.answers import without_empty
from functions.api.tenants.manager import TenantInEffect, UsageReport
from functions.api.tenants.requests import LIMIT_SCHEMAS
from functions.domain.instants import format_instant
from functions.domain.schedules import load
from functions.domain.targets import webhooks
from functions.domain.tenants import deletion, usage
from functions.domain.tenants import plan as plans
from functions.domain.tenants.changes import EFFECTIVE_AFTER

_WRITTEN: dict[str, Any] = {
    name: {"anyOf": [schema, {"const": plans.UNLIMITED}]} for name, schema in LIMIT_SCHEMAS.items()
}

Limits = Annotated[
    dict[str, Any], WithJsonSchema({"type": "object", "required": list(_WRITTEN), "properties": _WRITTEN})
]
DeletedRows = Annotated[
    dict[str, int],
    WithJsonSchema(
        {
            "type": "object",
            "required": [part.value for part in deletion.DeletionStage],
            "properties": {part.value: {"type": "integer"} for part in deletion.DeletionStage},
        }
    ),
]


class StageStatus(TypedDict):
    """The status of a tenant, or of the stage."""

    status: Annotated[str, shapes.one_of(plans.TenantStatus)]
    note: str
    """A note for readers: the reason for the status or the limits."""
    version: int
    """Increases with every change. 0 if there has been none."""
    status_since: NotRequired[shapes.Instant]
    changed_at: NotRequired[shapes.Instant]
    in_effect_by: NotRequired[
        Annotated[
            shapes.Instant,
            Field(
                description=f"When the last change is in effect everywhere: {EFFECTIVE_AFTER.total_seconds():g} seconds after it."
            ),
        ]
    ]


class Load(TypedDict):
    """The load of a tenant's schedules, and its limits."""

    count: int
    """The number of schedules."""
    fires_per_minute: float
    """The approximate fires per minute of all active schedules, each in its busiest hour."""
    max_schedules: Annotated[Any, WithJsonSchema(_WRITTEN["max_schedules"])]
    max_fires_per_minute: Annotated[Any, WithJsonSchema(_WRITTEN["max_fires_per_minute"])]


class Deletion(TypedDict):
    """The progress of the deletion of a tenant."""

    part: Annotated[str, shapes.one_of(deletion.DeletionStage)] | None
    """The current stage of the deletion."""
    deleted: DeletedRows
    """The number of rows and objects deleted so far, by stage."""
    ledger: Annotated[str, shapes.one_of(["scan", "ttl"])]


class Tenant(StageStatus):
    """A tenant with its status and limits."""

    tenant: shapes.TenantId
    plan: Annotated[str, Field(examples=["default"])]
    limits: Limits
    """The limits in effect: those of the tenant, then those of its plan, then those of the default plan."""
    own_limits: list[Annotated[str, shapes.one_of(plans.LIMIT_NAMES)]]
    """The names of the limits that are the tenant's own."""
    principals: list[shapes.Caller]
    """Who may act for the tenant."""
    schedules: NotRequired[Load]
    deletion: NotRequired[Deletion]


class Tenants(TypedDict):
    """A page of tenants."""

    tenants: list[Tenant]
    next: str | None
    """The `after` of the next page, or `null` on the last page."""


class UsageFigures(TypedDict):
    """Usage figures."""

    submitted: int
    """The number of submitted jobs."""
    executed: int
    """The number of attempts whose target was called."""
    succeeded: int
    failed: int
    """The number of jobs and fires that failed for good."""
    units: int
    """Write units of the tables."""
    bytes: int
    """The size of the submitted payloads."""


class UsedDay(UsageFigures):
    """The usage of a day."""

    day: shapes.Day


class Cap(TypedDict):
    """The backlog of a tenant with an `execution_rate`."""

    execution_rate: float
    """The execution rate, per second."""
    waiting: int | None
    """The approximate number of jobs that wait for the rate by the end of this day. `null` if currently unknown."""
    waiting_days: float | None
    """The number of days that it takes to run them."""
    is_exceeded_by_schedules: bool
    """Whether the schedules fire faster than the rate allows. If so, the backlog only grows, and their fires are not counted in `waiting`."""


class _From(TypedDict("_From", {"from": shapes.Day})):
    """The first day: `from` is a word of Python's own."""


class Usage(_From):
    """The usage of a tenant."""

    tenant: shapes.TenantId
    until: shapes.Day
    days: list[UsedDay]
    """The days with any usage, in order."""
    total: UsageFigures
    schedules: Load
    cap: NotRequired[Cap]


class WebhookKey(TypedDict):
    """A key that signs requests."""

    id: Annotated[str, Field(examples=["k1"])]
    """The id as it appears in the header `Tickwheel-Key-Ids`."""
    secret: Annotated[str, Field(pattern="^whsec_", examples=["whsec_c2VjcmV0IG9mIHRoZSB0ZW5hbnQgYWNtZQ=="])]
    """The secret, in the format of Standard Webhooks."""


class WebhookKeys(TypedDict):
    """The webhook signing keys of a tenant."""

    keys: list[WebhookKey]
    """The current key first."""


def tenant_body(in_effect: TenantInEffect) -> Tenant:
    """A tenant as it stands; what there is not, because it was never changed, is left out."""
    tenant = in_effect.tenant
    body: Tenant = {
        "tenant": in_effect.name,
        "plan": tenant.plan,
        "limits": plans.write_limits(in_effect.plan),
        "own_limits": [name for name in plans.LIMIT_NAMES if name in tenant.limits],
        "principals": list(tenant.principals),
        **status_body(tenant),
    }
    if in_effect.load is not None:
        body["schedules"] = _load_body(in_effect.load, in_effect.plan)
    if in_effect.deletion is not None:
        body["deletion"] = _deletion_body(in_effect.deletion)
    return body


def _load_body(found: load.Load, allowed: plans.TenantPlan) -> Load:
    limits = plans.write_limits(allowed)
    return {
        "count": found.schedules,
        "fires_per_minute": round(found.fires_per_minute, 2),
        "max_schedules": limits["max_schedules"],
        "max_fires_per_minute": limits["max_fires_per_minute"],
    }


def _deletion_body(done: deletion.Deletion) -> Deletion:
    return {
        "part": done.part.value if done.part is not None else None,
        "deleted": {part.value: done.deleted.get(part.value, 0) for part in deletion.DeletionStage},
        "ledger": "ttl" if done.keeps_ledger else "scan",
    }


def tenants_body(listed: Sequence[TenantInEffect], *, after: str | None) -> Tenants:
    """A page of a list."""
    return {"tenants": [tenant_body(in_effect) for in_effect in listed], "next": after}


def usage_body(report: UsageReport) -> Usage:
    """What a tenant has used; a day on which there was nothing is left out."""
    body: Usage = {
        "tenant": report.name,
        "from": report.days.first.isoformat(),
        "until": report.days.last.isoformat(),
        "days": [{"day": day.isoformat(), **_figures_body(used)} for day, used in report.used.items()],
        "total": _figures_body(sum(report.used.values(), usage.Usage())),
        "schedules": _load_body(report.load, report.plan),
    }
    if report.plan.has_rate:
        body["cap"] = _cap_body(report)
    return body


def _figures_body(used: usage.Usage) -> UsageFigures:
    return cast("UsageFigures", asdict(used))


def _cap_body(report: UsageReport) -> Cap:
    """What waits for the cap of its rate, and whether its schedules alone fire more than that serves."""
    backlog, rate = report.backlog, report.plan.execution_rate
    return {
        "execution_rate": rate,
        "waiting": backlog.count if backlog is not None else None,
        "waiting_days": round(backlog.takes / timedelta(days=1), 1) if backlog is not None else None,
        "is_exceeded_by_schedules": report.load.exceeds(rate),
    }


def status_body(tenant: plans.Tenant) -> StageStatus:
    """The status of a row. in_effect_by: when everything acts by its last change."""
    changed_at = tenant.changed_at
    body: StageStatus = {
        "status": tenant.status.value,
        "note": tenant.note,
        "version": tenant.version,
        "status_since": format_instant(tenant.status_since) if tenant.status_since else "",
        "changed_at": format_instant(changed_at) if changed_at else "",
        "in_effect_by": format_instant(changed_at + EFFECTIVE_AFTER) if changed_at else "",
    }
    return without_empty(StageStatus, body)


def webhook_keys_body(keys: Sequence[webhooks.WebhookKey]) -> WebhookKeys:
    """A tenant's keys, the current one first."""
    return {"keys": [{"id": key.id, "secret": key.shown} for key in keys]}
