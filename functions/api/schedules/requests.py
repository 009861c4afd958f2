"""What is asked of a schedule beside its definition: the bodies of its verbs, and queries."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, InstanceOf, WithJsonSchema

from functions.api.http.requests import Instant, StrictModel, Tenant, read_instant
from functions.domain.jobs.overlap import Overlap
from functions.domain.schedules.preview import PreviewPosition
from functions.domain.schedules.schedule import SCHEDULE_ID

MAX_NOTE = 500
MOST_SHOWN = 100
"""Fires of one preview."""

MOST_SCHEDULES = 100
"""Schedules whose fires one request counts."""
_GOES_ON = re.compile(r"(.{1,40})~([0-9]{1,9})", re.ASCII)


After = Annotated[
    str,
    Field(pattern=f"^({SCHEDULE_ID.pattern})?$", description="The `next` of the previous page: the id of a schedule."),
]
"""Where a page of schedules begins."""


class PauseBody(StrictModel, json_schema_extra={"examples": [{"note": "maintenance"}]}):
    """Why a schedule is paused."""

    note: Annotated[str, Field(max_length=MAX_NOTE)] = ""


class ResumeBody(PauseBody, json_schema_extra={"examples": [{"note": "maintenance is over"}]}):
    """Why a schedule is resumed."""


class TriggerBody(StrictModel, json_schema_extra={"examples": [{"overlap": "allow"}]}):
    """One run of a schedule now."""

    overlap: Annotated[
        Overlap | None, Field(description="The overlap policy to use instead of that of the schedule.")
    ] = None


class BackfillBody(
    TriggerBody,
    json_schema_extra={
        "examples": [{"start": "2026-01-01T00:00:00Z", "end": "2026-01-08T00:00:00Z", "per_minute": 10}]
    },
):
    """The time range to run, from `start` (inclusive) to `end` (exclusive), and its rate. The runs start now."""

    start: Instant
    end: Instant
    per_minute: Annotated[
        float, Field(ge=0.01, le=10_000, strict=True, description="The number of runs started per minute.")
    ] = 60
    dry_run: Annotated[bool, Field(strict=True, description="Whether to report what would run, and run nothing.")] = (
        False
    )
    after: Annotated[
        str, Field(max_length=80, strict=True, description="The `next` of the previous response, to continue after it.")
    ] = ""


class TenantQuery(StrictModel):
    """The tenant of the schedule."""

    tenant: Tenant


class ChangeQuery(TenantQuery):
    """dry_run: report the next `count` fires before and after the change, and change nothing."""

    dry_run: bool = False
    count: Annotated[int, Field(ge=1, le=MOST_SHOWN)] = 10


def _place(value: Any) -> PreviewPosition:
    found = _GOES_ON.fullmatch(value) if isinstance(value, str) else None
    return PreviewPosition(read_instant(found[1]), int(found[2])) if found else PreviewPosition(read_instant(value))


class PreviewQuery(TenantQuery):
    """The next `count` fires, from now or after an instant."""

    count: Annotated[int, Field(ge=1, le=MOST_SHOWN)] = 10
    after: (
        Annotated[
            InstanceOf[PreviewPosition],
            BeforeValidator(_place),
            WithJsonSchema(
                {
                    "type": "string",
                    "description": "An instant, or the `next` of the previous page.",
                    "examples": ["2027-01-31T09:00:00+01:00"],
                }
            ),
        ]
        | None
    ) = None


class PageQuery(TenantQuery):
    """Schedules after an id, in the order of their ids."""

    limit: Annotated[int, Field(ge=1, le=500)] = 100
    after: After = ""
