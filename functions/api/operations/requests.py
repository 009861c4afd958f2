"""What is asked of operations: the body of a new one, and the query of their list."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo, WithJsonSchema, field_validator
from pydantic_core import PydanticCustomError

from functions.api.http.requests import HORIZON, Duration, Instant, StrictModel, Tag, Tenant, checked, obeying
from functions.api.operations.manager import OPERATION_ID, Asked
from functions.domain.instants import parse_duration
from functions.domain.jobs.job import DOT_SEGMENTS
from functions.domain.operations.operation import MAX_RATE, MIN_RATE, USUAL_RATE, OperationKind, Shift
from functions.domain.schedules.schedule import check_schedule_id
from functions.domain.targets.targets import parse_target

_FILTER = ("due_from", "due_until", "target", "schedule", "tag")


def _signed_duration(value: Any) -> timedelta:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise PydanticCustomError("duration", "must be seconds, or an ISO 8601 duration such as -PT90S")
    if isinstance(value, str):
        return -checked(parse_duration, value[1:]) if value.startswith("-") else checked(parse_duration, value)
    return -checked(parse_duration, -value) if value < 0 else checked(parse_duration, value)


_Target = Annotated[str, obeying(parse_target)]
_ScheduleId = Annotated[str, obeying(check_schedule_id)]
_SignedDuration = Annotated[
    timedelta,
    BeforeValidator(_signed_duration),
    WithJsonSchema(
        {
            "anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^-?P"}],
            "description": "A number of seconds, or an ISO 8601 duration without years and months. A negative value means earlier.",
            "examples": [-90, "PT1H30M", "-P1D"],
        }
    ),
]


class OperationBody(
    StrictModel, json_schema_extra={"examples": [{"tenant": "acme", "action": "cancel", "tag": "newsletter"}]}
):
    """An action, and the jobs of a tenant that it applies to: those that match every condition."""

    tenant: Tenant
    action: OperationKind
    due_from: Annotated[
        Instant | None,
        Field(description="Jobs due at or after this instant, at most 14 days ago. Default: an hour ago."),
    ] = None
    due_until: Annotated[Instant | None, Field(description="Jobs due before this instant. Default: no limit.")] = None
    target: Annotated[
        _Target | None, Field(description="The target of the job, or its destination such as `https://example.com`.")
    ] = None
    schedule: Annotated[_ScheduleId | None, Field(description="The id of the schedule whose fires are selected.")] = (
        None
    )
    tag: Annotated[Tag | None, Field(description="One of the job's tags.")] = None
    all: Annotated[
        bool,
        Field(
            strict=True,
            validate_default=True,
            description="Must be `true` if there is no condition besides the tenant.",
        ),
    ] = False
    by: Annotated[
        _SignedDuration | None, Field(description="For `reschedule`: how much later or earlier the jobs run.")
    ] = None
    to: Annotated[
        Instant | None,
        Field(
            validate_default=True,
            description="For `reschedule`: the instant at which the jobs run, or begin to run if `spread` is set.",
        ),
    ] = None
    spread: Annotated[
        Duration,
        Field(
            description="For `reschedule`: the length of time, from `to` on, over which the jobs are distributed evenly."
        ),
    ] = timedelta(0)
    rate: Annotated[
        float | None,
        Field(
            ge=MIN_RATE,
            le=MAX_RATE,
            strict=True,
            description=f"For `run_now`: the number of jobs per second. Default: {USUAL_RATE:g}.",
        ),
    ] = None
    dry_run: Annotated[
        bool, Field(strict=True, description="Whether to count the jobs, return the first ones, and change nothing.")
    ] = False

    @field_validator("action")
    @classmethod
    def _can_be_downloaded(cls, value: OperationKind, info: ValidationInfo) -> OperationKind:
        if value is OperationKind.EXPORT and info.data.get("tenant") in DOT_SEGMENTS:
            raise PydanticCustomError("export", "is no use for this tenant: no URL of its files can hold its name")
        return value

    @field_validator("all")
    @classmethod
    def _is_selected(cls, value: bool, info: ValidationInfo) -> bool:
        # A part of the filter that was refused is a problem of its own.
        is_unsaid = all(name in info.data and info.data[name] is None for name in _FILTER)
        if not value and is_unsaid:
            raise PydanticCustomError(
                "all",
                "must be true to mean all jobs of the tenant; or say which, by {fields}",
                {"fields": ", ".join(_FILTER)},
            )
        return value

    @field_validator("by", "to", "spread", "rate")
    @classmethod
    def _belongs_to_the_action(cls, value: Any, info: ValidationInfo) -> Any:
        action = info.data.get("action")
        needed = OperationKind.RUN_NOW if info.field_name == "rate" else OperationKind.RESCHEDULE
        if value and action not in (None, needed):
            raise PydanticCustomError("action", "is for the action {needed} only", {"needed": needed.value})
        return value

    @field_validator("by", "spread")
    @classmethod
    def _is_within_reach(cls, value: timedelta | None) -> timedelta | None:
        if value is not None and abs(value) > HORIZON:
            raise PydanticCustomError("horizon", "is more than ten years")
        return value

    @field_validator("by")
    @classmethod
    def _shifts(cls, value: timedelta | None) -> timedelta | None:
        if value is not None and not value:
            raise PydanticCustomError("by", "must not be 0")
        return value

    @field_validator("to")
    @classmethod
    def _is_the_one_time_asked_for(cls, value: Any, info: ValidationInfo) -> Any:
        if info.data.get("action") is not OperationKind.RESCHEDULE or "by" not in info.data:
            return value
        if (value is None) is (info.data["by"] is None):
            raise PydanticCustomError("to", "or by is needed for a reschedule, and not both")
        return value

    @field_validator("spread")
    @classmethod
    def _begins_somewhere(cls, value: timedelta, info: ValidationInfo) -> timedelta:
        if value and "to" in info.data and info.data["to"] is None:
            raise PydanticCustomError("spread", "goes with to only: with by the jobs keep their distances")
        return value

    def asked(self) -> Asked:
        """The request of the rules."""
        shift = Shift(by=self.by, to=self.to, spread=self.spread) if self.action is OperationKind.RESCHEDULE else None
        return Asked(
            **self.by_name("tenant", "action", "due_from", "due_until", "rate", "dry_run"),
            target=self.target or "",
            schedule_id=self.schedule or "",
            tag=self.tag or "",
            shift=shift,
        )


class OperationsQuery(StrictModel):
    """The operations of a tenant after an id, in the order of their ids."""

    tenant: Tenant
    limit: Annotated[int, Field(ge=1, le=500)] = 100
    after: Annotated[
        str, Field(pattern=f"^({OPERATION_ID.pattern})?$", description="The `next` of the previous page.")
    ] = ""
