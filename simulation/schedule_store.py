"""Schedules behind the network: changes of one tenant's collide in the row of their sum."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from functions.adapters.dynamodb.schedules import TRIES_OF_SUMS
from functions.domain.errors import ScheduleBusy
from functions.domain.schedules.load import NO_LIMITS, Load, LoadLimits
from functions.domain.schedules.state import ScheduleState
from functions.ports.schedules import ScheduleStore, StoredSchedule
from simulation.network import Line
from simulation.prices import Price, Remote

_LONGEST = 60.0
"""Seconds: no invocation's clock is as far behind that of another."""


class Sums:
    """When transactions hold the sums of tenants. collisions: transactions that met another one there."""

    def __init__(self) -> None:
        self._held: dict[str, list[tuple[float, float]]] = defaultdict(list)
        self.collisions = 0

    def take(self, tenant: str, *, start: float, end: float) -> bool:
        """Whether no other transaction holds the sum in that time."""
        held = [time for time in self._held[tenant] if time[1] > start - _LONGEST]
        is_free = all(end <= other_start or start >= other_end for other_start, other_end in held)
        self.collisions += not is_free
        self._held[tenant] = [*held, (start, end)] if is_free else held
        return is_free


class RemoteSchedules(Remote):
    """The store of schedules, whose changes are transactions.

    One that meets another is cancelled, and made again as the adapter does it:
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html
    """

    def __init__(self, store: ScheduleStore, line: Line, prices: Mapping[str, Price], sums: Sums) -> None:
        super().__init__(store, line, prices)
        self._schedules = store
        self._change = prices["change"]
        self._sums = sums

    def change(
        self, new: StoredSchedule, state: ScheduleState, *, seen: ScheduleState | None, limits: LoadLimits = NO_LIMITS
    ) -> bool:
        """As the adapter does it, with its tries and its pauses. A try that is cancelled is paid for, too."""
        line, tenant = self._line, new.schedule.tenant
        adds = Load.of(state.share) != Load.of(seen.share if seen else None)
        for attempt in range(TRIES_OF_SUMS):
            if attempt:
                pause = min(line.limits.conflict_pause_most, line.limits.conflict_pause * 2 ** (attempt - 1))
                line.clock.spend(pause * line.dice.random.random())
            start = line.clock.at
            line.insist(lambda: self._change.take(line), calls=int(line.limits.transaction_calls))
            if not adds or self._sums.take(tenant, start=start, end=line.clock.at):
                return self._schedules.change(new, state, seen=seen, limits=limits)
        raise ScheduleBusy(new.schedule.schedule_id)
