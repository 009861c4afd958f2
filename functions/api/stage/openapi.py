"""The part of the API's description that is about the health of the stage."""

from __future__ import annotations

from typing import Any

from functions.api.http.openapi_parts import INSTANT, REFERENCE, TEXT, object_of, operation
from functions.api.stage.answers import MOST_TENANTS
from functions.api.stage.health import MOST_BREAKERS
from functions.api.stage.pulse_openapi import PULSE
from functions.domain.jobs.job import Priority
from functions.domain.stage.health import MOST_NAMES, MOST_WORST, HealthStatus
from functions.domain.tenants.plan import TenantStatus

_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_COUNT_OR_NULL: dict[str, Any] = {"type": ["integer", "null"], "minimum": 0}
_INSTANT_OR_NULL: dict[str, Any] = {"type": ["string", "null"], "format": "date-time"}


def _list_of(items: dict[str, Any], *, most: int) -> dict[str, Any]:
    return {"type": "array", "maxItems": most, "items": items}


_NAMES = object_of({"count": _COUNT, "first": _list_of(TEXT, most=MOST_NAMES)})
_CLASS = object_of(
    {
        "priority": {"enum": [priority.name.lower() for priority in Priority]},
        "depth": {**_COUNT_OR_NULL, "description": "messages in its ready queue: visible, delayed and in flight"},
        "waiting": {**_COUNT_OR_NULL, "description": "those that wait for a worker"},
        "budget": {**_COUNT_OR_NULL, "description": "jobs that a tick of one shard may promote"},
        "lag_seconds": {**_COUNT_OR_NULL, "description": "when the sweeper published last"},
        "is_shed": {"type": ["boolean", "null"], "description": "its submissions are refused"},
        "oldest_bucket_at": {**_INSTANT_OR_NULL, "description": "the start of the oldest bucket that is not drained"},
        "age_seconds": {**_COUNT, "description": "since when that bucket has been due"},
    }
)
_SHARD = object_of(
    {
        "shard": _COUNT,
        "scanned_at": _INSTANT_OR_NULL,
        "oldest_bucket_at": INSTANT,
        "age_seconds": _COUNT,
        "behind": {**_NAMES, "description": "cursors of tenants' own; the furthest behind first"},
        "held": {**_NAMES, "description": "those of tenants that are paused or over their cap"},
    }
)
_TENANT = object_of(
    {
        "tenant": TEXT,
        "status": {"enum": [TenantStatus.PAUSED, TenantStatus.DRAINING, TenantStatus.DELETING]},
        "note": TEXT,
        "since": _INSTANT_OR_NULL,
    }
)

SCHEMAS: dict[str, Any] = {
    "Health": object_of(
        {
            "status": {"enum": [status.value for status in HealthStatus]},
            "reasons": {"type": "array", "description": "sentences; none where it is ok", "items": TEXT},
            "at": INSTANT,
            "classes": _list_of(_CLASS, most=len(Priority)),
            "shards": object_of(
                {
                    "count": _COUNT,
                    "unscanned": object_of({"count": _COUNT, "first": _list_of(_COUNT, most=MOST_NAMES)}),
                    "cursors_behind": _COUNT,
                    "cursors_held": _COUNT,
                    "worst": _list_of(_SHARD, most=MOST_WORST),
                }
            ),
            "sweeper": object_of(
                {
                    "published_at": _INSTANT_OR_NULL,
                    "is_fresh": {"type": "boolean"},
                    "audited_to": _INSTANT_OR_NULL,
                    "audit_age_seconds": {"type": ["integer", "null"]},
                }
            ),
            "breakers": object_of(
                {
                    "count": {**_COUNT, "description": "that are not closed, about; no more than 1,000 are counted"},
                    "first": _list_of({"$ref": REFERENCE.format(model="Breaker")}, most=MOST_BREAKERS),
                }
            ),
            "pause": object_of({"is_paused": {"type": "boolean"}, "note": TEXT, "since": _INSTANT_OR_NULL}),
            "tenants": object_of(
                {"count": _COUNT, "first": _list_of(_TENANT, most=MOST_TENANTS)},
                description="those that are paused, draining or being deleted",
            ),
            "pulse": PULSE,
        },
        description="what is null is not known",
    )
}


def health_paths() -> dict[str, Any]:
    """The route of the stage's health; it is for operators."""
    return {"/v1/health": {"get": operation("getHealth", "Tell how the stage does.", answers={200: "Health"})}}
