"""Count the fires of many schedules minute by minute, so that herds can be seen before they run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from functions.api.problems import Misshapen, problem_of
from functions.api.requests import Duration, Instant, Rules, Tenant
from functions.api.schedule_bodies import read_schedule
from functions.domain.errors import InvalidInput, InvalidSchedule
from functions.domain.firing import fires
from functions.domain.instants import MILLISECOND, from_seconds, to_seconds
from functions.domain.schedule import At, Poisson, Schedule
from functions.domain.sense import check_sense

MOST_COUNTED = 3_000
"""Fires of one schedule: one a minute for two days, and then some."""

MOST_SCHEDULES = 100
MOST_HOURS = 48

_MINUTE = timedelta(minutes=1)


class FireCountsBody(BaseModel):
    """Which schedules, either a tenant's own or definitions, and from when to when.

    spread: as if those had it that have none of their own, where a spread has a meaning.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tenant: Annotated[Tenant | None, Field(description="whose schedules, in pages of 100")] = None
    after: Annotated[str, Field(description="with tenant: the `next` of the page before")] = ""
    schedules: Annotated[
        tuple[dict[str, Any], ...] | None,
        Field(
            min_length=1,
            max_length=MOST_SCHEDULES,
            validate_default=True,
            description="definitions, each with its tenant and id",
        ),
    ] = None
    start: Annotated[Instant | None, Field(description="its minute is minute 0; without it: now")] = None
    hours: Annotated[int, Field(ge=1, le=MOST_HOURS, strict=True)] = 24
    spread: Duration | None = None

    @field_validator("schedules")
    @classmethod
    def _is_the_one_way_asked_for(cls, value: Any, info: ValidationInfo) -> Any:
        tenant = info.data.get("tenant")
        if value is None and tenant is None and "tenant" in info.data:
            raise PydanticCustomError("schedules", "must be given, or tenant instead")
        if value is not None and tenant is not None:
            raise PydanticCustomError("schedules", "excludes tenant: give one of them")
        return value


def count_given(body: FireCountsBody, rules: Rules, *, start: datetime) -> list[dict[str, Any]]:
    """A result for each definition of a body, in order: its minutes, or its problem."""
    return [_result(given, lambda given: _read(given, rules), body, start) for given in body.schedules or ()]


def count_stored(schedules: Sequence[Schedule], body: FireCountsBody, *, start: datetime) -> list[dict[str, Any]]:
    """A result for each schedule, in order: its minutes, or its problem."""
    return [
        _result({"tenant": found.tenant, "id": found.schedule_id}, lambda _, found=found: found, body, start)
        for found in schedules
    ]


def minutes_of(schedule: Schedule, *, start: datetime, hours: int) -> dict[int, int]:
    """How many fires each minute has, by its distance from `start` in minutes; those without are left out.

    Raises InvalidSchedule for more than MOST_COUNTED, and where fires depend on runs.
    """
    if schedule.is_end_to_start:
        raise InvalidSchedule("cannot be counted: its fires depend on its runs", field="every.from", value="end")
    end = start + timedelta(hours=hours)
    upcoming = takewhile(lambda fire: fire.at < end, fires(schedule, after=start - MILLISECOND))
    counts = Counter((fire.at - start) // _MINUTE for fire in islice(upcoming, MOST_COUNTED + 1))
    if counts.total() > MOST_COUNTED:
        raise InvalidSchedule(
            f"has more than {MOST_COUNTED} fires in these {hours} hours: ask for fewer hours",
            field="hours",
            value=hours,
        )
    return dict(counts)


def spread_out(schedule: Schedule, spread: timedelta | None) -> Schedule:
    """The schedule as if it had a spread, where it has none of its own and one has a meaning."""
    is_fixed = isinstance(schedule.rule, At | Poisson) or schedule.is_end_to_start
    return schedule if spread is None or schedule.spread or is_fixed else replace(schedule, spread=spread)


def start_of(instant: datetime) -> datetime:
    """The begin of an instant's minute."""
    return from_seconds(to_seconds(instant) // 60 * 60)


def _result(
    named: dict[str, Any], find: Callable[[dict[str, Any]], Schedule], body: FireCountsBody, start: datetime
) -> dict[str, Any]:
    told = {name: named[name] for name in ("tenant", "id") if isinstance(named.get(name), str)}
    try:
        minutes = minutes_of(spread_out(find(named), body.spread), start=start, hours=body.hours)
    except (InvalidInput, Misshapen) as error:
        return {**told, "problem": problem_of(error)}
    return {**told, "minutes": {str(minute): count for minute, count in minutes.items()}}


def _read(given: dict[str, Any], rules: Rules) -> Schedule:
    definition = {name: value for name, value in given.items() if name not in ("tenant", "id")}
    try:
        name = _Name.model_validate(given)
    except ValidationError as error:
        raise Misshapen(InvalidSchedule, error) from None
    schedule = read_schedule(definition, rules).schedule(name.tenant, name.id)
    check_sense(schedule)
    return schedule


class _Name(BaseModel):
    """Of a definition: the rest of it is read by itself."""

    tenant: Tenant
    id: str
