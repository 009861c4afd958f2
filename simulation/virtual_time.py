"""Time that passes only when something happens: one heap of events for the world, one clock for each invocation.

An invocation runs to its end in one event. Its own clock starts at that event's instant and goes on by what its calls
take; whatever it sends comes to pass at the instant of its own clock. So no invocation holds up another, and the world
does not wait for anybody.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from typing import Any

from simulation.limits import Latency

START = datetime(2027, 3, 1, 12, 0, 0, tzinfo=UTC)
"""The instant 0 of virtual time: a full hour."""

_Z99 = 2.3263
"""The 99th percentile of the standard normal distribution."""


class World:
    """The events to come, in the order of their instants; equal ones in the order in which they were planned.

    Instants are seconds since START.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def at(self, instant: float, act: Callable[[], None]) -> None:
        """Let something happen then; at once, if that has passed."""
        heappush(self._events, (max(instant, self.now), next(self._numbers), act))

    def run(self, *, until: float) -> None:
        """Let happen what is planned up to an instant."""
        while self._events and self._events[0][0] <= until:
            self.now, _, act = heappop(self._events)
            act()
        self.now = max(self.now, until)


class InvocationClock:
    """The clock of one execution environment. speed: of its CPU, where 1 is a whole core.

    CPU is shared by what runs side by side: together it takes at least as long as the CPU needs for all of it.
    """

    def __init__(self, *, speed: float = 1.0) -> None:
        self.at = 0.0
        self._cpu = 0.0
        self._speed = speed

    def start(self, instant: float) -> None:
        """An invocation begins."""
        self.at = instant
        self._cpu = 0.0

    def now(self) -> datetime:
        """The wall clock: aware UTC."""
        return instant_of(self.at)

    def monotonic(self) -> float:
        """Seconds."""
        return self.at

    def sleep(self, duration: timedelta) -> None:
        """Wait."""
        self.at += max(0.0, duration.total_seconds())

    def offset(self) -> timedelta:
        """All clocks agree."""
        return timedelta(0)

    def limited(self, _: timedelta) -> AbstractContextManager[None]:
        """Nobody's definitions take too much here."""
        return nullcontext()

    def spend(self, seconds: float, *, cpu: float = 0.0) -> None:
        """A call takes its time on the wire, and CPU (seconds of a whole core)."""
        cpu /= self._speed
        self._cpu += cpu
        self.at += seconds + cpu

    def side_by_side(self, acts: Sequence[Callable[[], Any]], *, lanes: int) -> list[Any]:
        """Run the acts at the same time, so many at once; what they return, in order."""
        began_at, cpu_before = self.at, self._cpu
        free_at = [began_at] * min(lanes, len(acts))
        answers: list[Any] = []
        for act in acts:
            lane = free_at.index(min(free_at))
            self.at = free_at[lane]
            answers.append(act())
            free_at[lane] = self.at
        self.at = max([*free_at, began_at + self._cpu - cpu_before])
        return answers


class Dice:
    """All chance of a run, from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._numbers = count(1)

    def duration(self, latency: Latency) -> float:
        """Seconds, lognormal."""
        sigma = math.log(latency.p99 / latency.p50) / _Z99
        return latency.p50 * math.exp(sigma * self.random.gauss(0.0, 1.0))

    def poisson(self, mean: float) -> int:
        """How many of many rare things happen: by Knuth's method, in pieces whose e**-mean is no underflow."""
        total = 0
        while mean > 0:
            piece = min(mean, 500.0)
            mean -= piece
            limit, product = math.exp(-piece), self.random.random()
            while product > limit:
                total += 1
                product *= self.random.random()
        return total

    def token(self) -> str:
        """A fresh owner token."""
        return f"{next(self._numbers):016x}"


def instant_of(seconds: float) -> datetime:
    """The instant so many seconds after START."""
    return START + timedelta(seconds=seconds)


def seconds_of(instant: datetime) -> float:
    """Seconds after START."""
    return (instant - START).total_seconds()
