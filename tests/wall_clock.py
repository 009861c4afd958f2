"""Instants as people read them: what a clock on the wall shows."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import takewhile
from typing import Any

from functions.domain.schedules.firing import fires
from functions.domain.schedules.rules import CronRule
from functions.domain.schedules.schedule import Fire, Schedule
from functions.domain.schedules.zones import zone_of
from testkit.builders import a_schedule


def utc(text: str) -> datetime:
    """`utc("2027-03-28 01:00")`."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def local(text: str) -> datetime:
    """A naive time: `local("2027-03-28 01:00")`."""
    return datetime.fromisoformat(text)


def on_the_wall(instant: datetime, timezone: str) -> str:
    """Such as `2027-03-28 03:00+02:00`; with seconds where there are any."""
    text = instant.astimezone(zone_of(timezone)).isoformat(sep=" ")
    return text.replace(":00+", "+").replace(":00-", "-") if instant.second == instant.microsecond == 0 else text


def fires_between(schedule: Schedule, start: str, end: str) -> list[Fire]:
    """The fires after the one and up to the other instant, both in UTC."""
    return list(takewhile(lambda fire: fire.at <= utc(end), fires(schedule, after=utc(start))))


def shown(schedule: Schedule, start: str, end: str) -> list[str]:
    """What the wall shows at the fires after the one and up to the other instant, both in UTC."""
    return [on_the_wall(fire.at, schedule.timezone) for fire in fires_between(schedule, start, end)]


def a_cron(expression: str, **overrides: Any) -> Schedule:
    """A schedule by a cron expression, in Berlin unless it says otherwise."""
    return a_schedule(rule=CronRule(expression), **{"timezone": "Europe/Berlin", **overrides})
