"""When within a second the scanner sends what it promotes.

A queue delays by whole seconds, so a message becomes visible at the fraction of a second at which it was sent. Sent whenever it was
read, a job is half a second late on average. The scanner sends a minute and more ahead: it can wait for the fraction at which a job is due.

Waiting costs memory for as long as it lasts, and a full batch costs as much as one of a single message. So the wait is bounded, and
what comes due within a moment goes together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import NamedTuple

from functions.domain.far_ring.sealed_timer import Sendable
from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.jobs.job import Precision

MOMENT = 100 * MILLISECOND
"""What comes due within it goes together; what is left of it beside full batches goes with the next."""

FULL = 10
"""Messages of a full batch of SQS."""

_EXACT_LEAD = 2 * MOMENT
"""How long before its fraction of a second an `exact` job goes out at best, so that it is held for little more than a second, and not for
two: its delay is rounded down."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a tick may wait. spare: whatever it sends; a_job: and for each job of a page; most: for a page."""

    spare: timedelta = timedelta(0)
    a_job: timedelta = timedelta(0)
    most: timedelta = timedelta(0)


IMPATIENT = Patience()
"""Sends at once."""


def patience_of(shards: int) -> Patience:
    """Of one shard of a stage: all of them together spare a second of each minute, and 5 ms a job.

    A page waits no whole second: what would have to wait longest is sent first, and is late by what is left of the second.
    """
    return Patience(spare=SECOND / shards, a_job=5 * MILLISECOND, most=750 * MILLISECOND)


class Sending(NamedTuple):
    """Timers that go together, so long after they were read."""

    after: timedelta
    timers: Sequence[Sendable]


def sendings(timers: Sequence[Sendable], *, now: datetime, within: timedelta) -> list[Sending]:
    """All of these timers, in the order in which they go. within: how long the last of them may wait.

    What is sent `after` its fraction of a second is late by that, and never early. What cannot be met in time goes at once.
    """
    waits = [(_wait(timer, now=now), timer) for timer in timers]
    at_once = [timer for wait, timer in waits if wait > within]
    prompt = sorted(((wait, timer) for wait, timer in waits if wait <= within), key=lambda each: each[0])
    found = [Sending(timedelta(0), at_once)] if at_once else []
    moments = [(number, list(members)) for number, members in groupby(prompt, key=lambda each: each[0] // MOMENT)]
    numbers = {number for number, _ in moments}
    held: list[tuple[timedelta, Sendable]] = []
    for number, members in moments:
        held += members
        may_be_left = len(held) > FULL and number + 1 in numbers
        going = len(held) // FULL * FULL if may_be_left else len(held)
        found.append(_together(held[:going]))
        held = held[going:]
    return found


def _wait(timer: Sendable, *, now: datetime) -> timedelta:
    lead = _EXACT_LEAD if timer.job.precision is Precision.EXACT else timedelta(0)
    left = timer.wakes_at - lead - now
    return left % SECOND if left > timedelta(0) else timedelta(0)


def _together(members: Sequence[tuple[timedelta, Sendable]]) -> Sending:
    return Sending(members[-1][0], [timer for _, timer in members])
