"""A run of one Lambda that faults may strike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, NoReturn, Protocol

from testkit.world.process import Conditions, Fate, Process, Surroundings
from testkit.world.process import Fault as FaultAtCall
from verification.faults import Chaos, Fault, Strike


class Struckable(Surroundings, Protocol):
    """What such a run needs of its world."""

    chaos: Chaos

    @property
    def is_held_up(self) -> bool:
        """Whether a process stands still."""
        ...

    def cut_short(self, make: Callable[[], Any], die: Callable[[], NoReturn], /) -> Any:
        """Make a call; its process dies before the second write of it, if it comes to that."""
        ...

    def scan(self, shard: int) -> Process:
        """One tick of one shard."""
        ...


class Struck(Process):
    """A process that faults may strike. keys: of the jobs that it had to do with."""

    def __init__(self, stage: Struckable, name: str, conditions: Conditions, *, limit: timedelta) -> None:
        super().__init__(stage, name, conditions, limit=limit)
        self.keys: set[str] = set()
        self._stage = stage
        self._is_held = conditions.is_held
        self._strikes = stage.chaos.for_process(name.partition(" ")[0])
        self._striking: Strike | None = None
        self._dies_within = stage.chaos.kills_within()

    @property
    def has_suffered(self) -> bool:
        """Whether it did not run through at once, to its end and without a fault."""
        return self.is_disturbed or self.is_dead or self._is_held

    def through(self, name: str, make: Callable[[], Any], failed: Any = None, about: Sequence[Any] = ()) -> Any:
        if name in ("ledger.claim", "ledger.rescue", "ledger.attempt", "target.begin"):
            self.keys.add(about[0].job.key)
        return super().through(name, make, failed, about)

    def _fate(self, name: str, *, is_local: bool) -> Fate:
        if self._fault is not None or self._stage.chaos.is_over:
            return super()._fate(name, is_local=is_local)
        due = [strike for strike in self._strikes if strike.is_due(name)]
        # While others stand still it would keep them from getting on within their time.
        due = [strike for strike in due if strike.fault is not Fault.LATE_WRITES or not self._stage.is_held_up]
        if not due:
            return super()._fate(name, is_local=is_local)
        self._striking = due[0]
        self._fault = FaultAtCall(due[0].fate, at_call=self._calls + 1, stall=due[0].stall)
        fate = super()._fate(name, is_local=is_local)
        if fate is Fate.HELD:
            self._fault = None
        else:
            self._stage.chaos.struck[due[0].fault] += 1
        return fate

    def _make(self, make: Callable[[], Any]) -> Any:
        return self._stage.cut_short(make, self._die_within) if self._dies_within else make()

    def _die_within(self) -> NoReturn:
        self.is_disturbed = True
        self._stage.chaos.struck[Fault.KILLED_WITHIN] += 1
        self._stage.history.note_turn(self._stage.clock.instant, self.name, "dies before the second write of its call")
        self.die()

    def _stall(self) -> None:
        if self._striking is not None and self._striking.fault is Fault.DOUBLE_TICKS:
            self._fault = None
            self._stage.scan(int(self.name.split(" ")[1]))
        else:
            super()._stall()
            self._fault = None
