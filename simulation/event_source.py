"""What calls the worker: an SQS event source that scales with its backlog, and the environments of the function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Protocol

from simulation.limits import Latency, Limits
from simulation.queues import Queue
from simulation.size import Source
from simulation.virtual_time import Dice, World


class Environment(Protocol):
    """One execution environment of the worker."""

    def run(self, parcels: Any, *, at: float) -> tuple[float, list[str]]:
        """Run a batch that begins then; when it ends, and the ids of the messages that must come back."""
        ...


@dataclass(slots=True)
class Spent:
    """What a function has been billed for: of the sample, not of the stage. init_seconds: of its cold starts."""

    invocations: int = 0
    seconds: float = 0.0
    init_seconds: float = 0.0
    cold_starts: int = 0

    @property
    def billed(self) -> float:
        """Seconds (https://aws.amazon.com/blogs/compute/aws-lambda-standardizes-billing-for-init-phase/)."""
        return self.seconds + self.init_seconds


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

    def invoke(self, parcels: Any, done: Callable[[Sequence[str]], None]) -> None:
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
        # What was not started in these seconds may start at once.
        self._next_start = max(self._next_start, now - self._limits.environments_saved) + 1 / self._a_second
        started_at = max(now, self._next_start)
        cold = self._dice.duration(Latency(self._limits.cold_p50, self._limits.cold_p99))
        self.spent.init_seconds += cold
        return self._make(), started_at + cold


@dataclass(eq=False)
class EventSource:
    """Polls one queue for a function. source: its size in the stage, of which the sample has a share.

    It begins with a few, grows at a fixed rate while there is a backlog, and falls back at the same rate when there is
    none (only the growth is published). Provisioned pollers ask only so often a second.
    """

    world: World
    limits: Limits
    dice: Dice
    queue: Queue
    function: Function
    source: Source
    _: KW_ONLY
    share: float
    invocations: int = field(default=0, init=False)
    _next_poll: float = field(default=0.0, init=False)
    _seen_at: float = field(default=0.0, init=False)
    _busy: int = field(default=0, init=False)
    _polls: int = field(default=0, init=False)
    _is_waiting: bool = field(default=False, init=False)
    _least_waiting: int = field(default=0, init=False)
    _most_busy: int = field(default=0, init=False)
    _asked: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._allowed = self.source.start
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
            self.world.at(self._poll_at() + latency, self._invoke)
        waiting = max(0, self.queue.visible_count - self._polls * batch)
        self._least_waiting = min(self._least_waiting, waiting)
        self._most_busy = max(self._most_busy, self._busy + self._polls)
        if waiting and not self._is_waiting:
            self._is_waiting = True
            self.world.at(self.world.now + _LOOK, self._look_again)

    def _poll_at(self) -> float:
        """When the next poll is made: now, unless the pollers have asked as often as they may."""
        if self.source.polls is None:
            return self.world.now
        apart = 1 / (self.source.polls * max(1.0, self._allowed * self.share))
        # What was not asked within a moment is not made up for.
        self._next_poll = max(self._next_poll, self.world.now - _POLLS_SAVED) + apart
        return max(self._next_poll, self.world.now)

    def _look_again(self) -> None:
        self._is_waiting = False
        self.poke()

    def _invoke(self) -> None:
        self._polls -= 1
        self._asked += self.source.polls is not None
        parcels = self.queue.receive(int(self.limits.batch_messages))
        if not parcels:
            return
        self._busy += 1

        def done(returned: Sequence[str]) -> None:
            self._busy -= 1
            back = set(returned)
            self.queue.delete([parcel.message_id for parcel in parcels if parcel.message_id not in back])
            self.poke()

        self.invocations += 1
        self.function.invoke(parcels, done)
        self.poke()

    def _scale(self) -> None:
        """Once a second: what waited all that time is a backlog."""
        passed = self.world.now - self._seen_at
        if passed < _LOOK:
            return
        self._seen_at = self.world.now
        if self._least_waiting:
            self._allowed += self.source.growth * min(passed, 2 * _LOOK)
        else:
            floor = max(self.source.start, self._most_busy / self.share, self._asked / passed / self.share)
            self._allowed = max(floor, self._allowed - self.source.growth * passed)
        self._least_waiting, self._most_busy, self._asked = self.queue.visible_count, self._busy, 0
        self._allowed = min(self.source.most, self._allowed)


_LOOK = 1.0
"""Seconds."""

_POLLS_SAVED = 0.1
"""Seconds of polls that may come at once."""
