"""The generic cell rate algorithm: jobs at a rate, with what was saved up while there were none.

GCRA (ITU-T Recommendation I.371, "Traffic control and congestion control in B-ISDN"; the virtual scheduling form): one
instant says it all, the theoretical arrival time, at which the next job would come were they spaced evenly. A job may
go a tolerance ahead of it, and moves it on by an interval. So one conditional write lets a whole batch in, whoever else
asks at the same moment. It takes jobs in the order in which they come, so it is for what comes now: for jobs that are
due at different times see `timetable`.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from functions.domain.instants import SECOND


def interval_of(rate: float) -> timedelta:
    """Between two jobs at a rate (jobs a second, above 0)."""
    return SECOND / rate


def tolerance_of(burst: int, interval: timedelta) -> timedelta:
    """With which `burst` jobs may go at once after a while of none."""
    return (burst - 1) * interval


def room_at(next_at: datetime, *, now: datetime, interval: timedelta, tolerance: timedelta) -> int:
    """How many jobs may go right now. next_at: the theoretical arrival time."""
    if next_at <= now:
        return tolerance // interval + 1
    return max(0, (now + tolerance - next_at) // interval + 1)
