"""The pulse of a stage: counts by the minute, so that its current rates and lag can be reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from functions.domain.jobs.job import Priority

Key = TypeVar("Key")

PERIOD = 15
"""Whole minutes that are reported, besides the current one."""

LAG_PERIOD = 5
"""Whole minutes over which the lag of each class is reported, besides the current one."""

MOST_NAMED = 3
"""Tenants that a process names of a minute."""

LEAST_SHARE = 4
"""A tenant is named with a fourth of what its process has counted, or more: where many do the same, nobody stands out."""


class Figure(StrEnum):
    """What is counted. started: attempts whose target was called. refused: by the rates and quotas of tenants."""

    SUBMITTED = "submitted"
    REFUSED = "refused"
    PROMOTED = "promoted"
    STARTED = "started"
    SUCCEEDED = "succeeded"
    RETRIED = "retried"
    FAILED = "failed"


class Rank(StrEnum):
    """By what tenants are compared. executions: attempts. failures: attempts that failed, retried or for good."""

    EXECUTIONS = "executions"
    FAILURES = "failures"
    REFUSALS = "refusals"


_FIGURES: Mapping[Rank, tuple[Figure, ...]] = {
    Rank.EXECUTIONS: (Figure.STARTED,),
    Rank.FAILURES: (Figure.RETRIED, Figure.FAILED),
    Rank.REFUSALS: (Figure.REFUSED,),
}

RANKED = frozenset(figure for figures in _FIGURES.values() for figure in figures)
"""What is counted of tenants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """Counts of a time. lags: of the attempts of each class, by the cells of a lag histogram."""

    counts: Mapping[Figure, int] = field(default_factory=dict[Figure, int])
    lags: Mapping[Priority, Mapping[int, int]] = field(default_factory=dict[Priority, Mapping[int, int]])

    def of(self, figure: Figure) -> int:
        """How many."""
        return self.counts.get(figure, 0)

    @property
    def all_lags(self) -> Mapping[int, int]:
        """The lags of all classes together."""
        return _added(self.lags.values())


def sum_of(pulses: Iterable[Pulse]) -> Pulse:
    """All of them together."""
    pulses = list(pulses)
    classes = {priority for pulse in pulses for priority in pulse.lags}
    return Pulse(
        counts=_added(pulse.counts for pulse in pulses),
        lags={priority: _added(pulse.lags.get(priority, {}) for pulse in pulses) for priority in sorted(classes)},
    )


def minute_of(instant: datetime) -> datetime:
    """The minute that an instant is in, by its start."""
    return instant.replace(second=0, microsecond=0)


def total_of(counts: Mapping[Figure, int], rank: Rank) -> int:
    """What a tenant is compared by."""
    return sum(counts.get(figure, 0) for figure in _FIGURES[rank])


def standing_out(tenants: Mapping[str, Mapping[Figure, int]]) -> list[str]:
    """The tenants that a process names: those with the largest shares of what it has counted in any rank."""
    shares: dict[str, float] = {}
    for rank in Rank:
        everything = sum(total_of(counts, rank) for counts in tenants.values())
        for tenant, counts in tenants.items():
            if everything and LEAST_SHARE * total_of(counts, rank) >= everything:
                shares[tenant] = max(shares.get(tenant, 0.0), total_of(counts, rank) / everything)
    return sorted(shares, key=lambda tenant: (-shares[tenant], tenant))[:MOST_NAMED]


def worst(tenants: Mapping[str, Mapping[Figure, int]], rank: Rank, *, limit: int) -> list[tuple[str, int]]:
    """The tenants with the most, and how much; none that has nothing."""
    found = [(tenant, total) for tenant, counts in tenants.items() if (total := total_of(counts, rank))]
    return sorted(found, key=lambda each: (-each[1], each[0]))[:limit]


def _added(counts: Iterable[Mapping[Key, int]]) -> dict[Key, int]:
    total: Counter[Key] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)
