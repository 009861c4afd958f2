"""Counts what tenants use, in the memory of a process, and writes it down a few hundred jobs at a time.

What is counted here is approximate. A process that dies, or is never called again, takes with it what it has not written;
a write whose answer was lost is repeated, and may count twice.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from datetime import date, timedelta

from functions.domain.usage import Usage
from functions.ports import Clock, Journal, UsageStore

ENOUGH_JOBS = 200
"""A tenant's count is written when it has so many: a two-hundredth of a write unit a job."""

OLD = timedelta(seconds=60)
"""Or when it is so old."""

QUIET_JOBS = 20
"""Or at once, in a process that has had fewer than these in the time in which a count becomes old."""

MOST_WRITES = 20
"""In one flush, so that it does not hold its invocation up; the oldest go first."""


class Uncounted:
    """For where nobody asks what tenants use."""

    def add(self, tenant: str, used: Usage) -> None:
        """Forgotten."""


UNCOUNTED = Uncounted()


@dataclass(slots=True)
class _Count:
    """What a tenant has used on a day since the last write. since: by the monotonic clock."""

    usage: Usage
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The counts of a process, for many threads."""

    clock: Clock
    store: UsageStore
    journal: Journal
    _counts: dict[tuple[str, date], _Count] = field(default_factory=dict[tuple[str, date], _Count])
    _recent: deque[tuple[float, int]] = field(default_factory=deque[tuple[float, int]])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, tenant: str, used: Usage) -> None:
        """Count it, on the day that it is."""
        with self._lock:
            now = self.clock.monotonic()
            self._keep(tenant, self.clock.now().date(), _Count(used, now))
            if used.jobs:
                self._recent.append((now, used.jobs))

    def flush(self) -> None:
        """Write what it is time to write. What cannot be written waits for the next flush. Never raises."""
        due = self._due()
        for number, (tenant, day, count) in enumerate(due):
            try:
                self.store.add(tenant, day, count.usage)
            except Exception as error:  # noqa: BLE001  a count must not fail the jobs that it counts
                # Each attempt may take seconds: the others do not try theirs.
                with self._lock:
                    for kept in due[number:]:
                        self._keep(*kept)
                self.journal.event("usage_not_written", tenant=tenant, error=f"{type(error).__name__}: {error}")
                return

    def _keep(self, tenant: str, day: date, count: _Count) -> None:
        met = self._counts.get((tenant, day))
        if met is not None:
            count = _Count(met.usage + count.usage, min(met.since, count.since))
        self._counts[tenant, day] = count

    def _due(self) -> list[tuple[str, date, _Count]]:
        """Taken out of the counts."""
        with self._lock:
            old = self.clock.monotonic() - OLD.total_seconds()
            while self._recent and self._recent[0][0] <= old:
                self._recent.popleft()
            is_quiet = sum(jobs for _, jobs in self._recent) < QUIET_JOBS
            due = [
                (tenant, day, count)
                for (tenant, day), count in sorted(self._counts.items(), key=lambda entry: entry[1].since)
                if is_quiet or count.usage.jobs >= ENOUGH_JOBS or count.since <= old
            ][:MOST_WRITES]
            for tenant, day, _ in due:
                del self._counts[tenant, day]
            return due

