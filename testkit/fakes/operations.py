"""Operations and their exports in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from functions.domain.operations.operation import Operation, OperationState
from functions.domain.operations.record import decode_operation, encode_operation
from testkit.fakes.kept import kept


class InMemoryOperationStore:
    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], Operation] = {}

    def create(self, operation: Operation) -> Operation | None:
        key = (operation.tenant, operation.operation_id)
        if key in self.rows:
            return self.rows[key]
        self._write(operation)
        return None

    def get(self, tenant: str, operation_id: str) -> Operation | None:
        return self.rows.get((tenant, operation_id))

    def page(self, tenant: str, *, after: str, limit: int) -> tuple[list[Operation], bool]:
        found = sorted(operation_id for owner, operation_id in self.rows if owner == tenant and operation_id > after)
        return [self.rows[tenant, operation_id] for operation_id in found[:limit]], len(found) > limit

    def open(self, *, limit: int) -> list[tuple[str, str]]:
        found = [operation for operation in self.rows.values() if not operation.state.is_over]
        found.sort(key=lambda operation: (operation.created_at, operation.tenant, operation.operation_id))
        return [(operation.tenant, operation.operation_id) for operation in found[:limit]]

    def take(
        self, tenant: str, operation_id: str, *, owner: str, lease_until: datetime, now: datetime, skew: timedelta
    ) -> Operation | None:
        met = self.rows.get((tenant, operation_id))
        if met is None or met.state.is_over:
            return None
        if met.owner != owner and met.lease_until is not None and met.lease_until + skew >= now:
            return None
        return self._write(replace(met, owner=owner, lease_until=lease_until, state=OperationState.RUNNING))

    def save(self, operation: Operation, *, lease_until: datetime | None) -> Operation | None:
        met = self.rows.get((operation.tenant, operation.operation_id))
        if met is None or met.owner != operation.owner or met.state.is_over:
            return None
        if lease_until is not None and (met.lease_until is None or met.lease_until > kept(lease_until)):
            return None
        return self._write(replace(operation, lease_until=lease_until, stop_requested=met.stop_requested))

    def finish(self, operation: Operation) -> bool:
        met = self.rows.get((operation.tenant, operation.operation_id))
        if met is None or met.owner != operation.owner or (met.state.is_over and met.state is not operation.state):
            return False
        self._write(replace(operation, lease_until=None, stop_requested=met.stop_requested))
        return True

    def stop(self, tenant: str, operation_id: str) -> Operation | None:
        met = self.rows.get((tenant, operation_id))
        if met is None or met.state.is_over:
            return met
        return self._write(replace(met, stop_requested=True))

    def _write(self, operation: Operation) -> Operation:
        decoded = decode_operation(
            encode_operation(operation), tenant=operation.tenant, operation_id=operation.operation_id
        )
        stored = replace(
            decoded,
            state=operation.state,
            owner=operation.owner,
            lease_until=kept(operation.lease_until) if operation.lease_until is not None else None,
            stop_requested=operation.stop_requested,
        )
        self.rows[operation.tenant, operation.operation_id] = stored
        return stored


class InMemoryExportStore:
    def __init__(self) -> None:
        self.parts: dict[tuple[str, str, int], list[str]] = {}

    def put(self, tenant: str, operation_id: str, part: int, lines: Sequence[str]) -> None:
        self.parts[tenant, operation_id, part] = list(lines)

    def urls(self, tenant: str, operation_id: str, parts: int) -> list[str]:
        return [f"https://exports.example/{tenant}/{operation_id}/{part}" for part in range(1, parts + 1)]


class CountingWaker:
    """fails_with: what each call raises."""

    def __init__(self) -> None:
        self.calls = 0
        self.fails_with: Exception | None = None

    def wake(self) -> None:
        self.calls += 1
        if self.fails_with is not None:
            raise self.fails_with
