"""The definition of a schedule as the API takes it: the JSON that is stored, and durations in seconds too."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)
from pydantic_core import PydanticCustomError

from functions.api.http.call_body import CallBody
from functions.api.http.problems import Misshapen
from functions.api.http.requests import Duration, Instant, Rules, StrictModel, checked, compact_json, obeying
from functions.domain.errors import InvalidSchedule
from functions.domain.instants import EARLIEST, LATEST, to_the_millisecond
from functions.domain.jobs.job import Payload
from functions.domain.jobs.occurrence import check_references
from functions.domain.jobs.overlap import Overlap
from functions.domain.schedules import schedule as domain
from functions.domain.schedules.calendars import check_calendar
from functions.domain.schedules.cron_dialects import check_cron
from functions.domain.schedules.defaults import REQUESTED
from functions.domain.schedules.record import POINTER
from functions.domain.schedules.rrules import parse_rrule
from functions.domain.schedules.rules import At, CronRule, Every, Fold, Gap, Poisson, RecurrenceRule, Rule
from functions.domain.schedules.spread import SpreadFrom
from functions.domain.schedules.zones import zone_of

RULES = ("at", "cron", "every", "rrule", "poisson")
"""The fields of which a schedule has exactly one."""

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
_DAYS: tuple[Day, ...] = get_args(Day)
_TIME_OF_DAY = re.compile(r"([01]\d|2[0-3]):[0-5]\d", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_LOCAL = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(:\d{2})?", re.ASCII)


def _time_of_day(value: Any) -> time:
    if not isinstance(value, str) or not _TIME_OF_DAY.fullmatch(value):
        raise PydanticCustomError("time_of_day", "must be a local time of day such as 09:00; midnight is 00:00")
    return time.fromisoformat(value)


def _date(value: Any) -> date:
    try:
        if isinstance(value, str) and _DATE.fullmatch(value):
            return date.fromisoformat(value)
    except ValueError as error:
        raise PydanticCustomError("date", "is not a date that exists: {reason}", {"reason": str(error)}) from error
    raise PydanticCustomError("date", "must be a date such as 2027-12-25")


def _local_time(value: Any) -> datetime:
    try:
        if isinstance(value, str) and _LOCAL.fullmatch(value):
            return datetime.fromisoformat(value.upper())
    except ValueError as error:
        raise PydanticCustomError("local", "is not a time that exists: {reason}", {"reason": str(error)}) from error
    raise PydanticCustomError(
        "local", "must be a local time such as 2027-01-31T09:00:00, without an offset: its zone is the timezone"
    )


def _within_reach(local: datetime) -> datetime:
    """A local time within the bounds of instants: near the year 1 there is no room to calculate."""
    if local < EARLIEST.replace(tzinfo=None):
        raise PydanticCustomError("earliest", "is earlier than {earliest}", {"earliest": f"{EARLIEST:%FT%T}"})
    if local > LATEST.replace(tzinfo=None):
        raise PydanticCustomError("latest", "is later than {latest}", {"latest": f"{LATEST:%FT%T}"})
    return local


def _interval(value: Any) -> Any:
    """An interval may stand for itself."""
    is_plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    return {"interval": value} if is_plain else value


_TimeOfDay = Annotated[
    time,
    BeforeValidator(_time_of_day),
    WithJsonSchema({"type": "string", "pattern": r"^([01]\d|2[0-3]):[0-5]\d$", "examples": ["09:00"]}),
]
_Date = Annotated[date, BeforeValidator(_date), WithJsonSchema({"type": "string", "format": "date"})]
_LocalTime = Annotated[
    datetime,
    BeforeValidator(_local_time),
    AfterValidator(_within_reach),
    WithJsonSchema(
        {"type": "string", "description": "A local time without an offset.", "examples": ["2027-01-31T09:00:00"]}
    ),
]
_StoredInstant = Annotated[Instant, AfterValidator(to_the_millisecond)]
"""The same definition again must be equal to the stored one."""

_Count = Annotated[int, Field(ge=1, strict=True)]


class EveryBody(StrictModel):
    """A fixed interval of elapsed time."""

    interval: Annotated[Duration, obeying(lambda interval: Every(interval=interval))]
    phase: Duration = timedelta(0)
    anchor: Annotated[
        Literal["start", "end"],
        Field(alias="from", description="Where the interval begins: at the start of a run, or at its end."),
    ] = "start"

    @field_validator("phase")
    @classmethod
    def _is_a_phase(cls, value: timedelta, info: ValidationInfo) -> timedelta:
        if "interval" in info.data:
            checked(lambda phase: Every(interval=info.data["interval"], phase=phase), value)
        return value


class RecurrenceBody(StrictModel):
    """An RFC 5545 recurrence rule."""

    starts_at: Annotated[
        _LocalTime,
        Field(description="The first occurrence (DTSTART), as a local time in the time zone of the schedule."),
    ]
    rule: Annotated[str, Field(examples=["FREQ=MONTHLY;BYDAY=-1FR"])]

    @field_validator("rule")
    @classmethod
    def _is_a_rule(cls, value: str, info: ValidationInfo) -> str:
        if "starts_at" in info.data:
            checked(lambda rule: parse_rrule(rule, info.data["starts_at"]), value)
        return value


class PoissonBody(StrictModel):
    """Independent random events (a Poisson process)."""

    per_day: Annotated[float, Field(strict=True, description="The average number of fires per day."), obeying(Poisson)]


class WindowBody(StrictModel):
    """Local times of day, from `start` (inclusive) to `end` (exclusive). An end that is not after the start is on the next day."""

    start: _TimeOfDay
    end: _TimeOfDay
    days: Annotated[
        tuple[Day, ...],
        Field(json_schema_extra={"minItems": 1}, description="The days on which the window opens."),
    ] = _DAYS

    @field_validator("days")
    @classmethod
    def _has_a_day(cls, value: tuple[Day, ...]) -> tuple[Day, ...]:
        if not value:
            raise PydanticCustomError("days", "names no day: leave it out for every day")
        return value

    def window(self) -> domain.Window:
        """The window of the domain."""
        return domain.Window(
            start=self.start, end=self.end, days=frozenset(domain.Weekday[day.upper()] for day in self.days)
        )


class CalendarBody(StrictModel):
    """Local dates without fires."""

    exclude: Annotated[tuple[_Date, ...], Field(max_length=domain.MAX_EXCLUDED)] = ()
    holidays: Annotated[
        tuple[str, ...],
        Field(
            max_length=domain.MAX_HOLIDAY_SETS, description="Sets of holidays, such as `DE`, `DE-BY`, `US` or `NYSE`."
        ),
        obeying(lambda names: check_calendar(domain.Calendar(holidays=names))),
    ] = ()
    weekends: Annotated[bool, Field(strict=True)] = False
    roll: domain.Roll = REQUESTED.roll

    def calendar(self) -> domain.Calendar:
        """The calendar of the domain."""
        return domain.Calendar(excluded=frozenset(self.exclude), **self.by_name("holidays", "weekends", "roll"))


class TemplateBody(CallBody):
    """The job of each fire. Strings in its payload may refer to the fire, for example `{{tickwheel.fire_time}}`."""

    @field_validator("payload")
    @classmethod
    def _refers_to_what_there_is(cls, value: Any) -> Any:
        checked(check_references, value)
        return value

    def template(self, kept: Payload | None) -> domain.JobTemplate:
        """The template of the domain. kept: a stored payload that goes before the one of this body."""
        payload = Payload(text=None if self.payload is None else compact_json(self.payload))
        return domain.JobTemplate(payload=kept or payload, **self.call())


class ScheduleBody(
    StrictModel,
    json_schema_extra={
        "oneOf": [{"required": [rule], "properties": {rule: {"not": {"type": "null"}}}} for rule in RULES],
        "examples": [{"cron": "0 3 * * *", "timezone": "Europe/Berlin", "job": {"target": "https://example.com/hook"}}],
    },
):
    """A schedule definition: exactly one rule, the settings that change its fires, and the job of each fire."""

    # Before the rules: what of another program's cron is translated depends on it.
    timezone: Annotated[
        str, Field(description="An IANA time zone name.", examples=["Europe/Berlin"]), obeying(zone_of)
    ] = REQUESTED.timezone
    at: Annotated[_StoredInstant | None, Field(description="The instant of the only fire.")] = None
    cron: Annotated[
        str | None,
        Field(
            description="A cron expression of five fields, or a macro such as `@daily`, in the time zone of the schedule.",
            examples=["30 6 * * mon-fri"],
        ),
    ] = None
    every: Annotated[
        EveryBody | None, BeforeValidator(_interval, json_schema_input_type=Duration | EveryBody | None)
    ] = None
    rrule: RecurrenceBody | None = None
    poisson: PoissonBody | None = None
    gap: Annotated[Gap | None, Field(description="What to do with a local time that a clock change skips.")] = None
    fold: Annotated[Fold | None, Field(description="Which occurrence of a repeated local time fires.")] = None
    windows: Annotated[tuple[WindowBody, ...], Field(max_length=domain.MAX_WINDOWS)] = ()
    window_mode: Annotated[
        domain.WindowMode | None, Field(description="What to do with a fire outside the windows.")
    ] = None
    calendar: CalendarBody | None = None
    spread: Annotated[
        Duration | None,
        Field(
            description="The upper bound of a constant delay, which is derived from a hash of the schedule's name. 0: none. Default: "
            "that of the tenant."
        ),
    ] = None
    jitter: Annotated[
        Duration, Field(description="The upper bound of a random delay, which is different for each fire.")
    ] = timedelta(0)
    start: Annotated[_StoredInstant | None, Field(description="No fire happens before this instant.")] = None
    end: Annotated[_StoredInstant | None, Field(description="No fire happens at or after this instant.")] = None
    max_runs: _Count | None = None
    misfire: Annotated[domain.Misfire, Field(description="What to do with missed fires.")] = REQUESTED.misfire
    max_lateness: Annotated[Duration | None, Field(description="Fires that are later than this are dropped.")] = None
    overlap: Annotated[Overlap, Field(description="What a fire does while the previous run has not ended.")] = (
        REQUESTED.overlap
    )
    pause_after_failures: Annotated[int | None, Field(ge=1, le=100, strict=True)] = None
    history: Annotated[
        int, Field(ge=0, le=domain.MAX_HISTORY, strict=True, description="The number of fires to keep in the history.")
    ] = REQUESTED.history
    success_history: Annotated[
        int | None,
        Field(
            ge=0,
            le=domain.MAX_KEPT_RUNS,
            strict=True,
            description="The number of successful runs to keep, however many follow.",
        ),
    ] = None
    failure_history: Annotated[
        int | None,
        Field(
            ge=0,
            le=domain.MAX_KEPT_RUNS,
            strict=True,
            description="The number of failed runs to keep, however many follow.",
        ),
    ] = None
    job: TemplateBody

    @field_validator("cron")
    @classmethod
    def _is_cron(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None:
            checked(check_cron, value, timezone=info.data.get("timezone", REQUESTED.timezone))
        return value

    def schedule(self, tenant: str, schedule_id: str, *, kept: Payload | None = None) -> domain.Schedule:
        """The schedule of the domain. kept: see TemplateBody. Raises InvalidSchedule where fields contradict."""
        translated = (*RULES, "windows", "calendar", "spread", "job")
        says_none = self.spread is not None and not self.spread
        return domain.Schedule(
            tenant=tenant,
            schedule_id=schedule_id,
            rule=self._rule(),
            job=self.job.template(kept),
            windows=tuple(window.window() for window in self.windows),
            calendar=self.calendar and self.calendar.calendar(),
            spread=self.spread or timedelta(0),
            spread_from=SpreadFrom.SCHEDULE if says_none else None,
            **self.by_name(*(name for name in ScheduleBody.model_fields if name not in translated)),
        )

    def _rule(self) -> Rule:
        if self.at is not None:
            return At(self.at)
        if self.cron is not None:
            return CronRule(self.cron)
        if self.every is not None:
            return Every(interval=self.every.interval, phase=self.every.phase, from_end=self.every.anchor == "end")
        if self.rrule is not None:
            return RecurrenceRule(self.rrule.rule, self.rrule.starts_at)
        assert self.poisson is not None  # read_schedule has counted the rules
        return Poisson(self.poisson.per_day)


def read_schedule(raw: Any, rules: Rules) -> ScheduleBody:
    """A definition from its JSON. Raises Misshapen, InvalidSchedule."""
    if isinstance(raw, dict):
        given = [rule for rule in RULES if raw.get(rule) is not None]
        if len(given) != 1:
            raise InvalidSchedule(
                f"must be exactly one of {', '.join(RULES)}, but this has {' and '.join(given) or 'none of them'}",
                field="rule",
                value=given,
            )
        if isinstance(raw.get("job"), dict) and POINTER in raw["job"]:
            raise InvalidSchedule(
                "is where a large payload is kept: give the payload itself, as GET of the schedule answers it",
                field=f"job.{POINTER}",
                value=raw["job"][POINTER],
            )
    try:
        return ScheduleBody.model_validate(raw, context=rules)
    except ValidationError as error:
        raise Misshapen(InvalidSchedule, error) from None
