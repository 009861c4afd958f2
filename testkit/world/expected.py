"""When a schedule fires, worked out in another way than the scheduler's: by arithmetic, or by another cron library."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import takewhile

from cronsim import CronSim

from functions.domain.instants import EPOCH, MILLISECOND
from functions.domain.schedules.rules import CronRule, Every
from functions.domain.schedules.schedule import Schedule


def fires_after(schedule: Schedule, after: datetime) -> Iterator[datetime]:
    """The fires after an instant, in order. Not from end to start: those depend on what runs."""
    match schedule.rule:
        case CronRule(expression):
            yield from CronSim(expression, after)
        case Every(interval=interval, phase=phase):
            first = EPOCH + phase
            at = first + ((after - first) // interval + 1) * interval
            while True:
                yield at
                at += interval
        case rule:
            raise NotImplementedError(rule)


def fires_between(schedule: Schedule, start: datetime, end: datetime) -> list[datetime]:
    """The fires from `start` up to, and not including, `end`."""
    return list(takewhile(lambda at: at < end, fires_after(schedule, start - MILLISECOND)))


def is_fire(schedule: Schedule, at: datetime) -> bool:
    """Whether it fires at that very instant."""
    return next(fires_after(schedule, at - MILLISECOND)) == at


def interval_of(schedule: Schedule) -> timedelta:
    """From the end of a run to the next fire."""
    assert isinstance(schedule.rule, Every)
    return schedule.rule.interval
