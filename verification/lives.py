"""While schedules fire, according to the answers to their clients, and which fires they owe for that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from functions.api.schedules.manager import ScheduleManager
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.state import Status
from testkit.world.expected import fires_between
from testkit.world.process import SMOOTHLY, Conditions, Process
from testkit.world.world import World
from verification.history import Fires
from verification.pace import Pace
from verification.recorder import Recorder


@dataclass
class Life:
    """While a schedule fires: since a client asked for it, and got an answer, until it asked for its end, and got one."""

    schedule: Schedule
    asked_at: datetime
    acknowledged_at: datetime | None = None
    stopped_at: datetime | None = None
    is_over_at: datetime | None = None


class Scheduling(World):
    """The requests about schedules, whose answers are kept."""

    record: Recorder
    pace: Pace
    lives: dict[str, list[Life]]
    _managed: str

    def put_schedule(self, schedule: Schedule, conditions: Conditions = SMOOTHLY) -> Process:
        self._managed = f"{schedule.tenant}#{schedule.schedule_id}"
        lives = self.lives.setdefault(self._managed, [])
        if not lives or lives[-1].is_over_at is not None:
            lives.append(Life(schedule, self.clock.instant))
        return super().put_schedule(schedule, conditions)

    def resume(self, key: str, conditions: Conditions = SMOOTHLY) -> Process:
        self._managed, lives = key, self.lives[key]
        if lives[-1].is_over_at is not None:
            lives.append(Life(lives[-1].schedule, self.clock.instant))
        return super().resume(key, conditions)

    def pause(self, key: str, conditions: Conditions = SMOOTHLY) -> Process:
        self._stops(key)
        return super().pause(key, conditions)

    def delete(self, key: str, conditions: Conditions = SMOOTHLY) -> Process:
        self._stops(key)
        return super().delete(key, conditions)

    def look_at(self, key: str) -> None:
        """A client that got no answer looks whether its schedule is there and active, instead of asking again."""
        state, life = self.schedules.state(key), self.lives[key][-1]
        if state is not None and state.status is Status.ACTIVE and life.stopped_at is None:
            life.acknowledged_at = life.acknowledged_at or self.clock.instant

    def is_firing(self, key: str) -> bool:
        """Whether a client received that a schedule fires."""
        life = self.lives[key][-1]
        return life.acknowledged_at is not None and life.stopped_at is None

    def is_stopped(self, key: str) -> bool:
        """Whether a client received that a schedule does not fire any more."""
        return self.lives[key][-1].is_over_at is not None

    def owed(self, key: str, *, caught_up_at: datetime, ended_at: datetime) -> Fires:
        """What a schedule owes. caught_up_at: what was due by then must have come to its end, if it was active then."""
        lives: Sequence[Life] = self.lives[key]
        schedule, skew = lives[0].schedule, self.wheel.skew
        due: set[datetime] = set()
        possible: set[datetime] = set()
        for life in lives:
            stopped_at = life.stopped_at or ended_at
            # What is deleted at the end has caught up before.
            must_end = caught_up_at if stopped_at > caught_up_at else stopped_at - self.pace.lateness
            possible.update(fires_between(schedule, life.asked_at - skew, (life.is_over_at or ended_at) + skew))
            if life.acknowledged_at is not None:
                due.update(fires_between(schedule, life.acknowledged_at + skew, must_end))
        job = schedule.job
        return Fires(
            key=key,
            tenant=schedule.tenant,
            delivery=job.delivery,
            payload=job.payload.text,
            due=frozenset(due),
            possible=frozenset(possible - due),
        )

    def _manage(self, kind: str, conditions: Conditions, ask: Callable[[ScheduleManager], Any]) -> Process:
        key = self._managed

        def acknowledged(manager: ScheduleManager) -> None:
            ask(manager)
            if not self.record.loses_an_answer():
                self._note_acknowledged(kind, self.lives[key][-1])

        return super()._manage(kind, conditions, acknowledged)

    def _note_acknowledged(self, kind: str, life: Life) -> None:
        if kind in ("put", "resume"):
            life.acknowledged_at = life.acknowledged_at or self.clock.instant
        elif kind in ("pause", "delete"):
            life.is_over_at = life.is_over_at or self.clock.instant

    def _stops(self, key: str) -> None:
        self._managed = key
        life = self.lives[key][-1]
        life.stopped_at = life.stopped_at or self.clock.instant
