"""How many jobs of a tenant may wait, about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from math import isfinite

from functions.api.submit import Accepted
from functions.domain.errors import QuotaExceeded
from functions.domain.faults import fault_of
from functions.domain.submission import Submission
from functions.ports import Clock, Journal, PendingStore, TenantPlans

KNOWN_FOR = timedelta(seconds=10)


@dataclass(slots=True)
class _Known:
    """How many jobs of a tenant wait. read_at: by the monotonic clock."""

    count: int
    read_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """Lets jobs in for as long as their tenant may have more of them wait.

    A tenant without a limit costs nothing. With one, it costs a write unit for each request and day on which its jobs are
    due, and half a read unit each ten seconds.
    """

    clock: Clock
    plans: TenantPlans
    pending: PendingStore
    journal: Journal
    _known: dict[str, _Known] = field(default_factory=dict[str, _Known])

    def refusals(self, submissions: Sequence[Submission]) -> list[QuotaExceeded | None]:
        """What keeps each submission out, in order: the first ones that fit come in. None lets it in."""
        waiting: dict[str, int | None] = {}
        refusals: list[QuotaExceeded | None] = []
        for submission in submissions:
            tenant, limit = submission.tenant, self.plans.of(submission.tenant).max_pending
            if not isfinite(limit):
                refusals.append(None)
                continue
            if tenant not in waiting:
                waiting[tenant] = self._count(tenant)
            count = waiting[tenant]
            if count is not None and count >= limit:
                refusals.append(QuotaExceeded(tenant, count=count, limit=int(limit)))
                continue
            waiting[tenant] = None if count is None else count + 1
            refusals.append(None)
        if refused := sum(refusal is not None for refusal in refusals):
            self.journal.count("submissions_over_quota", refused)
        return refusals

    def _count(self, tenant: str) -> int | None:
        """None while it cannot be known: a limit that cannot be looked up must not keep jobs out."""
        known, now = self._known.get(tenant), self.clock.monotonic()
        if known is None or now - known.read_at >= KNOWN_FOR.total_seconds():
            try:
                known = _Known(self.pending.count(tenant, since=self.clock.now().date()), now)
            except Exception as error:  # noqa: BLE001  told in the log
                self.journal.event("quota_unknown", tenant=tenant, error=fault_of(error))
                return None
            self._known[tenant] = known
        return known.count

    def note(self, accepted: Sequence[Accepted]) -> None:
        """Count what has been taken in. Never raises."""
        today = self.clock.now().date()
        added: Counter[tuple[str, date]] = Counter(
            (answer.tenant, answer.due_at.date())
            for answer in accepted
            if isfinite(self.plans.of(answer.tenant).max_pending) and answer.due_at.date() >= today
        )
        for (tenant, day), count in added.items():
            if tenant in self._known:
                self._known[tenant].count += count
            try:
                self.pending.add(tenant, day, count)
            except Exception as error:  # noqa: BLE001  the jobs have been taken in; the count heals when their day is over
                self.journal.event("pending_not_counted", tenant=tenant, error=fault_of(error))
