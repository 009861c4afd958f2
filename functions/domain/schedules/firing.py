"""When a schedule fires. Pure: the same schedule and instant give the same fires, whoever asks and from wherever."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import NamedTuple, Protocol

from functions.domain.errors import InvalidSchedule, TooCostly
from functions.domain.instants import EPOCH, LATEST, MICROSECOND, format_instant, from_ms, to_ms
from functions.domain.schedules.calendars import STEPS_OF_A_SET, STEPS_OF_A_YEAR
from functions.domain.schedules.nominal_times import nominal_times, steps
from functions.domain.schedules.rules import At, Every, Poisson
from functions.domain.schedules.schedule import Fire, Schedule
from functions.domain.schedules.shifts import Course, Shift, course_of
from functions.domain.schedules.step_budget import STEPS_OF_A_FIRE, STEPS_OF_A_WALK, Budget
from functions.domain.schedules.validation import check_consistency
from functions.domain.schedules.zones import Nominal

STEPS_OF_A_LOOK = 3
STEPS_OF_A_LOOK_AT_HOURS = 10
STEPS_OF_AN_EVENT = 4
"""What a nominal time costs: where it goes is worked out, with the hours in which it may, or as one of many events."""

STEPS_OF_A_JUMP = 30
"""What it costs to find the next opening, or clock change."""

MOST_GATHERED = 100
"""Nominal times that a fire is counted for: it jumps over the others that wait for the same opening."""


_Waiting = tuple[datetime, int, int, Shift]
"""By instant, then by how many things shifted it, then by nominal time."""


class _Source(Protocol):
    def __call__(self, *, since: datetime) -> Iterator[Nominal]: ...


class Gathered(NamedTuple):
    """A fire, and the nominal times that became it, the one that was shifted least first."""

    fire: Fire
    shifts: tuple[Shift, ...]


def fires(schedule: Schedule, *, after: datetime, budget: Budget | None = None) -> Iterator[Fire]:
    """The fires after `after` (exclusive, aware), in order, each at an instant of its own; `max_runs` is not looked at.

    From end to start `after` is the end of the last run, or the creation, and each run is taken for one without length.
    Nominal times of one instant are one fire: it is the fire of the one that was shifted least, and counts the others.
    budget: pays for all of them; without one, for as many as STEPS_OF_A_WALK. Raises TooCostly where it is spent.
    """
    return (gathered.fire for gathered in gather(schedule, after=after, budget=budget))


def gather(schedule: Schedule, *, after: datetime, budget: Budget | None = None) -> Iterator[Gathered]:
    """The fires after `after`, each with what it is made from. budget: see `fires`."""
    budget = Budget(STEPS_OF_A_WALK) if budget is None else budget
    after = max(after.astimezone(UTC), EPOCH)
    if max(after, schedule.start or EPOCH) >= LATEST:
        return iter(())
    if schedule.is_end_to_start:
        return _until_the_end(schedule, _end_to_start(schedule, after, budget))
    if schedule.start is not None:
        after = max(after, schedule.start.astimezone(UTC) - MICROSECOND)
    course = course_of(schedule)
    if course.never_opens:
        return iter(())
    since = course.looks_back_to(after)
    if schedule.start is not None:
        since = max(since, schedule.start.astimezone(UTC))
    found = _in_order(_shifts(course, partial(nominal_times, schedule, budget=budget), since=since, budget=budget))
    return _until_the_end(schedule, (gathered for gathered in found if gathered.fire.at > after))


def check_fires(schedule: Schedule, *, now: datetime, budget: Budget | None = None) -> Fire:
    """The first fire after `now`. budget: of the whole request.

    Raises InvalidSchedule for one that has none, or that does not make sense; TooCostly where that takes too much to find,
    or the next fire would each time.
    """
    whole = Budget(STEPS_OF_A_WALK, within=budget)
    check_consistency(schedule, budget=whole)
    left = whole.left
    fire = next_fire(schedule, after=now, budget=whole)
    if fire is None:
        raise _never(schedule, now, whole)
    if left - whole.left > STEPS_OF_A_FIRE:
        raise TooCostly(field=schedule.rule.name)
    return fire


def next_fire(schedule: Schedule, *, after: datetime, index: int = 0, budget: Budget | None = None) -> Fire | None:
    """The first fire after `after` of a schedule that has fired `index` times; None when there is none.

    Raises TooCostly where the budget does not suffice to decide.
    """
    if schedule.max_runs is not None and index >= schedule.max_runs:
        return None
    return next(fires(schedule, after=after, budget=budget), None)


def _never(schedule: Schedule, now: datetime, budget: Budget) -> InvalidSchedule:
    if isinstance(schedule.rule, At) and schedule.rule.at <= now:
        return InvalidSchedule("is past: nothing would ever fire", field="at", value=format_instant(schedule.rule.at))
    if schedule.end is not None and schedule.end <= now:
        return InvalidSchedule("is past: nothing would ever fire", field="end", value=format_instant(schedule.end))
    at_all_times = replace(schedule, windows=(), window_mode=None, calendar=None)
    if next_fire(at_all_times, after=now, budget=budget) is not None:
        field = "windows" if schedule.windows else "calendar"
        return InvalidSchedule("leave nothing of what the rule names: nothing would ever fire", field=field)
    if schedule.end is not None and next_fire(replace(at_all_times, end=None), after=now, budget=budget) is not None:
        source = "" if schedule.says_spread or not schedule.spread else str(schedule.spread_from)
        taken = f", with the spread that it takes from the default of its {source}: say spread 0 for none" * bool(
            source
        )
        return InvalidSchedule(f"is before the first fire{taken}", field="end", value=format_instant(schedule.end))
    return InvalidSchedule("names no time after now: nothing would ever fire", field=schedule.rule.name)


def _end_to_start(schedule: Schedule, after: datetime, budget: Budget) -> Iterator[Gathered]:
    """An interval after `after`, or at the start; what is dropped counts as a run without length."""
    assert isinstance(schedule.rule, Every)
    course, interval = course_of(schedule), schedule.rule.interval
    ended_at = after
    while True:
        first = from_ms(to_ms(max(ended_at + interval, schedule.start or ended_at)))
        shifts = _shifts(course, partial(steps, first, interval), since=first, budget=budget)
        # A calendar must not roll it back behind the end of the run before it.
        shift = next((shift for shift, _ in shifts if shift is not None and shift.at > ended_at), None)
        if shift is None:
            return
        yield _gathered([shift])
        ended_at = shift.at


def _until_the_end(schedule: Schedule, found: Iterator[Gathered]) -> Iterator[Gathered]:
    end = course_of(schedule).ends_at
    try:
        for gathered in found:
            if gathered.fire.at >= end:
                return
            yield gathered
    except TooCostly as error:
        error.field = schedule.rule.name
        raise


def _shifts(
    course: Course, source: _Source, *, since: datetime, budget: Budget
) -> Iterator[tuple[Shift | None, datetime]]:
    """Each nominal time as it was shifted, None for a dropped one, with the instant before which none that follow go."""
    end, look = course.ends_at, _steps_of_a_look(course)
    last_at, gathered_count = since, 0
    stream, year = source(since=since), 0
    while (nominal := next(stream, None)) is not None and nominal.at < end:
        budget.spend(look)
        if nominal.at.year != year:
            year = nominal.at.year
            _pay_for_holidays(course, year, budget)
        shift = course.shift(nominal)
        yield shift, course.floor(nominal)
        if shift is not None:
            gathered_count = gathered_count + 1 if shift.at == last_at else 0
            last_at = shift.at
            if gathered_count < MOST_GATHERED:
                continue
        following = course.goes_on_at(nominal)
        if following is not None and following > nominal.at:
            budget.spend(STEPS_OF_A_JUMP)
            stream = source(since=following)


def _pay_for_holidays(course: Course, year: int, budget: Budget) -> None:
    calendar = course.schedule.calendar
    for name in calendar.holidays if calendar is not None else ():
        budget.spend_once(name, STEPS_OF_A_SET)
        budget.spend_once((name, year), STEPS_OF_A_YEAR)


def _steps_of_a_look(course: Course) -> int:
    if course.hours is None:
        return STEPS_OF_A_LOOK
    calendar = course.schedule.calendar
    sets = len(calendar.holidays) if calendar is not None else 0
    return sets + STEPS_OF_AN_EVENT if isinstance(course.schedule.rule, Poisson) else sets + STEPS_OF_A_LOOK_AT_HOURS


def _in_order(shifts: Iterable[tuple[Shift | None, datetime]]) -> Iterator[Gathered]:
    """The fires by instant: one is held back until nothing that follows can come before it, or join it."""
    waiting: list[_Waiting] = []
    numbers = count()
    for shift, floor in shifts:
        if shift is not None:
            heapq.heappush(waiting, (shift.at, len(shift.shifted_by), next(numbers), shift))
        while waiting and waiting[0][0] < floor:
            yield _first_of(waiting)
    while waiting:
        yield _first_of(waiting)


def _first_of(waiting: list[_Waiting]) -> Gathered:
    shifts = [heapq.heappop(waiting)[-1]]
    while waiting and waiting[0][0] == shifts[0].at:
        shifts.append(heapq.heappop(waiting)[-1])
    return _gathered(shifts)


def _gathered(shifts: Sequence[Shift]) -> Gathered:
    shift = shifts[0]
    fire = Fire(at=shift.at, nominal_at=shift.nominal.at, shifted_by=shift.shifted_by, merged_count=len(shifts) - 1)
    return Gathered(fire, tuple(shifts))
