"""Seats in memory."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from functions.domain.targets.concurrency import Seat, may_take
from testkit.fakes.kept import kept


class InMemorySeatStore:
    def __init__(self) -> None:
        self.rows: dict[tuple[str, int], Seat] = {}
        self.reads = 0
        self.writes = 0

    def take(self, seat: Seat, *, now: datetime, skew: timedelta) -> bool:
        self.writes += 1
        key = (seat.tenant, seat.number)
        if not may_take(self.rows.get(key), seat, now=now, skew=skew):
            return False
        self.rows[key] = replace(seat, lease_until=kept(seat.lease_until))
        return True

    def leases(self, tenant: str, *, limit: int) -> dict[int, datetime]:
        self.reads += 1
        return {
            number: seat.lease_until
            for (owner, number), seat in self.rows.items()
            if owner == tenant and number < limit
        }

    def give_back(self, seat: Seat) -> None:
        self.writes += 1
        met = self.rows.get((seat.tenant, seat.number))
        if met is not None and met.owner == seat.owner:
            del self.rows[seat.tenant, seat.number]
