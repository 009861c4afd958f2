"""The times that a rule names, before anything shifts them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import takewhile

from functions.domain.instants import EPOCH, from_ms, to_ms
from functions.domain.schedules.cron import parse_cron
from functions.domain.schedules.poisson import events
from functions.domain.schedules.rrules import recurrence_of
from functions.domain.schedules.rules import At, CronRule, Every, Fold, Gap, Poisson, RecurrenceRule
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.step_budget import Budget
from functions.domain.schedules.windows import open_share
from functions.domain.schedules.zones import Nominal, first_local, in_time, zone_of


def nominal_times(schedule: Schedule, *, since: datetime, budget: Budget | None = None) -> Iterator[Nominal]:
    """The times that the rule names from `since` (inclusive, aware UTC) on, in order; each a whole millisecond.

    Neither start and end, nor windows and calendar have a say here, but start is where intervals are counted from. Not
    for an interval from end to start, which has no times of its own. budget: pays for what lies between them.
    """
    match schedule.rule:
        case At(at):
            due_at = from_ms(to_ms(at))
            return iter([Nominal(due_at)] if due_at >= since else [])
        case Every():
            start = from_ms(to_ms(schedule.start)) if schedule.start else EPOCH
            return steps(start + schedule.rule.phase, schedule.rule.interval, since=since)
        case Poisson(per_day):
            per_day *= open_share(schedule)
            return (Nominal(from_ms(ms)) for ms in events(schedule.uid, per_day=per_day, since_ms=to_ms(since)))
        case CronRule(expression):
            zone = zone_of(schedule.timezone)
            matches = parse_cron(expression).matches(since=first_local(since, zone))
            gap, fold = clock_policy(schedule)
            return in_time(matches, zone, since=since, gap=gap, fold=fold, budget=budget)
        case RecurrenceRule():
            return _recurrences(schedule, schedule.rule, since=since, budget=budget)


def clock_policy(schedule: Schedule) -> tuple[Gap, Fold]:
    """What becomes of local times that a clock change skips and repeats: what was asked for, or else as Debian's cron."""
    rule = schedule.rule
    if isinstance(rule, CronRule) and parse_cron(rule.expression).follows_elapsed_time:
        return schedule.gap or Gap.SKIP, schedule.fold or Fold.BOTH
    return schedule.gap or Gap.NEXT_VALID, schedule.fold or Fold.FIRST


def steps(first: datetime, interval: timedelta, *, since: datetime) -> Iterator[Nominal]:
    """Every interval from the first instant on, those before `since` left out."""
    at = first + max(0, -((first - since) // interval)) * interval
    while True:
        yield Nominal(at)
        at += interval


def _recurrences(
    schedule: Schedule, rule: RecurrenceRule, *, since: datetime, budget: Budget | None
) -> Iterator[Nominal]:
    zone = zone_of(schedule.timezone)
    recurrence = recurrence_of(rule)
    gap, fold = clock_policy(schedule)
    matches = recurrence.matches(since=first_local(since, zone), budget=budget)
    found = in_time(matches, zone, since=since, gap=gap, fold=fold, budget=budget)
    last = recurrence.until
    return found if last is None or last.tzinfo is None else takewhile(lambda nominal: nominal.at <= last, found)
