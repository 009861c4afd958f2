"""The figures of a schedule, as the scheduler answers: counted gaps beside those that its definition expects."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated

from tickwheel.client.answers import Answer, Wire
from tickwheel.client.words import GapSource, ScheduleStatus


@dataclass(frozen=True, kw_only=True)
class GapFigures(Answer):
    """The gaps between fires; the quantiles are None if there are none."""

    count: int
    p50: Annotated[timedelta | None, Wire("p50_seconds")]
    p95: Annotated[timedelta | None, Wire("p95_seconds")]


@dataclass(frozen=True, kw_only=True)
class ExpectedGapFigures(Answer):
    """The gaps that a definition expects.

    `source` is `rule` (its first fires), `distribution` (exponential) or `sample` (independent events with the same definition);
    `count` is how many were computed, None for a distribution. `is_shortest`: from end to start, each run makes them longer.
    """

    source: GapSource
    count: int | None = None
    p50: Annotated[timedelta, Wire("p50_seconds")]
    p95: Annotated[timedelta, Wire("p95_seconds")]
    is_shortest: bool = False


@dataclass(frozen=True, kw_only=True)
class GapBucket(Answer):
    """The gaps from `start` up to `end`, None for those of any length. `expected_share` is of all gaps."""

    start: Annotated[timedelta, Wire("from_seconds")]
    end: Annotated[timedelta | None, Wire("to_seconds")]
    count: int
    expected_share: float | None = None


@dataclass(frozen=True, kw_only=True)
class WaitFigures(Answer):
    """How many fires waited for an opening of the windows, and how long on average."""

    count: int
    mean: Annotated[timedelta | None, Wire("mean_seconds")]


@dataclass(frozen=True, kw_only=True)
class Quantiles(Answer):
    """The quantiles of some durations, None if there are none."""

    count: int
    p50: Annotated[timedelta | None, Wire("p50_seconds")]
    p95: Annotated[timedelta | None, Wire("p95_seconds")]


@dataclass(frozen=True, kw_only=True)
class RunFigures(Answer):
    """The last runs: their number by state; from their fires to their starts (`lag`), and to their ends, including retries."""

    count: int
    outcomes: Mapping[str, int]
    lag: Quantiles
    ended_after: Quantiles


@dataclass(frozen=True, kw_only=True)
class ScheduleStats(Answer):
    """The figures of a schedule. Gaps, waits and runs are those of its version, from `since` on; fires, misfires and skips of all versions."""

    id: str
    tenant: str
    version: int
    status: ScheduleStatus
    since: datetime
    fires: int
    misfires: int = 0
    skips: Mapping[str, int] = field(default_factory=dict[str, int])
    gaps: GapFigures
    expected: ExpectedGapFigures | None = None
    histogram: tuple[GapBucket, ...] = ()
    waits: WaitFigures
    runs: RunFigures
    body: Annotated[Mapping[str, object], Wire("")]
    """The JSON of the scheduler's response."""
