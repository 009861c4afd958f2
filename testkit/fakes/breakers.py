"""Breakers in memory."""

from __future__ import annotations

from dataclasses import replace

from functions.domain.targets.breaker import Breaker
from functions.ports.ledger import Applied
from functions.ports.targets import Changed
from testkit.fakes.kept import kept


class InMemoryBreakerStore:
    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], Breaker] = {}
        self.reads = 0
        self.writes = 0

    def get(self, tenant: str, destination: str) -> Breaker | None:
        self.reads += 1
        return self.rows.get((tenant, destination))

    def page(self, tenant: str, *, after: str, limit: int) -> tuple[list[Breaker], bool]:
        found = sorted(destination for owner, destination in self.rows if owner == tenant and destination > after)
        return [self.rows[tenant, destination] for destination in found[:limit]], len(found) > limit

    def everywhere(self, *, limit: int) -> tuple[list[Breaker], int]:
        return [self.rows[key] for key in sorted(self.rows)[:limit]], len(self.rows)

    def put(self, breaker: Breaker, *, seen: Breaker | None) -> Applied | Changed:
        self.writes += 1
        key = (breaker.tenant, breaker.destination)
        met = self.rows.get(key)
        if (met and met.owner) not in (seen and seen.owner, breaker.owner):
            return Changed(met)
        self.rows[key] = replace(breaker, until=kept(breaker.until), opened_at=kept(breaker.opened_at))
        return Applied()

    def close(self, seen: Breaker) -> Applied | Changed:
        self.writes += 1
        met = self.rows.get((seen.tenant, seen.destination))
        if met is not None and met.owner != seen.owner:
            return Changed(met)
        self.rows.pop((seen.tenant, seen.destination), None)
        return Applied()

    def reset(self, tenant: str, destination: str) -> bool:
        self.writes += 1
        return self.rows.pop((tenant, destination), None) is not None
