"""Whether an id is that of a fire which its schedule decides: until it is claimed, nothing else is stored of it."""

from __future__ import annotations

from datetime import datetime, timedelta

from functions.domain.errors import TickwheelError
from functions.domain.instants import MILLISECOND
from functions.domain.jobs.job_id import JobId
from functions.domain.jobs.occurrence import fire_of
from functions.domain.schedules.firing import next_fire
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.state import ScheduleState, Status
from functions.domain.schedules.step_budget import STEPS_OF_A_TICK, Budget
from functions.domain.wheel import Wheel


def decides(
    schedule: Schedule | None, state: ScheduleState, job_id: JobId, *, now: datetime, wheel: Wheel, subshards: int
) -> bool:
    """Whether a schedule has placed a fire under this id, or is about to.

    schedule: None once it is deleted. subshards: over how many shards its tenant is spread. Of a version before the present
    one only its last fires are known, and not with which class and delivery it placed them.
    """
    fire = fire_of(job_id.identity)
    if fire is None or fire[1] is None or fire[2]:
        return False  # it was asked for, and is registered
    at = fire[1]
    # It may have been placed before its tenant was spread, or while it was.
    shards = {wheel.shard_of(job_id.tenant, fire[0], subshards=spread) for spread in (1, subshards)}
    if (job_id.due_at, job_id.bucket) != (at, wheel.bucket_of(at)) or job_id.shard not in shards:
        return False
    if at <= state.changed_at:
        return at in state.recent
    if schedule is None or (job_id.priority, job_id.delivery) != (schedule.job.priority, schedule.job.delivery):
        return False
    return _places(schedule, state, at, now=now, guard=wheel.guard)


def _places(schedule: Schedule, state: ScheduleState, at: datetime, *, now: datetime, guard: timedelta) -> bool:
    """Whether the present version has placed a fire at this time, or is about to."""
    link = state.link
    if at in state.recent or (link is not None and link.at == at):
        return True
    oldest = min(state.recent, default=None)
    if link is not None and oldest is not None and oldest < at < link.at:
        return False  # it was passed over
    if schedule.is_end_to_start or at > _placed_until(state, now=now, guard=guard):
        return False
    try:
        found = next_fire(schedule, after=at - MILLISECOND, budget=Budget(STEPS_OF_A_TICK))
    except TickwheelError:
        return False  # what cannot be computed was not placed either
    return found is not None and found.at == at


def _placed_until(state: ScheduleState, *, now: datetime, guard: timedelta) -> datetime:
    """No fire after that has been placed. It is noted once it was, so it may be ahead of what the state says."""
    if state.link is not None:
        return max(state.link.at, now + guard)
    if state.status is Status.PAUSED:
        return state.changed_at + guard
    return max(state.recent, default=state.changed_at)
