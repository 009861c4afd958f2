"""Live counts of a stage, as the API returns them: rates, lag, and the tenants with the most."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

from tickwheel.client.instants import parse_instant


@dataclass(frozen=True, kw_only=True)
class Lag:
    """How late attempts began; percentiles are off by a tenth at most, and None of no attempt."""

    attempts: int
    p50: timedelta | None
    p95: timedelta | None
    p99: timedelta | None
    p999: timedelta | None

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Reads the scheduler's answer."""
        return cls(
            attempts=body["attempts"],
            p50=_duration(body["p50_ms"]),
            p95=_duration(body["p95_ms"]),
            p99=_duration(body["p99_ms"]),
            p999=_duration(body["p999_ms"]),
        )


@dataclass(frozen=True, kw_only=True)
class Minute:
    """What went on in a minute. elapsed: how much of it is over. started: attempts.

    refused: by rates and quotas of tenants. promoted: jobs that left the far ring.
    """

    at: datetime
    elapsed: timedelta
    submitted: int
    refused: int
    promoted: int
    started: int
    succeeded: int
    retried: int
    failed: int
    lag: Lag

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Reads the scheduler's answer."""
        return cls(
            at=parse_instant(body["at"]),
            elapsed=timedelta(seconds=body["seconds"]),
            **{name: body[name] for name in FIGURES},
            lag=Lag.from_json(body["lag"]),
        )

    def rate(self, figure: str) -> float:
        """Of a figure, a second; of a minute that has just begun, as if a second of it were over."""
        return getattr(self, figure) / max(1.0, self.elapsed.total_seconds())


FIGURES = ("submitted", "refused", "promoted", "started", "succeeded", "retried", "failed")
"""What is counted of a minute."""


@dataclass(frozen=True, kw_only=True)
class Standout:
    """A tenant, and at least how much was its."""

    tenant: str
    count: int

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Reads the scheduler's answer."""
        return cls(tenant=body["tenant"], count=body["count"])


@dataclass(frozen=True, kw_only=True)
class Pulse:
    """What processes have written by now.

    minutes: the last ones, oldest first; the last of them runs. lags: by priority, of the last minutes. executions,
    failures, refusals: the tenants with the most in the last whole minute and the one that runs.
    """

    minutes: tuple[Minute, ...]
    lags: Mapping[str, Lag]
    executions: tuple[Standout, ...]
    failures: tuple[Standout, ...]
    refusals: tuple[Standout, ...]

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Reads the scheduler's answer."""

        def standouts(found: Sequence[Mapping[str, Any]]) -> tuple[Standout, ...]:
            return tuple(Standout.from_json(each) for each in found)

        tenants = body["tenants"]
        return cls(
            minutes=tuple(Minute.from_json(minute) for minute in body["minutes"]),
            lags={each["priority"]: Lag.from_json(each) for each in body["lag"]},
            executions=standouts(tenants["executions"]),
            failures=standouts(tenants["failures"]),
            refusals=standouts(tenants["refusals"]),
        )

    @property
    def last(self) -> Minute:
        """The last whole minute."""
        return self.minutes[-2]


def _duration(milliseconds: float | None) -> timedelta | None:
    return None if milliseconds is None else timedelta(milliseconds=milliseconds)
