"""Theoretical arrival times in memory."""

from __future__ import annotations

from datetime import datetime, timedelta

from functions.ports import Ahead, Applied


class InMemoryRateStore:
    def __init__(self) -> None:
        self.executions: dict[str, datetime] = {}
        self.submissions: dict[str, datetime] = {}
        self.writes = 0

    def advance(self, tenant: str, *, seen: datetime | None, to: datetime) -> Applied | Ahead:
        self.writes += 1
        met = self.executions.get(tenant)
        if met != seen:
            return Ahead(met)
        self.executions[tenant] = to
        return Applied()

    def spend(self, tenant: str, *, cost: timedelta, now: datetime, latest: datetime) -> Applied | Ahead:
        self.writes += 1
        met = self.submissions.get(tenant)
        if met is not None and met > latest:
            return Ahead(met)
        self.submissions[tenant] = max(met or now, now) + cost
        return Applied()
