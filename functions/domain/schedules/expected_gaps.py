"""The gaps that a definition names, to be held against those that were counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice, pairwise
from math import exp, log

from functions.domain.errors import InvalidInput, TooCostly
from functions.domain.instants import DAY
from functions.domain.schedules.fire_figures import LAST_BUCKET, bounds_of, bucket_of
from functions.domain.schedules.firing import fires
from functions.domain.schedules.rules import At, Poisson
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.step_budget import Budget

MOST_GAPS = 1_000
"""Gaps that are worked out of a definition, if its budget of steps lasts so long."""


class Source(StrEnum):
    """How the expected gaps were found."""

    RULE = "rule"
    """They are the gaps of the first fires that the definition names."""
    DISTRIBUTION = "distribution"
    """They are those of an exponential distribution: independent events, at all times."""
    SAMPLE = "sample"
    """They are the gaps of independent events with the same definition under another name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedGaps:
    """shares: of all gaps, by bucket; together 1. count: how many were worked out, None for a distribution."""

    source: Source
    p50: timedelta
    p95: timedelta
    shares: Mapping[int, float]
    count: int | None = None


def expected_gaps(schedule: Schedule, *, since: datetime, budget: Budget) -> ExpectedGaps | None:
    """What the definition expects of the gaps behind `since`; None of less than two fires, or where they take too much.

    From end to start each run is taken for one without length: the gaps are the shortest that there can be.
    """
    rule = schedule.rule
    if isinstance(rule, At):
        return None
    if not isinstance(rule, Poisson):
        return _of_gaps(_gaps(schedule, since=since, budget=budget), Source.RULE)
    if not schedule.windows and schedule.calendar is None:
        return _exponential(DAY / rule.per_day)
    # Its own events are what was counted: held against themselves they would always agree.
    namesake = replace(schedule, schedule_id="b" if schedule.schedule_id == "a" else "a")
    return _of_gaps(_gaps(namesake, since=since, budget=budget), Source.SAMPLE)


def _gaps(schedule: Schedule, *, since: datetime, budget: Budget) -> list[timedelta]:
    most = MOST_GAPS + 1 if schedule.max_runs is None else min(MOST_GAPS + 1, schedule.max_runs)
    found: list[datetime] = []
    # What was found before its budget was spent counts; of a definition that cannot be computed any more nothing is.
    with suppress(TooCostly, InvalidInput):
        found.extend(fire.at for fire in islice(fires(schedule, after=since, budget=budget), most))
    return [later - earlier for earlier, later in pairwise(found)]


def _of_gaps(gaps: Sequence[timedelta], source: Source) -> ExpectedGaps | None:
    if not gaps:
        return None
    ordered = sorted(gaps)
    p50, p95 = (ordered[max(1, -(-len(ordered) * percent // 100)) - 1] for percent in (50, 95))
    counts = Counter(map(bucket_of, ordered))
    shares = {bucket: count / len(ordered) for bucket, count in counts.items()}
    return ExpectedGaps(source=source, p50=p50, p95=p95, shares=shares, count=len(ordered))


def _exponential(mean: timedelta) -> ExpectedGaps:
    shares: dict[int, float] = {}
    for bucket in range(LAST_BUCKET + 1):
        low, high = bounds_of(bucket)
        shares[bucket] = exp(-(low / mean)) - (exp(-(high / mean)) if high is not None else 0.0)
    return ExpectedGaps(source=Source.DISTRIBUTION, p50=mean * log(2), p95=mean * log(20), shares=shares)
