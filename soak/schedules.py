"""Schedules of every kind that can be worked out by arithmetic, with every overlap policy; one is edited, one is paused."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from functions.domain.instants import SECOND
from soak.load import Sinks
from soak.record import Life, Record, Rhythm
from tickwheel.client import Client
from tickwheel.client.schedule_parts import Every, Recurrence
from tickwheel.client.schedules import NewSchedule
from verification.sink import Manner

TENANT = "clockwork"
EDITED = "edited"
PAUSED = "paused"

_EDITS = (Rhythm(15), Rhythm(20, 5))


@dataclass
class Schedules:
    """Puts them, changes them, and deletes them."""

    client: Client
    sinks: Sinks
    record: Record
    _lives: dict[str, Life] = field(default_factory=dict, init=False)
    _edits: int = field(default=0, init=False)

    def create(self) -> None:
        """All of them."""
        starts_at = datetime.now(UTC).replace(hour=0, minute=0, second=15, microsecond=0, tzinfo=None)
        minutely = Recurrence("FREQ=MINUTELY", starts_at)
        self._put(self._new("each-minute", cron="* * * * *"), Rhythm(60))
        self._put(self._new("ruled", rrule=minutely), Rhythm(60, 15))
        self._put(self._new("often", every=20 * SECOND), Rhythm(20))
        self._put(self._new("phased", every=Every(interval=30 * SECOND, phase=7 * SECOND)), Rhythm(30, 7))
        self._put(self._new("forbidding", Manner.LASTING, every=10 * SECOND, overlap="forbid"), Rhythm(10))
        self._put(self._new("buffering", Manner.LASTING, every=20 * SECOND, overlap="buffer_one"), Rhythm(20))
        self._put(self._new("replacing", every=30 * SECOND, overlap="replace"), Rhythm(30))
        self._put(self._edited(), _EDITS[0])
        self._put(self._new(PAUSED, every=20 * SECOND), Rhythm(20))

    def edit(self) -> None:
        """Another rhythm for one of them."""
        self._edits += 1
        self._stop(EDITED)
        life = self._lives[EDITED]
        self._put(self._edited(), _EDITS[self._edits % 2])
        life.is_over_at = datetime.now(UTC)
        self.record.strike("schedule edited")

    def pause(self) -> None:
        """One of them, until it is resumed."""
        self._stop(PAUSED)
        self.client.schedules.pause(PAUSED, tenant=TENANT)
        self._lives[PAUSED].is_over_at = datetime.now(UTC)
        self.record.strike("schedule paused")

    def resume(self) -> None:
        """The one that was paused."""
        life = self._begin(PAUSED, self._lives[PAUSED].rhythm)
        self.client.schedules.resume(PAUSED, tenant=TENANT)
        life.acknowledged_at = datetime.now(UTC)

    def delete(self) -> None:
        """All of them."""
        for name in self._lives:
            self.client.schedules.delete(name, tenant=TENANT)

    def _edited(self) -> NewSchedule:
        rhythm = _EDITS[self._edits % 2]
        every = Every(interval=rhythm.period * SECOND, phase=rhythm.offset * SECOND or None)
        return replace(self._new(EDITED, every=1 * SECOND), every=every)

    def _new(self, name: str, manner: Manner = Manner.FINE, **fields: Any) -> NewSchedule:
        return NewSchedule(
            name,
            tenant=TENANT,
            target=self.sinks.address(manner),
            payload=name,
            # Few workers are kept for it: those that last do not hold others up.
            priority="low" if manner is Manner.LASTING else "normal",
            misfire="fire_all",
            timezone="UTC",
            timeout=timedelta(seconds=20),
            **fields,
        )

    def _put(self, schedule: NewSchedule, rhythm: Rhythm) -> None:
        life = self._begin(schedule.id, rhythm)
        self.client.schedules.put(schedule)
        life.acknowledged_at = datetime.now(UTC)

    def _begin(self, name: str, rhythm: Rhythm) -> Life:
        life = self.record.begin_life(f"{TENANT}#{name}", rhythm, name, now=datetime.now(UTC))
        self._lives[name] = life
        return life

    def _stop(self, name: str) -> None:
        self._lives[name].stopped_at = datetime.now(UTC)
