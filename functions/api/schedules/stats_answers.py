"""What the API answers about the figures of a schedule: the shapes of its body, and this from what was found."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from functions.api.http import shapes
from functions.api.http.answers import without_empty
from functions.api.schedules.answers import Reason, run_body
from functions.api.schedules.stats import Stats, nearest_rank
from functions.domain.instants import MILLISECOND, format_instant, to_the_millisecond
from functions.domain.schedules.asked_runs import Origin
from functions.domain.schedules.expected_gaps import ExpectedGaps, Source
from functions.domain.schedules.fire_figures import NO_FIGURES, bounds_of, quantile
from functions.domain.schedules.state import Status

Seconds = Annotated[float, Field(ge=0)]
_LEAST_SHARE = 0.000_05
"""Smaller expected shares are left out: they round to 0."""


class GapFigures(TypedDict):
    """The gaps between the fires of this version. The quantiles are `null` if there are no gaps."""

    count: shapes.Count
    p50_seconds: Seconds | None
    p95_seconds: Seconds | None


class ExpectedGapFigures(TypedDict):
    """The gaps that the definition expects."""

    source: Annotated[str, shapes.one_of(Source)]
    """`rule`: the gaps of the first fires of this version. `distribution`: an exponential distribution. `sample`: the gaps of independent
    events with the same definition."""
    count: NotRequired[shapes.Count]
    """The number of gaps that were computed, up to 1,000. Omitted for a distribution."""
    p50_seconds: Seconds
    p95_seconds: Seconds
    is_shortest: NotRequired[bool]
    """True from end to start: the gaps are longer by the duration of each run."""


class GapBucket(TypedDict):
    """The gaps from `from_seconds` (inclusive) to `to_seconds` (exclusive)."""

    from_seconds: Seconds
    to_seconds: Seconds | None
    """`null` for the last bucket, which has no end."""
    count: shapes.Count
    expected_share: NotRequired[Annotated[float, Field(ge=0, le=1)]]
    """The share of all gaps that the definition expects in this bucket. Omitted if it is unknown."""


class WaitFigures(TypedDict):
    """The fires of this version that waited for an opening of the windows, or for the end of excluded time."""

    count: shapes.Count
    mean_seconds: Seconds | None


class Quantiles(TypedDict):
    """The quantiles of some durations. `null` if there are none."""

    count: shapes.Count
    p50_seconds: Seconds | None
    p95_seconds: Seconds | None


class RunFigures(TypedDict):
    """The runs of the last `history` fires of this version, without those that were triggered or backfilled."""

    count: shapes.Count
    outcomes: dict[str, shapes.Count]
    """The number of runs by the state of their job."""
    lag: Quantiles
    """From each fire to the start of its run, if it is still known: of runs with one attempt that are not asynchronous."""
    ended_after: Quantiles
    """From each fire to the end of its run, including retries."""


class ScheduleStats(TypedDict):
    """The figures of a schedule."""

    id: shapes.ScheduleId
    tenant: shapes.TenantId
    version: int
    status: Annotated[str, shapes.one_of(Status)]
    since: shapes.Instant
    """When this version began. Gaps, waits and runs are counted from then on."""
    fires: shapes.Count
    """The number of fires that became runs, in all versions."""
    misfires: shapes.Count
    """The number of fires that were found more than a minute late, in all versions."""
    skips: dict[Reason, shapes.Count]
    """The number of fires that did not become runs, by reason, in all versions."""
    gaps: GapFigures
    expected: NotRequired[ExpectedGapFigures]
    """Omitted if the definition has fewer than two fires, or if they cannot be computed."""
    histogram: list[GapBucket]
    """The buckets that have a gap, or in which a gap is expected."""
    waits: WaitFigures
    runs: RunFigures


def stats_body(found: Stats) -> ScheduleStats:
    """The figures of a schedule."""
    standing = found.standing
    schedule, state = standing.stored.schedule, standing.state
    figures = state.figures or NO_FIGURES
    fires = [run for run in standing.runs if run.origin is Origin.SCHEDULED]
    runs = [run for run in fires if run.fire_at > state.changed_at]
    body: ScheduleStats = {
        "id": schedule.schedule_id,
        "tenant": schedule.tenant,
        "version": standing.stored.version,
        "status": state.status.value,
        "since": format_instant(to_the_millisecond(state.changed_at)),
        "fires": standing.fire_count,
        "misfires": state.misfire_count,
        "skips": {reason.value: count for reason, count in sorted(state.skips.items())},
        "gaps": {
            "count": figures.gap_count,
            "p50_seconds": _seconds(quantile(figures.gaps, 500, known=found.known)),
            "p95_seconds": _seconds(quantile(figures.gaps, 950, known=found.known)),
        },
        "histogram": _histogram(found),
        "waits": {
            "count": figures.waits,
            "mean_seconds": _seconds(figures.waited / figures.waits if figures.waits else None),
        },
        "runs": {
            "count": len(runs),
            "outcomes": dict(sorted(Counter(run_body(run, schedule, now=found.now)["state"] for run in runs).items())),
            "lag": _quantiles(found.lags),
            "ended_after": _quantiles(found.ended_after),
        },
    }
    if found.expected is not None:
        body["expected"] = _expected(found.expected, is_shortest=schedule.is_end_to_start)
    return body


def _expected(expected: ExpectedGaps, *, is_shortest: bool) -> ExpectedGapFigures:
    body: ExpectedGapFigures = {
        "source": expected.source.value,
        "p50_seconds": _rounded(expected.p50),
        "p95_seconds": _rounded(expected.p95),
        "count": expected.count or 0,
        "is_shortest": is_shortest,
    }
    return without_empty(ExpectedGapFigures, body)


def _histogram(found: Stats) -> list[GapBucket]:
    counts = (found.standing.state.figures or NO_FIGURES).gaps
    shares = found.expected.shares if found.expected is not None else {}
    filled = {*counts, *(bucket for bucket, share in shares.items() if share >= _LEAST_SHARE)}
    buckets: list[GapBucket] = []
    for bucket in sorted(filled):
        low, high = bounds_of(bucket)
        each: GapBucket = {
            "from_seconds": _rounded(low),
            "to_seconds": _seconds(high),
            "count": counts.get(bucket, 0),
        }
        if found.expected is not None:
            each["expected_share"] = round(shares.get(bucket, 0.0), 4)
        buckets.append(each)
    return buckets


def _quantiles(ordered: Sequence[timedelta]) -> Quantiles:
    return {
        "count": len(ordered),
        "p50_seconds": _seconds(nearest_rank(ordered, 50)),
        "p95_seconds": _seconds(nearest_rank(ordered, 95)),
    }


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else _rounded(duration)


def _rounded(duration: timedelta) -> float:
    return round(duration / MILLISECOND) / 1_000
