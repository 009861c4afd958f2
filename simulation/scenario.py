"""A scenario: a stage, what is asked of it, and what it has to hold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np

from functions.domain.schedules.schedule import Schedule
from functions.ports.targets import Failed, Outcome, Succeeded
from simulation.calls import CallTable
from simulation.limits import Latency
from simulation.orders import Order
from simulation.schedule_requests import Put
from simulation.size import StageSize
from simulation.stage import SimulatedStage
from simulation.stores import Target

TARGET_LATENCY = Latency(0.020, 0.200)
"""What a job's target takes to answer."""

STEADY_LAG = 2.0
"""Seconds at the 99th percentile, in steady state."""

SLA = 300.0
"""Seconds: within these everything of a herd runs."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What a measured fact has to hold. words: what is promised, for people."""

    fact: str
    words: str
    at_most: float | None = None
    at_least: float | None = None

    def holds(self, facts: Mapping[str, float]) -> bool:
        """Whether it does."""
        value = facts[self.fact]
        is_low = self.at_most is None or value <= self.at_most
        return is_low and (self.at_least is None or value >= self.at_least)

    @property
    def bound(self) -> str:
        """The bound, for people."""
        return f"<= {self.at_most:,g}" if self.at_most is not None else f">= {self.at_least:,g}"


ALWAYS = (
    Goal("lost", "no job is lost", at_most=0),
    Goal("doubled", "no effect happens twice", at_most=0),
    Goal("early", "no job is early", at_most=0),
    Goal("refused_share", "submissions that are refused, and have to be repeated", at_most=0.001),
)
"""What every scenario has to hold."""

SAFE = tuple(goal for goal in ALWAYS if goal.fact == "early")
"""What holds however much is asked for. A call whose end the ledger refuses to record is made again."""

WRITES = Goal("timers_write_peak", "write units a second of the fullest partition of the timers", at_most=1_000)
"""What submissions alone have to hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is asked for. schedules: that exist before. puts: that are put by way of the API, by when (s).

    weights: of the tenants whose shares are compared.
    """

    orders: Sequence[Order]
    schedules: Sequence[Schedule] = ()
    puts: Sequence[tuple[float, Put]] = ()
    weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outage:
    """Hosts that fail in a time: answered by an error, until it is over."""

    start: float
    end: float
    fails: Callable[[str], bool]

    def is_failing(self, host: str, at: float) -> bool:
        """Whether a call of this host fails then."""
        return self.start <= at < self.end and self.fails(host)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One of them, at full or at reduced size.

    rate: of the stage, jobs a second, for people. sampled: shards that are simulated. until: when the run ends. window:
    first attempts of jobs that are due in it are measured, but for those of the hosts of an outage. contended: when
    tenants compete, and their shares are compared. down: when scanners and publisher do
    not run. requests_of: jobs that come in one request of the API, at an instant; None leaves the API out. slowness: of the scanner of a shard. is_unmeasured: hosts whose jobs are not measured. notes: what a reader has to know.
    is_beyond: it may be more than its stage holds, and what has not run by the end is late and not lost.
    """

    name: str
    title: str
    story: str
    size: StageSize
    sampled: tuple[int, ...]
    until: float
    window: tuple[float, float]
    fill: Callable[[SimulatedStage], Work]
    goals: tuple[Goal, ...]
    outage: Outage | None = None
    down: tuple[float, float] | None = None
    contended: tuple[float, float] | None = None
    slowness: Callable[[int], float] = lambda _: 1.0
    is_unmeasured: Callable[[str], bool] = lambda _: False
    requests_of: Callable[[float], int] | None = None
    notes: tuple[str, ...] = ()
    is_beyond: bool = False

    def target(self) -> Target:
        """How the targets behave."""
        return Target(latency=TARGET_LATENCY, answer=self._answer)

    def _answer(self, host: str, at: float, attempt: int, random: Random) -> Outcome:
        del attempt, random
        if self.outage is not None and self.outage.is_failing(host, at):
            return Failed("503 Service Unavailable", "http_503")
        return Succeeded()

    def is_down(self, at: float) -> bool:
        """Whether scanners and publisher are away."""
        return self.down is not None and self.down[0] <= at < self.down[1]

    def measured(self, calls: CallTable) -> CallTable:
        """The calls that are measured."""
        due_at = calls.at - calls.lag
        start, end = self.window
        excluded = [calls.number_of(host) for host in self.excluded(calls.names)]
        is_measured = (calls.is_first > 0) & (due_at >= start) & (due_at < end) & ~np.isin(calls.host, excluded)
        return calls.where(is_measured)

    def excluded(self, hosts: Collection[str]) -> list[str]:
        """Hosts whose calls are no measure of the scheduler's lag."""
        fails = self.outage.fails if self.outage is not None else self.is_unmeasured
        return [host for host in hosts if fails(host) or self.is_unmeasured(host)]


def lag_goal(seconds: float = STEADY_LAG) -> Goal:
    """The promise about lag."""
    return Goal("lag_p99_s", "lag at the 99th percentile, in seconds", at_most=seconds)
