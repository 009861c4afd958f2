"""Live counts of a stage, as the API returns them: rates, lag, and the tenants with the most."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any

from tickwheel.client.answers import Answer, Wire


def _milliseconds(value: float) -> timedelta:
    return timedelta(milliseconds=value)


@dataclass(frozen=True, kw_only=True)
class Lag(Answer):
    """The lag of attempts. Percentiles are accurate to a tenth, and None if there was no attempt."""

    attempts: int
    p50: Annotated[timedelta | None, Wire("p50_ms", read=_milliseconds)]
    p95: Annotated[timedelta | None, Wire("p95_ms", read=_milliseconds)]
    p99: Annotated[timedelta | None, Wire("p99_ms", read=_milliseconds)]
    p999: Annotated[timedelta | None, Wire("p999_ms", read=_milliseconds)]


@dataclass(frozen=True, kw_only=True)
class Minute(Answer):
    """The counts of one minute. elapsed: how much of it has passed. started: attempts.

    refused: by rates and quotas of tenants. promoted: jobs that left the far ring.
    """

    at: datetime
    elapsed: Annotated[timedelta, Wire("seconds")]
    submitted: int
    refused: int
    promoted: int
    started: int
    succeeded: int
    retried: int
    failed: int
    lag: Lag

    def rate(self, figure: str) -> float:
        """The rate of a count per second. A minute that has just begun counts as if one second had passed."""
        return getattr(self, figure) / max(1.0, self.elapsed.total_seconds())


FIGURES = ("submitted", "refused", "promoted", "started", "succeeded", "retried", "failed")
"""The names of the counts of a minute."""


@dataclass(frozen=True, kw_only=True)
class Standout(Answer):
    """A tenant, and a lower bound of its count."""

    tenant: str
    count: int


def _by_priority(lags: Sequence[Mapping[str, Any]]) -> Mapping[str, Lag]:
    return {each["priority"]: Lag.from_json(each) for each in lags}


@dataclass(frozen=True, kw_only=True)
class Pulse(Answer):
    """The counts and lags that processes have written so far.

    minutes: the last ones, oldest first; the last of them runs. lags: by priority, of the last minutes. executions,
    failures, refusals: the tenants with the most in the last whole minute and the one that runs.
    """

    minutes: tuple[Minute, ...]
    lags: Annotated[Mapping[str, Lag], Wire("lag", read=_by_priority)]
    executions: Annotated[tuple[Standout, ...], Wire("tenants.executions")]
    failures: Annotated[tuple[Standout, ...], Wire("tenants.failures")]
    refusals: Annotated[tuple[Standout, ...], Wire("tenants.refusals")]

    @property
    def last(self) -> Minute:
        """The last complete minute."""
        return self.minutes[-2]
