"""The gaps between the fires of a schedule, and what waited for its windows, as counts that a state row has room for.

A gap is counted in a bucket: one for each octave of seconds below 64 s, two for each above, and the last for all longer
ones. What the bucket of a quantile stands for is learned from the last fires, which are known exactly.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import sqrt

from functions.domain.instants import SECOND

_ZERO = timedelta(0)

EDGES: tuple[float, ...] = (
    *(float(2**octave) for octave in range(6)),
    *(2**octave * half for octave in range(6, 23) for half in (1.0, sqrt(2))),
)
"""Seconds at which each bucket but the first begins: stored counts rest on them."""

LAST_BUCKET = len(EDGES)
"""It has no end: 68 days and a half, and longer."""

_COUNTED_IN_THOUSANDTHS = 1_000


@dataclass(frozen=True, slots=True)
class FireFigures:
    """Of the fires of one version. gaps: their number by bucket. waits: fires that waited for an opening; waited: in all."""

    gaps: Mapping[int, int] = field(default_factory=dict[int, int])
    waits: int = 0
    waited: timedelta = _ZERO

    def __add__(self, other: FireFigures) -> FireFigures:
        gaps = dict(self.gaps)
        for bucket, count in other.gaps.items():
            gaps[bucket] = gaps.get(bucket, 0) + count
        return FireFigures(gaps, self.waits + other.waits, self.waited + other.waited)

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self.gaps or self.waits)

    @property
    def gap_count(self) -> int:
        """All gaps."""
        return sum(self.gaps.values())


NO_FIGURES = FireFigures()


def bucket_of(gap: timedelta) -> int:
    """The bucket that counts a gap."""
    return bisect_right(EDGES, gap / SECOND)


def bounds_of(bucket: int) -> tuple[timedelta, timedelta | None]:
    """From where (inclusive) to where (exclusive) a bucket counts; the last one has no end."""
    low = EDGES[bucket - 1] if bucket else 0.0
    return low * SECOND, EDGES[bucket] * SECOND if bucket < LAST_BUCKET else None


def middle_of(bucket: int) -> timedelta:
    """What a bucket stands for of which nothing else is known: its geometric middle."""
    if not bucket:
        return SECOND / 2
    low, high = bounds_of(bucket)
    return low * sqrt(high / low if high else sqrt(2))


def counted(
    fires: Iterable[tuple[datetime, datetime | None]], waits: Iterable[timedelta], *, since: datetime
) -> FireFigures:
    """The figures of some fires, each with the one before it. since: when their version began.

    A gap counts if both its fires are of this version: what lies between two versions, as a pause, is no gap of either.
    """
    gaps: dict[int, int] = {}
    for at, previous_at in fires:
        if previous_at is not None and previous_at > since:
            bucket = bucket_of(at - previous_at)
            gaps[bucket] = gaps.get(bucket, 0) + 1
    waited = [wait for wait in waits if wait]
    return FireFigures(gaps, len(waited), sum(waited, _ZERO))


def quantile(gaps: Mapping[int, int], thousandths: int, *, known: Sequence[timedelta] = ()) -> timedelta | None:
    """The gap that so many thousandths do not exceed (nearest rank); None of nothing.

    It lies in the bucket of the true one: the mean of the known gaps of that bucket, its middle without any.
    """
    total = sum(gaps.values())
    if not total:
        return None
    rank, passed = max(1, -(-total * thousandths // _COUNTED_IN_THOUSANDTHS)), 0
    for bucket in sorted(gaps):
        passed += gaps[bucket]
        if passed >= rank:
            found = [gap for gap in known if bucket_of(gap) == bucket]
            return sum(found, _ZERO) / len(found) if found else middle_of(bucket)
    raise AssertionError("the counts add up to their total")
