"""Permits in memory."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from functions.domain.targets.concurrency import Permit, is_free
from testkit.fakes.kept import kept


class InMemoryPermitStore:
    def __init__(self) -> None:
        self.rows: dict[tuple[str, int], Permit] = {}
        self.reads = 0
        self.writes = 0

    def take(self, permit: Permit, *, now: datetime, skew: timedelta) -> bool:
        self.writes += 1
        key = (permit.tenant, permit.number)
        held = self.rows.get(key)
        if held is not None and held.owner != permit.owner and not is_free(held.lease_until, now=now, skew=skew):
            return False
        self.rows[key] = replace(permit, lease_until=kept(permit.lease_until))
        return True

    def leases(self, tenant: str, *, limit: int) -> dict[int, datetime]:
        self.reads += 1
        return {
            number: permit.lease_until
            for (owner, number), permit in self.rows.items()
            if owner == tenant and number < limit
        }

    def give_back(self, permit: Permit) -> None:
        self.writes += 1
        met = self.rows.get((permit.tenant, permit.number))
        if met is not None and met.owner == permit.owner:
            del self.rows[permit.tenant, permit.number]
