"""The sweep of collections: one in which jobs wait and whose release is overdue, or was never placed, gets one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from functions.domain.faults import fault_of
from functions.domain.jobs.collection import CollectionId
from functions.ports.collections import CollectionStore
from functions.ports.recorder import Journal
from functions.ports.tenants import TenantPlans
from functions.services.far_ring.placer import Placer

PAGE = 500
"""Rows of the table of tenants that one sweep looks at: at most a megabyte, and few read units while rows are small."""

MOST = 50
"""Collections that one sweep looks into. The others wait for the next pass."""


@dataclass(slots=True, kw_only=True)
class CollectionOpener:
    """Looks for collections a page at a time, each sweep where the one before ended, as `RoomOpener` does for rooms.

    token: a fresh random text.
    """

    collections: CollectionStore
    placer: Placer
    plans: TenantPlans
    journal: Journal
    token: Callable[[], str]
    _after: str | None = field(default=None, init=False)

    def sweep(self) -> int:
        """How many releases were placed anew. Never raises: neither chains nor buckets wait for collections."""
        try:
            after = self.token() if self._after is None else self._after
            found, self._after = self.collections.waited_for(after=after, limit=PAGE)
        except Exception as error:  # noqa: BLE001  the next sweep reads the same page
            self.journal.event("collections_not_swept", error=fault_of(error))
            return 0
        return sum(self._reopen(collection) for collection in sorted(found, key=str)[:MOST])

    def _reopen(self, collection: CollectionId) -> bool:
        try:
            if self.plans.of(collection.tenant).is_deleted:
                self.collections.forget(collection)
                return False
            is_placed = self.placer.reopen(collection)
        except Exception as error:  # noqa: BLE001  one collection must not keep the others shut
            self.journal.event("collections_not_swept", error=fault_of(error))
            return False
        if is_placed:
            self.journal.event("release_placed_anew", collection=str(collection))
        return is_placed
