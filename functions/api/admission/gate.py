"""What lets work of tenants in: the rate at which they may submit, and the quota of what may wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from functions.api.admission.admission import Admission
from functions.api.admission.quota import Quota
from functions.domain.errors import RateExceeded, TickwheelError
from functions.domain.stage.pulse import Figure
from functions.ports.recorder import PulseCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Lets jobs in that are made of what is there already: of schedules, of dead letters, of jobs that wait."""

    admission: Admission
    quota: Quota
    pulse: PulseCounter

    def admit(self, tenant: str, due_ats: Sequence[datetime]) -> int:
        """How many jobs may come in that are due then: the first ones. Those that did are to be noted.

        Raises RateExceeded, QuotaExceeded, BacklogExceeded when there are some, and none may.
        """
        refusals = self.quota.refusals([(tenant, due_at) for due_at in due_ats])
        count = next((number for number, refusal in enumerate(refusals) if refusal is not None), len(refusals))
        refusal: TickwheelError | None = refusals[count] if count < len(refusals) else None
        if count:
            count, too_fast = self.admission.take_many(tenant, count)
            refusal = too_fast or refusal
        if refusal is not None and not count:
            self.pulse.count(Figure.REFUSED, tenant)
            raise refusal
        return count

    def begin(self, tenant: str) -> None:
        """A schedule begins to fire, or begins anew: that takes from the rate as a job does. Raises RateExceeded."""
        try:
            self.admission.take_one(tenant)
        except RateExceeded:
            self.pulse.count(Figure.REFUSED, tenant)
            raise

    def note(self, tenant: str, due_ats: Sequence[datetime]) -> None:
        """Count what came in as waiting. Never raises."""
        self.quota.note([(tenant, due_at) for due_at in due_ats])
