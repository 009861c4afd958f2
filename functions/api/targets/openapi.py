"""The part of the API's description that is about breakers, made from the models that check its requests."""

from __future__ import annotations

from typing import Any

from functions.api.http.openapi_parts import INSTANT, REFERENCE, TEXT, object_of
from functions.api.targets.requests import ResetBody
from functions.domain.targets.breaker import CLOSED, BreakerState

MODELS = (ResetBody,)

SCHEMAS: dict[str, Any] = {
    "Breaker": object_of(
        {
            "tenant": TEXT,
            "destination": {"type": "string", "description": "scheme://host:port, an ARN, or handler:NAME"},
            "state": {"enum": [state.value for state in BreakerState]},
            "opened_at": INSTANT,
            "until": {
                "type": "string",
                "format": "date-time",
                "description": "open: from then on one job probes it; half_open: the end of the lease of its probe",
            },
            "error_class": {"type": "string", "description": "of the failure that opened it last"},
        },
        description="a destination without one is closed",
    ),
    "Breakers": object_of(
        {
            "breakers": {"type": "array", "items": {"$ref": REFERENCE.format(model="Breaker")}},
            "next": {"type": ["string", "null"], "description": "`after` of the next page"},
        }
    ),
    "Reset": object_of(
        {
            "tenant": TEXT,
            "destination": TEXT,
            "state": {"const": CLOSED},
            "was_closed": {"type": "boolean", "description": "there was nothing to reset"},
        }
    ),
}
