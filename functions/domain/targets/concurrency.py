"""How many of a tenant's jobs are called at the same time: its permits, and how long a job waits that found none.

A call of a tenant whose concurrency is capped has one of its permits, which are numbered from 0 and of which there are as
many as calls are allowed. A permit is a lease: whoever dies with one gives it back by that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from functions.domain.instants import DAY, SECOND

PERMIT_LIFE = DAY
"""How long the row of a permit is kept beyond its lease."""

_HALF_LIFE = timedelta(seconds=60)
_SHORTEST_WAIT = 2 * SECOND
_LONGEST_NEAR_WAIT = timedelta(seconds=60)
_WIDEST_FAR_SPREAD = timedelta(minutes=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """The right to one of a tenant's calls. number: from 0. owner: a token, fresh for each receive of a message."""

    tenant: str
    number: int
    owner: str
    lease_until: datetime

    @property
    def expires_at(self) -> datetime:
        """When its row may go."""
        return self.lease_until + PERMIT_LIFE


def is_free(lease_until: datetime | None, *, now: datetime, skew: timedelta) -> bool:
    """Whether nobody can have a permit any more. The store has no clock, so the comparison carries SKEW."""
    return lease_until is None or lease_until + skew < now


def free_permits(
    leases: Mapping[int, datetime], *, limit: int, now: datetime, skew: timedelta, chance: float
) -> Sequence[int]:
    """The numbers of the permits that are free, beginning anywhere among them, so that two processes seldom try the same one.

    chance: a random number from 0 up to 1.
    """
    free = [number for number in range(limit) if is_free(leases.get(number), now=now, skew=skew)]
    first = int(chance * len(free))
    return free[first:] + free[:first]


@dataclass(frozen=True, slots=True)
class Crowd:
    """How many jobs of a tenant have been turned away of late: each counts for half after a minute.

    at: on a monotonic clock, in seconds.
    """

    count: float = 0.0
    at: float = 0.0

    def grown(self, *, at: float) -> Crowd:
        """With one more."""
        return Crowd(self.count * 0.5 ** ((at - self.at) / _HALF_LIFE.total_seconds()) + 1, at)


def wait_for_permit(crowd: Crowd, *, limit: int, far: timedelta, jitter: float) -> timedelta:
    """How long a job waits that found no permit. far: how far ahead the far ring begins. jitter: a random number from 0 up to 1.

    The more jobs are turned away for each permit, the longer: a few seconds for the first of them, about a minute in the
    near ring when thirty have been, and then in the far ring, spread over half an hour at most. With
    two permits that stay taken, a process asks for one job in two seconds where 20 wait, and for 9 a second where 5,000
    do. The crowd counts, not the age of the job: who has waited long is let in as likely as who has just come. There
    is no order among those who wait.
    """
    wait = _SHORTEST_WAIT * (1 + crowd.count / limit)
    if wait <= _LONGEST_NEAR_WAIT:
        return wait * (0.5 + jitter)
    return far + min(wait, _WIDEST_FAR_SPREAD) * jitter
