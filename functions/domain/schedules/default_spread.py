"""The spread of a schedule that says nothing of one: the default of its tenant, of its plan, or of its stage.

It is taken when the schedule is created or gets another rule, and stored with it. So a fire is worked out from the definition
alone, and no change of a default moves, repeats or skips a fire of a schedule that there is.
"""

from __future__ import annotations

from dataclasses import replace

from functions.domain.instants import SECOND
from functions.domain.schedules.rules import At, Poisson
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.spread import DefaultSpread
from functions.domain.schedules.step_budget import Budget
from functions.domain.schedules.validation import shortest_period


def takes_spread(schedule: Schedule) -> bool:
    """Whether a spread has a meaning for it that nobody has asked for: its times are those of many others."""
    return not (isinstance(schedule.rule, At | Poisson) or schedule.is_end_to_start)


def with_default_spread(
    schedule: Schedule,
    default: DefaultSpread | None,
    *,
    before: Schedule | None = None,
    is_asked_for: bool = False,
    budget: Budget | None = None,
) -> Schedule:
    """The schedule with the spread that it takes, where it says none itself.

    before: its definition until now, whose spread it keeps where that was not said either and its rule is the same.
    is_asked_for: it is to take the default of now all the same. Never more than the shortest time between two fires,
    so that a fire is not about a time long ago. budget: pays for the look at a recurrence. Raises TooCostly.
    """
    if schedule.says_spread or not takes_spread(schedule):
        return schedule
    if before is not None and not before.says_spread and before.rule == schedule.rule and not is_asked_for:
        return replace(schedule, spread=before.spread, spread_from=before.spread_from)
    if default is None:
        return schedule
    period = shortest_period(schedule.rule, budget)
    spread = default.spread if period is None else min(default.spread, period // SECOND * SECOND)
    return replace(schedule, spread=spread, spread_from=default.source) if spread else schedule
