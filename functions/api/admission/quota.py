"""How many jobs of a tenant may wait, about: by its quota, and by what its cap can serve."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from functions.domain.errors import BacklogExceeded, QuotaExceeded
from functions.domain.faults import fault_of
from functions.domain.tenants.backlog import MOST_AHEAD, OVERDUE_DAYS, Backlog, backlog_on, backlogs_on
from functions.domain.tenants.plan import TenantPlan
from functions.ports.clock import Clock
from functions.ports.recorder import Journal
from functions.ports.tenants import PendingStore, TenantPlans

KNOWN_FOR = timedelta(seconds=10)

Waiting = tuple[str, datetime]
"""A job that waits: whose it is, and when it is due."""


@dataclass(slots=True)
class _Known:
    """How many jobs of a tenant wait, by the day on which they are due. read_at: by the monotonic clock."""

    counts: dict[date, int]
    read_at: float


@dataclass(slots=True)
class _Room:
    """How much a tenant may still submit at one moment, for these days."""

    tenant: str
    plan: TenantPlan
    counts: Mapping[date, int]
    now: datetime
    days: Collection[date]
    waiting: int = field(init=False)
    backlogs: Mapping[date, Backlog] = field(init=False)
    left: dict[date, int] = field(init=False)

    def __post_init__(self) -> None:
        today = self.now.date()
        self.waiting = sum(count for day, count in self.counts.items() if day >= today)
        rate = self.plan.execution_rate
        # At once: each is a walk over all days that are known.
        self.backlogs = backlogs_on(self.days, self.counts, rate=rate, now=self.now) if self.plan.has_rate else {}
        self.left = {day: backlog.room for day, backlog in self.backlogs.items()}

    def take(self, day: date) -> QuotaExceeded | BacklogExceeded | None:
        """None when one more comes in that is due on a day; else what keeps it out."""
        if self.waiting >= self.plan.max_pending:
            return QuotaExceeded(self.tenant, count=self.waiting, limit=int(self.plan.max_pending))
        if self.plan.has_rate and not self.left[day]:
            backlog = self.backlogs[day]
            members = {"count": max(backlog.count, backlog.limit), "limit": backlog.limit}
            return BacklogExceeded(self.tenant, **members, rate=backlog.rate, most=MOST_AHEAD)
        for later in self.left:
            # It may still wait on the days behind it.
            self.left[later] -= day <= later and self.left[later] > 0
        self.waiting += 1
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """Lets jobs in for as long as their tenant may have more of them wait.

    A tenant without a limit costs nothing. With a `max_pending` or an `execution_rate`, it costs a write unit for each
    request and day on which its jobs are due, and half a read unit each ten seconds.
    """

    clock: Clock
    plans: TenantPlans
    pending_store: PendingStore
    journal: Journal
    _known: dict[str, _Known] = field(default_factory=dict[str, _Known])

    def refusals(self, asked: Sequence[Waiting]) -> list[QuotaExceeded | BacklogExceeded | None]:
        """What keeps each job out, in order: the first ones that fit come in. None lets it in."""
        now = self.clock.now()
        dues = [(tenant, max(due_at, now).date()) for tenant, due_at in asked]
        days: dict[str, set[date]] = {}
        for tenant, day in dues:
            days.setdefault(tenant, set()).add(day)
        rooms = {tenant: self._room_of(tenant, now=now, days=wanted) for tenant, wanted in days.items()}
        refusals = [room.take(day) if (room := rooms[tenant]) is not None else None for tenant, day in dues]
        if refused := sum(refusal is not None for refusal in refusals):
            self.journal.count("submissions_over_quota", refused)
        return refusals

    def note(self, taken: Sequence[Waiting]) -> None:
        """Count what has been taken in. Never raises."""
        today = self.clock.now().date()
        added: Counter[tuple[str, date]] = Counter(
            (tenant, due_at.date())
            for tenant, due_at in taken
            if self.plans.of(tenant).counts_pending and due_at.date() >= today
        )
        for (tenant, day), count in added.items():
            if tenant in self._known:
                counts = self._known[tenant].counts
                counts[day] = counts.get(day, 0) + count
            try:
                self.pending_store.add(tenant, day, count)
            except Exception as error:  # noqa: BLE001  the jobs have been taken in; the count heals when their day is over
                self.journal.event("pending_not_counted", tenant=tenant, error=fault_of(error))

    def backlog(self, tenant: str) -> Backlog | None:
        """What of a tenant waits for its cap by the end of this day; None where it has none, or it cannot be known."""
        plan = self.plans.of(tenant)
        counts = self._counts(tenant) if plan.has_rate else None
        if counts is None:
            return None
        now = self.clock.now()
        return backlog_on(now.date(), counts, rate=plan.execution_rate, now=now)

    def _room_of(self, tenant: str, *, now: datetime, days: Collection[date]) -> _Room | None:
        """None where there is no limit, or it cannot be looked up."""
        plan = self.plans.of(tenant)
        counts = self._counts(tenant) if plan.counts_pending else None
        return _Room(tenant, plan, counts, now, days) if counts is not None else None

    def _counts(self, tenant: str) -> Mapping[date, int] | None:
        """None while it cannot be known: a limit that cannot be looked up must not keep jobs out."""
        known, now = self._known.get(tenant), self.clock.monotonic()
        if known is None or now - known.read_at >= KNOWN_FOR.total_seconds():
            since = self.clock.now().date()
            if self.plans.of(tenant).has_rate:
                since -= timedelta(days=OVERDUE_DAYS)
            try:
                known = _Known(dict(self.pending_store.counts(tenant, since=since)), now)
            except Exception as error:  # noqa: BLE001  reported in the log
                self.journal.event("quota_unknown", tenant=tenant, error=fault_of(error))
                return None
            self._known[tenant] = known
        return known.counts
