"""How many jobs of tenants wait, in memory."""

from __future__ import annotations

from datetime import date


class InMemoryPendingStore:
    def __init__(self) -> None:
        self.rows: dict[tuple[str, date], int] = {}
        self.reads = 0
        self.writes = 0

    def add(self, tenant: str, day: date, count: int) -> None:
        self.writes += 1
        self.rows[tenant, day] = self.rows.get((tenant, day), 0) + count

    def counts(self, tenant: str, *, since: date) -> dict[date, int]:
        self.reads += 1
        return {day: max(0, count) for (owner, day), count in self.rows.items() if owner == tenant and day >= since}
