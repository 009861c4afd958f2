"""Whether the parts of a schedule make sense together: what can be said only once its texts are parsed."""

from __future__ import annotations

from datetime import timedelta

from functions.domain.instants import DAY, HOUR, MINUTE
from functions.domain.schedules.calendars import check_calendar
from functions.domain.schedules.cron import parse_cron
from functions.domain.schedules.cron_checks import check_new_cron
from functions.domain.schedules.require import require
from functions.domain.schedules.rrules import check_recurrence, recurrence_of
from functions.domain.schedules.rules import MAX_EVENTS_PER_DAY, At, CronRule, Every, Poisson, RecurrenceRule, Rule
from functions.domain.schedules.schedule import Roll, Schedule, WindowMode
from functions.domain.schedules.step_budget import STEPS_OF_A_WALK, Budget
from functions.domain.schedules.windows import open_share
from functions.domain.schedules.zones import zone_of

SHORTEST_WAIT = MINUTE
"""Between fires that are gathered over closed hours: each of them is looked at."""

SHORTEST_ROLL = HOUR
"""Between fires that roll over excluded dates: a month of them is looked at for each fire."""


def check_consistency(schedule: Schedule, *, budget: Budget | None = None) -> None:
    """Raises InvalidSchedule for unknown names, a bad expression, and parts that contradict each other; TooCostly."""
    zone_of(schedule.timezone)
    if schedule.calendar is not None:
        check_calendar(schedule.calendar)
    if isinstance(schedule.rule, RecurrenceRule):
        check_recurrence(schedule.rule, budget or Budget(STEPS_OF_A_WALK))
    if isinstance(schedule.rule, Poisson):
        _check_poisson(schedule, schedule.rule)
    else:
        _check_period(schedule, budget)


def check_new(schedule: Schedule, *, before: Schedule | None) -> None:
    """Raises InvalidSchedule for a rule that is only read where it is stored already, as it is in `before`."""
    rule = schedule.rule
    if isinstance(rule, CronRule) and (before is None or before.rule != rule):
        check_new_cron(rule.expression)


def shortest_period(rule: Rule, budget: Budget | None = None) -> timedelta | None:
    """The shortest time between two fires of a rule; None where there are not two. Of a recurrence, as far as was seen.

    budget: pays for the look at a recurrence. Raises TooCostly where it is spent.
    """
    match rule:
        case Every(interval=interval):
            return interval
        case CronRule(expression):
            return parse_cron(expression).shortest_period
        case RecurrenceRule():
            return recurrence_of(rule).shortest_period(budget)
        case At() | Poisson():
            return None


def _check_period(schedule: Schedule, budget: Budget | None) -> None:
    rolls = schedule.calendar is not None and schedule.calendar.roll is not Roll.SKIP
    if not schedule.jitter and schedule.mode is not WindowMode.DEFER and not rolls:
        return
    period = shortest_period(schedule.rule, budget)
    if period is None:
        return
    jitter, mode = schedule.jitter, schedule.mode
    longer = f"must be shorter than the shortest time between two fires, {period.total_seconds():g} s"
    require(jitter < period, longer, "jitter", jitter)
    waits = period < SHORTEST_WAIT and mode is WindowMode.DEFER
    require(not waits, "defer is for rules that fire at most once a minute: use skip", "window_mode", mode)
    roll = schedule.calendar.roll if schedule.calendar is not None else Roll.SKIP
    is_seldom = period >= SHORTEST_ROLL or roll is Roll.SKIP
    require(is_seldom, f"{roll} is for rules that fire at most once an hour: use skip", "calendar.roll", roll)


def _check_poisson(schedule: Schedule, rule: Poisson) -> None:
    for field, delay in (("spread", schedule.spread), ("jitter", schedule.jitter)):
        require(not delay, "has no meaning for poisson: its events are random already", field, delay)
    roll = schedule.calendar.roll if schedule.calendar is not None else Roll.SKIP
    without_date = "has no meaning for poisson, whose events belong to no date: leave it out"
    require(roll is Roll.SKIP, without_date, "calendar.roll", roll)
    per_day = rule.per_day * open_share(schedule)
    too_many = (
        f"would be {per_day:.0f} a day while its windows are open, more than {MAX_EVENTS_PER_DAY:.0f}: widen them, or "
        "ask for fewer"
    )
    require(per_day <= MAX_EVENTS_PER_DAY, too_many, "poisson.per_day", rule.per_day)
    waits = schedule.mode is WindowMode.DEFER and rule.per_day * SHORTEST_WAIT > DAY
    seldom = f"defer is for at most {DAY // SHORTEST_WAIT} events a day: use scale"
    require(not waits, seldom, "window_mode", schedule.mode)
