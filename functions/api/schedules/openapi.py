"""The part of the API's description that is about schedules, made from the models that check its requests."""

from __future__ import annotations

from typing import Any

from functions.api.http.openapi_parts import KEY, operation, parameter, query_of
from functions.api.schedules.fire_counts import MOST_SCHEDULES
from functions.api.schedules.requests import (
    ChangeQuery,
    PageQuery,
    PreviewQuery,
    TenantQuery,
)
from functions.domain.schedules.schedule import SCHEDULE_ID


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
