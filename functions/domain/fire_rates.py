"""How often a schedule fires in an hour in which it fires most, about: in a bounded number of steps, whatever its rule."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice, takewhile
from math import ceil
from operator import attrgetter

from functions.domain.budget import Budget
from functions.domain.errors import InvalidInput
from functions.domain.firing import fires
from functions.domain.schedule import At, Every, Poisson, Schedule
from functions.domain.schedule_load import Share
from functions.domain.schedule_state import ScheduleState, Status
from functions.domain.windows import open_share

MOST_LOOKED_AT = 121
"""Fires: two hours of a rule that fires each minute, of which one is whole."""

LOOKS_AHEAD = timedelta(days=8)
"""A week in which windows open, and a day that a calendar takes out of it."""

STEPS_OF_A_LOOK = 10_000
"""Ten milliseconds, about. What has been seen within them counts."""

_HOUR = timedelta(hours=1)
_when = attrgetter(
    "rule", "timezone", "gap", "fold", "windows", "window_mode", "calendar", "spread", "jitter", "start", "end"
)
"""Whatever says when a schedule fires."""


def fires_an_hour(schedule: Schedule, *, after: datetime) -> int:
    """At least 1. after: from when on its fires are looked at, where its rule does not say it."""
    rule = schedule.rule
    match rule:
        case At():
            return 1
        case Every():
            return ceil(_HOUR / rule.interval)
        case Poisson():
            return ceil(rule.per_day * open_share(schedule) / 24)
        case _:
            return _seen(schedule, after=after)


def begins_anew(
    schedule: Schedule, after: ScheduleState, *, before: Schedule | None, seen: ScheduleState | None
) -> bool:
    """Whether a change sets a first fire that would not have come without it: that makes the work of a job.

    after: its state from then on; before, seen: definition and state until then.
    """
    if after.status is not Status.ACTIVE:
        return False
    if before is None or seen is None or seen.status is not Status.ACTIVE:
        return True
    if _when(before) != _when(schedule) or before.max_runs != schedule.max_runs:
        return True
    # From end to start it begins from the change on, unless a run that has begun goes on.
    return schedule.is_end_to_start and after.link is not None and not after.link.is_awaited


def share_of(
    schedule: Schedule,
    state: ScheduleState,
    *,
    before: Schedule | None = None,
    seen: ScheduleState | None = None,
    now: datetime,
) -> Share | None:
    """What a schedule counts for as it stands; None where it is deleted.

    before, seen: its definition and state until now: what fires as before counts as before.
    """
    if not state.goes_on:
        return idle_share_of(state)
    known = seen.share if seen is not None and seen.goes_on and seen.is_counted_right else None
    if before is not None and known is not None and _when(before) == _when(schedule):
        return Share(state.version, known.fires)
    return Share(state.version, fires_an_hour(schedule, after=now))


def idle_share_of(state: ScheduleState) -> Share | None:
    """What a schedule counts for that no fire follows of; None where it is deleted."""
    return None if state.status is Status.DELETED else Share(state.version, 0)


def _seen(schedule: Schedule, *, after: datetime) -> int:
    """The most fires that were seen within an hour. No such rule fires more than once a minute."""
    lately: deque[datetime] = deque()
    most = 1
    # What cannot be worked out any more counts by what has been.
    with suppress(InvalidInput):
        near = takewhile(
            lambda fire: fire.at < after + LOOKS_AHEAD, fires(schedule, after=after, budget=Budget(STEPS_OF_A_LOOK))
        )
        for fire in islice(near, MOST_LOOKED_AT):
            lately.append(fire.at)
            while lately[0] <= fire.at - _HOUR:
                lately.popleft()
            most = max(most, len(lately))
    return most
