"""What is asked of dead letters: queries, and the bodies of what is done to many of them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from functions.api.dead_letters.finder import DeadLetterFilter
from functions.api.http.requests import Instant, StrictModel, obeying
from functions.domain.far_ring.timer_key import NO_TENANT
from functions.domain.jobs.job import check_tenant

_Tenant = Annotated[
    str,
    obeying(lambda tenant: tenant == NO_TENANT or check_tenant(tenant)),
    Field(description=f"or {NO_TENANT}: what Tickwheel did not write"),
]
_Text = Annotated[str, Field(max_length=2_048)]


class FilterQuery(StrictModel):
    """Which dead letters are selected: all that match every condition."""

    tenant: _Tenant
    since: Annotated[Instant | None, Field(description="without it: 24 hours before until; at most 90 days back")] = (
        None
    )
    until: Annotated[Instant | None, Field(description="letters before; without it: now")] = None
    target: Annotated[_Text, Field(description="of the job, or its destination such as https://example.com")] = ""
    error_class: Annotated[_Text, Field(description="such as timeout")] = ""
    schedule: Annotated[_Text, Field(description="the id of the schedule whose fire it was")] = ""
    tag: Annotated[_Text, Field(description="one of the job's")] = ""
    after: Annotated[_Text, Field(description="the `next` of the answer before")] = ""

    @field_validator("until")
    @classmethod
    def _is_later(cls, value: datetime | None, info: ValidationInfo) -> datetime | None:
        since = info.data.get("since")
        if value is not None and since is not None and value <= since:
            raise PydanticCustomError("until", "must be after since")
        return value

    def wanted(self) -> DeadLetterFilter:
        """The filter of the rules."""
        same = self.by_name("tenant", "since", "until", "target", "error_class", "tag")
        return DeadLetterFilter(**same, schedule_id=self.schedule)


class ListQuery(FilterQuery):
    """Dead letters, newest first."""

    limit: Annotated[int, Field(ge=1, le=500)] = 50


class PurgeBody(
    FilterQuery, json_schema_extra={"examples": [{"tenant": "acme", "error_class": "timeout", "dry_run": True}]}
):
    """Dead letters that are to be forgotten. dry_run: count them, show the first ones, and change nothing."""

    dry_run: Annotated[bool, Field(strict=True)] = False


class ReplayBody(
    PurgeBody, json_schema_extra={"examples": [{"tenant": "acme", "target": "https://example.com", "rate": 5}]}
):
    """Dead letters whose jobs are to run again; with a rate, so many a second."""

    rate: Annotated[
        float | None, Field(ge=0.01, le=10_000, strict=True, description="jobs a second; without it: all at once")
    ] = None
