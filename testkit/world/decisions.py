"""What a step of a chain may decide: that every fire of its version runs, but those that a policy drops."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from datetime import datetime, timedelta

from functions.domain.instants import MILLISECOND
from functions.domain.schedules.due_fires import MISFIRE_GRACE, DueFires
from functions.domain.schedules.schedule import Misfire, Schedule
from functions.domain.schedules.state import Link, ScheduleState
from testkit.world.expected import fires_after, fires_between, interval_of, is_fire
from testkit.world.truth import Version


def wrong_about(
    version: Version, decided: DueFires, *, met: Link, fire_count: int, now: datetime, placed: Container[datetime]
) -> Iterator[str]:
    """What is wrong about a step from a link. placed: fires that a step before it has placed, and did not record."""
    schedule, kept = version.schedule, [link.at for link in decided.kept]
    end = decided.link.at if decided.link else max(kept, default=met.at) + MILLISECOND
    due = fires_between(schedule, met.at, end)
    for at in kept:
        if at not in due:
            yield f"extra: no rule names {at}"
    for at in due:
        if at not in kept and at not in placed and not _may_drop(schedule, at, kept, decided.link, now=now):
            yield f"lost: {at} was dropped at {now}"
    if decided.link is None and (schedule.max_runs is None or fire_count < schedule.max_runs):
        yield f"ended before its time: after {fire_count} fires"
    if decided.link is not None and not is_fire(schedule, decided.link.at):
        yield f"extra: no rule names {decided.link.at}"


def wrong_beginning(
    version: Version, link: Link | None, *, met: ScheduleState | None, fire_count: int
) -> Iterator[str]:
    """What is wrong about the link that a version begins with."""
    schedule = version.schedule
    was = met.link if met else None
    if schedule.is_end_to_start and was is not None and was.is_awaited and was.at <= version.since:
        expected = was.at
    elif schedule.max_runs is not None and fire_count >= schedule.max_runs:
        expected = None
    elif not schedule.is_end_to_start:
        expected = next(fires_after(schedule, version.since))
    else:
        expected = version.since + interval_of(schedule)
    found = link.at if link else None
    if found != expected:
        yield f"began at {found}, and not at {expected}"


def wrong_in_order(
    fire_at: datetime, *, interval: timedelta, since: datetime, ends: Sequence[datetime]
) -> Iterator[str]:
    """What is wrong about a fire from end to start. ends: of what has come to its end."""
    if fire_at - interval not in (since, *ends):
        yield f"extra: {fire_at} follows the end of nothing"


def _may_drop(schedule: Schedule, at: datetime, kept: Sequence[datetime], link: Link | None, *, now: datetime) -> bool:
    if schedule.max_lateness is not None and at < now - schedule.max_lateness:
        return True
    if not _is_missed(at, now):
        return False
    if schedule.misfire is Misfire.SKIP:
        return True
    # A missed fire after it stands for it.
    later = min((other for other in kept if other > at), default=link and link.at)
    return schedule.misfire is Misfire.COALESCE and later is not None and _is_missed(later, now)


def _is_missed(at: datetime, now: datetime) -> bool:
    return at < now - MISFIRE_GRACE
