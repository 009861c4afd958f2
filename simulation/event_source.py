"""What calls the worker: an SQS event source that scales with its backlog, and the environments of the function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from simulation.limits import Latency, Limits
from simulation.queues import Parcel, Queue
from simulation.virtual_time import Dice, World


class Environment(Protocol):
    """One execution environment of the worker."""

    def run(self, parcels: Sequence[Parcel], *, at: float) -> tuple[float, list[str]]:
        """Run a batch that begins then; when it ends, and the ids of the messages that must come back."""
        ...


@dataclass(slots=True)
class Spent:
    """What a function has been billed for. invocations and seconds of the sample, not of the stage."""

    invocations: int = 0
    seconds: float = 0.0
    cold_starts: int = 0


class Function:
    """The environments of a function: idle ones are used again, the last one first; others are started cold.

    share: of the stage that is simulated; the number of environments that may start in a second is scaled by it.
    """

    def __init__(
        self, world: World, limits: Limits, dice: Dice, make: Callable[[], Environment], *, share: float
    ) -> None:
        self._world = world
        self._limits = limits
        self._dice = dice
        self._make = make
        self._idle: list[tuple[float, Environment]] = []
        self._a_second = limits.new_environments * share
        self._next_start = 0.0
        self.busy = 0
        self.most_busy = 0
        self.spent = Spent()

    def invoke(self, parcels: Sequence[Parcel], done: Callable[[Sequence[str]], None]) -> None:
        """Run a batch, as soon as there is an environment; then return which messages must come back."""
        environment, at = self._environment()
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        ended_at, returned = environment.run(parcels, at=at)
        self.spent.invocations += 1
        self.spent.seconds += ended_at - at

        def end() -> None:
            self.busy -= 1
            self._idle.append((self._world.now, environment))
            done(returned)

        self._world.at(ended_at, end)

    def _environment(self) -> tuple[Environment, float]:
        now = self._world.now
        while self._idle:
            idle_since, environment = self._idle.pop()
            if now - idle_since < self._limits.idle_life:
                return environment, now
            self._idle.clear()  # those below have been idle for longer
        self.spent.cold_starts += 1
        started_at = max(now, self._next_start)
        self._next_start = started_at + 1 / self._a_second
        cold = self._dice.duration(Latency(self._limits.cold_p50, self._limits.cold_p99))
        return self._make(), started_at + cold


class EventSource:
    """Polls one queue for a function. most: concurrent invocations, MaximumConcurrency; of the stage, not the sample.

    It begins with a few, grows at a fixed rate while there is a backlog, and falls back at the same rate when there is
    none (only the growth is published).
    """

    def __init__(
        self,
        world: World,
        limits: Limits,
        dice: Dice,
        queue: Queue,
        function: Function,
        *,
        share: float,
        most: float,
        growth: float | None = None,
        start: float | None = None,
    ) -> None:
        self._world = world
        self._limits = limits
        self._dice = dice
        self._queue = queue
        self._function = function
        self._share = share
        self._most = most
        self._growth = limits.source_growth if growth is None else growth
        self._start = limits.source_start if start is None else start
        self._allowed = self._start
        self._seen_at = 0.0
        self._busy = 0
        self._polls = 0
        self._is_waiting = False
        self._least_waiting = 0
        self._most_busy = 0
        queue.wakes = self.poke

    @property
    def allowed(self) -> int:
        """Invocations of the sample that may run at once: at least one."""
        return max(1, round(self._allowed * self._share))

    def poke(self) -> None:
        """Something has become visible, or a place has become free."""
        self._scale()
        batch = int(self._limits.batch_messages)
        while self._queue.visible_count > self._polls * batch and self._busy + self._polls < self.allowed:
            self._polls += 1
            latency = self._dice.duration(Latency(self._limits.delivery_p50, self._limits.delivery_p99))
            self._world.at(self._world.now + latency, self._invoke)
        waiting = max(0, self._queue.visible_count - self._polls * batch)
        self._least_waiting = min(self._least_waiting, waiting)
        self._most_busy = max(self._most_busy, self._busy + self._polls)
        if waiting and not self._is_waiting:
            self._is_waiting = True
            self._world.at(self._world.now + _LOOK, self._look_again)

    def _look_again(self) -> None:
        self._is_waiting = False
        self.poke()

    def _invoke(self) -> None:
        self._polls -= 1
        parcels = self._queue.receive(int(self._limits.batch_messages))
        if not parcels:
            return
        self._busy += 1

        def done(returned: Sequence[str]) -> None:
            self._busy -= 1
            back = set(returned)
            self._queue.delete([parcel.message_id for parcel in parcels if parcel.message_id not in back])
            self.poke()

        self._function.invoke(parcels, done)
        self.poke()

    def _scale(self) -> None:
        """Once a second: what waited all that time is a backlog."""
        passed = self._world.now - self._seen_at
        if passed < _LOOK:
            return
        self._seen_at = self._world.now
        if self._least_waiting:
            self._allowed = min(self._most, self._allowed + self._growth * min(passed, 2 * _LOOK))
        else:
            floor = max(self._start, self._most_busy / self._share)
            self._allowed = max(floor, self._allowed - self._growth * passed)
        self._least_waiting, self._most_busy = self._queue.visible_count, self._busy
        self._allowed = min(self._most, self._allowed)


_LOOK = 1.0
"""Seconds."""
