"""What the API answers about what goes on in the stage: the body from what was read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from functions.api.stage.pulse import Beat, Pulses
from functions.domain.instants import MILLISECOND, format_instant
from functions.domain.jobs.job import Priority
from functions.domain.stage.lag_histogram import PERCENTILES, percentile
from functions.domain.stage.pulse import Figure

if TYPE_CHECKING:
    from functions.api.stage import shapes


def pulse_body(pulses: Pulses) -> shapes.Pulse:
    """Rates, lag and tenants; null is the lag of no attempt."""
    return {
        "minutes": [_beat_body(beat) for beat in pulses.beats],
        "lag": [
            {"priority": priority.name.lower(), **_lag_body(pulses.lags(priority))} for priority in sorted(Priority)
        ],
        "tenants": _tenants_body(pulses),
    }


def _beat_body(beat: Beat) -> shapes.Minute:
    told = {
        "at": format_instant(beat.at),
        "seconds": round(beat.seconds, 3),
        **{figure.value: beat.pulse.of(figure) for figure in Figure},
        "lag": _lag_body(beat.pulse.all_lags),
    }
    return cast("shapes.Minute", told)


def _lag_body(counts: Mapping[int, int]) -> shapes.Lag:
    found = {name: percentile(counts, thousandths) for name, thousandths in PERCENTILES.items()}
    told = {f"{name}_ms": None if lag is None else round(lag / MILLISECOND, 1) for name, lag in found.items()}
    return cast("shapes.Lag", {"attempts": sum(counts.values()), **told})


def _tenants_body(pulses: Pulses) -> shapes.PulseTenants:
    told = {
        rank.value: [{"tenant": tenant, "count": count} for tenant, count in found]
        for rank, found in pulses.tenants.items()
    }
    return cast("shapes.PulseTenants", told)
