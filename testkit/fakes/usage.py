"""Usage of tenants in memory."""

from __future__ import annotations

from datetime import date

from functions.domain.tenants.usage import Days, Usage


class InMemoryUsageStore:
    def __init__(self) -> None:
        self.rows: dict[tuple[str, date], Usage] = {}
        self.writes = 0

    def add(self, tenant: str, day: date, used: Usage) -> None:
        self.writes += 1
        self.rows[tenant, day] = self.rows.get((tenant, day), Usage()) + used

    def days(self, tenant: str, days: Days) -> dict[date, Usage]:
        return {
            day: usage
            for (owner, day), usage in sorted(self.rows.items())
            if owner == tenant and days.first <= day <= days.last
        }
