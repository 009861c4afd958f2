"""One tick of one shard: promote what comes due from the far ring to the ready queues.

Every bucket was closed before it opens, so it is read once, in order, behind a cursor, and nothing is written to a row
that is promoted. A crash repeats what was sent since the last checkpoint, and the ledger absorbs that. The alarms of
schedules come due last, when all timers have been sent and that is recorded: whatever they come to, it keeps no job waiting.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from functions.domain.far_ring.cursor import Cursors, oldest_bucket
from functions.domain.far_ring.send_times import IMPATIENT, Patience
from functions.domain.instants import from_seconds
from functions.domain.jobs.job import Priority
from functions.domain.stage.pulse import Figure
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.recorder import Journal, PulseCounter
from functions.ports.timers import TimerStore
from functions.scanner.due_alarms import DueAlarms
from functions.scanner.fair_scan import EVERYBODY_PAUSED, FairScan
from functions.scanner.leases import Leases
from functions.scanner.pages import Pages
from functions.scanner.schedule_alarms import ScheduleAlarms
from functions.scanner.tick import Stopped, TakenOver, Tick


@dataclass(slots=True)
class ScanReport:
    """What one tick of one shard did. stopped_by: why it ended before its horizon, if it did."""

    shard: int
    sent: int = 0
    handled: int = 0
    buried: int = 0
    stopped_by: str = ""
    cursors: Cursors = field(default_factory=dict)

    @property
    def summary(self) -> dict[str, Any]:
        """As the log and the answer of the function have it."""
        return {
            "shard": self.shard,
            "sent": self.sent,
            "alarms_due": self.handled,
            "buried": self.buried,
            "stopped_by": self.stopped_by,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanner:
    """Scans shards. patience: how long a tick may wait for the right moment to send."""

    wheel: Wheel
    clock: Clock
    leases: Leases
    timers: TimerStore
    fair_scan: FairScan
    alarms: ScheduleAlarms
    journal: Journal
    pulse: PulseCounter
    patience: Patience = IMPATIENT

    def scan(self, shard: int, *, time_limit: timedelta) -> ScanReport:
        """Promote everything of a shard that has come into reach, for at most 80 % of the time limit."""
        now = self.clock.now()
        lease = self.leases.acquire(shard, now=now)
        if lease is None:
            self.journal.event("shard_taken", shard=shard)
            return ScanReport(shard, stopped_by="another scanner has the shard")
        tick = Tick(
            lease=lease,
            cursors=dict(self.leases.cursors_of(lease, now=now)),
            wheel=self.wheel,
            clock=self.clock,
            leases=self.leases,
            pages=Pages(self.timers, shard),
            ends_at=self.clock.monotonic() + 0.8 * time_limit.total_seconds(),
            patience=self.patience,
        )
        stopped_by = self._run(tick, horizon=self.wheel.horizon(now=now))
        report = ScanReport(
            shard, sent=tick.sent, handled=tick.handled, buried=tick.buried, stopped_by=stopped_by, cursors=tick.cursors
        )
        self._note(report)
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
        return next(filter(None, [*reasons, DueAlarms(tick, self.alarms, self.journal).handle()]), "")

    def _note(self, report: ScanReport) -> None:
        """Count what was promoted, and how far behind the shard is."""
        self.journal.count("promoted", report.sent)
        self.pulse.count(Figure.PROMOTED, amount=report.sent)
        if report.cursors:
            waits_since = from_seconds(min(cursor.earliest_bucket for cursor in report.cursors.values()))
            waits = self.clock.now() + self.wheel.lookahead - waits_since
            # A metric that most stages have no value of costs them nothing.
            if waits > timedelta(0):
                self.journal.observe("held_age_s", waits.total_seconds())
        # While everybody is paused nothing is late.
        if report.cursors and report.stopped_by != EVERYBODY_PAUSED:
            # `low` waits by design when there is no room for all.
            prompt = {priority: cursor for priority, cursor in report.cursors.items() if priority is not Priority.LOW}
            age = self.clock.now() + self.wheel.lookahead - from_seconds(oldest_bucket(prompt))
            self.journal.observe("oldest_bucket_age_s", max(0.0, age.total_seconds()))
            self.journal.count("cursors_behind", sum(len(cursor.own) for cursor in report.cursors.values()))
        self.journal.event("shard_scanned", **report.summary)
