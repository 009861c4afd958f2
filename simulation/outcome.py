"""What a run has come to: facts by name, distributions, and series for the pictures. Only plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from simulation.measure import Lag, Point, Share
from simulation.scenario import Goal


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a goal was held."""

    goal: Goal
    value: float
    holds: bool


@dataclass(frozen=True, slots=True)
class Baseline:
    """How a textbook design did with the same jobs. finished: the share of them that it ran before the end."""

    name: str
    words: str
    lag: Lag
    by_class: Mapping[str, Lag]
    fairness: float | None
    finished: float
    points: Sequence[Point]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A scenario that has been run. seconds: of CPU. cost: in USD, of a million jobs, by unit.

    stage: what it ran on, and the quotas that had to be raised for it. share: of the stage that was simulated; jobs, calls and counts are the sample's, everything else is the stage's.
    shares: what tenants were let out by the scanners in the contended minutes. fairness: of what they were served.
    """

    name: str
    title: str
    story: str
    seed: int
    sample: str
    share: float
    notes: Sequence[str]
    stage: Sequence[str]
    jobs: int
    calls: int
    facts: Mapping[str, float]
    lag: Lag
    by_class: Mapping[str, Lag]
    shares: Sequence[Share]
    fairness: float | None
    cost: Mapping[str, float]
    points: Sequence[Point]
    minutes: Sequence[Mapping[str, float]]
    verdicts: Sequence[Verdict]
    baselines: Sequence[Baseline] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def is_held(self) -> bool:
        """Whether every goal was."""
        return all(verdict.holds for verdict in self.verdicts)

    def as_json(self) -> dict[str, Any]:
        """For a script."""
        return {**asdict(self), "held": self.is_held}
