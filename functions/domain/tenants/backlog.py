"""What a capped rate can never serve in time: jobs that wait, as a queue that its rate drains day by day.

A tenant that submits more than its `execution_rate` serves has a backlog that only grows. It is reported where that is not
a matter of hours any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from math import ceil

from functions.domain.jobs.callbacks import is_callback
from functions.domain.jobs.claims import TIMER_LIFE
from functions.domain.jobs.occurrence import fire_of

MOST_AHEAD = timedelta(days=7)
"""A job that would wait so long for its turn is not taken in."""

OVERDUE_DAYS = TIMER_LIFE.days
"""How long after its day a job that waits for its turn is counted."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """count: jobs that wait by the end of a day, about. rate: a second, that serves them."""

    count: int
    rate: float

    @property
    def takes(self) -> timedelta:
        """How long the rate takes to serve them."""
        return timedelta(seconds=self.count / self.rate)

    @property
    def limit(self) -> int:
        """How many the rate serves in the longest time that a job may wait for its turn."""
        return ceil(MOST_AHEAD.total_seconds() * self.rate)

    @property
    def room(self) -> int:
        """How many more may come; none where it takes too long already."""
        return max(0, self.limit - self.count)


def is_counted(identity: str, *, is_asked_for: bool) -> bool:
    """Whether a job counts among those that wait: all that somebody asks for, by a submission, a trigger, a replay.

    What a schedule decides by itself does not, nor does a callback, until it is replayed.
    """
    fire = fire_of(identity)
    return is_asked_for or (not is_callback(identity) if fire is None else bool(fire[2]))


def backlog_on(day: date, counts: Mapping[date, int], *, rate: float, now: datetime) -> Backlog:
    """What waits by the end of a day, which is not over. counts: jobs by the day on which they are due, overdue ones among them."""
    return backlogs_on([day], counts, rate=rate, now=now)[day]


def backlogs_on(
    days: Iterable[date], counts: Mapping[date, int], *, rate: float, now: datetime
) -> Mapping[date, Backlog]:
    """As `backlog_on`, of many days: one walk over all of them."""
    today, asked = now.date(), set(days)
    waiting = sum(count for due, count in counts.items() if due <= today)
    found = {day: Backlog(waiting, rate) for day in asked if day <= today}
    last, at = max(asked, default=today), now
    for day in sorted({due for due in counts if today < due <= last} | (asked - set(found))):
        begins_at = datetime.combine(day, time(), tzinfo=UTC)
        left = max(0, waiting - int((begins_at - at).total_seconds() * rate)) + counts.get(day, 0)
        if day in asked:
            found[day] = Backlog(left, rate)
        if day in counts:
            waiting, at = left, begins_at
    return found
