"""Brings workers up for a herd that a tick has found, while it is still on its way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from functions.domain.far_ring.warming import warm_delays
from functions.domain.instants import to_seconds
from functions.domain.jobs.job import Priority
from functions.ports.clock import Clock
from functions.ports.ready_queue import WarmQueue
from functions.ports.recorder import Journal
from functions.ports.timers import StoredTimer


@dataclass(frozen=True, slots=True, kw_only=True)
class Warmer:
    """Sends messages ahead. is_on: whether the stage has that. _jobs: of a shard and class, by the second of their instant."""

    clock: Clock
    ready: WarmQueue
    journal: Journal
    is_on: bool = False
    _jobs: Counter[tuple[int, Priority, int]] = field(default_factory=Counter[tuple[int, Priority, int]], init=False)

    def expect(self, rows: Sequence[StoredTimer], *, shard: int) -> None:
        """These go out now, or their schedules' fires do. What cannot be sent is left: a herd comes all the same."""
        if not self.is_on:
            return
        now = to_seconds(self.clock.now())
        for passed in [key for key in self._jobs if key[2] < now]:
            del self._jobs[passed]
        found = Counter(_due(row) for row in rows if row.timer is not None or row.alarm is not None)
        for (priority, second), count in found.items():
            key = (shard, priority, second)
            before = self._jobs[key]
            self._jobs[key] += count
            if delays := warm_delays(before, before + count, left=second - now):
                self.journal.count("warm_messages", self.ready.warm(priority, delays))


def _due(row: StoredTimer) -> tuple[Priority, int]:
    if row.timer is not None:
        return row.timer.job.priority, to_seconds(row.timer.wakes_at)
    assert row.alarm is not None
    return row.alarm.priority, to_seconds(row.alarm.link.at)
