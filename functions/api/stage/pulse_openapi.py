"""The part of the API's description that is about what goes on in the stage."""

from __future__ import annotations

from typing import Any

from functions.api.http.openapi_parts import INSTANT, TEXT, object_of
from functions.api.stage.pulse import MOST_WORST
from functions.domain.jobs.job import Priority
from functions.domain.stage.lag_histogram import PERCENTILES
from functions.domain.stage.pulse import LAG_WINDOW, WINDOW, Figure, Rank

_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_LAG: dict[str, Any] = {
    "attempts": {**_COUNT, "description": "that began"},
    **{f"{name}_ms": {"type": ["number", "null"], "minimum": 0} for name in PERCENTILES},
}

PULSE = object_of(
    {
        "minutes": {
            "type": "array",
            "minItems": WINDOW + 1,
            "maxItems": WINDOW + 1,
            "description": "oldest first; the last one runs",
            "items": object_of(
                {
                    "at": INSTANT,
                    "seconds": {"type": "number", "minimum": 0, "maximum": 60, "description": "that are over"},
                    **{figure.value: _COUNT for figure in Figure},
                    "lag": object_of(_LAG),
                }
            ),
        },
        "lag": {
            "type": "array",
            "maxItems": len(Priority),
            "description": f"of the last {LAG_WINDOW} minutes and the one that runs",
            "items": object_of({"priority": {"enum": [priority.name.lower() for priority in Priority]}, **_LAG}),
        },
        "tenants": object_of(
            {
                rank.value: {
                    "type": "array",
                    "maxItems": MOST_WORST,
                    "items": object_of({"tenant": TEXT, "count": _COUNT}),
                }
                for rank in Rank
            },
            description="those with the most in the last minute and the one that runs; at least so many",
        ),
    },
    description="what processes have written by now",
)
