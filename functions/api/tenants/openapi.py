"""The part of the API's description that is about tenants, made from the models that check its requests."""

from __future__ import annotations

from typing import Any

from functions.api.http.openapi_parts import (
    INSTANT,
    REFERENCE,
    TEXT,
    object_of,
    operation,
    parameter,
    query_of,
)
from functions.api.tenants.requests import (
    LIMIT_SCHEMAS,
    DeletionQuery,
    TenantBody,
    TenantPatchBody,
    TenantsQuery,
    TurnBody,
    UsageQuery,
)
from functions.domain.tenants.changes import EFFECTIVE_AFTER
from functions.domain.tenants.deletion import Part
from functions.domain.tenants.plan import LIMIT_NAMES, UNLIMITED, TenantStatus

MODELS = (TenantBody, TenantPatchBody, TurnBody)

_STATUS: dict[str, Any] = {
    "status": {"enum": [status.value for status in TenantStatus]},
    "note": {"type": "string", "description": "for people: why it has its status, or its limits"},
    "version": {"type": "integer", "description": "grows with every change; 0: it was never changed"},
    "status_since": INSTANT,
    "changed_at": INSTANT,
    "in_effect_by": {
        **INSTANT,
        "description": f"everything acts by the last change from then on: {EFFECTIVE_AFTER.total_seconds():g} s after it",
    },
}
_MAY_BE_UNKNOWN = {"status_since", "changed_at", "in_effect_by"}
_ALWAYS = [name for name in _STATUS if name not in _MAY_BE_UNKNOWN]
_TENANT: dict[str, Any] = {
    "tenant": TEXT,
    "plan": TEXT,
    "limits": object_of(
        {name: {"anyOf": [schema, {"const": UNLIMITED}]} for name, schema in LIMIT_SCHEMAS.items()},
        description="in effect: its own before its plan's, those before the default plan's",
    ),
    "own_limits": {
        "type": "array",
        "description": "which of them are its own",
        "items": {"enum": list(LIMIT_NAMES)},
    },
    "principals": {"type": "array", "description": "who may act for it", "items": TEXT},
}

_LOAD = object_of(
    {
        "count": {"type": "integer", "description": "schedules that there are"},
        "fires_per_minute": {
            "type": "number",
            "description": "of all that go on, each in an hour in which it fires most, about",
        },
        **{
            name: {"anyOf": [LIMIT_SCHEMAS[name], {"const": UNLIMITED}]}
            for name in ("max_schedules", "max_fires_per_minute")
        },
    },
    description="what its schedules come to, and what they may",
)
_CAP = object_of(
    {
        "execution_rate": {"type": "number", "description": "a second"},
        "waiting": {
            "type": ["integer", "null"],
            "description": "jobs that wait for it by the end of this day, about; null where that cannot be known just now",
        },
        "waiting_days": {"type": ["number", "null"], "description": "how long it takes to serve them"},
        "is_exceeded_by_schedules": {
            "type": "boolean",
            "description": "whether the schedules fire more than it serves: then what waits only grows, and they do not count in `waiting`",
        },
    },
    description="of a tenant with an `execution_rate`",
)
_DELETION = object_of(
    {
        "part": {"description": "what is being deleted", "enum": [*(part.value for part in Part), None]},
        "deleted": object_of(
            {part.value: {"type": "integer"} for part in Part}, description="rows and objects so far, by parts"
        ),
        "ledger": {"enum": ["scan", "ttl"]},
    },
    description="while it is being deleted",
)
_DAY = {"type": "string", "format": "date", "description": "in UTC"}
_FIGURES: dict[str, Any] = {
    "submitted": {"type": "integer", "description": "jobs that were handed in"},
    "executed": {"type": "integer", "description": "attempts that were called"},
    "succeeded": {"type": "integer"},
    "failed": {"type": "integer", "description": "for good"},
    "units": {"type": "integer", "description": "write units of the tables"},
    "bytes": {"type": "integer", "description": "of the payloads that were handed in"},
}

SCHEMAS: dict[str, Any] = {
    "Tenant": object_of(
        {**_TENANT, **_STATUS, "schedules": _LOAD, "deletion": _DELETION}, required=[*_TENANT, *_ALWAYS]
    ),
    "Tenants": object_of(
        {
            "tenants": {"type": "array", "items": {"$ref": REFERENCE.format(model="Tenant")}},
            "next": {"type": ["string", "null"], "description": "`after` of the next page"},
        }
    ),
    "StageStatus": object_of(_STATUS, required=_ALWAYS),
    "Usage": object_of(
        {
            "tenant": TEXT,
            "from": _DAY,
            "until": _DAY,
            "days": {
                "type": "array",
                "description": "days on which there was anything, in order",
                "items": object_of({"day": _DAY, **_FIGURES}),
            },
            "total": object_of(_FIGURES),
            "schedules": _LOAD,
            "cap": _CAP,
        },
        required=["tenant", "from", "until", "days", "total", "schedules"],
    ),
}

_VERBS = {
    "pause": ("pauseTenant", "Let nothing of a tenant be promoted or called."),
    "resume": ("resumeTenant", "Let a tenant that is paused, or drained, go on."),
    "drain": ("drainTenant", "Take nothing in for a tenant any more; what it has runs."),
}


def tenant_paths() -> dict[str, Any]:
    """The routes of tenants; all but that of one tenant are for operators."""
    names = [parameter("path", "id", TEXT, is_required=True)]
    answers = {200: "Tenant"}
    return {
        "/v1/tenants": {
            "get": operation(
                "listTenants",
                "Tell the tenants that have values of their own, page by page.",
                answers={200: "Tenants"},
                parameters=query_of(TenantsQuery),
            )
        },
        "/v1/tenants/{id}": {
            "parameters": names,
            "get": operation("getTenant", "Tell any tenant as it stands.", answers=answers),
            "put": operation(
                "putTenant", "Replace all of a tenant but its status.", body="TenantBody", answers=answers
            ),
            "patch": operation("patchTenant", "Change parts of a tenant.", body="TenantPatchBody", answers=answers),
            "delete": operation(
                "deleteTenant",
                "Begin to delete a tenant with all that there is of it. Nothing of it is taken in from `in_effect_by` on.",
                answers={202: "Tenant"},
                parameters=query_of(DeletionQuery),
            ),
        },
        "/v1/tenants/{id}/usage": {
            "parameters": names,
            "get": operation(
                "getUsage",
                "Tell what a tenant has used by UTC days, about.",
                answers={200: "Usage"},
                parameters=query_of(UsageQuery),
            ),
        },
        **{
            f"/v1/tenants/{{id}}:{verb}": {
                "parameters": names,
                "post": operation(name, summary, body="TurnBody", is_body_required=False, answers=answers),
            }
            for verb, (name, summary) in _VERBS.items()
        },
        "/v1/pause": {
            "post": operation(
                "pauseStage",
                "Let nothing of any tenant be promoted or called.",
                body="TurnBody",
                is_body_required=False,
                answers={200: "StageStatus"},
            )
        },
        "/v1/resume": {
            "post": operation(
                "resumeStage",
                "End the pause of all tenants.",
                body="TurnBody",
                is_body_required=False,
                answers={200: "StageStatus"},
            )
        },
    }
