"""The parts of a schedule that are more than one value: rules, windows and calendars, and how they are read.

Local times and dates, which belong to a schedule's time zone, are naive.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any, Literal, get_args

from tickwheel.client.durations import parse_duration
from tickwheel.client.fields import (
    Reader,
    choice_problems,
    duration_problems,
    names_of,
    read_part,
    said,
    text_problems,
    without_none,
)
from tickwheel.errors import FieldProblem, InvalidSchedule

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
Roll = Literal["before", "after", "skip"]

_DAYS: tuple[str, ...] = get_args(Day)
_WINDOW = re.compile(r"(?:(?P<days>[a-z,-]+) +)?(?P<start>\d{2}:\d{2}) *- *(?P<end>\d{2}:\d{2})", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Every:
    """An interval of elapsed time: from start to start, `phase` after the start; or from the end of a run."""

    interval: timedelta
    phase: timedelta | None = None
    from_end: bool = False

    def __post_init__(self) -> None:
        interval: Any = self.interval
        refuse(
            [
                *([FieldProblem("every.interval", "is required")] if interval is None else []),
                *duration_problems("every.interval", interval),
                *duration_problems("every.phase", self.phase),
            ]
        )

    def as_json(self) -> dict[str, Any]:
        """The rule on the wire."""
        return said({"interval": self.interval, "phase": self.phase, "from": "end" if self.from_end else None})


@dataclass(frozen=True)
class Recurrence:
    """An RFC 5545 RRULE; `starts_at` is its first occurrence, a naive local time."""

    rule: str
    starts_at: datetime

    def __post_init__(self) -> None:
        problems = text_problems("rrule.rule", self.rule)
        if not isinstance(self.starts_at, datetime) or self.starts_at.tzinfo is not None:
            message = "is a local time without an offset: its zone is the schedule's timezone"
            problems.append(FieldProblem("rrule.starts_at", message, str(self.starts_at)))
        refuse(problems)

    def as_json(self) -> dict[str, Any]:
        """The rule on the wire."""
        return {"rule": self.rule, "starts_at": self.starts_at.isoformat(timespec="seconds")}


@dataclass(frozen=True)
class Window:
    """Local times of day from `start` to `end` (exclusive), on its days. An end that is not later than the start is on the next day."""

    start: time
    end: time
    days: Sequence[Day] | None = None

    def as_json(self) -> dict[str, Any]:
        """The window on the wire."""
        days = None if self.days is None else list(self.days)
        return without_none({"start": f"{self.start:%H:%M}", "end": f"{self.end:%H:%M}", "days": days})

    @classmethod
    def parse(cls, value: Any) -> "Window":
        """Reads `mon-fri 09:00-17:00`, or its JSON; raises ValueError."""
        if isinstance(value, dict) and set(value) <= {"start", "end", "days"} and {"start", "end"} <= set(value):
            return cls(_parse_time(value["start"]), _parse_time(value["end"]), value.get("days"))
        match = _WINDOW.fullmatch(value.strip().lower()) if isinstance(value, str) else None
        if match is None:
            raise ValueError(f"{value!r} is not a window: write mon-fri 09:00-17:00, or 22:00-06:00 for every day")
        days = None if match["days"] is None else _parse_days(match["days"])
        return cls(_parse_time(match["start"]), _parse_time(match["end"]), days)


@dataclass(frozen=True, kw_only=True)
class Calendar:
    """Local dates without fires. `holidays` names sets such as DE, DE-BY, US or NYSE."""

    exclude: Sequence[date] = ()
    holidays: Sequence[str] = ()
    weekends: bool = False
    roll: Roll | None = None

    def __post_init__(self) -> None:
        refuse(choice_problems("calendar.roll", self.roll, Roll))

    def as_json(self) -> dict[str, Any]:
        """The calendar on the wire."""
        return said({**vars(self), "weekends": self.weekends or None})


def parse_every(value: Any) -> timedelta | Every:
    """Reads an interval, or its JSON; raises ValueError."""
    if not isinstance(value, dict):
        return parse_duration(value)
    reader = Reader(value, prefix="every.")
    anchor = reader.take("from")
    fields = {
        "interval": reader.take("interval", parse_duration),
        "phase": reader.take("phase", parse_duration),
        "from_end": anchor == "end",
    }
    reader.problems += choice_problems("every.from", anchor, Literal["start", "end"])
    reader.refuse_the_rest("an interval")
    refuse(reader.problems)
    return Every(**fields)


def parse_recurrence(value: Any) -> Recurrence:
    """Reads a recurrence from its JSON; raises ValueError."""
    if not isinstance(value, dict) or set(value) != {"rule", "starts_at"}:
        raise ValueError('is a JSON object such as {"rule": "FREQ=DAILY", "starts_at": "2030-01-31T09:00:00"}')
    return Recurrence(value["rule"], parse_local(value["starts_at"]))


def parse_calendar(value: Any) -> Calendar:
    """Reads a calendar from its JSON; raises InvalidSchedule with every problem."""
    parsers = {"exclude": _parse_dates, "holidays": _parse_list}
    names = names_of(Calendar)
    return read_part("calendar", value, Calendar, InvalidSchedule, names=names, whole="a calendar", parsers=parsers)


def _parse_dates(value: Any) -> list[date]:
    return [parse_date(day) for day in _parse_list(value)]


def _parse_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is not a list")  # noqa: TRY004  # a parser's error is a ValueError
    return value


def parse_local(value: Any) -> datetime:
    """Reads a local time, without an offset; raises ValueError."""
    try:
        local = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(f"{value!r} is not a local time: write 2030-01-31T09:00:00") from None
    if local.tzinfo is not None:
        raise ValueError(f"{value!r} has an offset: leave it out, the schedule's timezone says what it means")
    return local


def parse_date(value: Any) -> date:
    """Reads a date; raises ValueError."""
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(f"{value!r} is not a date: write 2030-12-25") from None


def refuse(problems: list[FieldProblem]) -> None:
    """Raises InvalidSchedule if there is a problem."""
    if problems:
        raise InvalidSchedule(problems)


def _parse_time(value: Any) -> time:
    try:
        return time.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(f"{value!r} is not a time of day: write 09:00, and 00:00 for midnight") from None


def _parse_days(text: str) -> list[Any]:
    """`mon-fri`, `sat,sun`, or `fri-mon`, over the end of the week."""
    days: list[str] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first not in _DAYS or (last or first) not in _DAYS:
            raise ValueError(f"{part!r} is not a day: write mon, mon-fri or sat,sun")
        begin, end = _DAYS.index(first), _DAYS.index(last or first)
        days += [_DAYS[number % 7] for number in range(begin, end + 1 if end >= begin else end + 8)]
    return list(dict.fromkeys(days))
