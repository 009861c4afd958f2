"""What happens in a process, counted in its memory and added to the pulse of the stage a few times a minute.

What a process has not written when it dies, or is never called again, is missing; a write whose answer was lost is
repeated, and may count twice.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from functions.domain.faults import fault_of
from functions.domain.instants import MINUTE
from functions.domain.jobs.job import Job, Priority
from functions.domain.stage.lag_histogram import cell_of
from functions.domain.stage.pulse import PERIOD, RANKED, Figure, Pulse, minute_of, standing_out
from functions.ports.clock import Clock
from functions.ports.recorder import Journal, PulseStore

WRITTEN_EVERY = timedelta(seconds=20)
"""At most: the first counts of a process are written at once, and a busy one writes a unit each twenty seconds."""

NAMED_EVERY = timedelta(seconds=60)
"""At most: a unit for each tenant that stands out, which are three."""


Counts = TypeVar("Counts")


@dataclass(slots=True)
class _Minute:
    """What has come together since the last write."""

    counts: Counter[Figure] = field(default_factory=Counter[Figure])
    lags: dict[Priority, Counter[int]] = field(default_factory=lambda: defaultdict(Counter[int]))

    @property
    def pulse(self) -> Pulse:
        return Pulse(counts=dict(self.counts), lags={priority: dict(cells) for priority, cells in self.lags.items()})


@dataclass(slots=True)
class _Writes:
    """When counts are written. at: the last time, by the monotonic clock; None: never."""

    every: timedelta
    at: float | None = None

    def take(self, counts: dict[datetime, Counts], now: float, *, since: datetime) -> dict[datetime, Counts]:
        """Take out what is to be written now, of the minutes since then."""
        if not counts or (self.at is not None and now - self.at < self.every.total_seconds()):
            return {}
        self.at = now
        taken = {minute: count for minute, count in counts.items() if minute >= since}
        counts.clear()
        return taken


@dataclass(frozen=True, slots=True, kw_only=True)
class PulseTally:
    """The counts of a process, for many threads. One that has no jobs writes nothing."""

    clock: Clock
    pulses: PulseStore
    journal: Journal
    _minutes: dict[datetime, _Minute] = field(default_factory=lambda: defaultdict(_Minute))
    _tenants: dict[datetime, dict[str, Counter[Figure]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(Counter[Figure]))
    )
    _written: _Writes = field(default_factory=lambda: _Writes(WRITTEN_EVERY))
    _named: _Writes = field(default_factory=lambda: _Writes(NAMED_EVERY))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, figure: Figure, tenant: str = "", *, amount: int = 1) -> None:
        """Count it in the minute that it is. tenant: whose it is, where it is somebody's."""
        if amount:
            with self._lock:
                self._add(minute_of(self.clock.now()), figure, tenant, amount)

    def began(self, job: Job, lag: timedelta) -> None:
        """An attempt has begun, so late: an early one counts as none."""
        with self._lock:
            minute = minute_of(self.clock.now())
            self._add(minute, Figure.STARTED, job.tenant, 1)
            self._minutes[minute].lags[job.priority][cell_of(lag)] += 1

    def flush(self) -> None:
        """Write what it is time to write. What cannot be written waits for the next flush. Never raises."""
        minutes, tenants = self._due()
        try:
            for minute in sorted(minutes):
                self.pulses.add(minute, minutes[minute].pulse)
                del minutes[minute]
            for minute in sorted(tenants):
                counts = tenants.pop(minute)
                for tenant in standing_out(counts):
                    self.pulses.name(minute, tenant, counts[tenant])
        except Exception as error:  # noqa: BLE001  a count must not fail the jobs that it counts
            self._keep(minutes)
            self.journal.event("pulse_not_written", error=fault_of(error))

    def _add(self, minute: datetime, figure: Figure, tenant: str, amount: int) -> None:
        self._minutes[minute].counts[figure] += amount
        if tenant and figure in RANKED:
            self._tenants[minute][tenant][figure] += amount

    def _due(self) -> tuple[dict[datetime, _Minute], dict[datetime, dict[str, Counter[Figure]]]]:
        """Taken out of the counts; counts that would not be reported any more are dropped."""
        with self._lock:
            now, oldest = self.clock.monotonic(), minute_of(self.clock.now()) - PERIOD * MINUTE
            return self._written.take(self._minutes, now, since=oldest), self._named.take(
                self._tenants, now, since=oldest
            )

    def _keep(self, minutes: dict[datetime, _Minute]) -> None:
        """What could not be written, beside what has come since. Names are not worth it: they are of the moment."""
        with self._lock:
            for minute, found in minutes.items():
                kept = self._minutes[minute]
                kept.counts.update(found.counts)
                for priority, cells in found.lags.items():
                    kept.lags[priority].update(cells)
