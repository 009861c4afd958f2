"""How a breaker is answered: by its own routes, and by the health of the stage."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from functions.api.http import shapes
from functions.domain.instants import format_instant
from functions.domain.targets import breaker as rules


class Breaker(TypedDict):
    """A breaker that is not closed."""

    tenant: shapes.TenantId
    destination: shapes.Destination
    """`scheme://host:port`, an ARN, or `handler:NAME`."""
    state: Annotated[str, shapes.one_of(rules.BreakerState)]
    opened_at: shapes.Instant
    until: shapes.Instant
    """If open: when one job may probe the destination. If half open: when the lease of the probe ends."""
    error_class: Annotated[str, Field(examples=["timeout"])]
    """The error class of the failure that last opened the breaker."""


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
