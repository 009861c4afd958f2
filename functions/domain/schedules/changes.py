"""What a change of a schedule does to its chain: the new version decides every fire after it, and no other.

Fires that have come due stay with the version that decided them; what it has placed for later is dropped.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from itertools import islice, takewhile

from functions.domain.errors import InvalidInput, InvalidSchedule
from functions.domain.instants import MICROSECOND, MILLISECOND
from functions.domain.schedules.due_fires import first_link
from functions.domain.schedules.firing import fires, next_fire
from functions.domain.schedules.rrules import counted
from functions.domain.schedules.rules import RecurrenceRule
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.shifts import course_of
from functions.domain.schedules.state import Link, ScheduleState, Status, changed
from functions.domain.schedules.zones import Nominal

_MOST_DROPPED = 1_000
"""More fires than the near ring holds of a schedule of seconds."""


def activated(
    schedule: Schedule, *, before: Schedule | None, state: ScheduleState | None, now: datetime, note: str = ""
) -> ScheduleState:
    """The state of a schedule that is created, replaced or resumed. before: its definition until now."""
    if state is not None and state.status is Status.DELETED:
        # What is left of it is older than all that follows.
        state = ScheduleState(
            version=state.version,
            status=state.status,
            changed_at=state.changed_at,
            born=state.version + 1,
            share=state.share,
        )
    dropped_count = placed_ahead(before, state, now=now)
    after = changed(state, status=Status.ACTIVE, now=now, note=note, dropped_count=dropped_count)
    return replace(after, link=_link(schedule, before=before, state=state, after=after))


def stopped(status: Status, *, before: Schedule, state: ScheduleState, now: datetime, note: str = "") -> ScheduleState:
    """The state of a schedule that is paused or deleted: nothing follows.

    From end to start a paused one still awaits the run that has begun, so that the next does not begin before its end.
    """
    after = changed(state, status=status, now=now, note=note, dropped_count=placed_ahead(before, state, now=now))
    # Whoever changes it next must not work out either what it would have fired.
    after = replace(after, asides=state.asides, aside_at=state.aside_at)
    return replace(after, link=_awaited(before, state, after)) if status is Status.PAUSED else after


def _awaited(schedule: Schedule, state: ScheduleState | None, after: ScheduleState) -> Link | None:
    """The link to a run that has come due, from end to start."""
    link = state.link if state else None
    return link if schedule.is_end_to_start and link and link.is_awaited and link.at <= after.changed_at else None


def _link(
    schedule: Schedule, *, before: Schedule | None, state: ScheduleState | None, after: ScheduleState
) -> Link | None:
    if awaited := _awaited(schedule, state, after):
        return awaited  # its run continues, and the next fire waits for its end as before
    previous_at = after.recent[-1] if after.recent else None
    link = first_link(schedule, after=after.changed_at, index=after.fire_count, previous_at=previous_at)
    last_nominal = _nominal_of(None if state and state.asides else before, previous_at)
    if link is None or last_nominal is None or schedule.is_end_to_start:
        return link
    # What has fired does not fire again because a spread, a window or a calendar now shifts it behind the change.
    earliest = course_of(schedule).floor(Nominal(last_nominal)) - MICROSECOND
    for fire in fires(schedule, after=max(after.changed_at, earliest)):
        if fire.nominal_at > last_nominal:
            return replace(link, at=fire.at, nominal_at=fire.nominal_at, merged_count=fire.merged_count)
    return None


def _nominal_of(schedule: Schedule | None, fire_at: datetime | None) -> datetime | None:
    if schedule is None or fire_at is None or schedule.is_end_to_start:
        return None
    try:
        fire = next_fire(schedule, after=fire_at - MILLISECOND)
    except InvalidInput:
        return fire_at
    # An older definition decided it.
    return fire.nominal_at if fire and fire.at == fire_at else fire_at


def placed_ahead(before: Schedule | None, state: ScheduleState | None, *, now: datetime) -> int:
    """How many fires of an active schedule have been placed that are not due yet.

    0 for a definition that cannot be computed any more, such as one with a calendar that is no longer known, and for one
    that was set aside because that takes too much: it must be possible to change it.
    """
    if before is None or state is None or state.status is not Status.ACTIVE or state.is_costly(now):
        return 0
    try:
        return _placed_ahead(before, state, now=now)
    except InvalidInput:
        return 0


def _placed_ahead(before: Schedule, state: ScheduleState, *, now: datetime) -> int:
    # Clocks differ: what came before this version was not its own to place.
    now = max(now, state.changed_at)
    if before.is_end_to_start:
        return sum(fire_at > now for fire_at in state.recent)
    # Without a link the last of all has been placed.
    end = state.link.at if state.link else max((at + MILLISECOND for at in state.recent), default=now)
    last_nominal = _nominal_of(before, max((at for at in state.recent if at <= now), default=None))
    dropped = takewhile(lambda fire: fire.at < end, fires(before, after=now))
    return sum(last_nominal is None or fire.nominal_at > last_nominal for fire in islice(dropped, _MOST_DROPPED))


def with_counted_rule(schedule: Schedule, before: Schedule | None) -> Schedule:
    """With what is known of a rule that stays as it is."""
    rule = before.rule if before is not None else None
    return (
        replace(schedule, rule=counted(rule))
        if isinstance(rule, RecurrenceRule) and rule == schedule.rule
        else schedule
    )


def with_a_fire(schedule: Schedule, state: ScheduleState) -> ScheduleState:
    """The state itself. Raises InvalidSchedule for an active one that would never fire again."""
    if state.status is Status.ACTIVE and state.link is None:
        raise InvalidSchedule("has no fire left: it has had max_runs", field="max_runs", value=schedule.max_runs)
    return state
