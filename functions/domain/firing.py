"""When a schedule fires. Pure: the same schedule and instant give the same fires, whoever asks and from wherever."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from typing import NamedTuple, Protocol

from functions.domain.cron import REACH_YEARS
from functions.domain.errors import InvalidSchedule
from functions.domain.instants import EPOCH, LATEST, format_instant, from_ms, to_ms
from functions.domain.moving import Course, Move, course_of
from functions.domain.nominals import nominals
from functions.domain.schedule import At, Every, Fire, Schedule
from functions.domain.sense import check_sense, name_of
from functions.domain.zones import Nominal

MOST_DROPPED = 50_000
"""Nominal times in a row that give no fire: then none ever will."""

_MANY_DROPPED = 50
_LONG_WITHOUT = timedelta(days=REACH_YEARS * 366)
"""After so many of them and so long a time too, that has seen each date on each weekday."""

_LAST = datetime(9998, 1, 1, tzinfo=UTC)
"""A year before the end of the calendar, so that looking around an instant does not lead out of it."""

_MICROSECOND = timedelta(microseconds=1)


_Waiting = tuple[datetime, int, int, Move]
"""By instant, then by how many things moved it, then by nominal time."""


class _Source(Protocol):
    def __call__(self, *, since: datetime) -> Iterator[Nominal]: ...


class Gathered(NamedTuple):
    """A fire, and the nominal times that became it, the one that was moved least first."""

    fire: Fire
    moves: tuple[Move, ...]


def fires(schedule: Schedule, *, after: datetime) -> Iterator[Fire]:
    """The fires after `after` (exclusive, aware), in order, each at an instant of its own; `max_runs` is not looked at.

    From end to start `after` is the end of the last run, or the creation, and each run is taken for one without length.
    Nominal times of one instant are one fire: it is the fire of the one that was moved least, and counts the others.
    """
    return (gathered.fire for gathered in gather(schedule, after=after))


def gather(schedule: Schedule, *, after: datetime) -> Iterator[Gathered]:
    """The fires after `after`, each with what it is made from."""
    after = max(after.astimezone(UTC), EPOCH)
    if after >= _LAST:
        return iter(())
    if schedule.is_end_to_start:
        return _until_the_end(schedule, _end_to_start(schedule, after))
    if schedule.start is not None:
        after = max(after, schedule.start.astimezone(UTC) - _MICROSECOND)
    course = course_of(schedule)
    since = course.looks_back_to(after)
    if schedule.start is not None:
        since = max(since, schedule.start.astimezone(UTC))
    found = _in_order(_moves(course, partial(nominals, schedule), since=since))
    return _until_the_end(schedule, (gathered for gathered in found if gathered.fire.at > after))


def check_fires(schedule: Schedule, *, now: datetime) -> Fire:
    """The first fire after `now`. Raises InvalidSchedule for one that has none, or that does not make sense."""
    check_sense(schedule)
    fire = next_fire(schedule, after=now)
    if fire is None:
        raise _never(schedule, now)
    return fire


def next_fire(schedule: Schedule, *, after: datetime, index: int = 0) -> Fire | None:
    """The first fire after `after` of a schedule that has fired `index` times; None when there is none."""
    if schedule.max_runs is not None and index >= schedule.max_runs:
        return None
    return next(fires(schedule, after=after), None)


def _never(schedule: Schedule, now: datetime) -> InvalidSchedule:
    if isinstance(schedule.rule, At) and schedule.rule.at <= now:
        return InvalidSchedule("is past: nothing would ever fire", field="at", value=format_instant(schedule.rule.at))
    if schedule.end is not None and schedule.end <= now:
        return InvalidSchedule("is past: nothing would ever fire", field="end", value=format_instant(schedule.end))
    at_all_times = replace(schedule, windows=(), window_mode=None, calendar=None)
    if next_fire(at_all_times, after=now) is not None:
        field = "windows" if schedule.windows else "calendar"
        return InvalidSchedule("leave nothing of what the rule names: nothing would ever fire", field=field)
    if schedule.end is not None and next_fire(replace(at_all_times, end=None), after=now) is not None:
        return InvalidSchedule("is before the first fire", field="end", value=format_instant(schedule.end))
    return InvalidSchedule("names no time after now: nothing would ever fire", field=name_of(schedule.rule))


def _end_to_start(schedule: Schedule, after: datetime) -> Iterator[Gathered]:
    """An interval after `after`, or at the start; what is dropped counts as a run without length."""
    assert isinstance(schedule.rule, Every)
    course, interval = course_of(schedule), schedule.rule.interval
    ended_at = after
    while True:
        first = from_ms(to_ms(max(ended_at + interval, schedule.start or ended_at)))
        moves = _moves(course, partial(_steps, first, interval), since=first)
        # A calendar must not roll it back behind the end of the run before it.
        move = next((move for move, _ in moves if move is not None and move.at > ended_at), None)
        if move is None:
            return
        yield _gathered([move])
        ended_at = move.at


def _steps(first: datetime, interval: timedelta, *, since: datetime) -> Iterator[Nominal]:
    at = first + max(0, -((first - since) // interval)) * interval
    while True:
        yield Nominal(at)
        at += interval


def _until_the_end(schedule: Schedule, found: Iterator[Gathered]) -> Iterator[Gathered]:
    try:
        for gathered in found:
            if gathered.fire.at >= (schedule.end or LATEST) or gathered.fire.at >= LATEST:
                return
            yield gathered
    except OverflowError:
        return  # the end of the calendar


def _moves(course: Course, source: _Source, *, since: datetime) -> Iterator[tuple[Move | None, datetime]]:
    """Each nominal time as it was moved, None for a dropped one, with the instant before which none that follow go."""
    end = course.schedule.end
    dropped_count, last_at = 0, since
    stream = source(since=since)
    while (nominal := next(stream, None)) is not None and (end is None or nominal.at < end):
        move = course.move(nominal)
        yield move, course.floor(nominal)
        if move is not None:
            dropped_count, last_at = 0, nominal.at
            continue
        dropped_count += 1
        is_hopeless = dropped_count >= _MANY_DROPPED and nominal.at - last_at >= _LONG_WITHOUT
        if is_hopeless or dropped_count >= MOST_DROPPED:
            return
        following = course.goes_on_at(nominal)
        if following is not None and following > nominal.at:
            stream = source(since=following)


def _in_order(moves: Iterable[tuple[Move | None, datetime]]) -> Iterator[Gathered]:
    """The fires by instant: one is held back until nothing that follows can come before it, or join it."""
    waiting: list[_Waiting] = []
    numbers = count()
    for move, floor in moves:
        if move is not None:
            heapq.heappush(waiting, (move.at, len(move.moved_by), next(numbers), move))
        while waiting and waiting[0][0] < floor:
            yield _first_of(waiting)
    while waiting:
        yield _first_of(waiting)


def _first_of(waiting: list[_Waiting]) -> Gathered:
    moves = [heapq.heappop(waiting)[-1]]
    while waiting and waiting[0][0] == moves[0].at:
        moves.append(heapq.heappop(waiting)[-1])
    return _gathered(moves)


def _gathered(moves: Sequence[Move]) -> Gathered:
    move = moves[0]
    fire = Fire(at=move.at, nominal_at=move.nominal.at, moved_by=move.moved_by, merged_count=len(moves) - 1)
    return Gathered(fire, tuple(moves))
