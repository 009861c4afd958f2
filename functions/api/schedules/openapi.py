"""The part of the API's description that is about schedules, made from the models that check its requests."""

from __future__ import annotations

from typing import Any

from functions.api.http.answers import UNTRACKED
from functions.api.http.openapi_parts import INSTANT, KEY, REFERENCE, TEXT, object_of, operation, parameter, query_of
from functions.api.schedules.bodies import ScheduleBody
from functions.api.schedules.fire_counts import MOST_SCHEDULES, FireCountsBody
from functions.api.schedules.requests import (
    BackfillBody,
    ChangeQuery,
    PageQuery,
    PauseBody,
    PreviewQuery,
    ResumeBody,
    TenantQuery,
    TriggerBody,
)
from functions.domain.lifecycle import State
from functions.domain.schedules.schedule import SCHEDULE_ID, Mover
from functions.domain.schedules.state import SkipReason, Status

MODELS = (ScheduleBody, PauseBody, ResumeBody, TriggerBody, BackfillBody, FireCountsBody)

_COUNT = {"type": "integer", "minimum": 0}
_STATES = [*(state.value for state in State if state is not State.ABSENT), UNTRACKED]
_FIRES = {"type": "array", "items": {"$ref": REFERENCE.format(model="Fire")}}
_SCHEDULES = {"type": "array", "items": {"$ref": REFERENCE.format(model="Schedule")}}

_STANDING: dict[str, Any] = {
    "id": TEXT,
    "tenant": TEXT,
    "version": {"type": "integer", "description": "grows with every change"},
    "status": {"enum": [status.value for status in Status]},
    "note": {"type": "string", "description": "why it was paused or resumed"},
    "created_at": INSTANT,
    "changed_at": INSTANT,
    "next_fire": object_of({"at": INSTANT, "nominal_at": INSTANT}),
    "last_fire": INSTANT,
    "last_outcome": {"enum": _STATES},
    "fires": {**_COUNT, "description": "that became runs"},
    "misfires": {**_COUNT, "description": "that were found more than a minute late"},
    "skips": {
        "type": "object",
        "description": "fires that became no runs, by reason",
        "propertyNames": {"enum": [reason.value for reason in SkipReason]},
        "additionalProperties": _COUNT,
    },
    "last_skip": object_of({"reason": {"enum": [reason.value for reason in SkipReason]}, "at": INSTANT}),
    "failures_in_a_row": {**_COUNT, "description": "counted where pause_after_failures is set"},
    "runs": {
        "type": "array",
        "description": "the last runs, newest first; empty in a list",
        "items": {"$ref": REFERENCE.format(model="Run")},
    },
}
_MAY_BE_UNKNOWN = {"next_fire", "last_fire", "last_outcome", "last_skip"}

_RUN = object_of(
    {
        "fire_at": INSTANT,
        "job_id": TEXT,
        "state": {"enum": _STATES},
        "attempt": _COUNT,
        "error": TEXT,
        "settled_at": INSTANT,
    },
    required=["fire_at", "job_id", "state", "attempt"],
)
_FIRE = object_of(
    {
        "at": INSTANT,
        "local": {"type": "string", "format": "date-time", "description": "the same instant in the schedule's zone"},
        "offset": {"type": "string", "examples": ["+01:00"]},
        "marks": {
            "type": "array",
            "description": "what makes the fire differ from what its rule says",
            "items": object_of({"by": {"enum": [mover.value for mover in Mover]}, "reason": TEXT}),
        },
    }
)
_BACKFILL = object_of(
    {
        "backfill": {"type": "string", "description": "its name; the same Idempotency-Key gives the same"},
        "count": _COUNT,
        "first": INSTANT,
        "last": INSTANT,
        "ends_at": {"type": "string", "format": "date-time", "description": "when its last run is due"},
        "jobs": {"type": "array", "items": TEXT},
        "next": {
            "type": "string",
            "description": "to go on with as after, where not all could come in at the tenant's submission_rate or within its max_pending",
        },
    },
    required=["backfill", "count", "jobs"],
)
_FIRE_COUNTS = object_of(
    {
        "start": INSTANT,
        "results": {
            "type": "array",
            "maxItems": MOST_SCHEDULES,
            "description": "for definitions: one each, in their order; for a tenant: one for each active schedule",
            "items": object_of(
                {
                    "tenant": TEXT,
                    "id": TEXT,
                    "minutes": {
                        "type": "object",
                        "description": "fires by the minute, counted from start; minutes without fires are left out",
                        "additionalProperties": _COUNT,
                    },
                    "problem": {"$ref": REFERENCE.format(model="Problem")},
                },
                required=[],
            ),
        },
        "next": {"type": ["string", "null"], "description": "`after` of the next page, which has the same definitions"},
    }
)


def _schedule_schema() -> dict[str, Any]:
    """What stands there, and the definition as it is stored: its properties are those of ScheduleBody."""
    definition = ScheduleBody.model_json_schema(ref_template=REFERENCE)["properties"]
    required = [name for name in _STANDING if name not in _MAY_BE_UNKNOWN]
    properties = {**definition, **_STANDING}
    return object_of(properties, required=[*required, "job"], description="what has its usual value is left out")


SCHEMAS: dict[str, Any] = {
    "SchedulePatch": {
        "type": "object",
        "description": "RFC 7396: fields of a ScheduleBody, null to remove one; a rule takes the place of the rule",
    },
    "Schedule": _schedule_schema(),
    "Schedules": object_of({"schedules": _SCHEDULES, "next": {"type": ["string", "null"]}}),
    "Run": _RUN,
    "Fire": _FIRE,
    "Fires": object_of(
        {"fires": _FIRES, "next": {"type": ["string", "null"], "description": "`after` of the fires that follow"}}
    ),
    "Difference": object_of({"before": _FIRES, "after": _FIRES}),
    "Deleted": object_of({"id": TEXT, "tenant": TEXT, "status": {"enum": [Status.DELETED.value]}}),
    "Triggered": object_of({"job": TEXT}),
    "Backfill": _BACKFILL,
    "FireCounts": _FIRE_COUNTS,
}


def schedule_paths() -> dict[str, Any]:
    """The routes of schedules. A verb belongs to the path of its schedule: `/v1/schedules/nightly:pause`."""
    schedule_id = parameter("path", "id", {"type": "string", "pattern": f"^{SCHEDULE_ID.pattern}$"}, is_required=True)
    change, tenant = query_of(ChangeQuery), query_of(TenantQuery)
    return {
        "/v1/schedules": {
            "get": operation(
                "listSchedules",
                "Tell a tenant's schedules, page by page.",
                answers={200: "Schedules"},
                parameters=query_of(PageQuery),
            )
        },
        "/v1/schedules:fires": {
            "post": operation(
                "countFires",
                f"Count the fires of up to {MOST_SCHEDULES} schedules by the minute.",
                body="FireCountsBody",
                answers={200: "FireCounts"},
            )
        },
        "/v1/schedules/{id}": {
            "parameters": [schedule_id],
            "put": operation(
                "putSchedule",
                "Create or replace a schedule; or, with dry_run, tell what that would change.",
                body="ScheduleBody",
                answers={200: "Schedule | Difference", 201: "Schedule"},
                parameters=change,
            ),
            "patch": operation(
                "patchSchedule",
                "Change parts of a schedule; or, with dry_run, tell what that would change.",
                body="SchedulePatch",
                body_type="application/merge-patch+json",
                answers={200: "Schedule | Difference"},
                parameters=change,
            ),
            "get": operation(
                "getSchedule", "Tell a schedule as it stands.", answers={200: "Schedule"}, parameters=tenant
            ),
            "delete": operation("deleteSchedule", "Remove a schedule.", answers={200: "Deleted"}, parameters=tenant),
        },
        **{f"/v1/schedules/{{id}}:{verb}": {"parameters": [schedule_id], **item} for verb, item in _verbs().items()},
    }


def _verbs() -> dict[str, Any]:
    tenant = query_of(TenantQuery)
    return {
        "preview": {
            "get": operation(
                "previewSchedule",
                "Tell the next fires of a schedule.",
                answers={200: "Fires"},
                parameters=query_of(PreviewQuery),
            )
        },
        "pause": {
            "post": operation(
                "pauseSchedule",
                "Stop a schedule until it is resumed.",
                body="PauseBody",
                is_body_required=False,
                answers={200: "Schedule"},
                parameters=tenant,
            )
        },
        "resume": {
            "post": operation(
                "resumeSchedule",
                "Go on from now.",
                body="ResumeBody",
                is_body_required=False,
                answers={200: "Schedule"},
                parameters=tenant,
            )
        },
        "trigger": {
            "post": operation(
                "triggerSchedule",
                "Run a schedule once, now.",
                body="TriggerBody",
                is_body_required=False,
                answers={202: "Triggered"},
                parameters=[*tenant, KEY],
            )
        },
        "backfill": {
            "post": operation(
                "backfillSchedule",
                "Run the fires of a time range that has passed; or, with dry_run, tell them.",
                body="BackfillBody",
                answers={200: "Backfill", 202: "Backfill"},
                parameters=[*tenant, KEY],
            )
        },
    }
