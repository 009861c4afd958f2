"""Circuit breakers of destinations, as the API returns them."""

from dataclasses import dataclass
from datetime import datetime

from tickwheel.client.answers import Answer
from tickwheel.client.words import BreakerState


@dataclass(frozen=True)
class Breaker(Answer):
    """The breaker of a destination that a tenant's jobs do not call. A destination without one is closed: its jobs run.

    until: of an open one, when a job probes it; of a half-open one, the end of the lease of its probe. error_class: of
    the failure that opened it last.
    """

    tenant: str
    destination: str
    state: BreakerState
    opened_at: datetime
    until: datetime
    error_class: str
