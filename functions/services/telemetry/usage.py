"""Counts in the memory of a process, written down a few hundred jobs at a time: what tenants use, and what waits no more.

What is counted here is approximate. A process that dies, or is never called again, takes with it what it has not written;
a write whose answer was lost is repeated, and may count twice.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import NamedTuple

from functions.domain.faults import fault_of
from functions.domain.jobs.job import Job
from functions.domain.jobs.job_id import JobId, job_id_of
from functions.domain.tenants.backlog import OVERDUE_DAYS, is_counted
from functions.domain.tenants.usage import Usage
from functions.ports.clock import Clock
from functions.ports.recorder import Journal
from functions.ports.tenants import PendingStore, TenantPlans, UsageStore

ENOUGH_JOBS = 200
"""A tenant's count is written when it has so many: a two-hundredth of a write unit a job."""

OLD = timedelta(seconds=60)
"""Or when it is so old."""

QUIET_JOBS = 20
"""Or at once, in a process that has had fewer than these in the time in which a count becomes old."""

MOST_WRITES = 20
"""In one flush, so that it does not hold its invocation up; the oldest go first."""

LONGEST_FLUSH = timedelta(seconds=1)
"""After which it begins no other write: a slow store must not keep its invocation for all of them."""

_NONE = Usage()


class _CountKey(NamedTuple):
    """What is counted, of whom, on which day: of its use, or of the due days of what waits."""

    tenant: str
    day: date
    is_pending: bool


@dataclass(slots=True)
class _Count:
    """What has come together since the last write. since: by the monotonic clock. waiting: fewer, where negative."""

    since: float
    used: Usage = _NONE
    waiting: int = 0

    @property
    def jobs(self) -> int:
        return self.used.jobs + abs(self.waiting)

    def __add__(self, other: _Count) -> _Count:
        return _Count(min(self.since, other.since), self.used + other.used, self.waiting + other.waiting)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageTally:
    """The counts of a process, for many threads."""

    clock: Clock
    plans: TenantPlans
    usage_store: UsageStore
    pending_store: PendingStore
    journal: Journal
    _counts: dict[_CountKey, _Count] = field(default_factory=dict[_CountKey, _Count])
    _recent: deque[tuple[float, int]] = field(default_factory=deque[tuple[float, int]])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, tenant: str, used: Usage) -> None:
        """Count what is used, on the day that it is."""
        place = _CountKey(tenant, self.clock.now().date(), is_pending=False)
        self._note(place, _Count(self.clock.monotonic(), used=used))

    def leave(self, job_id: JobId, *, asked_for: datetime | None = None) -> None:
        """It waits no more. asked_for: when it was due, where somebody has asked for another time than its own."""
        if is_counted(job_id.identity, is_asked_for=asked_for is not None):
            self._add_waiting(job_id, -1, on=asked_for or job_id.due_at)

    def hasten(self, job_id: JobId, *, to: datetime) -> None:
        """It waits for another time than its own from now on."""
        self._add_waiting(job_id, -1, on=job_id.due_at)
        self._add_waiting(job_id, 1, on=to)

    def move(self, job: Job, *, to: Job) -> None:
        """It waits as another job from now on."""
        self._add_waiting(job_id_of(job), -1, on=job.scheduled_at)
        self._add_waiting(job_id_of(to), 1, on=to.scheduled_at)

    def flush(self) -> None:
        """Write what it is time to write. What cannot be written waits for the next flush. Never raises."""
        due = self._due()
        until = self.clock.monotonic() + LONGEST_FLUSH.total_seconds()
        for number, (place, count) in enumerate(due):
            if number and self.clock.monotonic() >= until:
                self._keep_all(due[number:])
                return
            try:
                self._write(place, count)
            except Exception as error:  # noqa: BLE001  a count must not fail the jobs that it counts
                # Each attempt may take seconds: the others do not try theirs.
                self._keep_all(due[number:])
                self.journal.event("usage_not_written", tenant=place.tenant, error=fault_of(error))
                return

    def _add_waiting(self, job_id: JobId, count: int, *, on: datetime) -> None:
        plan = self.plans.of(job_id.tenant)
        if not plan.counts_pending:
            return
        # A day that is over is not asked for any more, but for what a cap has to serve.
        oldest = self.clock.now().date() - timedelta(days=OVERDUE_DAYS if plan.has_rate else 0)
        if on.date() >= oldest:
            place = _CountKey(job_id.tenant, on.date(), is_pending=True)
            self._note(place, _Count(self.clock.monotonic(), waiting=count))

    def _note(self, place: _CountKey, count: _Count) -> None:
        with self._lock:
            self._keep(place, count)
            if count.used.jobs:
                self._recent.append((count.since, count.used.jobs))

    def _keep_all(self, counts: Sequence[tuple[_CountKey, _Count]]) -> None:
        with self._lock:
            for place, count in counts:
                self._keep(place, count)

    def _keep(self, place: _CountKey, count: _Count) -> None:
        before = self._counts.get(place)
        self._counts[place] = count if before is None else before + count

    def _write(self, place: _CountKey, count: _Count) -> None:
        if self.plans.of(place.tenant).is_deleted:
            return  # what was counted before must not come back behind its deletion
        if not place.is_pending:
            self.usage_store.add(place.tenant, place.day, count.used)
        elif count.waiting:
            self.pending_store.add(place.tenant, place.day, count.waiting)

    def _due(self) -> list[tuple[_CountKey, _Count]]:
        """Taken out of the counts."""
        with self._lock:
            old = self.clock.monotonic() - OLD.total_seconds()
            while self._recent and self._recent[0][0] <= old:
                self._recent.popleft()
            is_quiet = sum(jobs for _, jobs in self._recent) < QUIET_JOBS
            due = [
                (place, count)
                for place, count in sorted(self._counts.items(), key=lambda counted: counted[1].since)
                if is_quiet or count.jobs >= ENOUGH_JOBS or count.since <= old
            ][:MOST_WRITES]
            for place, _ in due:
                del self._counts[place]
            return due
