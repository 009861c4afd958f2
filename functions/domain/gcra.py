"""The generic cell rate algorithm: jobs at a rate, with what was saved up while there were none.

GCRA (ITU-T Recommendation I.371, "Traffic control and congestion control in B-ISDN"; the virtual scheduling form): one
instant says it all, the theoretical arrival time, at which the next job would come were they spaced evenly. A job may
go `tolerance` ahead of it, and moves it on by the `interval`. So one conditional write reserves a whole batch, whoever
else reserves at the same moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from functions.domain.instants import SECOND

TOLERANCE = SECOND
"""How far an execution may go ahead of the theoretical arrival time: a ready queue delays by whole seconds anyway."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """slots: the instants from which the first jobs may run, in order. next_at: the theoretical arrival time after them."""

    slots: tuple[datetime, ...]
    next_at: datetime | None


def interval_of(rate: float) -> timedelta:
    """Between two jobs at a rate (jobs a second, above 0)."""
    return SECOND / rate


def tolerance_of(burst: int, interval: timedelta) -> timedelta:
    """With which `burst` jobs may go at once after a while of none."""
    return (burst - 1) * interval


def reserve(
    due_ats: Iterable[datetime],
    *,
    next_at: datetime | None,
    now: datetime,
    interval: timedelta,
    tolerance: timedelta,
    until: datetime,
) -> Reservation:
    """Slots for jobs in the order of their due times, as many as begin by `until`.

    next_at: the theoretical arrival time so far; None when there has been no job.
    """
    slots: list[datetime] = []
    for due_at in due_ats:
        arrives_at = max(due_at, now)
        slot = arrives_at if next_at is None else max(arrives_at, next_at - tolerance)
        if slot > until:
            break
        slots.append(slot)
        next_at = (slot if next_at is None else max(slot, next_at)) + interval
    return Reservation(tuple(slots), next_at)


def room_at(next_at: datetime, *, now: datetime, interval: timedelta, tolerance: timedelta) -> int:
    """How many jobs may go right now."""
    if next_at <= now:
        return tolerance // interval + 1
    return max(0, (now + tolerance - next_at) // interval + 1)
