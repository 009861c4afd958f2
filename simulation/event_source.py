"""What calls the worker: an SQS event source that scales with its backlog, and the environments of the function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
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


@dataclass(eq=False)
class EventSource:
    """Polls one queue for a function. most: concurrent invocations, MaximumConcurrency; of the stage, not the sample.

    growth, start: in place of what is published.

    It begins with a few, grows at a fixed rate while there is a backlog, and falls back at the same rate when there is
    none (only the growth is published).
    """

    world: World
    limits: Limits
    dice: Dice
    queue: Queue
    function: Function
    _: KW_ONLY
    share: float
    most: float
    growth: float | None = None
    start: float | None = None
    _seen_at: float = field(default=0.0, init=False)
    _busy: int = field(default=0, init=False)
    _polls: int = field(default=0, init=False)
    _is_waiting: bool = field(default=False, init=False)
    _least_waiting: int = field(default=0, init=False)
    _most_busy: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._growth = self.limits.source_growth if self.growth is None else self.growth
        self._least = self.limits.source_start if self.start is None else self.start
        self._allowed = self._least
        self.queue.wakes = self.poke

    @property
    def allowed(self) -> int:
        """Invocations of the sample that may run at once: at least one."""
        return max(1, round(self._allowed * self.share))

    def poke(self) -> None:
        """Something has become visible, or a place has become free."""
        self._scale()
        batch = int(self.limits.batch_messages)
        while self.queue.visible_count > self._polls * batch and self._busy + self._polls < self.allowed:
            self._polls += 1
            latency = self.dice.duration(Latency(self.limits.delivery_p50, self.limits.delivery_p99))
            self.world.at(self.world.now + latency, self._invoke)
        waiting = max(0, self.queue.visible_count - self._polls * batch)
        self._least_waiting = min(self._least_waiting, waiting)
        self._most_busy = max(self._most_busy, self._busy + self._polls)
        if waiting and not self._is_waiting:
            self._is_waiting = True
            self.world.at(self.world.now + _LOOK, self._look_again)

    def _look_again(self) -> None:
        self._is_waiting = False
        self.poke()

    def _invoke(self) -> None:
        self._polls -= 1
        parcels = self.queue.receive(int(self.limits.batch_messages))
        if not parcels:
            return
        self._busy += 1

        def done(returned: Sequence[str]) -> None:
            self._busy -= 1
            back = set(returned)
            self.queue.delete([parcel.message_id for parcel in parcels if parcel.message_id not in back])
            self.poke()

        self.function.invoke(parcels, done)
        self.poke()

    def _scale(self) -> None:
        """Once a second: what waited all that time is a backlog."""
        passed = self.world.now - self._seen_at
        if passed < _LOOK:
            return
        self._seen_at = self.world.now
        if self._least_waiting:
            self._allowed = min(self.most, self._allowed + self._growth * min(passed, 2 * _LOOK))
        else:
            floor = max(self._least, self._most_busy / self.share)
            self._allowed = max(floor, self._allowed - self._growth * passed)
        self._least_waiting, self._most_busy = self.queue.visible_count, self._busy
        self._allowed = min(self.most, self._allowed)


_LOOK = 1.0
"""Seconds."""
