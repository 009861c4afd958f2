"""How a breaker is answered: by its own routes, and by the health of the stage."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from functions.api.http import shapes
from functions.domain.instants import format_instant
from functions.domain.targets import breaker as rules


class Breaker(TypedDict):
    """a destination without one is closed."""

    tenant: shapes.TenantId
    destination: shapes.Destination
    """scheme://host:port, an ARN, or handler:NAME"""
    state: Annotated[str, shapes.one_of(rules.BreakerState)]
    opened_at: shapes.Instant
    until: shapes.Instant
    """open: from then on one job probes it; half_open: the end of the lease of its probe"""
    error_class: Annotated[str, Field(examples=["timeout"])]
    """of the failure that opened it last"""


def breaker_body(breaker: rules.Breaker) -> Breaker:
    """A breaker as it stands."""
    return {
        "tenant": breaker.tenant,
        "destination": breaker.destination,
        "state": breaker.state.value,
        "opened_at": format_instant(breaker.opened_at),
        "until": format_instant(breaker.until),
        "error_class": breaker.error_class,
    }
