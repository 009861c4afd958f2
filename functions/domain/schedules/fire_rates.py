"""How often a schedule fires in an hour in which it fires most, about: worked out from what it names, without a look at any date.

So it is the same whenever it is asked, however far away its first fire is. Where a rule says more of its days than here is
looked at, it counts for as much as one that fires on all of them: an hour of a day in which it fires decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate, chain, groupby, pairwise
from math import ceil, inf
from operator import attrgetter
from typing import NamedTuple

from functions.domain.errors import InvalidInput
from functions.domain.instants import HOUR, MINUTE
from functions.domain.schedules.cron import parse_cron
from functions.domain.schedules.load import Share
from functions.domain.schedules.recurrence import Frequency
from functions.domain.schedules.rrules import recurrence_of
from functions.domain.schedules.rules import At, CronRule, Every, Poisson, RecurrenceRule
from functions.domain.schedules.schedule import Schedule, Weekday, WindowMode
from functions.domain.schedules.state import ScheduleState, Status
from functions.domain.schedules.windows import open_hours, open_share

_MINUTES = 60
_DAY = 1_440
_WEEK = 7 * _DAY
_when = attrgetter(
    "rule", "timezone", "gap", "fold", "windows", "window_mode", "calendar", "spread", "jitter", "start", "end"
)
"""Whatever says when a schedule fires."""


class _Named(NamedTuple):
    """What a rule names. minutes: of a day, in which it fires. in_each: how often. most: in an hour."""

    minutes: frozenset[int]
    in_each: int
    most: float


def fires_an_hour(schedule: Schedule) -> int:
    """At least 1."""
    rule = schedule.rule
    match rule:
        case At():
            return 1
        case Every():
            return ceil(HOUR / rule.interval)
        case Poisson():
            return ceil(rule.per_day / 24 * open_share(schedule) * _crowd(schedule))
        case CronRule() | RecurrenceRule():
            # A definition that is stored may be one that cannot be read any more: nothing fires of it.
            with suppress(InvalidInput):
                return max(1, _busiest(schedule, _named(rule)))
            return 1


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
    # From end to start it begins from the change on, unless a run that has begun continues.
    return schedule.is_end_to_start and after.link is not None and not after.link.is_awaited


def share_of(
    schedule: Schedule, state: ScheduleState, *, before: Schedule | None = None, seen: ScheduleState | None = None
) -> Share | None:
    """What a schedule counts for as it stands; None where it is deleted.

    before, seen: its definition and state until now: what fires as before counts as before.
    """
    if not state.goes_on:
        return idle_share_of(state)
    known = seen.share if seen is not None and seen.goes_on and seen.is_counted_right else None
    if before is not None and known is not None and _when(before) == _when(schedule):
        return Share(state.version, known.fires)
    return Share(state.version, fires_an_hour(schedule))


def idle_share_of(state: ScheduleState) -> Share | None:
    """What a schedule counts for that no fire follows of; None where it is deleted."""
    return None if state.status is Status.DELETED else Share(state.version, 0)


def _named(rule: CronRule | RecurrenceRule) -> _Named:
    if isinstance(rule, CronRule):
        return _Named(frozenset(parse_cron(rule.expression).minutes), 1, inf)
    recurrence = recurrence_of(rule)
    minutes = frozenset(hour * _MINUTES + minute for hour in recurrence.hours for minute in recurrence.minutes)
    in_each = len(recurrence.seconds)
    # Of each period that BYSETPOS chooses from. What lies at the end of one and the start of the next is seldom both chosen.
    of_a_period = len(recurrence.positions) or inf
    most = of_a_period
    if recurrence.frequency is Frequency.MINUTELY:
        most = ceil(_MINUTES / recurrence.interval) * min(in_each, of_a_period)
    return _Named(minutes, in_each, min(most, recurrence.count or inf))


def _busiest(schedule: Schedule, named: _Named) -> int:
    """How many fires the hour has that has most: of what is open, and with what waits for that."""
    of_an_hour = len({minute % _MINUTES for minute in named.minutes}) * named.in_each
    if not schedule.windows:
        return int(min(of_an_hour, named.most))
    is_open = _open_minutes(schedule)
    fires = [is_open[minute] * (minute % _DAY in named.minutes) for minute in range(_WEEK)]
    own = min(_most_of_an_hour(fires) * named.in_each, named.most)
    waited = _most_of_an_hour(_waited_for(is_open, named.minutes)) if schedule.mode is WindowMode.DEFER else 0
    return int(own + waited)


def _open_minutes(schedule: Schedule) -> bytearray:
    """Which minutes of a week are open, from Monday on."""
    is_open = bytearray(_WEEK)
    hours = open_hours(schedule.windows, schedule.calendar, schedule.timezone)
    for weekday in Weekday:
        for opens, closes in hours.of_weekday(weekday):
            first, end = (weekday * _DAY + moment // MINUTE for moment in (opens, closes))
            is_open[first:end] = b"\1" * (end - first)
    return is_open


def _waited_for(is_open: Sequence[int], named: frozenset[int]) -> list[int]:
    """Which minutes begin an opening that something waits for: all that waits for one is one fire."""
    found = [0] * _WEEK
    waits = False
    # Twice, because what waits on Monday may have waited since Friday.
    for minute in chain(range(_WEEK), range(_WEEK)):
        if is_open[minute]:
            found[minute], waits = int(waits), False
        else:
            waits = waits or minute % _DAY in named
    return found


def _most_of_an_hour(counts: Sequence[int]) -> int:
    """The largest sum of sixty minutes in a row of a week, which begins again behind its end."""
    sums = list(accumulate(chain(counts, counts[:_MINUTES]), initial=0))
    return max(end - start for start, end in zip(sums, sums[_MINUTES:], strict=False))


def _crowd(schedule: Schedule) -> float:
    """How many times as many independent events an hour has in which those fire that have waited for an opening."""
    if schedule.mode is not WindowMode.DEFER or not schedule.windows:
        return 1.0
    lengths = [(is_open, len(list(minutes))) for is_open, minutes in groupby(_open_minutes(schedule) * 2)]
    # Each of them has a place of its own in the opening.
    crowds = (closed / max(opened, _MINUTES) for (is_open, closed), (_, opened) in pairwise(lengths) if not is_open)
    return 1.0 + max(crowds, default=0.0)
