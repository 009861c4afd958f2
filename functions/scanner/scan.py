"""One tick of one shard: promote what comes due from the far ring to the ready queues.

Every bucket was closed before it opens, so it is read once, in order, behind a cursor, and nothing is written to a row
that is promoted. A crash repeats what was sent since the last checkpoint, and the ledger absorbs that. The alarms of
schedules ring last, when all timers have been sent and that is recorded: whatever they come to, it keeps no job waiting.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from functions.domain.far_ring.cursor import first_cursors
from functions.domain.jobs.job import Priority
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.recorder import Journal
from functions.ports.timers import TimerStore
from functions.scanner.due_alarms import AlarmService
from functions.scanner.fair_scan import FairScan
from functions.scanner.leases import Leases
from functions.scanner.pages import Pages
from functions.scanner.report import ScanReport, TickNotes
from functions.scanner.tick import Stopped, TakenOver, Tick


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanner:
    """Scans shards."""

    wheel: Wheel
    clock: Clock
    leases: Leases
    timers: TimerStore
    fair_scan: FairScan
    alarms: AlarmService
    tick_notes: TickNotes
    journal: Journal

    def scan(self, shard: int, *, time_limit: timedelta) -> ScanReport:
        """Promote everything of a shard that has come into reach, for at most 80 % of the time limit."""
        now = self.clock.now()
        lease = self.leases.acquire(shard, now=now)
        if lease is None:
            self.journal.event("shard_taken", shard=shard)
            return ScanReport(shard, stopped_by="another scanner has the shard")
        # A shard that nobody has scanned may hold rows that were written before its rule existed.
        cursors = lease.cursors or first_cursors(self.wheel.first_bucket(now=now))
        tick = Tick(
            lease,
            dict(cursors),
            wheel=self.wheel,
            clock=self.clock,
            leases=self.leases,
            pages=Pages(self.timers, shard),
            alarms=self.alarms,
            journal=self.journal,
            ends_at=self.clock.monotonic() + 0.8 * time_limit.total_seconds(),
        )
        stopped_by = self._run(tick, horizon=self.wheel.horizon(now=now))
        report = ScanReport(
            shard, sent=tick.sent, handled=tick.handled, buried=tick.buried, stopped_by=stopped_by, cursors=tick.cursors
        )
        self.tick_notes.note(report)
        return report

    def _run(self, tick: Tick, *, horizon: int) -> str:
        """Until the shard is given back; why that is before its horizon, if it is."""
        # The answer to the first write has shown how wrong this clock is: ahead, it would open buckets too early.
        is_skewed = abs(self.clock.offset()) > self.wheel.skew / 2
        self.journal.count("clock_skewed", int(is_skewed))
        try:
            stopped_by = "its clock is skewed" if is_skewed else self._promote(tick, horizon=horizon)
        except TakenOver:
            return "another scanner has taken the shard over"
        except Stopped as reason:
            stopped_by = str(reason)
        except Exception:
            # What was passed stays passed, and the next tick need not wait for this lease.
            tick.give_back()
            raise
        tick.give_back()
        return stopped_by

    def _promote(self, tick: Tick, *, horizon: int) -> str:
        """Classes outermost, and within a class its tenants in turns; then alarms. The first reason to end before that."""
        reasons = [self.fair_scan.scan(tick, priority, horizon=horizon) for priority in Priority]
        return next(filter(None, [*reasons, tick.handle()]), "")
