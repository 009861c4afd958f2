"""What the API answers about what happens in the stage: the shapes of its body, and this from what was read."""

from collections.abc import Mapping
from typing import Annotated, cast

from pydantic import Field
from typing_extensions import TypedDict

from functions.api.http import shapes
from functions.api.stage.pulse import MOST_WORST, Beat, Pulses
from functions.domain.instants import MILLISECOND, format_instant
from functions.domain.jobs.job import Priority
from functions.domain.stage.lag_histogram import PERCENTILES, percentile
from functions.domain.stage.pulse import LAG_PERIOD, PERIOD, Figure

Milliseconds = Annotated[float, Field(ge=0)]


class Lag(TypedDict):
    """The lag of attempts. `null` if there was no attempt."""

    attempts: shapes.Count
    """The number of attempts that began."""
    p50_ms: Milliseconds | None
    p95_ms: Milliseconds | None
    p99_ms: Milliseconds | None
    p999_ms: Milliseconds | None


class ClassLag(Lag):
    """The lag of a priority."""

    priority: shapes.PriorityName


class Minute(TypedDict):
    """The counts of one minute."""

    at: shapes.Instant
    seconds: Annotated[float, Field(ge=0, le=60)]
    """The number of seconds of the minute that have passed."""
    submitted: shapes.Count
    refused: shapes.Count
    promoted: shapes.Count
    started: shapes.Count
    succeeded: shapes.Count
    retried: shapes.Count
    failed: shapes.Count
    lag: Lag


class TenantCount(TypedDict):
    """The count of one tenant."""

    tenant: shapes.TenantId
    count: shapes.Count


TenantCounts = Annotated[list[TenantCount], Field(max_length=MOST_WORST)]


class PulseTenants(TypedDict):
    """The tenants with the highest counts in the last minute and the current one. The counts are lower bounds."""

    executions: TenantCounts
    failures: TenantCounts
    refusals: TenantCounts


class Pulse(TypedDict):
    """The counts and lags that processes have written so far."""

    minutes: Annotated[list[Minute], Field(min_length=PERIOD + 1, max_length=PERIOD + 1)]
    """Oldest first. The last one is the current minute."""
    lag: Annotated[
        list[ClassLag],
        Field(max_length=len(Priority), description=f"The lags of the last {LAG_PERIOD} minutes and the current one."),
    ]
    tenants: PulseTenants


def pulse_body(pulses: Pulses) -> Pulse:
    """Rates, lag and tenants; null is the lag of no attempt."""
    return {
        "minutes": [_beat_body(beat) for beat in pulses.beats],
        "lag": [
            {"priority": priority.name.lower(), **_lag_body(pulses.lags(priority))} for priority in sorted(Priority)
        ],
        "tenants": _tenants_body(pulses),
    }


def _beat_body(beat: Beat) -> Minute:
    body = {
        "at": format_instant(beat.at),
        "seconds": round(beat.seconds, 3),
        **{figure.value: beat.pulse.of(figure) for figure in Figure},
        "lag": _lag_body(beat.pulse.all_lags),
    }
    return cast("Minute", body)


def _lag_body(counts: Mapping[int, int]) -> Lag:
    found = {name: percentile(counts, thousandths) for name, thousandths in PERCENTILES.items()}
    body = {f"{name}_ms": None if lag is None else round(lag / MILLISECOND, 1) for name, lag in found.items()}
    return cast("Lag", {"attempts": sum(counts.values()), **body})


def _tenants_body(pulses: Pulses) -> PulseTenants:
    body = {
        rank.value: [{"tenant": tenant, "count": count} for tenant, count in found]
        for rank, found in pulses.tenants.items()
    }
    return cast("PulseTenants", body)
