"""What the API answers about breakers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from functions.domain.instants import format_instant
from functions.domain.targets.breaker import Breaker

if TYPE_CHECKING:
    from functions.api.targets import shapes


def breaker_body(breaker: Breaker) -> shapes.Breaker:
    """A breaker as it stands."""
    return {
        "tenant": breaker.tenant,
        "destination": breaker.destination,
        "state": breaker.state.value,
        "opened_at": format_instant(breaker.opened_at),
        "until": format_instant(breaker.until),
        "error_class": breaker.error_class,
    }
