"""What one tick did, and what is noted of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from functions.domain.far_ring.cursor import Cursors, oldest_bucket
from functions.domain.instants import from_seconds
from functions.domain.jobs.job import Priority
from functions.domain.stage.pulse import Figure
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.recorder import Journal, PulseCounter
from functions.scanner.fair_scan import EVERYBODY_PAUSED


@dataclass(slots=True)
class ScanReport:
    """What one tick of one shard did. stopped_by: why it ended before its horizon, if it did."""

    shard: int
    sent: int = 0
    handled: int = 0
    buried: int = 0
    stopped_by: str = ""
    cursors: Cursors = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TickNotes:
    """Notes what ticks did."""

    wheel: Wheel
    clock: Clock
    journal: Journal
    pulse: PulseCounter

    def note(self, report: ScanReport) -> None:
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
        self.journal.event(
            "shard_scanned",
            shard=report.shard,
            sent=report.sent,
            alarms_due=report.handled,
            buried=report.buried,
            stopped_by=report.stopped_by,
        )
