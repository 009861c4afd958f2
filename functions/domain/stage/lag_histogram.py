"""How late attempts began, as counts in cells that grow geometrically: small, and added up by anybody in any order.

Each cell is wider than the one before by the same factor, so that the value that stands for a cell is off by at most
RELATIVE_ERROR: Masson, Rim and Lee, "DDSketch: a fast and fully-mergeable quantile sketch with relative-error
guarantees", VLDB 2019.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta

from functions.domain.instants import DAY, MILLISECOND

RELATIVE_ERROR = 0.1

SMALLEST = MILLISECOND
"""All shorter lags are in cell 0, and reported as this."""

LARGEST = DAY
"""All longer lags are in the last cell, and reported as this."""

_GROWTH = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)

LAST_CELL = math.ceil(math.log(LARGEST / SMALLEST, _GROWTH))

PERCENTILES: Mapping[str, int] = {"p50": 500, "p95": 950, "p99": 990, "p999": 999}
"""The percentiles that are reported, in thousandths."""


def cell_of(lag: timedelta) -> int:
    """The cell that counts a lag: cell n holds those above growth^(n-1) and up to growth^n milliseconds."""
    if lag <= SMALLEST:
        return 0
    return min(LAST_CELL, math.ceil(math.log(lag / SMALLEST, _GROWTH)))


def lag_in(cell: int) -> timedelta:
    """The lag that is reported for a cell: none in the cell differs from it by more than RELATIVE_ERROR of itself."""
    if cell <= 0:
        return SMALLEST
    return min(LARGEST, SMALLEST * (2 * _GROWTH**cell / (_GROWTH + 1)))


def percentile(counts: Mapping[int, int], thousandths: int) -> timedelta | None:
    """The smallest lag that so many thousandths do not exceed (nearest rank), of counts by cell; None of nothing."""
    total = sum(counts.values())
    if not total:
        return None
    rank = max(1, -(-total * thousandths // 1_000))
    passed = 0
    for cell in sorted(counts):
        passed += counts[cell]
        if passed >= rank:
            return lag_in(cell)
    raise AssertionError("the counts add up to their total")
