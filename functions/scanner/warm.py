"""Brings workers up for a herd that a tick has found, while it is still on its way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from functions.domain.far_ring.warming import warm_delays
from functions.domain.instants import to_seconds
from functions.domain.jobs.job import Priority
from functions.ports.clock import Clock
from functions.ports.ready_queue import WarmQueue
from functions.ports.recorder import Journal
from functions.ports.timers import StoredTimer

_BySecond = Counter[tuple[int, Priority, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Warmer:
    """Sends messages ahead. most: that a shard may have on their way, by class; none where the stage does not want it.

    _jobs, _sent: of a shard and class, by the second that they are due or go before.
    """

    clock: Clock
    ready: WarmQueue
    journal: Journal
    most: Mapping[Priority, int] = field(default_factory=dict)
    _jobs: _BySecond = field(default_factory=_BySecond, init=False)
    _sent: _BySecond = field(default_factory=_BySecond, init=False)

    def expect(self, rows: Sequence[StoredTimer], *, shard: int) -> None:
        """These go out now, or their schedules' fires do. What cannot be sent is left: a herd comes all the same."""
        if not self.most:
            return
        now = to_seconds(self.clock.now())
        for counted in (self._jobs, self._sent):
            for passed in [key for key in counted if key[2] < now]:
                del counted[passed]
        found = Counter(filter(None, map(_due, rows)))
        for (priority, second), count in found.items():
            key = (shard, priority, second)
            before = self._jobs[key]
            self._jobs[key] += count
            if delays := warm_delays(before, before + count, left=second - now, room=self._room(shard, priority)):
                taken = self.ready.warm(priority, delays)
                self._sent[key] += taken
                self.journal.count("warm_messages", taken)

    def _room(self, shard: int, priority: Priority) -> int:
        """How many more may be on their way, to whatever second."""
        return self.most[priority] - sum(count for key, count in self._sent.items() if key[:2] == (shard, priority))


def _due(row: StoredTimer) -> tuple[Priority, int] | None:
    if timer := row.sealed or row.timer:
        return timer.job.priority, to_seconds(timer.wakes_at)
    return (row.alarm.priority, to_seconds(row.alarm.link.at)) if row.alarm is not None else None
