"""What is used up of rates, in memory."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from functions.domain.tenants.rate_bookings import Timetable, pack, unpack
from functions.ports.ledger import Applied
from functions.ports.tenants import Ahead, Booked


class InMemoryRateStore:
    def __init__(self) -> None:
        self.timetables: dict[str, tuple[Timetable, bytes]] = {}
        self.submissions: dict[str, datetime] = {}
        self.writes = 0

    def book(self, tenant: str, timetable: Timetable, *, seen: Timetable | None) -> Applied | Booked:
        self.writes += 1
        kept = self.timetables.get(tenant)
        met = replace(kept[0], taken=unpack(kept[1])) if kept is not None else None
        if (met.version if met else None) != (seen.version if seen else None):
            return Booked(met)
        self.timetables[tenant] = replace(timetable, taken=()), pack(timetable.taken)
        return Applied()

    def spend(
        self, tenant: str, *, cost: timedelta, now: datetime, latest: datetime, most: datetime | None = None
    ) -> Applied | Ahead:
        self.writes += 1
        met = self.submissions.get(tenant)
        if met is not None and most is not None and met > most:
            met = None
        if met is not None and met > latest:
            return Ahead(met)
        self.submissions[tenant] = max(met or now, now) + cost
        return Applied()
