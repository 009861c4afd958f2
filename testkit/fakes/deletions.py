"""Deletions of tenants, and what is to be deleted, in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from functions.domain.tenants.deletion import Deletion, DeletionStage, decode_deletion, encode_deletion
from functions.ports.tenants import Swept
from testkit.fakes.kept import kept


class InMemoryDeletionStore:
    def __init__(self) -> None:
        self.rows: dict[str, Deletion] = {}

    def begin(self, deletion: Deletion) -> Deletion:
        met = self.rows.get(deletion.tenant)
        return met if met is not None and met.since >= deletion.since else self._write(deletion)

    def get(self, tenant: str) -> Deletion | None:
        return self.rows.get(tenant)

    def open(self, *, limit: int) -> list[str]:
        return sorted(self.rows)[:limit]

    def take(
        self, tenant: str, *, owner: str, lease_until: datetime, now: datetime, skew: timedelta
    ) -> Deletion | None:
        met = self.rows.get(tenant)
        if met is None or (met.lease_until is not None and met.lease_until + skew >= now):
            return None
        return self._write(replace(met, owner=owner, lease_until=lease_until))

    def save(self, deletion: Deletion, *, lease_until: datetime | None) -> Deletion | None:
        met = self.rows.get(deletion.tenant)
        if met is None or met.owner != deletion.owner:
            return None
        if lease_until is not None and (met.lease_until is None or met.lease_until > kept(lease_until)):
            return None
        return self._write(replace(deletion, lease_until=lease_until))

    def forget(self, deletion: Deletion) -> None:
        met = self.rows.get(deletion.tenant)
        if met is not None and met.since == kept(deletion.since):
            del self.rows[deletion.tenant]

    def _write(self, deletion: Deletion) -> Deletion:
        lease = None if deletion.lease_until is None else kept(deletion.lease_until)
        read = decode_deletion(encode_deletion(deletion), tenant=deletion.tenant)
        self.rows[deletion.tenant] = replace(read, owner=deletion.owner, lease_until=lease)
        return self.rows[deletion.tenant]


class InMemoryTenantData:
    """Things by tenant and part; pages of two. before: runs before each page is deleted."""

    def __init__(self) -> None:
        self.things: dict[tuple[str, DeletionStage], set[str]] = {}
        self.before: Callable[[], None] = lambda: None

    def put(self, tenant: str, part: DeletionStage, *names: str) -> None:
        self.things.setdefault((tenant, part), set()).update(names)

    def of(self, tenant: str) -> set[str]:
        return {name for (owner, _), names in self.things.items() if owner == tenant for name in names}

    def sweep(self, tenant: str, part: DeletionStage, *, after: str) -> Swept:
        self.before()
        names = self.things.get((tenant, part), set())
        left = sorted(name for name in names if name > after)
        names.difference_update(left[:2])
        return Swept(len(left[:2]), left[1] if len(left) > 2 else None)
