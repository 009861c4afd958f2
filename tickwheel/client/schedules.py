"""The arguments and results of calls about schedules, as values that are validated on construction.

Instants are aware datetimes and durations are timedeltas; local times and dates, which belong to a schedule's time zone,
are naive. The scheduler parses expressions and zones: what is wrong with those it says itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from tickwheel.client.answers import Answer, Wire
from tickwheel.client.durations import parse_duration
from tickwheel.client.fields import (
    Parsers,
    Reader,
    choice_problems,
    count_problems,
    duration_problems,
    instant_problems,
    names_of,
    read_part,
    said,
    text_problems,
)
from tickwheel.client.fires import Run
from tickwheel.client.instants import parse_instant
from tickwheel.client.jobs import JOB_PARSERS, JobFields
from tickwheel.client.schedule_parts import (
    Calendar,
    Every,
    Recurrence,
    Window,
    parse_calendar,
    parse_every,
    parse_recurrence,
    refuse,
)
from tickwheel.client.words import JobState, ScheduleStatus, SpreadSource
from tickwheel.errors import ApiProblem, FieldProblem, InvalidSchedule, Unreachable

Gap = Literal["next_valid", "skip"]
Fold = Literal["first", "second", "both"]
Misfire = Literal["fire_all", "coalesce", "skip"]
Overlap = Literal["allow", "forbid", "buffer_one", "replace"]
WindowMode = Literal["skip", "defer", "scale"]

RULES = ("at", "cron", "every", "rrule", "poisson")
"""The rules. A schedule has exactly one of them."""

STANDING = frozenset(
    {
        "version",
        "status",
        "note",
        "created_at",
        "changed_at",
        "next_fire",
        "last_fire",
        "last_outcome",
        "fires",
        "misfires",
        "skips",
        "last_skip",
        "default_spread",
        "failures_in_a_row",
        "runs",
        "last_successes",
        "last_failures",
    }
)
"""What the scheduler returns for a schedule besides its definition."""


@dataclass(frozen=True)
class NewSchedule(JobFields):
    """A schedule to create or replace: exactly one of `at`, `cron`, `every`, `rrule` and `poisson` (events a day), and a job.

    A field left None takes the scheduler's default. `target` and the fields of JobFields are the job's; strings in its
    payload may refer to the fire, such as `{{tickwheel.fire_time}}`.
    Raises InvalidSchedule, naming every problem at once.
    """

    id: str
    _: KW_ONLY
    tenant: str
    at: datetime | None = None
    cron: str | None = None
    every: timedelta | Every | None = None
    rrule: Recurrence | None = None
    poisson: float | None = None
    timezone: str | None = None
    gap: Gap | None = None
    fold: Fold | None = None
    windows: Sequence[Window] = ()
    window_mode: WindowMode | None = None
    calendar: Calendar | None = None
    spread: timedelta | None = None
    jitter: timedelta | None = None
    start: datetime | None = None
    end: datetime | None = None
    max_runs: int | None = None
    misfire: Misfire | None = None
    max_lateness: timedelta | None = None
    overlap: Overlap | None = None
    pause_after_failures: int | None = None
    history: int | None = None
    success_history: int | None = None
    failure_history: int | None = None
    target: str

    def __post_init__(self) -> None:
        problems = [
            *text_problems("id", self.id),
            *text_problems("tenant", self.tenant),
            *self._rule_problems(),
            *choice_problems("gap", self.gap, Gap),
            *choice_problems("fold", self.fold, Fold),
            *choice_problems("window_mode", self.window_mode, WindowMode),
            *duration_problems("spread", self.spread),
            *duration_problems("jitter", self.jitter),
            *instant_problems("start", self.start),
            *instant_problems("end", self.end),
            *count_problems("max_runs", self.max_runs),
            *choice_problems("misfire", self.misfire, Misfire),
            *duration_problems("max_lateness", self.max_lateness),
            *choice_problems("overlap", self.overlap, Overlap),
            *count_problems("pause_after_failures", self.pause_after_failures),
            *count_problems("history", self.history),
            *count_problems("success_history", self.success_history),
            *count_problems("failure_history", self.failure_history),
            *text_problems("job.target", self.target),
            *self.field_problems("job."),
        ]
        refuse(problems)

    def as_json(self) -> dict[str, Any]:
        """The definition on the wire, without what is left to the scheduler."""
        own = {name: value for name, value in vars(self).items() if name not in ("id", "tenant", *_JOB)}
        poisson = None if self.poisson is None else {"per_day": self.poisson}
        return said({**own, "poisson": poisson, "job": said({name: getattr(self, name) for name in _JOB})})

    @classmethod
    def from_json(cls, body: Any) -> "NewSchedule":
        """Reads a tenant, an id and a definition, as a line of a file has them; raises InvalidSchedule.

        The scheduler's answer for a schedule can be read too: fields besides the definition are ignored, but a
        schedule that is paused is refused, because it would go on.
        """
        if not isinstance(body, dict):
            raise InvalidSchedule([FieldProblem("schedule", "is a JSON object")])
        reader = Reader({name: value for name, value in body.items() if name not in STANDING})
        if body.get("status") not in (None, "active"):
            message = "would be lost, and the schedule would go on: leave it out if that is meant"
            reader.problems.append(FieldProblem("status", message, body["status"]))
        own = reader.take_all((name for name in names_of(cls) if name not in _JOB), _PARSERS)
        job = reader.take("job", _parse_job) or {}
        reader.refuse_the_rest("a schedule")
        values = {"id": None, "tenant": None, "target": None, **own, **job}
        # A rule that could not be read is there all the same.
        return reader.make(cls, values, InvalidSchedule, aliases=dict.fromkeys(RULES, "rule"))

    def _rule_problems(self) -> list[FieldProblem]:
        given = [name for name in RULES if getattr(self, name) is not None]
        problems = [*instant_problems("at", self.at)]
        if len(given) != 1:
            message = f"give exactly one of {', '.join(RULES)}" + (f", not {' and '.join(given)}" if given else "")
            problems.append(FieldProblem("rule", message))
        if self.cron is not None:
            problems += text_problems("cron", self.cron)
        if not isinstance(self.every, Every):
            problems += duration_problems("every", self.every)
        if self.poisson is not None and (isinstance(self.poisson, bool) or not isinstance(self.poisson, int | float)):
            problems.append(FieldProblem("poisson.per_day", "is a number", self.poisson))
        return problems


def _parse_poisson(value: Any) -> Any:
    if not isinstance(value, dict) or set(value) != {"per_day"}:
        raise ValueError('is a JSON object such as {"per_day": 12}')
    return value["per_day"]


def _parse_windows(value: Any) -> list[Window]:
    if not isinstance(value, list):
        raise ValueError("is a list of windows")  # noqa: TRY004  # a parser's error is a ValueError
    return [Window.parse(window) for window in value]


def _parse_job(value: Any) -> dict[str, Any]:
    whole = "a schedule's job"
    return read_part("job", value, dict, InvalidSchedule, names=_JOB, whole=whole, parsers=JOB_PARSERS, is_secret=True)


_JOB = ("target", *names_of(JobFields))
_PARSERS: Parsers = {
    "at": parse_instant,
    "every": parse_every,
    "rrule": parse_recurrence,
    "poisson": _parse_poisson,
    "windows": _parse_windows,
    "calendar": parse_calendar,
    "spread": parse_duration,
    "jitter": parse_duration,
    "start": parse_instant,
    "end": parse_instant,
    "max_lateness": parse_duration,
}


def _definition_of(body: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in body.items() if name not in STANDING | {"id", "tenant"}}


def _skip_of(body: Mapping[str, Any]) -> tuple[str, datetime]:
    return body["reason"], parse_instant(body["at"])


@dataclass(frozen=True, kw_only=True)
class DefaultSpread(Answer):
    """A spread that a schedule took because it says none. source: whose default it was: `tenant`, `plan` or `stage`."""

    spread: Annotated[timedelta, Wire(read=parse_duration)]
    source: Annotated[SpreadSource, Wire("from")]


@dataclass(frozen=True, kw_only=True)
class Schedule(Answer):
    """A schedule: its definition and its state.

    `definition` is the JSON that NewSchedule.from_json reads, with a tenant and an id. `fires` became runs, `misfires`
    were late, `skips` counts those that became no run, by reason. `runs` are the last ones, newest first; a list of
    schedules comes without them, and so without `last_outcome`. `default_spread` is the spread in effect where the
    definition has none and took a default. `last_successes` and `last_failures` are the runs that
    `success_history` and `failure_history` keep, newest first.
    """

    id: str
    tenant: str
    version: int
    status: ScheduleStatus
    note: str = ""
    definition: Annotated[Mapping[str, Any], Wire("", read=_definition_of)]
    created_at: datetime
    changed_at: datetime
    next_fire: Annotated[datetime | None, Wire("next_fire.at")] = None
    last_fire: datetime | None = None
    last_outcome: JobState | None = None
    fires: int = 0
    misfires: int = 0
    skips: Mapping[str, int] = field(default_factory=dict[str, int])
    last_skip: Annotated[tuple[str, datetime] | None, Wire(read=_skip_of)] = None
    failures_in_a_row: int = 0
    runs: tuple[Run, ...] = ()
    last_successes: tuple[Run, ...] = ()
    last_failures: tuple[Run, ...] = ()
    default_spread: DefaultSpread | None = None
    body: Annotated[Mapping[str, Any], Wire("")]
    """The JSON of the scheduler's response."""


@dataclass(frozen=True, kw_only=True)
class Stored:
    """A schedule of many that is stored as requested. change: what that has done; None where the scheduler was asked again."""

    asked: NewSchedule
    schedule: Schedule
    change: Literal["created", "updated", "unchanged"] | None = None


@dataclass(frozen=True, kw_only=True)
class NotStored:
    """A schedule of many that was refused, or got no answer after all retries. Storing it again is safe."""

    asked: NewSchedule
    error: ApiProblem | Unreachable


Put = Stored | NotStored
