"""Count the fires of many schedules minute by minute, so that herds can be seen before they run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import islice, takewhile
from typing import Annotated, Any, cast

from pydantic import BaseModel, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from functions.api.http.problems import Misshapen, problem_of
from functions.api.http.requests import Duration, Instant, Rules, StrictModel, Tenant
from functions.api.schedules.answers import FireCount, FireCounts, fire_counts_body
from functions.api.schedules.bodies import read_schedule
from functions.api.schedules.requests import MOST_SCHEDULES, After
from functions.domain.errors import InvalidInput, InvalidSchedule, TooCostly
from functions.domain.instants import MILLISECOND, from_seconds, to_seconds
from functions.domain.schedules.default_spread import takes_spread, with_default_spread
from functions.domain.schedules.firing import fires
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.spread import DefaultSpread
from functions.domain.schedules.step_budget import STEPS_OF_A_REQUEST, Budget
from functions.domain.schedules.validation import check_consistency, check_new

MOST_COUNTED = 3_000
"""Fires of one schedule: one a minute for two days, and then some."""

MOST_HOURS = 48

STEPS_OF_A_DEFINITION = 300
"""What it costs to read one."""

_MINUTE = timedelta(minutes=1)
_DIGITS = len(str(MOST_SCHEDULES))


class FireCountsBody(StrictModel, json_schema_extra={"examples": [{"tenant": "acme", "hours": 24}]}):
    """The schedules whose fires are counted, either those of a tenant or the given definitions, and the time range.

    spread: assumed for schedules without a spread of their own, if their rule supports one, in place of a default that they took.
    """

    tenant: Annotated[Tenant | None, Field(description="The tenant whose schedules are counted, in pages of 100.")] = (
        None
    )
    after: Annotated[After, Field(description="The `next` of the previous page.")] = ""
    schedules: Annotated[
        tuple[dict[str, Any], ...] | None,
        Field(
            min_length=1,
            max_length=MOST_SCHEDULES,
            validate_default=True,
            description="Schedule definitions, each with its tenant and id.",
        ),
    ] = None
    """The next page is asked for with the same ones, and begins behind as many as its `after` says."""
    start: Annotated[
        Instant | None, Field(description="The start of the time range. Its minute is minute 0. Default: now.")
    ] = None
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


def count_given(
    body: FireCountsBody,
    rules: Rules,
    *,
    start: datetime,
    default_spread: Callable[[str], DefaultSpread | None] = lambda _: None,
) -> FireCounts:
    """The fires of the definitions of a body. Raises InvalidSchedule for an `after` that no answer had.

    default_spread: of a tenant, which a new schedule of it takes.
    """
    given = body.schedules or ()
    first = int(body.after) if body.after.isdecimal() and len(body.after) <= _DIGITS else -1
    if body.after and not 0 < first < len(given):
        raise InvalidSchedule("is no `next` of an answer about these definitions", field="after", value=body.after)
    asked = [(definition, partial(_read, definition, rules, default_spread)) for definition in given[max(first, 0) :]]
    results = _counted(asked, body, start)
    end = max(first, 0) + len(results)
    return fire_counts_body(results, start=start, after=str(end) if end < len(given) else None)


def count_stored(
    page: Sequence[Schedule], body: FireCountsBody, *, start: datetime, goes_on_after: str | None
) -> FireCounts:
    """The fires of a page of schedules. goes_on_after: where the page behind it begins."""
    named = [({"tenant": found.tenant, "id": found.schedule_id}, lambda _, found=found: found) for found in page]
    results = _counted(named, body, start)
    after = goes_on_after if len(results) == len(page) else page[len(results) - 1].schedule_id
    return fire_counts_body(results, start=start, after=after)


def minutes_of(schedule: Schedule, *, start: datetime, hours: int, budget: Budget | None = None) -> dict[int, int]:
    """How many fires each minute has, by its distance from `start` in minutes; those without are left out.

    budget: see `fires`. Raises InvalidSchedule for more than MOST_COUNTED, and where fires depend on runs; TooCostly.
    """
    if schedule.is_end_to_start:
        raise InvalidSchedule("cannot be counted: its fires depend on its runs", field="every.from", value="end")
    end = start + timedelta(hours=hours)
    upcoming = takewhile(lambda fire: fire.at < end, fires(schedule, after=start - MILLISECOND, budget=budget))
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
    if spread is None or schedule.says_spread or not takes_spread(schedule):
        return schedule
    return replace(schedule, spread=spread, spread_from=None)


def start_of(instant: datetime) -> datetime:
    """The begin of an instant's minute."""
    return from_seconds(to_seconds(instant) // 60 * 60)


def _counted(
    asked: Sequence[tuple[dict[str, Any], Callable[[Budget], Schedule]]], body: FireCountsBody, start: datetime
) -> list[FireCount]:
    """Results for as many as one budget pays for; at least for one, which may be that it takes more than that."""
    budget = Budget(STEPS_OF_A_REQUEST)
    results: list[FireCount] = []
    for named, find in asked:
        names = {name: named[name] for name in ("tenant", "id") if isinstance(named.get(name), str)}
        count = cast("FireCount", names)
        try:
            budget.spend(STEPS_OF_A_DEFINITION)
            schedule = spread_out(find(budget), body.spread)
            minutes = minutes_of(schedule, start=start, hours=body.hours, budget=budget)
        except TooCostly as error:
            if results:
                break
            count["problem"] = problem_of(error)
        except (InvalidInput, Misshapen) as error:
            count["problem"] = problem_of(error)
        else:
            count["minutes"] = {str(minute): fired for minute, fired in minutes.items()}
        results.append(count)
        if budget.left <= 0:
            break
    return results


def _read(
    given: dict[str, Any], rules: Rules, default_spread: Callable[[str], DefaultSpread | None], budget: Budget
) -> Schedule:
    definition = {name: value for name, value in given.items() if name not in ("tenant", "id")}
    try:
        name = _Name.model_validate(given)
    except ValidationError as error:
        raise Misshapen(InvalidSchedule, error) from None
    schedule = read_schedule(definition, rules).schedule(name.tenant, name.id)
    check_new(schedule, before=None)
    check_consistency(schedule, budget=budget)
    return with_default_spread(schedule, default_spread(name.tenant), budget=budget)


class _Name(BaseModel):
    """The name of a definition: the rest of it is read by itself."""

    tenant: Tenant
    id: str
