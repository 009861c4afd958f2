"""What is asked of tenants."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from functions.api.http.requests import StrictModel, obeying
from functions.domain.jobs.job import Priority
from functions.domain.schedules.spread import MAX_DEFAULT_SPREAD
from functions.domain.tenants import plan as plans
from functions.domain.tenants.access import check_pattern
from functions.domain.tenants.changes import TenantPatch, TenantValues


def limit_schema(limit: plans.Limit) -> dict[str, Any]:
    """What a limit may be."""
    kind = "integer" if limit.is_whole else "number"
    number: dict[str, Any] = {"type": kind, "minimum": limit.lowest, "maximum": limit.highest}
    return {"anyOf": [number, {"const": plans.UNLIMITED}]} if limit.may_be_unlimited else number


LIMIT_SCHEMAS: dict[str, Any] = {
    **{name: limit_schema(limit) for name, limit in plans.LIMITS.items()},
    plans.TOP_PRIORITY: {"enum": [priority.name.lower() for priority in Priority]},
    plans.SPREAD: {
        "anyOf": [
            {"type": "number", "minimum": 0, "maximum": int(MAX_DEFAULT_SPREAD.total_seconds())},
            {"type": "string", "format": "duration"},
        ],
        "description": "The spread of schedules that have none.",
    },
}
"""Every limit by its name."""


def _limits_schema(*, may_be_null: bool) -> WithJsonSchema:
    schemas: dict[str, Any] = {
        name: {"anyOf": [schema, {"type": "null"}]} if may_be_null else schema for name, schema in LIMIT_SCHEMAS.items()
    }
    return WithJsonSchema({"type": "object", "properties": schemas, "additionalProperties": False})


def _check_patched(limits: dict[str, Any]) -> None:
    plans.check_limit_names(limits)
    plans.read_limits({name: limit for name, limit in limits.items() if limit is not None})


_Note = Annotated[str, Field(max_length=plans.MAX_NOTE_LENGTH, description="A note for readers.")]
_Plan = Annotated[
    str, Field(pattern=f"^{plans.PLAN_NAME.pattern}$", description="the name of one of the stage's plans")
]
_Principal = Annotated[str, obeying(check_pattern)]
_Principals = Annotated[
    tuple[_Principal, ...],
    Field(max_length=plans.MAX_PRINCIPALS, description="who may act for it: patterns of the ARNs of roles and users"),
]
_Version = Annotated[
    int | None,
    Field(
        ge=0, strict=True, description="The version to change, or 0 if there must be none yet. Default: any version."
    ),
]


class TenantsQuery(StrictModel):
    """Tenants after an id, in the order of their ids."""

    limit: Annotated[int, Field(ge=1, le=500)] = 100
    after: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{0,64}$", description="The `next` of the previous page.")] = ""


class UsageQuery(StrictModel):
    """The first and the last UTC day, both inclusive; at most 400 days."""

    first: Annotated[
        date | None, Field(alias="from", description="The first day. Default: 30 days before `until`.")
    ] = None
    last: Annotated[date | None, Field(alias="until", description="The last day. Default: today.")] = None


class DeletionQuery(StrictModel):
    """The confirmation of a deletion, and how ledger rows are deleted."""

    confirm: Annotated[str, Field(description="The id of the tenant, repeated.")]
    ledger: Annotated[
        Literal["scan", "ttl"],
        Field(
            description="How ledger rows are deleted. `scan`: the whole ledger is scanned for them. `ttl`: they expire 22 days after they were due."
        ),
    ] = "scan"


class TenantBody(
    StrictModel,
    json_schema_extra={"examples": [{"plan": "default", "limits": {"max_pending": 10_000}, "note": "on trial"}]},
):
    """The settings of a tenant. An omitted setting has its default value."""

    plan: _Plan = plans.DEFAULT_PLAN
    limits: Annotated[dict[str, Any], obeying(plans.read_limits), _limits_schema(may_be_null=False)] = {}  # noqa: RUF012  pydantic copies it
    principals: _Principals = ()
    note: _Note = ""
    version: _Version = None

    def values(self) -> TenantValues:
        """The values of the rules."""
        return TenantValues(**self.by_name("plan", "limits", "principals", "note"))


class TenantPatchBody(StrictModel, json_schema_extra={"examples": [{"limits": {"max_pending": None}, "version": 1}]}):
    """Settings of a tenant to change. A limit that is `null` is reset to that of its plan; any other setting that is `null` is reset to its default."""

    plan: _Plan | None = None
    limits: Annotated[
        Annotated[dict[str, Any], obeying(_check_patched), _limits_schema(may_be_null=True)] | None,
        Field(description="The limits to change. `null` removes all limits of the tenant's own."),
    ] = None
    principals: _Principals | None = None
    note: _Note | None = None
    version: _Version = None

    def patch(self) -> TenantPatch:
        """The patch of the rules."""
        given = self.model_fields_set
        return TenantPatch(
            plan=(self.plan or plans.DEFAULT_PLAN) if "plan" in given else None,
            limits=self.limits,
            drops_limits="limits" in given and self.limits is None,
            principals=(self.principals or ()) if "principals" in given else None,
            note=(self.note or "") if "note" in given else None,
        )


class TurnBody(StrictModel, json_schema_extra={"examples": [{"note": "maintenance"}]}):
    """Why a tenant, or the whole stage, is paused, drained or resumed."""

    note: _Note = ""
    version: _Version = None
