"""Circuit breakers of destinations, as the API returns them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self

from tickwheel.client.instants import parse_instant

BreakerState = Literal["open", "half_open"]


@dataclass(frozen=True)
class Breaker:
    """A destination that a tenant's jobs leave alone. One without a breaker is closed: its jobs run.

    until: of an open one, when a job probes it; of a half-open one, the end of the lease of its probe. error_class: of
    the failure that opened it last.
    """

    tenant: str
    destination: str
    state: BreakerState
    opened_at: datetime
    until: datetime
    error_class: str

    @classmethod
    def from_json(cls, body: Any) -> Self:
        """Reads the scheduler's answer."""
        return cls(
            tenant=body["tenant"],
            destination=body["destination"],
            state=body["state"],
            opened_at=parse_instant(body["opened_at"]),
            until=parse_instant(body["until"]),
            error_class=body["error_class"],
        )
