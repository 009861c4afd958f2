"""The part of the API's description that is about tenants, made from the models that check its requests."""

from __future__ import annotations

from typing import Any

from functions.api.http.openapi_parts import (
    TEXT,
    operation,
    parameter,
    query_of,
)
from functions.api.tenants.requests import (
    DeletionQuery,
    TenantsQuery,
    UsageQuery,
)

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
