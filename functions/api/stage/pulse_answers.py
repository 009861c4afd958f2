"""What the API answers about what goes on in the stage: the body from what was read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from functions.api.stage.pulse import Beat, Pulses
from functions.domain.instants import MILLISECOND, format_instant
from functions.domain.jobs.job import Priority
from functions.domain.stage.lag_histogram import PERCENTILES, percentile
from functions.domain.stage.pulse import Figure


def pulse_body(pulses: Pulses) -> dict[str, Any]:
    """Rates, lag and tenants; null is the lag of no attempt."""
    return {
        "minutes": [_beat_body(beat) for beat in pulses.beats],
        "lag": [
            {"priority": priority.name.lower(), **_lag_body(pulses.lags(priority))} for priority in sorted(Priority)
        ],
        "tenants": {
            rank.value: [{"tenant": tenant, "count": count} for tenant, count in found]
            for rank, found in pulses.tenants.items()
        },
    }


def _beat_body(beat: Beat) -> dict[str, Any]:
    return {
        "at": format_instant(beat.at),
        "seconds": round(beat.seconds, 3),
        **{figure.value: beat.pulse.of(figure) for figure in Figure},
        "lag": _lag_body(beat.pulse.all_lags),
    }


def _lag_body(counts: Mapping[int, int]) -> dict[str, Any]:
    told = {name: percentile(counts, thousandths) for name, thousandths in PERCENTILES.items()}
    return {
        "attempts": sum(counts.values()),
        **{f"{name}_ms": None if lag is None else round(lag / MILLISECOND, 1) for name, lag in told.items()},
    }
