"""What is answered about breakers, as types."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from functions.api.http.shapes import Destination, Instant, TenantId, one_of
from functions.domain.targets.breaker import CLOSED, BreakerState


class Breaker(TypedDict):
    """a destination without one is closed."""

    tenant: TenantId
    destination: Destination
    """scheme://host:port, an ARN, or handler:NAME"""
    state: Annotated[str, one_of(BreakerState)]
    opened_at: Instant
    until: Instant
    """open: from then on one job probes it; half_open: the end of the lease of its probe"""
    error_class: Annotated[str, Field(examples=["timeout"])]
    """of the failure that opened it last"""


class Breakers(TypedDict):
    """A page of breakers."""

    breakers: list[Breaker]
    next: str | None
    """`after` of the next page"""


class Reset(TypedDict):
    """A breaker that is closed."""

    tenant: TenantId
    destination: Destination
    state: Annotated[str, one_of([CLOSED])]
    was_closed: bool
    """there was nothing to reset"""
