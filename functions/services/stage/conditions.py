"""The conditions of the stage, as a process knows them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from functions.domain.faults import fault_of
from functions.domain.jobs.job import Priority
from functions.domain.stage.conditions import Conditions
from functions.ports.clock import Clock
from functions.ports.recorder import Journal
from functions.ports.shards import ShardStore
from functions.services.stage.cache_age import ReadAt

KNOWN_FOR = timedelta(seconds=20)


@dataclass(slots=True, kw_only=True)
class KnownConditions:
    """As of at most 20 seconds before, for many threads: half a read unit each 20 seconds in which somebody asks."""

    clock: Clock
    shards: ShardStore
    journal: Journal
    _last: Conditions | None = field(default=None, init=False)
    _read_at: ReadAt | None = field(default=None, init=False)

    def full(self) -> frozenset[Priority]:
        """The classes whose ready queue has no room left; none while that is not known."""
        conditions = self.now()
        return conditions.full if conditions is not None else frozenset()

    def marked_since(self) -> datetime | None:
        """Since when dead letters are marked, as far as is known; also of conditions that are not fresh."""
        last = self._published()
        return last.marked_since if last is not None else None

    def now(self) -> Conditions | None:
        """The conditions, if there are fresh ones."""
        last = self._published()
        return last if last is not None and last.is_fresh(self.clock.now()) else None

    def _published(self) -> Conditions | None:
        """Those that were published last. A store that fails leaves what was known."""
        if self._read_at is None or self._read_at.is_older_than(KNOWN_FOR, clock=self.clock):
            # Noted first: whoever else asks meanwhile uses what was known, instead of reading it too.
            self._read_at = ReadAt.now(self.clock)
            try:
                self._last = self.shards.conditions()
            except Exception as error:  # noqa: BLE001  without them, nothing is full and nothing is shed
                self.journal.event("conditions_not_read", error=fault_of(error))
        return self._last
