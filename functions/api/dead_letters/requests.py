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
    Field(description=f"The id of a tenant, or `{NO_TENANT}` for messages that Tickwheel did not write."),
]
_Text = Annotated[str, Field(max_length=2_048)]


class FilterQuery(StrictModel):
    """The dead letters that match every condition."""

    tenant: _Tenant
    since: Annotated[
        Instant | None,
        Field(description="Dead letters from this instant on, at most 90 days ago. Default: 24 hours before `until`."),
    ] = None
    until: Annotated[Instant | None, Field(description="Dead letters before this instant. Default: now.")] = None
    target: Annotated[
        _Text, Field(description="The target of the job, or its destination such as `https://example.com`.")
    ] = ""
    error_class: Annotated[_Text, Field(description="An error class such as `timeout`.")] = ""
    schedule: Annotated[_Text, Field(description="The id of the schedule that the job was a fire of.")] = ""
    tag: Annotated[_Text, Field(description="One of the job's tags.")] = ""
    after: Annotated[_Text, Field(description="The `next` of the previous response.")] = ""

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
    """The dead letters to purge. dry_run: count them, return the first ones, and change nothing."""

    dry_run: Annotated[bool, Field(strict=True)] = False


class ReplayBody(
    PurgeBody, json_schema_extra={"examples": [{"tenant": "acme", "target": "https://example.com", "rate": 5}]}
):
    """The dead letters to replay."""

    rate: Annotated[
        float | None,
        Field(ge=0.01, le=10_000, strict=True, description="The number of jobs per second. Default: all at once."),
    ] = None
