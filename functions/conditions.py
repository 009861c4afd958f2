"""The conditions of the stage, as a process knows them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from functions.domain.conditions import Conditions
from functions.domain.job import Priority
from functions.ports import Clock, Journal, ShardStore

KNOWN_FOR = timedelta(seconds=20)


@dataclass(slots=True)
class _Known:
    """What was read, when: by both clocks, because one of them may have stood still with its process."""

    conditions: Conditions | None = None
    read_at: tuple[float, datetime] | None = None

    def is_old(self, clock: Clock) -> bool:
        if self.read_at is None:
            return True
        monotonic, now = self.read_at
        return max(timedelta(seconds=clock.monotonic() - monotonic), clock.now() - now) >= KNOWN_FOR


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownConditions:
    """As of at most 20 seconds before, for many threads: half a read unit each 20 seconds in which somebody asks."""

    clock: Clock
    shards: ShardStore
    journal: Journal
    _known: _Known = field(default_factory=_Known, init=False)

    def full(self) -> frozenset[Priority]:
        """The classes whose ready queue has no room left; none while that is not known."""
        conditions = self.now()
        return conditions.full if conditions is not None else frozenset()

    def shed(self) -> frozenset[Priority]:
        """The classes of which nothing is taken in; none while that is not known."""
        conditions = self.now()
        return conditions.shed if conditions is not None else frozenset()

    def now(self) -> Conditions | None:
        """The conditions, if there are fresh ones. A store that fails leaves what was known."""
        known = self._known
        if known.is_old(self.clock):
            # Noted first: whoever else asks meanwhile goes on with what was known, instead of reading it too.
            known.read_at = self.clock.monotonic(), self.clock.now()
            try:
                known.conditions = self.shards.conditions()
            except Exception as error:  # noqa: BLE001  without them, nothing is full and nothing is shed
                self.journal.event("conditions_not_read", error=f"{type(error).__name__}: {error}")
        conditions = known.conditions
        return conditions if conditions is not None and conditions.is_fresh(self.clock.now()) else None
