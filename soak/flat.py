"""Whether a curve is flat: by how much it rises, by the median of slopes, and whether that is more than chance.

The slope is that of Theil (1950) and Sen (1968), the median of the slopes of pairs of points: up to 29 % of the points may be
anything at all, a fault's spikes for example, and it stays what it is. Which pairs are compared is what a curve's pieces
say (Hirsch, Slack and Smith, "Techniques of trend analysis for monthly water quality data", 1982):

- What rises and falls with the timetable of faults is compared at the same phase of its cycle only, as they do with
  months: a sawtooth's teeth say nothing.
- Memory is compared within the life of a process: a restart, after which a process begins small again, neither hides growth
  nor looks like it.

The lower bound of the slope is found by rank, as Sen does, three standard deviations below, with the variances of the
pieces' Kendall statistics added up (Gilbert, "Statistical methods for environmental pollution monitoring", 1987, chapter 17).
Only what rises is wrong, so a curve that falls is flat.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

Piece = Sequence[tuple[float, float]]
"""Points of a curve: when (s), and a value."""

FEWEST_POINTS = 12
"""Below, nothing is said of a curve."""

_Z = 3.0
_PHASES = 24


class InvalidBudget(ValueError):
    """A budget that nothing or everything keeps to."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a curve may rise while it is looked at: a share of its level, or so much in any case."""

    share: float
    floor: float

    def __post_init__(self) -> None:
        """Refuse what cannot be kept to."""
        if not 0 <= self.share < 1 or self.floor <= 0:
            raise InvalidBudget(
                f"share is {self.share}, floor is {self.floor}: use 0 <= share < 1, and a floor above 0"
            )

    def of(self, level: float) -> float:
        """What a curve of that level may rise."""
        return max(self.share * abs(level), self.floor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """level: the median. slope, least: by how much it rises a second, and the lower bound of that. points: how many."""

    level: float
    slope: float
    least: float
    points: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A curve over `span` seconds. rise: what it rises in that time by its slope; allowed: what it may."""

    trend: Trend | None
    span: float
    allowed: float

    @property
    def rise(self) -> float:
        """0 of a curve of which nothing is known."""
        return self.trend.slope * self.span if self.trend else 0.0

    @property
    def is_flat(self) -> bool | None:
        """Not when it rises by more than it may, and not just by chance. None: too few points to say."""
        if self.trend is None:
            return None
        return self.rise <= self.allowed or self.trend.least <= 0


def judge_flat(pieces: Sequence[Piece], budget: Budget, *, span: float) -> Verdict:
    """Judge a curve by its points, which were taken within `span` seconds."""
    trend = trend_of(pieces)
    return Verdict(trend=trend, span=span, allowed=budget.of(trend.level) if trend else budget.floor)


def trend_of(pieces: Sequence[Piece]) -> Trend | None:
    """The trend of a curve in pieces; None of fewer than 12 points that can be compared."""
    kept = [piece for piece in pieces if len(piece) > 1]
    points = sum(len(piece) for piece in kept)
    if points < FEWEST_POINTS:
        return None
    slopes = sorted(slope for piece in kept for slope in _slopes(piece))
    if not slopes:
        return None
    deviation = math.sqrt(sum(_variance([value for _, value in piece]) for piece in kept))
    rank = math.floor((len(slopes) - _Z * deviation) / 2)
    return Trend(
        level=median(value for piece in kept for _, value in piece),
        slope=median(slopes),
        # Fewer pairs than it takes: anything may be.
        least=slopes[rank] if rank >= 0 else -math.inf,
        points=points,
    )


def phases_of(curve: Piece, *, cycle: float) -> list[Piece]:
    """A curve in pieces, each of the points at one of 24 phases of the cycle (s)."""
    pieces: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for at, value in curve:
        pieces[int(at % cycle * _PHASES / cycle)].append((at, value))
    return list(pieces.values())


def _slopes(piece: Piece) -> list[float]:
    return [
        (later - earlier) / (then - at)
        for number, (at, earlier) in enumerate(piece)
        for then, later in piece[number + 1 :]
        if then != at
    ]


def _variance(values: Sequence[float]) -> float:
    """Of Kendall's statistic, where no trend is; equal values, which say nothing, make it smaller."""
    ties = [values.count(value) for value in set(values)]
    return (_term(len(values)) - sum(_term(count) for count in ties)) / 18


def _term(count: int) -> float:
    return count * (count - 1) * (2 * count + 5)
